"""Measure decoding: how often intervals cover over 1,000 tables, and how long a million reports take.

    python benchmarks/decoding.py --record                    # everything
    python benchmarks/decoding.py coverage --tables 1000      # or one part: bootstrap, speed, checkins, picture

Secrets are drawn from masses with large, small and empty cells. Every table is drawn anew, secrets and noise; for the
target "table" the truth is the share of this very table, for "population" the masses it was drawn from. Stated is the
coverage over all cells of a kind, and the least and the largest of any single cell: of 1,000 tables, 95 % give between
93.2 and 96.6 % but for a chance of one in a hundred, for each cell.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from record import Recorder, arguments, recorder

import metricdp as mdp
from metricdp.decoding import laws
from metricdp.decoding.estimate import Request, decoded
from metricdp.decoding.reading import readable

GROUP, PARTS = "decoding", ("coverage", "bootstrap", "speed", "checkins", "picture")
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "decoding.png"
Reports = Callable[[np.ndarray, np.random.Generator], object]


@dataclass(frozen=True)
class Case:
    """Where secrets lie, how they are reported, and how reports are decoded."""

    name: str
    mechanism: object
    masses: np.ndarray
    reports: int
    options: dict[str, object]
    report: Reports | None = None
    sparse: bool = False

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, object]:
        secrets = rng.choice(len(self.masses), self.reports, p=self.masses)
        made = self.mechanism.sample(secrets, rng=rng) if self.report is None else self.report(secrets, rng)
        return np.bincount(secrets, minlength=len(self.masses)) / self.reports, made


def masses_of(n: int, seed: int = 0) -> np.ndarray:
    """Return masses of which a third are empty, a third small (0.1 to 1 % of all) and a third share the rest."""
    rng = np.random.default_rng(seed)
    found = np.zeros(n)
    order = rng.permutation(n)
    small, large = order[n // 3 : 2 * n // 3], order[2 * n // 3 :]
    found[small] = rng.uniform(0.001, 0.01, len(small)) * min(1.0, 30 / len(small))
    found[large] = (1.0 - found.sum()) * rng.dirichlet(np.full(len(large), 3.0))
    return found


def local_of(side: int, epsilon: float) -> mdp.LocalMechanism:
    """Return an exponential law with stored reports up to three steps away, over one background."""
    places = mdp.grid((side, side))
    near = places.near(3.0)
    values = np.exp(-0.5 * epsilon * near.distances).astype(np.float32)
    background = np.full(len(places), np.exp(-2.0 * epsilon), dtype=np.float32)
    promise = mdp.Guarantee(epsilon, mdp.Lp(2), basis="none")
    certificate = mdp.Certificate(loss=1.0, lower_bound=0.0, method="given", epsilon=float("inf"))
    return mdp.LocalMechanism(places, places, near.starts, near.codes, values, background, promise, certificate)


def cases() -> list[Case]:
    grid, masses = mdp.grid((6, 6)), masses_of(36)
    noise = mdp.laplace(mdp.Lp(2), 2.0)
    one, two = mdp.exponential(grid, 1.0), mdp.exponential(grid, 3.0)

    def anywhere(secrets: np.ndarray, rng: np.random.Generator) -> object:
        return noise.sample(grid.points[secrets] + rng.uniform(-0.5, 0.5, (len(secrets), 2)), rng=rng)

    def halves(secrets: np.ndarray, rng: np.random.Generator) -> object:
        half = len(secrets) // 2
        return [one.sample(secrets[:half], rng=rng), two.sample(secrets[half:], rng=rng)]

    words = mdp.vocabulary([f"w{i}" for i in range(60)], np.random.default_rng(4).normal(size=(60, 8)))
    found = [
        Case("exponential, 6 x 6 cells, epsilon 2", two_of(grid), masses, 5_000, {}),
        Case("exponential, 6 x 6 cells, epsilon 1", one, masses, 20_000, {}),
        Case("optimal, 6 x 6 cells, epsilon 2", mdp.optimal(mdp.Problem(grid, 2.0), gap=0.01), masses, 5_000, {}),
        Case("Laplace in the plane, epsilon 2, secrets anywhere", noise, masses, 5_000, {"cells": grid}, anywhere),
        Case("epsilon 1 and 3 in one table", [one, two], masses, 10_000, {}, halves),
        Case(
            "kernel on 60 words, epsilon 1.2", mdp.exponential(words, 1.2, form="kernel"), masses_of(60, 1), 20_000, {}
        ),
        Case("LocalMechanism, 12 x 12 cells, no table", local_of(12, 3.0), masses_of(144, 2), 20_000, {}, sparse=True),
        Case("exponential, 20 x 20 cells, epsilon 2", two_of(mdp.grid((20, 20))), masses_of(400, 3), 50_000, {}),
    ]
    return [
        replace(one, options={**one.options, "target": target}) for one in found for target in ("table", "population")
    ]


def two_of(space: mdp.FiniteSpace) -> mdp.MatrixMechanism:
    return mdp.exponential(space, 2.0)


def covered(case: Case, tables: int, keep: Recorder, method: str | None = None) -> None:
    """Draw tables, decode each, and count how often the truth lies in its interval."""
    rng, n = np.random.default_rng(7), len(case.masses)
    tables = min(tables, 250) if n > 300 else tables
    regions = {"quarter": np.arange(n // 4), "scattered": rng.permutation(n)[: n // 3], "two": np.array([0, 1])}
    hits, region_hits, all_at_once = np.zeros(n), np.zeros(len(regions)), 0
    before, began = laws.MOST_DENSE, time.perf_counter()
    if case.sparse:
        laws.MOST_DENSE = 1
    several = case.mechanism if isinstance(case.mechanism, list) else [case.mechanism]
    sources = [readable(one, case.options.get("cells")) for one in several]  # the law is made once for all tables
    try:
        for _ in range(tables):
            told, reports = case.draw(rng)
            truth = told if case.options["target"] == "table" else case.masses
            counts = [source.counted(table) for source, table in zip(sources, tables_of(case, reports), strict=True)]
            found = decoded(sources, counts, Request(method, case.options["target"]))
            hits += (found.lower <= truth) & (truth <= found.upper)
            for at, (codes, mass) in enumerate(zip(regions.values(), found.regions(regions).values(), strict=True)):
                region_hits[at] += mass.lower <= truth[codes].sum() <= mass.upper
            wide = decoded(sources, counts, Request(method, case.options["target"], simultaneous=True))
            all_at_once += bool(np.all((wide.lower <= truth) & (truth <= wide.upper)))
    finally:
        laws.MOST_DENSE = before
    kinds = {"large": case.masses > 0.01, "small": (case.masses > 0) & (case.masses <= 0.01), "empty": case.masses == 0}
    shares = {name: float(hits[which].sum() / tables / which.sum()) for name, which in kinds.items() if which.any()}
    areas = {name: float(hit / tables) for name, hit in zip(regions, region_hits, strict=True)}
    words = ", ".join(f"{name} cells {share:.1%}" for name, share in shares.items())
    words += f"; single cells {hits.min() / tables:.1%} to {hits.max() / tables:.1%}; regions "
    words += f"{min(areas.values()):.1%} to {max(areas.values()):.1%}"
    together = all_at_once / tables if method is None else None  # of unbiased estimates alone
    words += "" if together is None else f"; all cells at once {together:.1%}"
    what = f"coverage, {case.name}, {case.options['target']}" + (f", {method}" if method else "")
    print(f"{what}: {words} ({time.perf_counter() - began:.0f} s)", flush=True)
    keep(
        GROUP, what, measured=words, asked="93 to 97 % of 95 % intervals, all at once at least 95 %", tables=tables,
        reports=case.reports, least=float(hits.min() / tables), most=float(hits.max() / tables), kinds=shares,
        regions=areas, together=together,
    )  # fmt: skip


def tables_of(case: Case, reports: object) -> list[object]:
    return reports if isinstance(case.mechanism, list) else [reports]


def flows_covered(tables: int, keep: Recorder) -> None:
    """The same for flows between 3 x 3 cells."""
    grid, rng = mdp.grid((3, 3)), np.random.default_rng(8)
    noise, masses = mdp.exponential(grid, 3.0), masses_of(81, 5)
    hits, region = np.zeros((9, 9)), 0
    for _ in range(tables):
        pairs = rng.choice(81, 10_000, p=masses)
        start, end = pairs // 9, pairs % 9
        found = mdp.estimate_flows(noise.sample(start, rng=rng), noise.sample(end, rng=rng), noise)
        truth = np.bincount(pairs, minlength=81).reshape(9, 9) / 10_000
        hits += (found.lower <= truth) & (truth <= found.upper)
        there = found.between([0, 1, 2], [6, 7, 8])
        region += there.lower <= truth[:3, 6:].sum() <= there.upper
    words = (
        f"flows {hits.mean() / tables:.1%}, of nobody {hits.ravel()[masses == 0].mean() / tables:.1%}; single flows "
    )
    words += f"{hits.min() / tables:.1%} to {hits.max() / tables:.1%}; row to row {region / tables:.1%}"
    print(f"coverage of flows: {words}", flush=True)
    keep(
        GROUP, "coverage of flows, 3 x 3 cells, epsilon 3, 10,000 pairs", measured=words, asked="93 to 97 %",
        tables=tables, mean=float(hits.mean() / tables), least=float(hits.min() / tables),
        most=float(hits.max() / tables), region=region / tables,
    )  # fmt: skip


def bootstrapped(tables: int, keep: Recorder) -> None:
    """Percentile intervals from 100 resampled tables, each through iterative Bayes: what is not offered, and why."""
    grid, masses, rng = mdp.grid((6, 6)), masses_of(36), np.random.default_rng(9)
    law = mdp.exponential(grid, 2.0).matrix
    law = law / law.sum(axis=1, keepdims=True)
    hits = np.zeros(36)
    for _ in range(tables):
        seen = rng.multinomial(5_000, masses @ law)
        shares = rng.multinomial(5_000, seen / 5_000, size=100) / 5_000
        found = np.full((100, 36), 1 / 36)
        for _ in range(500):
            found *= (shares / (found @ law)) @ law.T
        low, high = np.percentile(found, [2.5, 97.5], axis=0)
        hits += (low <= masses) & (masses <= high)
    kinds = {"large": masses > 0.01, "small": (masses > 0) & (masses <= 0.01), "empty": masses == 0}
    shares_of = {name: float(hits[which].mean() / tables) for name, which in kinds.items()}
    words = ", ".join(f"{name} cells {share:.1%}" for name, share in shares_of.items())
    print(f"bootstrap of iterative Bayes: {words}", flush=True)
    keep(
        GROUP, "bootstrap of iterative Bayes instead, exponential, 6 x 6 cells, epsilon 2, population", measured=words,
        asked="not offered: it does not cover", tables=tables, kinds=shares_of,
    )  # fmt: skip


def timed(keep: Recorder) -> None:
    """A million reports on 400 cells, and a LocalMechanism of 5,041 cells."""
    rng = np.random.default_rng(10)
    grid = mdp.grid((20, 20))
    cases = [("400 cells, exponential", mdp.exponential(grid, 1.0), {}, ("linear", "em", "bounded"))]
    cases += [("5,041 cells, LocalMechanism", local_of(71, 3.0), {}, ("linear", "em"))]
    cases += [("400 cells, Laplace in the plane", mdp.laplace(mdp.Lp(2), 1.0), {"cells": grid}, ("linear",))]
    for name, mechanism, options, methods in cases:
        secrets = rng.integers(0, len(options.get("cells", mechanism.inputs)), 1_000_000)
        reports = mechanism.sample(grid.points[secrets] if options else secrets, rng=rng)
        for method in methods:
            began, busy = time.perf_counter(), time.process_time()
            found = mdp.estimate_density(reports, mechanism, method=method, **options)
            seconds, worked = time.perf_counter() - began, time.process_time() - busy
            words = f"{seconds:.1f} s, {worked:.1f} processor s"
            print(f"a million reports, {name}, {method}: {words}; {found.notes[0]}", flush=True)
            asked = "in seconds" if name.startswith("400") else "in a minute"
            keep(GROUP, f"a million reports, {name}, {method}", measured=words, asked=asked, seconds=seconds)


def checkins(keep: Recorder) -> None:
    """Real check-ins of New York where they are at hand: only figures of all cells together are kept."""
    import pyarrow.parquet as parquet

    from metricdp.places.folders import data_folder

    file = data_folder() / "checkins_foursquare_nyc" / "checkins.parquet"
    if not file.is_file():
        print("the check-ins are not at hand: left out")
        return
    table, earth = parquet.read_table(file, columns=["lat", "lon"]), mdp.Haversine()
    places = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    for epsilon, side, shape in ((2.0, 2.0, (14, 12)), (1.0, 4.0, (7, 6))):
        cells = mdp.grid(shape, spacing=side, origin=(40.60, -74.08), metric=earth)
        steps = cells.points[[shape[1], 1]].diagonal() - cells.points[0]
        inside = np.all(
            np.abs((places - cells.points[0]) / steps - (np.array(shape) - 1) / 2) <= np.array(shape) / 2, axis=1
        )
        mine, rng = places[inside], np.random.default_rng(11)
        where = np.rint((mine - cells.points[0]) / steps).astype(int).clip(0, np.array(shape) - 1)
        truth = np.bincount(where[:, 0] * shape[1] + where[:, 1], minlength=len(cells)) / len(mine)
        noise = mdp.laplace(earth, epsilon)
        reports = noise.sample(mine, rng=rng)
        found = mdp.estimate_density(reports, noise, cells=cells)
        likely = mdp.estimate_density(reports, noise, cells=cells, method="em")
        fell = np.rint((reports - cells.points[0]) / steps).astype(int).clip(0, np.array(shape) - 1)
        plain = np.bincount(fell[:, 0] * shape[1] + fell[:, 1], minlength=len(cells)) / len(mine)
        covered = float(np.mean((found.lower <= truth) & (truth <= found.upper)))
        # The same on cells alone, where nothing is assumed about places inside them.
        tabled = mdp.exponential(cells, epsilon)
        codes = where[:, 0] * shape[1] + where[:, 1]
        exact = mdp.estimate_density(tabled.sample(codes, rng=rng), tabled)
        on_cells = float(np.mean((exact.lower <= truth) & (truth <= exact.upper)))
        errors = [float(np.abs(one - truth).sum() / 2) for one in (plain, likely.masses, np.clip(found.masses, 0, 1))]
        words = (
            f"{len(mine):,} check-ins, {covered:.1%} of {len(cells)} cells in their intervals, {on_cells:.1%} with a "
            "mechanism on the cells, where nothing is assumed about places inside them; total variation from "
        )
        words += "the truth {:.3f} of the reports as they are, {:.3f} of iterative Bayes, {:.3f} linear".format(*errors)
        print(f"check-ins, epsilon {epsilon:g}/km, cells of {side:g} km: {words}; {found.notes}", flush=True)
        keep(
            GROUP, f"real check-ins of New York, Laplace {epsilon:g}/km, cells of {side:g} km", measured=words,
            asked="truth and estimate on real check-ins", covered=covered, on_cells=on_cells, variation=errors,
        )  # fmt: skip


def drawn() -> None:
    """Draw the picture of the page: simulated trips in Porto, true, reported and estimated."""
    from metricdp.pictures import palette
    from metricdp.pictures.density import interval_plot, masses_plot
    from metricdp.places.bundled import bundled_trips

    table, earth, rng = bundled_trips(trips=1500), mdp.Haversine(), np.random.default_rng(12)
    places = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    low, high = places.min(axis=0), places.max(axis=0)
    size = (high - low) * earth.degree * [1.0, np.cos(np.radians(low[0]))]
    shape = tuple(int(np.ceil(length / 0.2)) + 1 for length in size)
    cells = mdp.grid(shape, spacing=0.2, origin=low, metric=earth)
    noise = mdp.laplace(earth, 10.0)
    reports = noise.sample(places, rng=rng)
    found = mdp.estimate_density(reports, noise, cells=cells, method="em")
    truth, plain = (np.bincount(cells.nearest(rows)[0], minlength=len(cells)) / len(rows) for rows in (places, reports))
    with palette.styled():
        axes = palette.figure(15.0, 4.0).subplots(1, 4)
        masses_plot({"true": truth, "as reported": plain, "estimated": found.masses}, cells, list(axes)[:3])
        interval_plot(found, axes[3], truth=truth)
        palette.write_picture(axes[0], PICTURE)
    away = [float(np.abs(one - truth).sum() / 2) for one in (plain, found.masses)]
    print(f"{len(places):,} places, {len(cells)} cells, total variation {away}; {found.notes}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    chosen = parser.parse_args()
    keep, parts = recorder(chosen.record), chosen.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        sys.exit(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}.")
    if "coverage" in parts:
        for case in cases():
            if chosen.only in case.name:
                covered(case, chosen.tables, keep)
        if chosen.only in "bounded":
            flat = mdp.optimal(mdp.Problem(mdp.grid((6, 6)), 0.5), gap=0.01)
            blurred = Case("optimal, 6 x 6 cells, epsilon 0.5", flat, masses_of(36), 5_000, {"target": "table"})
            covered(blurred, chosen.tables, keep, "bounded")
        if chosen.only in "flows":
            flows_covered(chosen.tables, keep)
    if "bootstrap" in parts:
        bootstrapped(min(chosen.tables, 300), keep)
    if "speed" in parts:
        timed(keep)
    if "checkins" in parts:
        checkins(keep)
    if "picture" in parts:
        drawn()


if __name__ == "__main__":
    main()
