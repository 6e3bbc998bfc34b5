"""How often intervals cover on real, clustered places: check-ins of New York, taxi trips of Porto, Rome, San Francisco.

The places are those of the data as they are, in the grid and outside it; the noise is drawn anew for every table. So
the truth is the share of this very table, and every cell has a coverage of its own. Only what is found of all cells
together is kept.

Tables are drawn in pieces, as many processes as asked for at a time. A case is recorded as soon as its last piece is
there. A piece that fails is said and left out, and its case says how many tables it has.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from record import Recorder
from scipy.stats import binom

import metricdp as mdp
from metricdp.estimation.bins import boxes_of
from metricdp.estimation.decoders import WindowDecoder
from metricdp.estimation.estimate import EstimateRequest, decode_counts
from metricdp.estimation.report_models import report_models_of
from metricdp.estimation.sentences import error_probability, quantile

MOST = 20_000  # places of a data set
ATTEMPTS = 3  # where the system ends a process, its pieces are begun again
BOUNDED = "95 % or more on average; the worst cell as chance allows"
UNBIASED = "93 to 97 % on average; the worst cell as chance allows"
WRONG = "what the assumption costs where it is wrong"
ASKED = {"anywhere": BOUNDED, "linear": UNBIASED, "bounded": BOUNDED, "flows": BOUNDED, "evenly": WRONG}
NAMES = {
    "anywhere": "real places, nothing assumed, {map}, Laplace {epsilon:g}/km, cells of {side:g} km",
    "linear": "real places, on cells, linear, {map}, exponential {epsilon:g}/km, cells of {side:g} km",
    "bounded": "real places, on cells, bounded, {map}, exponential {epsilon:g}/km, cells of {side:g} km",
    "flows": "real trips, on cells, {map}, {epsilon:g}/km, cells of {side:g} km",
    "evenly": "real trips, spread evenly assumed, {map}, {epsilon:g}/km, cells of {side:g} km",
}


@dataclass(frozen=True)
class Map:
    """A data set, its south-western corner, and how far the grid goes to the north and to the east, in km."""

    name: str
    folder: str
    corner: tuple[float, float]
    size: tuple[float, float]


MAPS = (
    Map("check-ins of New York (Foursquare)", "checkins_foursquare_nyc/checkins", (40.60, -74.08), (28.0, 24.0)),
    Map("check-ins of New York (Gowalla)", "checkins_gowalla_nyc/checkins", (40.60, -74.08), (28.0, 24.0)),
    Map("taxis of Porto", "traj_porto_taxi/points", (41.13, -8.69), (8.0, 12.0)),
    Map("taxis of Rome", "traj_rome_taxi/points", (41.85, 12.42), (12.0, 12.0)),
    Map("cabs of San Francisco", "traj_cabspotting/points", (37.72, -122.50), (12.0, 12.0)),
)
CASES = ((10.0, 2.0), (2.0, 2.0), (2.0, 4.0))  # epsilon per km, cells of so many km


@dataclass(frozen=True)
class Case:
    """A data set, how it is reported, and how reports are decoded."""

    method: str
    place: Map
    epsilon: float
    side: float

    @property
    def what(self) -> str:
        return NAMES[self.method].format(map=self.place.name, epsilon=self.epsilon, side=self.side)


@dataclass
class Found:
    """What tables covered: how often the truth of every cell lay in its interval, and how wide intervals were."""

    hits: np.ndarray
    truth: np.ndarray
    tables: int
    about: str
    width: float
    shares: np.ndarray  # of destinations: how often they were covered, for flows
    known: np.ndarray  # which of them have a truth
    seconds: float = 0.0

    def joined(self, other: Found) -> Found:
        both = self.tables + other.tables
        width = (self.width * self.tables + other.width * other.tables) / both
        return Found(
            self.hits + other.hits, self.truth, both, self.about, width, self.shares + other.shares, self.known,
            self.seconds + other.seconds,
        )  # fmt: skip


def read(folder: str, *names: str) -> list[np.ndarray] | None:
    """Return columns of a shared data set, or None where it is not at hand."""
    import pyarrow.parquet as parquet

    from metricdp.places import data_folder

    file = data_folder() / f"{folder}.parquet"
    if not file.is_file():
        return None
    table = parquet.read_table(file, columns=list(names))
    return [table[name].to_numpy() for name in names]


def cells_of(one: Map, side: float, places: np.ndarray) -> tuple[mdp.FiniteSpace, np.ndarray]:
    """Return a grid with the corner of the map in its first cell, and the cell of each place, -1 outside them all."""
    shape = tuple(int(length // side) for length in one.size)
    cells = mdp.grid(shape, spacing=side, origin=one.corner, metric=mdp.Haversine())
    steps = cells.points[[shape[1], 1]].diagonal() - cells.points[0]
    at = np.floor((places - cells.points[0]) / steps + 0.5).astype(int)
    inside = np.all((at >= 0) & (at < np.array(shape)), axis=1)
    return cells, np.where(inside, at[:, 0] * shape[1] + at[:, 1], -1)


def shares(codes: np.ndarray, count: int) -> np.ndarray:
    """Return the share of every cell, with the share outside them all as the last one."""
    return np.bincount(np.where(codes < 0, count, codes), minlength=count + 1) / len(codes)


def by_chance(cells: int, tables: int) -> float:
    """Return what the worst of so many independent cells stays below once in twenty, where each holds 95 %."""
    return float(binom.ppf(1.0 - 0.95 ** (1.0 / max(cells, 1)), tables, 0.95)) / tables


def of(hits: np.ndarray, tables: int) -> tuple[str, dict[str, object]]:
    """Say what was covered: of all cells, and in the worst."""
    rates, lowest = hits / tables, by_chance(len(hits), tables)
    words = f"{rates.mean():.1%} of all, {rates.min():.1%} in the worst of {len(rates):,} (by chance {lowest:.1%})"
    return words, {"mean": float(rates.mean()), "least": float(rates.min()), "by_chance": lowest}


def density(case: Case, tables: int, rng: np.random.Generator) -> Found:
    """Cover cells: with nothing assumed and noise on places anywhere, or with a mechanism on the cells."""
    read_places = read(case.place.folder, "lat", "lon")
    assert read_places is not None
    places = np.stack(read_places, axis=1)
    places = places[np.random.default_rng(1).permutation(len(places))[:MOST]]
    cells, codes = cells_of(case.place, case.side, places)
    if case.method == "anywhere":
        count, z = len(cells), quantile(error_probability(0.95))
        truth, noise = shares(codes, count), mdp.laplace(mdp.Haversine(), case.epsilon)
        source, about = (
            report_models_of([noise], cells)[0],
            f"{len(places):,} places, {np.mean(codes < 0):.1%} of them outside",
        )
    else:
        codes = codes[codes >= 0]
        truth, tabled = shares(codes, len(cells))[:-1], mdp.exponential(cells, case.epsilon)
        source, about = report_models_of([tabled])[0], f"{len(codes):,} places"
    hits, width = np.zeros(len(truth)), 0.0
    for _ in range(tables):
        if case.method == "anywhere":
            counts = source.count_reports(noise.sample(places, rng=rng))
            decoder = WindowDecoder([source.windows], [counts], boxes_of(cells))
            found = [
                made.interval(error_probability(0.95)) for made in (decoder.measure(None, z), decoder.elsewhere(z))
            ]
            lower, upper = (np.concatenate([ends[at] for ends in found]) for at in (0, 1))
        else:
            made = decode_counts(
                [source], [source.count_reports(tabled.sample(codes, rng=rng))], EstimateRequest(case.method)
            )
            lower, upper = made.lower, made.upper
        assert np.all(lower <= upper)
        hits += (lower <= truth) & (truth <= upper)
        width += float((np.clip(upper, 0, 1) - np.clip(lower, 0, 1)).mean()) / tables
    return Found(hits, truth, tables, about, width, np.zeros(0), np.zeros(0, bool))


def trips_of(one: Map) -> tuple[np.ndarray, np.ndarray]:
    """Return where trips begin and end: of Rome, where no trips are told, taxis every five minutes."""
    name = {"traj_porto_taxi/points": "trip", "traj_cabspotting/points": "trip", "traj_rome_taxi/points": "taxi"}[
        one.folder
    ]
    found = read(one.folder, name, "t", "lat", "lon")
    assert found is not None
    trip, t, lat, lon = found
    if name == "taxi":
        trip = trip.astype(np.int64) * 1_000 + ((t - t.min()) // 300).astype(np.int64)
    order = np.lexsort((t, trip))
    order = order[trip[order] >= 0]
    _, first, sizes = np.unique(trip[order], return_index=True, return_counts=True)
    places = np.stack([lat, lon], axis=1)[order]
    return places[first], places[first + sizes - 1]


def flow(case: Case, tables: int, rng: np.random.Generator) -> Found:
    """Cover flows between cells of real trips: with a mechanism on the cells, or with places spread evenly assumed."""
    trips = trips_of(case.place)
    cells, start = cells_of(case.place, case.side, trips[0])
    end = cells_of(case.place, case.side, trips[1])[1]
    inside, count = (start >= 0) & (end >= 0), len(cells)
    start, end = start[inside], end[inside]
    truth = np.bincount(start * count + end, minlength=count**2).reshape(count, count) / len(start)
    leaving = truth.sum(axis=1, keepdims=True)
    share = truth / np.where(leaving > 0, leaving, 1.0)
    noise, tabled = mdp.laplace(mdp.Haversine(), case.epsilon), mdp.exponential(cells, case.epsilon)
    hits, moved, width = np.zeros((count, count)), np.zeros((count, count)), 0.0
    for _ in range(tables):
        if case.method == "flows":
            found = mdp.estimate_flows(tabled.sample(start, rng=rng), tabled.sample(end, rng=rng), tabled)
        else:
            seen = tuple(noise.sample(one[inside], rng=rng) for one in trips)
            found = mdp.estimate_flows(*seen, noise, cells=cells, within="cell")
        hits += (found.lower <= truth) & (truth <= found.upper)
        width += float((np.clip(found.upper, 0, 1) - np.clip(found.lower, 0, 1)).mean()) / tables
        moves = found.transitions()
        moved += (moves.lower <= share) & (share <= moves.upper)
    known = np.broadcast_to(leaving > 0, truth.shape)
    about = f"{len(start):,} trips"
    return Found(hits.ravel(), truth.ravel(), tables, about, width, moved.ravel(), known.ravel())


def piece(case: Case, number: int, tables: int) -> Found:
    """Draw some tables of a case."""
    began, rng = time.process_time(), np.random.default_rng([2, number])
    found = (flow if case.method in ("flows", "evenly") else density)(case, tables, rng)
    found.seconds = time.process_time() - began
    return found


def said(case: Case, found: Found) -> tuple[str, dict[str, object]]:
    """Say what a case covered."""
    words, values = of(found.hits, found.tables)
    words = f"{found.about}; {words}; intervals {found.width:.2%} wide"
    if len(found.shares):
        some = found.truth > 0
        there, moves = of(found.hits[some], found.tables)[0], of(found.shares[found.known], found.tables)[0]
        words += f"; pairs that somebody went {there}; shares of destinations {moves}"
    return words, {**values, "width": found.width, "tables": found.tables, "seconds": found.seconds / found.tables}


def cases_of(part: str, only: str) -> list[Case]:
    """Return the cases of a part (places or trips) whose name has `only` in it, of data that is at hand."""
    found = []
    for one in MAPS if part == "places" else MAPS[2:]:
        for epsilon, side in CASES if part == "places" else ((2.0, 4.0), (2.0, 2.0)):
            cells_too = ("linear", "bounded") if epsilon <= 2.0 else ()
            methods = ("anywhere", *cells_too) if part == "places" else ("flows", "evenly")
            found += [Case(method, one, epsilon, side) for method in methods]
    found = [case for case in found if only in case.what]
    for folder in {case.place.folder for case in found}:
        if read(folder, "lat") is None:
            print(f"{folder} is not at hand: left out", flush=True)
            found = [case for case in found if case.place.folder != folder]
    return found


def covered(chosen: list[str], tables: int, only: str, jobs: int, keep: Recorder) -> int:
    """Cover all cases of the parts (places, trips), several processes at a time; return how many pieces failed."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # of the processes that draw: one core each
    cases = [case for part in chosen for case in cases_of(part, only)]
    parts = max(1, min(tables, 4))
    sizes = [tables // parts + (number < tables % parts) for number in range(parts)]
    slow = sorted(cases, key=lambda case: (case.method != "anywhere", case.place in MAPS[2:], -case.epsilon))
    waiting = [(case, number) for case in slow for number in range(parts)]
    made: dict[Case, list[Found]] = {case: [] for case in cases}
    left, failed, began, done = dict.fromkeys(cases, parts), 0, time.perf_counter(), 0
    for attempt in range(ATTEMPTS):
        again: list[tuple[Case, int]] = []
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            futures = {pool.submit(piece, case, number, sizes[number]): (case, number) for case, number in waiting}
            for future in as_completed(futures):
                case, number = futures[future]
                try:
                    made[case].append(future.result())
                except BrokenProcessPool:
                    if attempt + 1 < ATTEMPTS:
                        again.append((case, number))
                        continue
                    failed += 1
                    print(f"failed: {case.what}, piece {number}: the system ended its process", flush=True)
                except Exception as error:  # one piece must not end an hour of others
                    failed += 1
                    print(f"failed: {case.what}, piece {number}: {type(error).__name__}: {error}", flush=True)
                left[case] -= 1
                done += 1
                clock = f"[{done} of {len(cases) * parts}, {time.perf_counter() - began:.0f} s]"
                if left[case] or not made[case]:
                    print(f"{clock} {case.what}: {parts - left[case]} of {parts} pieces", flush=True)
                    continue
                found = made[case][0]
                for other in made[case][1:]:
                    found = found.joined(other)
                words, values = said(case, found)
                print(f"{clock} {case.what}: {found.tables} tables: {words}", flush=True)
                keep("decoding", case.what, measured=words, asked=ASKED[case.method], **values)
        if not again:
            break
        waiting = again
    return failed
