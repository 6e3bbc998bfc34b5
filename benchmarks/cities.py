"""Whole cities: the certified gap of `optimal` on windows, against time, on two cores or a GPU.

    python benchmarks/cities.py                              # short: the centre of Rome, a small grid
    python benchmarks/cities.py --full --record              # all figures of two cores, an hour on a quiet machine
    python benchmarks/cities.py --only rome-10 grid-100      # single ones
    python benchmarks/cities.py --gpu --record               # the figures of one GPU

Loss is the distance, the prior uniform. The gap is (loss - bound) / loss: the loss is that of the audited law, its
background included, and the bound holds for every mechanism with these reports. Time runs from the loaded network to
the audited mechanism; compiling (once on a machine) happens before, on a small network.
"""

from __future__ import annotations

import json
import math
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.solvers import FirstOrder, Gpu


@dataclass(frozen=True)
class Case:
    """A problem, what is asked for in words, and when to stop: at a gap or after so many seconds."""

    what: str
    asked: str
    space: Callable[[], mdp.FiniteSpace]
    epsilon: float
    gap: float
    seconds: float
    window: float | None = None


TWICE_AT_100M, TWICE_AT_200M, TWICE_AT_500M = (math.log(2.0) / distance for distance in (0.1, 0.2, 0.5))  # per km


def roads(city: str, nodes: int | None = None) -> Callable[[], mdp.FiniteSpace]:
    return lambda: mdp.road_network(city, nodes=nodes)


def cells(side: int, spacing: float = 0.1) -> Callable[[], mdp.FiniteSpace]:
    return lambda: mdp.grid((side, side), spacing=spacing)


SHORT = {
    "rome-2000": Case("2,000 crossings of Rome, epsilon 10/km", "", roads("rome", 2_000), 10.0, 0.05, 60.0, 2.0),
    "grid-24": Case("24 x 24 cells of 100 m, epsilon 10/km", "", cells(24), 10.0, 0.05, 60.0, 1.6),
}
CORES = {
    "rome-10": Case(
        "Rome, 43,160 crossings, epsilon 10/km", "8 % in 15 min, aim 5 % in 10", roads("rome"), 10.0, 0.03, 600.0
    ),
    "rome-20": Case("Rome, epsilon 20/km", "8 % in 10 min", roads("rome"), 20.0, 0.03, 300.0),
    "grid-100": Case("100 x 100 cells of 100 m, l2, epsilon 10/km", "5 % in 10 min", cells(100), 10.0, 0.04, 400.0),
    "grid-32": Case("32 x 32 cells, l2, epsilon 1 per cell", "1 % in 90 s", cells(32, 1.0), 1.0, 0.01, 90.0, 16.0),
    "rome-5": Case("Rome, epsilon 5/km", "12 % in 30 min", roads("rome"), 5.0, 0.1, 1_700.0),
    "porto-1200": Case(
        "1,200 crossings of Porto, epsilon 10/km, no option but `seconds`",
        "2 % in 20 s",
        roads("porto", 1_200),
        10.0,
        0.001,
        20.0,
    ),
    "porto-200m": Case("Porto, 5,213 crossings, 2x@200m", "2 % in 3 min", roads("porto"), TWICE_AT_200M, 0.01, 180.0),
    "rome-100m": Case(
        "Rome, 43,160 crossings, 2x@100m", "5 % in 12 min, under 8 GB", roads("rome"), TWICE_AT_100M, 0.04, 720.0
    ),
    "rome-200m": Case(
        "Rome, 2x@200m", "15 % in 30 min, under 14 GB; aim 8 %", roads("rome"), TWICE_AT_200M, 0.08, 1_800.0
    ),
}
GPU = {
    "rome-10": Case(
        "Rome, 43,160 crossings, epsilon 10/km, one GPU", "3 % in 2 min, aim 2 %", roads("rome"), 10.0, 0.005, 110.0
    ),
    "london": Case("London, 59,110 crossings, one GPU", "4 % in 4 min", roads("london"), 10.0, 0.01, 120.0),
    "new-york": Case(
        "metropolitan New York, 264,346 crossings, one GPU", "5 % in 8 min", roads("nyc"), 10.0, 0.01, 240.0
    ),
    "rome-100m": Case("Rome, 2x@100m, one GPU", "1 % in 45 s", roads("rome"), TWICE_AT_100M, 0.005, 45.0),
    "rome-200m": Case("Rome, 2x@200m, one GPU", "5 % in 3 min, aim 3 %", roads("rome"), TWICE_AT_200M, 0.01, 180.0),
    "rome-500m": Case("Rome, 2x@500m, one GPU", "8 % in 6 min, aim 5 %", roads("rome"), TWICE_AT_500M, 0.04, 360.0),
    "london-200m": Case("London, 2x@200m, one GPU", "6 % in 4 min", roads("london"), TWICE_AT_200M, 0.03, 240.0),
    "new-york-200m": Case("New York, 2x@200m, one GPU", "6 % in 12 min", roads("nyc"), TWICE_AT_200M, 0.05, 720.0),
    "grid-300": Case("300 x 300 cells of 100 m, l2, one GPU", "5 % in 5 min", cells(300), 10.0, 0.02, 240.0),
}


