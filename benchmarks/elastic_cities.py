"""Whole cities under elastic promises and local scales: gap, loss, protection and guessing at every crossing.

    python benchmarks/elastic_cities.py solve FOLDER --gpu                      # every case, one file each; resumes
    python benchmarks/elastic_cities.py solve FOLDER --only rome-elastic-2      # single ones, on this machine's cores
    python benchmarks/elastic_cities.py record FOLDER --record                  # figures; then tools/elastic_maps.py

All crossings of a city, none left out. Level l of the elastic metric holds 8 l^2 crossings, up to 40. Loss is the way
along the roads, the prior uniform; the bound is that of `optimal`, which holds for every mechanism with the same
promise. By crossing are kept: the expected loss; protection, how many crossings a ratio of e^2 (New York: e^6) hides
one among; and the error of the best guess (the crossing of least expected distance, given prior and mechanism),
searched among crossings near the report. Distances above so many times the mean loss (FAR) count as that in loss and
error by crossing, so that these err low.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray
from record import arguments, recorder

import metricdp as mdp
from metricdp.solvers import Gpu

MOST = 40.0  # crossings that the requirement ends at
FAR = {"plain": 6.0, "scaled": 6.0, "elastic": 24.0}  # times the loss: lonely crossings of an elastic city lose most
CANDIDATES, ROUNDS, CHUNK = 12, 6, 256  # crossings tried as a guess at a time, how often, and reports of a thread
CLINICS = {  # large hospitals, with a radius in kilometres in which distances count three tenths
    "rome": ((41.9065, 12.5100), (41.9318, 12.4290), (41.8687, 12.4553), (41.8557, 12.4715)),
    "nyc": ((40.7395, -73.9755), (40.7900, -73.9526), (40.8803, -73.8795), (40.6560, -73.9445)),
}
AROUND, SCALE = 0.5, 0.3
OPEN = 0.5  # a gap above this was not searched for
REACH = 0.37  # kilometres: steps between cells, in 32 directions
WORDS = {"rome": "Rome", "nyc": "metropolitan New York", "cells": "224 x 224 cells of 100 m"}


@dataclass(frozen=True)
class Case:
    """A city, what the promise is per, and epsilon."""

    city: str
    kind: str  # plain: per kilometre; elastic: per level; scaled: per kilometre, less around hospitals
    epsilon: float
    thinned: int | None = None
    window: float | None = None  # how far rows are stored, where `optimal` does not choose
    hidden: float = 2.0  # the exponent of the ratio that protects

    @property
    def name(self) -> str:
        """What its file is called."""
        few = "" if self.thinned is None else f"-of-{self.thinned}"
        return f"{self.city}-{self.kind}-{self.epsilon:g}{few}"


CASES = (
    Case("rome", "elastic", 2.0),
    Case("nyc", "elastic", 6.0, hidden=6.0),
    Case("rome", "plain", 5.0),
    Case("rome", "plain", 3.0, window=5.4),  # wider ones do not fit the fast memory of a GPU
    Case("nyc", "plain", 20.0, hidden=6.0),
    Case("nyc", "plain", 10.0, hidden=6.0),
    Case("rome", "scaled", 10.0),
    Case("nyc", "scaled", 10.0, hidden=6.0),
    Case("nyc", "elastic", 3.0, hidden=6.0),
    Case("rome", "elastic", 1.0, window=17.5),
    Case("cells", "scaled", 10.0),
    Case("rome", "elastic", 1.0, thinned=5_000),
)


def places_of(city: str, nodes: int | None) -> mdp.FiniteSpace:
    """Return all crossings of a city, or 224 x 224 cells of 100 m."""
    if city != "cells":
        return mdp.road_network(city, nodes=nodes)
    side = 224 if nodes is None else round(nodes**0.5)
    return mdp.grid((side, side), spacing=0.1)


def thinned(city: mdp.FiniteSpace, count: int) -> tuple[mdp.FiniteSpace, NDArray[np.float64]]:
    """Return some crossings in the metric of all roads, and how many crossings are nearest to each."""
    from scipy.sparse.csgraph import dijkstra

    codes = np.sort(np.random.default_rng(0).choice(len(city), min(count, len(city)), replace=False))
    assert city.network is not None
    nearest = dijkstra(city.network.graph, directed=False, indices=codes, min_only=True, return_predecessors=True)[2]
    return city.part(codes), np.bincount(nearest, minlength=len(city))[codes].astype(np.float64)


def space_of(case: Case, city: mdp.FiniteSpace, mass: NDArray[np.float64]) -> mdp.FiniteSpace:
    """Return the crossings in the metric of the promise."""
    if case.kind == "plain":
        return city
    if case.city == "cells":  # three circles, in shares of the side
        side, scale = float(city.points.max()), np.ones(len(city))
        for x, y, radius, one in ((0.5, 0.5, 0.8, 0.3), (0.3, 0.7, 1.0, 0.5), (0.7, 0.2, 0.5, 0.3)):
            scale[np.hypot(city.points[:, 0] - x * side, city.points[:, 1] - y * side) <= radius] = one
        return mdp.places.scaled(city, scale, reach=REACH)
    if case.kind == "scaled":
        where = np.array(CLINICS[case.city])
        many = np.ones(len(where))
        regions = {"lat": where[:, 0], "lon": where[:, 1], "radius": AROUND * many, "scale": SCALE * many}
        return mdp.places.scaled(city, mdp.places.region_scale(city, regions))
    ends = 150.0 if case.thinned is not None else MOST  # as was asked for when places were thinned
    return mdp.elastic(city, mass=mass, requirement=lambda level: min(8.0 * level * level, ends))


@njit(parallel=True)  # type: ignore[misc]
def guessed(columns, near, far, found):  # type: ignore[no-untyped-def]
    """Set the best guess for every report: the column's weights, and a walk to ever better crossings nearby."""
    starts, rows, weights = columns
    near_starts, near_codes, near_lengths = near
    reports, size = len(starts) - 1, len(near_starts) - 1
    for chunk in prange((reports + CHUNK - 1) // CHUNK):
        column, tried = np.zeros(size), np.zeros(size, dtype=np.bool_)
        for k in range(chunk * CHUNK, min(reports, (chunk + 1) * CHUNK)):
            whole = 0.0
            for at in range(starts[k], starts[k + 1]):
                column[rows[at]] = weights[at]
                whole += weights[at]
            middle, least = k, np.inf
            seen = np.empty(CANDIDATES * ROUNDS, dtype=np.int64)
            count = 0
            for _ in range(ROUNDS):
                begin, end = near_starts[middle], near_starts[middle + 1]
                some = near_codes[begin:end][np.argsort(near_lengths[begin:end])[:CANDIDATES]]
                better = middle
                for t in some:
                    if tried[t]:
                        continue
                    tried[t] = True
                    seen[count] = t
                    count += 1
                    cost, covered = 0.0, 0.0
                    for at in range(near_starts[t], near_starts[t + 1]):
                        weight = column[near_codes[at]]
                        cost += weight * near_lengths[at]
                        covered += weight
                    cost += (whole - covered) * far
                    if cost < least:
                        least, better = cost, t
                if better == middle:
                    break
                middle = better
            found[k] = middle
            tried[seen[:count]] = False
            for at in range(starts[k], starts[k + 1]):
                column[rows[at]] = 0.0


@njit(parallel=True)  # type: ignore[misc]
def away(rows, guess, near, far, found):  # type: ignore[no-untyped-def]
    """Set the expected distance between every secret and the guess from its report; the background counts as far."""
    starts, columns, weights = rows
    near_starts, near_codes, near_lengths = near
    size = len(starts) - 1
    for chunk in prange((size + CHUNK - 1) // CHUNK):
        apart = np.full(len(guess), far)
        for i in range(chunk * CHUNK, min(size, (chunk + 1) * CHUNK)):
            for at in range(near_starts[i], near_starts[i + 1]):
                apart[near_codes[at]] = near_lengths[at]
            total, stored = 0.0, 0.0
            for at in range(starts[i], starts[i + 1]):
                total += weights[at] * apart[guess[columns[at]]]
                stored += weights[at]
            found[i] = total + max(1.0 - stored, 0.0) * far
            for at in range(near_starts[i], near_starts[i + 1]):
                apart[near_codes[at]] = far


def by_place(made: mdp.mechanisms.LocalMechanism, city: mdp.FiniteSpace, far: float) -> dict[str, NDArray[Any]]:
    """Return loss and error of the best guess in metres, of every crossing; no distance counts more than `far`."""
    from scipy.sparse import csr_array

    near = city.near(far)
    around = (near.starts, near.codes, near.distances)
    size = len(city)
    weights = made.values / np.repeat(made.totals, np.diff(made.starts)).astype(np.float32)
    columns = csr_array((weights, made.columns, made.starts), shape=(size, size)).tocsc()
    guess, found = np.arange(size), {}
    for name in ("loss", "error"):
        if name == "error":
            guess = np.empty(size, dtype=np.int64)
            guessed((columns.indptr.astype(np.int64), columns.indices, columns.data), around, far, guess)
        metres = np.empty(size)
        away((made.starts, made.columns, weights), guess, around, far, metres)
        found[name] = 1000.0 * metres
    found["moved"] = guess != np.arange(size)
    return found


def solve(case: Case, chosen: argparse.Namespace) -> None:
    """Design one mechanism on windows, have it audited and keep what is shown."""
    target = chosen.folder / f"{case.name}.npz"
    if target.exists():
        print(f"{case.name}: there already", flush=True)
        return
    started = time.perf_counter()
    city = places_of(case.city, chosen.nodes)
    mass = np.ones(len(city))
    if case.thinned is not None:
        city, mass = thinned(city, case.thinned)
    space = space_of(case, city, mass)
    steps = 0 if space.network is None else len(space.network.edges)
    print(f"{case.name}: {len(space):,} crossings, {steps:,} steps, {time.perf_counter() - started:.0f} s", flush=True)
    history: list[tuple[float, float, float, float]] = []

    def told(lower: float, upper: float, seconds: float, iterations: int) -> None:
        history.append((seconds, iterations, lower, upper))
        print(f"  {seconds:6.0f} s {iterations:7,} [{lower:.5g}, {upper:.5g}] {1 - lower / upper:.2%}", flush=True)

    problem = mdp.Problem(space, case.epsilon, loss=None if case.kind == "plain" else city)
    solver = Gpu() if chosen.gpu else None
    made = mdp.optimal(
        problem, gap=chosen.gap, seconds=chosen.seconds, solver=solver, progress=told, window=case.window
    )
    assert isinstance(made, mdp.mechanisms.LocalMechanism)
    report = mdp.audit(made)
    assert report.verdict == "holds", report
    facts = made.certificate
    print(f"  gap {facts.gap:.2%}, audited epsilon {report.epsilon:.9g}; {facts.note}", flush=True)
    found = by_place(made, city, FAR[case.kind] * facts.loss)
    found["hidden"] = np.add.reduceat(mass[(near := space.near(case.hidden / case.epsilon)).codes], near.starts[:-1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    about = {
        **asdict(case), "crossings": int(mass.sum()), "places": len(space), "steps": steps, "entries": len(made.values),
        "loss": facts.loss, "bound": facts.lower_bound, "gap": facts.gap, "audited": report.epsilon,
        "pairs": report.pairs, "seconds": facts.seconds, "memory_gb": peak, "gpu": bool(chosen.gpu),
        "moved": float(np.mean(found.pop("moved"))), "note": facts.note, "far": 1000.0 * FAR[case.kind] * facts.loss,
    }  # fmt: skip
    places = np.asarray(city.coordinates, dtype=np.float32)
    parts = {name: values.astype(np.float32) for name, values in found.items()}
    np.savez_compressed(
        target, places=places, mass=mass.astype(np.float32), history=np.array(history), about=json.dumps(about),
        **parts,
    )  # fmt: skip
    print(f"  kept after {time.perf_counter() - started:.0f} s, at most {peak:.1f} GB", flush=True)


def words_of(about: dict[str, Any], history: NDArray[np.float64]) -> str:
    """Say in one line what was measured."""
    where = "one H200" if about["gpu"] else "cores"
    rounds = f"{int(history[-1, 1]):,} iterations, " if len(history) else ""
    if about["gap"] > OPEN:
        return (
            f"time was up after the set-up of {about['steps']:,} steps and {about['entries'] / 1e6:.0f} million "
            f"entries on {where}: the mechanism holds, with a loss of at most {1000 * about['loss']:.1f} m and an "
            f"audited epsilon of {about['audited']:.9g}; how low any could go was not searched"
        )
    return (
        f"gap {about['gap']:.2%} in {about['seconds']:.0f} s on {where} ({rounds}{about['steps']:,} steps, "
        f"{about['entries'] / 1e6:.0f} million entries): loss at most {1000 * about['loss']:.1f} m, none below "
        f"{1000 * about['bound']:.1f} m; audited epsilon {about['audited']:.9g} by {about['pairs']:,} pairs that "
        "imply all others"
    )


def told_of(case: Case, about: dict[str, Any]) -> str:
    """Name a case."""
    unit = "level" if case.kind == "elastic" else "km"
    kind = {"plain": "", "elastic": ", elastic", "scaled": ", less around hospitals"}[case.kind]
    few = f", {about['places']:,} places for" if case.thinned is not None else ","
    return f"{WORDS[case.city]}{few} {about['crossings']:,} crossings, epsilon {case.epsilon:g}/{unit}{kind}"


def by_ring(city: str, folder: Path) -> str:
    """Say what the maps of a city show: the middle 3 km against what lies 8 km out and farther, and the whole."""
    said = []
    for case in CASES:
        path = folder / f"{case.name}.npz"
        if case.city != city or case.thinned is not None or not path.exists():
            continue
        with np.load(path) as kept:
            places = np.asarray(kept["places"], dtype=np.float64)
            hidden, loss, error = (np.asarray(kept[kind], dtype=np.float64) for kind in ("hidden", "loss", "error"))
            about = json.loads(str(kept["about"]))
        away = mdp.Haversine()(places, np.median(places, axis=0)[None])
        rings = (away <= 3.0, away >= 8.0)
        crowd, metres = [np.median(hidden[ring]) for ring in rings], [loss[ring].mean() for ring in rings]
        reached = f"none below {1000 * about['bound']:.1f} m, gap {about['gap']:.2%}"
        if about["gap"] > OPEN:
            reached = "how low any could go was not searched: time was up"
        unit = {"plain": "km", "elastic": "level", "scaled": "scaled km"}[case.kind]
        said.append(
            f"**{case.epsilon:g} per {unit}**: a ratio of e^{about['hidden']:g} hides a crossing among {crowd[0]:.0f} "
            f"in the centre and {crowd[1]:.0f} in the suburbs (medians), {np.quantile(hidden, 0.1):.0f} at most for a "
            f"tenth of all and {hidden.min():.0f} at the least; it loses {1000 * about['loss']:.1f} m at most on "
            f"average ({reached}), about {metres[0]:.0f} m in the centre and {metres[1]:.0f} m in the suburbs; the "
            f"best guess errs by {error.mean():.1f} m and differs from the report for {about['moved']:.0%} of reports "
            f"(by crossing no distance counts more than {about['far']:.0f} m, which leaves out "
            f"{max(1.0 - loss.mean() / (1000 * about['loss']), 0.0):.1%} of the loss)"
        )
    return "; ".join(said)


def main() -> None:
    """Solve, or record what was solved."""
    parser = arguments(__doc__)
    parser.add_argument("step", choices=("solve", "record"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[case.name for case in CASES])
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--gap", type=float, default=0.02)
    parser.add_argument("--seconds", type=float, default=150.0, help="of every case, setting up included")
    parser.add_argument("--nodes", type=int, help="crossings around the centre, to try things")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    keep = recorder(chosen.record)
    for case in CASES:
        if case.name not in chosen.only:
            continue
        if chosen.step == "solve":
            try:
                solve(case, chosen)
            except mdp.MetricdpError as error:
                print(f"{case.name}: {error}", flush=True)
            continue
        target = chosen.folder / f"{case.name}.npz"
        if target.exists():
            with np.load(target) as found:
                about, history = json.loads(str(found["about"])), np.asarray(found["history"])
            words = words_of(about, history)
            keep("elastic", told_of(case, about), asked="gap 5%", measured=words, **about)
            print(told_of(case, about), words, sep=": ")
    for city in ("rome", "nyc"):
        if chosen.step == "record" and (words := by_ring(city, chosen.folder)):
            keep("elastic", f"{WORDS[city]}, maps by crossing", measured=words, picture=city)
            print(words)


if __name__ == "__main__":
    main()
