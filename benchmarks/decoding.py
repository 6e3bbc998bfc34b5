"""Measure decoding: how often intervals cover over 1,000 tables, and how long a million reports take.

    python benchmarks/decoding.py --record                              # everything
    python benchmarks/decoding.py coverage --jobs 16 --folder pieces  # a part: flows, speed, places, trips, picture
    python benchmarks/decoding.py places trips --tables 300 --jobs 16 --only Porto --record  # real data, one set of it

Secrets are drawn from masses with large, small and empty cells. Every table is drawn anew, secrets and noise; for the
target "table" the truth is the share of this very table, for "population" the masses it was drawn from. Stated is the
coverage over all cells of a kind, and the least and the largest of any single cell: a coverage of 95 % is seen as one
between 93.6 and 96.4 % over 1,000 tables in 19 of 20 cells, and the outermost of 36 cells as 93.5 and 96.5 %, of 400 as
92.9 and 97.1 %. Coverage is drawn in pieces of fifty tables that stay in the folder: what is there is not drawn again.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from coverings import PIECE, cases, local_of, masses_of, piece, summary
from record import Recorder, arguments, recorder

import metricdp as mdp
from places import covered as places_covered

GROUP, PARTS = "decoding", ("coverage", "flows", "speed", "places", "trips", "picture")
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "decoding.png"


def covered(tables: int, only: str, jobs: int, folder: Path, keep: Recorder) -> None:
    """Draw tables, decode each, and count how often the truth lies in its interval."""
    chosen = [case for case in cases() if only in case.what]
    tasks = [(case.what, number) for case in chosen for number in range(tables // PIECE)]
    folder.mkdir(parents=True, exist_ok=True)
    made: dict[str, list[Path]] = {case.what: [] for case in chosen}
    if jobs == 1:
        places = (piece(name, number, folder) for name, number in tasks)
        for (name, _), place in zip(tasks, places, strict=True):
            made[name].append(place)
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:  # threads of a solver do not fork
            waiting = [(name, pool.submit(piece, name, number, folder)) for name, number in tasks]
            for name, one in waiting:
                made[name].append(one.result())
    for case in chosen:
        words, values = summary(case, made[case.what])
        print(f"{case.what}: {words} ({values['seconds']:.0f} s)", flush=True)
        asked = (
            "95 % or more on average, nothing assumed" if "bounded" in case.tags else "93 to 97 %, each and all at once"
        )
        if "wrongly" in case.what:
            asked = "what the assumption costs where it is wrong"
        keep(GROUP, case.what, measured=words, asked=asked, **values)


def flows_covered(tables: int, keep: Recorder) -> None:
    """The same for flows between 3 x 3 cells, and for the share of every destination among those who left."""
    grid, masses = mdp.grid((3, 3)), masses_of(81, 5)
    noise, leaving = mdp.exponential(grid, 3.0), masses.reshape(9, 9).sum(axis=1)
    for target in ("table", "population"):
        rng = np.random.default_rng(8)
        hits, moves, region = np.zeros((9, 9)), np.zeros((9, 9)), 0
        for _ in range(tables):
            pairs = rng.choice(81, 10_000, p=masses)
            start, end = pairs // 9, pairs % 9
            found = mdp.estimate_flows(noise.sample(start, rng=rng), noise.sample(end, rng=rng), noise, target=target)
            truth = np.bincount(pairs, minlength=81) / 10_000 if target == "table" else masses
            truth = truth.reshape(9, 9)
            hits += (found.lower <= truth) & (truth <= found.upper)
            there = found.between([0, 1, 2], [6, 7, 8])
            region += there.lower <= truth[:3, 6:].sum() <= there.upper
            move, share = found.transitions(), truth / np.maximum(truth.sum(axis=1, keepdims=True), 1e-300)
            moves += (move.lower <= share) & (share <= move.upper)
        hits, moves = hits / tables, moves / tables
        nobody = masses.reshape(9, 9) == 0
        words = f"flows {hits.mean():.1%}, of nobody {hits[nobody].mean():.1%}; single flows {hits.min():.1%} to "
        words += f"{hits.max():.1%}; row to row {region / tables:.1%}; shares of destinations {moves.mean():.1%}, of "
        words += f"nobody {moves[nobody].mean():.1%}; single shares {moves.min():.1%} to {moves.max():.1%}"
        print(f"coverage of flows, {target}: {words}", flush=True)
        keep(
            GROUP, f"coverage of flows, 3 x 3 cells, epsilon 3, 10,000 pairs, {target}", measured=words,
            asked="93 to 97 %", tables=tables, mean=float(hits.mean()), least=float(hits.min()),
            most=float(hits.max()), region=region / tables, shares=float(moves.mean()), shares_least=float(moves.min()),
            shares_most=float(moves.max()), leaving_least=float(leaving.min()),
        )  # fmt: skip


def timed(keep: Recorder) -> None:
    """A million reports on 400 cells, and a LocalMechanism of 5,041 cells."""
    rng = np.random.default_rng(10)
    grid = mdp.grid((20, 20))
    cases = [("400 cells, exponential", mdp.exponential(grid, 1.0), {}, ("linear", "em", "bounded"))]
    cases += [("5,041 cells, LocalMechanism", local_of(71, 3.0), {}, ("linear", "em"))]
    cases += [("15,129 cells, LocalMechanism", local_of(123, 3.0), {}, ("linear", "em"))]
    cases += [("400 cells, Laplace in the plane", mdp.laplace(mdp.Lp(2), 1.0), {"cells": grid}, ("linear", None))]
    for name, mechanism, options, methods in cases:
        secrets = rng.integers(0, len(options.get("cells", mechanism.inputs)), 1_000_000)
        reports = mechanism.sample(grid.points[secrets] if options else secrets, rng=rng)
        for method in methods:
            began, busy = time.perf_counter(), time.process_time()
            found = mdp.estimate_density(reports, mechanism, method=method, **options)
            seconds, worked = time.perf_counter() - began, time.process_time() - busy
            words = f"{seconds:.1f} s, {worked:.1f} processor s"
            how = found.method if method is None else method
            print(f"a million reports, {name}, {how}: {words}; {found.notes[0]}", flush=True)
            asked = "in seconds" if name.startswith("400") and method is not None else "in a minute"
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            keep(
                GROUP, f"a million reports, {name}, {how}", measured=words, asked=asked, seconds=seconds,
                most_memory_mib=memory,
            )  # fmt: skip


def new_york(side: float, shape: tuple[int, int]) -> tuple[mdp.FiniteSpace, np.ndarray, np.ndarray] | None:
    """Return cells of New York, the check-ins in them and the cell of each; None where the data is not at hand."""
    import pyarrow.parquet as parquet

    from metricdp.places import data_folder

    file = data_folder() / "checkins_foursquare_nyc" / "checkins.parquet"
    if not file.is_file():
        print("the check-ins are not at hand: left out")
        return None
    table = parquet.read_table(file, columns=["lat", "lon"])
    places = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    cells = mdp.grid(shape, spacing=side, origin=(40.60, -74.08), metric=mdp.Haversine())
    steps = cells.points[[shape[1], 1]].diagonal() - cells.points[0]
    at = (places - cells.points[0]) / steps + 0.5
    inside = np.all((at >= 0) & (at < np.array(shape)), axis=1)
    row, column = np.floor(at[inside]).astype(int).T
    return cells, places[inside], row * shape[1] + column


def drawn() -> None:
    """Draw the picture of the page: simulated trips in Porto and real check-ins, true, reported and estimated."""
    from metricdp.places import bundled_trips
    from metricdp.plots import interval_plot, masses_plot, palette

    table, earth, rng = bundled_trips(trips=1500), mdp.Haversine(), np.random.default_rng(12)
    places = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
    low, high = places.min(axis=0), places.max(axis=0)
    size = (high - low) * earth.degree * [1.0, np.cos(np.radians(low[0]))]
    shape = tuple(int(np.ceil(length / 0.4)) + 1 for length in size)
    cells = mdp.grid(shape, spacing=0.4, origin=low, metric=earth)
    rows = [("simulated trips in Porto", cells, places, cells.nearest(places)[0], mdp.laplace(earth, 10.0))]
    known = new_york(2.0, (14, 12))
    if known is not None:
        rows.append(("real check-ins in New York", *known, mdp.laplace(earth, 2.0)))
    with palette.plot_style():
        axes = palette.figure(15.0, 4.2 * len(rows)).subplots(len(rows), 4, squeeze=False)
        for own, (name, cells, places, codes, noise) in zip(axes, rows, strict=True):
            reports = noise.sample(places, rng=rng)
            found = mdp.estimate_density(reports, noise, cells=cells)
            truth, plain = (
                np.bincount(one, minlength=len(cells)) / len(codes) for one in (codes, cells.nearest(reports)[0])
            )
            panels = {f"{name}: true": truth, "as reported": plain, "estimated": found.masses}
            masses_plot(panels, cells, list(own)[:3])
            interval_plot(found, own[3], truth=truth)
            away = [float(np.abs(one - truth).sum() / 2) for one in (plain, found.masses)]
            print(f"{name}: {len(places):,} places, {len(cells)} cells, total variation {away}; {found.notes}")
        palette.write_picture(axes[0][0], PICTURE)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--jobs", type=int, default=1, help="processes that draw tables")
    parser.add_argument("--folder", type=Path, default=None, help="where pieces of coverage stay")
    chosen = parser.parse_args()
    keep, parts = recorder(chosen.record), chosen.parts or PARTS
    if unknown := set(parts) - set(PARTS):
        sys.exit(f"no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}.")
    if "coverage" in parts:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) if chosen.folder is None else chosen.folder
            covered(chosen.tables, chosen.only, chosen.jobs, folder, keep)
    if "flows" in parts:
        flows_covered(chosen.tables, keep)
    if "speed" in parts:
        timed(keep)
    real = [part for part in ("places", "trips") if part in parts]
    failed = places_covered(real, chosen.tables, chosen.only, chosen.jobs, keep) if real else 0
    if "picture" in parts:
        drawn()
    if failed:
        sys.exit(f"{failed} pieces failed; what is recorded says how many tables it has.")


if __name__ == "__main__":
    main()