def measured(case: Case, gpu: bool, keep: Recorder) -> mdp.mechanisms.FiniteMechanism:
    """Build one case and record its gap, time and memory."""
    space = case.space()
    started = time.perf_counter()

    def tell(lower: float, upper: float, seconds: float, iterations: int) -> None:
        print(f"  {seconds:7.1f} s  {iterations:7,}  [{lower:.6g}, {upper:.6g}]  {1 - lower / upper:.2%}", flush=True)

    mechanism = mdp.optimal(
        mdp.Problem(space, case.epsilon),
        gap=case.gap,
        seconds=case.seconds,
        solver=Gpu() if gpu else None,
        window=case.window,
        progress=tell,
    )
    spent, found = time.perf_counter() - started, mechanism.certificate
    local = isinstance(mechanism, mdp.mechanisms.LocalMechanism)
    entries = len(mechanism.columns) if local else mechanism.matrix.size
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    text = (
        f"{found.gap:.2%} in {spent:.0f} s, {memory:.1f} GB: loss at most {found.loss:.6g}, none below "
        f"{found.lower_bound:.6g}; audited epsilon {found.epsilon:.9g}"
    )
    print(f"{case.what}: {text}\n  {found.note}", flush=True)
    keep(
        "cities",
        case.what,
        asked=case.asked,
        measured=text,
        gap=found.gap,
        seconds=spent,
        loss=found.loss,
        bound=found.lower_bound,
        gigabytes=memory,
        entries=entries,
        note=found.note,
    )
    return mechanism


def beside_dense(nodes: int, gpu: bool, keep: Recorder, gap: float = 0.02) -> None:
    """Build one problem dense and on windows, to one gap, in one run."""
    problem = mdp.Problem(mdp.road_network("rome", nodes=nodes), 10.0)
    solver = Gpu() if gpu else FirstOrder()
    started = time.perf_counter()
    dense = mdp.optimal(problem, gap=gap, solver=solver, seconds=400.0).certificate
    between = time.perf_counter()
    local = mdp.optimal(problem, gap=gap, solver=solver, window=2.2, seconds=400.0).certificate
    ended = time.perf_counter()
    text = (
        f"windows {ended - between:.0f} s, loss {local.loss:.6g}, gap {local.gap:.2%}; "
        f"dense {between - started:.0f} s, loss {dense.loss:.6g}, gap {dense.gap:.2%}"
    )
    what = f"{nodes:,} crossings of Rome to a gap of {gap:.0%}: windows against dense{', one GPU' if gpu else ''}"
    print(f"{what}: {text}", flush=True)
    keep(
        "cities",
        what,
        asked="same loss within the gaps, not slower from 2,000 on",
        measured=text,
        windows=ended - between,
        dense=between - started,
    )


def in_use(mechanism: mdp.mechanisms.FiniteMechanism, keep: Recorder) -> None:
    """Save, open, draw and audit the mechanism of a city."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "city.mdp"
        mdp.save(mechanism, path)
        size = path.stat().st_size / 1e6
        started = time.perf_counter()
        opened = mdp.load(path)
        opening = time.perf_counter() - started
    secrets = np.random.default_rng(0).integers(0, len(opened.inputs), 1_000_000)
    opened.sample(secrets[:1])
    started = time.perf_counter()
    opened.sample(secrets)
    drawing = time.perf_counter() - started
    started = time.perf_counter()
    report = mdp.audit(opened)
    judging = time.perf_counter() - started
    assert report.holds
    text = (
        f"file {size:.0f} MB; opened in {opening:.1f} s; a million draws {drawing:.2f} s; exact audit {judging:.1f} s"
    )
    print(text, flush=True)
    keep(
        "cities",
        "mechanism of Rome in use",
        asked="under 250 MB; under 10 s; under 1 s; under 2 min",
        measured=text,
        megabytes=size,
        opening=opening,
        drawing=drawing,
        judging=judging,
    )


def warm_up(gpu: bool) -> None:
    """Compile everything on small problems."""
    for space in (mdp.grid((12, 12)), mdp.road_network("rome", nodes=300)):
        mdp.optimal(
            mdp.Problem(space, 1.0 if space.width != 2 or space.same_ground else 10.0),
            gap=0.5,
            seconds=120.0,
            solver=Gpu() if gpu else None,
            window=5.0 if space.same_ground else 1.0,
        )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true", help="the figures of two cores")
    parser.add_argument("--gpu", action="store_true", help="the figures of one GPU")
    parser.add_argument("--only", nargs="+", default=(), help="names of single cases")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    cases = GPU if chosen.gpu else CORES if chosen.full or chosen.only else SHORT
    names = [name for name in chosen.only or cases if name in cases]
    warm_up(chosen.gpu)
    for name in names:
        mechanism = measured(cases[name], chosen.gpu, keep)
        if name in ("rome-10", "rome-200m") and not chosen.gpu:
            in_use(mechanism, keep)
        del mechanism
    if chosen.full or (chosen.gpu and not chosen.only) or "dense" in chosen.only:
        for nodes in (1_000, 2_000, 3_000):
            beside_dense(nodes, chosen.gpu, keep)
    print(json.dumps({"cases": names}))


if __name__ == "__main__":
    main()
