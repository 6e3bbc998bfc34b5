"""Fixes and check-ins as they were recorded, and runs of them: what the tests of independence are asked about."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.metrics import Haversine
from metricdp.mobility import KMH_PER_MPH, Traces, clean, load_traces, resample
from metricdp.places import bundled_trips
from metricdp_papers.common import data_file
from metricdp_papers.contextual import published

SIMULATED = "simulated"
TRIPS = 150  # simulated ones
MOST_GAP_SECONDS = 300.0  # a longer gap between fixes ends a run
KNOWN = 3  # places before the one that is tested over which the known speed is averaged


@dataclass(frozen=True)
class Place:
    """Where the records of a city lie, its regions, and what differs from the paper's data."""

    folder: str
    table: str
    trip: str
    box: tuple[tuple[float, float], tuple[float, float]]
    regions: tuple[int, int]
    differs: str
    checkins: bool = False


PLACES = {
    "rome": Place(
        "traj_rome_taxi", "points", "taxi", published.BOXES["rome"], published.REGIONS["rome"],
        "10,000 fixes of 51 taxis in 50 minutes of one night; the paper: 367,052 trajectories of 320 taxis, 30 days",
    ),
    "porto": Place(
        "traj_porto_taxi", "points", "trip", published.BOXES["porto"], published.REGIONS["porto"],
        "1,318 trips; the paper: 1,666,766",
    ),
    "san_francisco": Place(
        "traj_cabspotting", "points", "trip", ((37.70, -122.52), (37.82, -122.36)), (3, 3),
        "not in the paper: 25 cabs, 20,660 trips of 25 days, a fix a minute",
    ),
    "new_york": Place(
        "checkins_foursquare_nyc", "checkins", "user", ((40.55, -74.28), (41.00, -73.68)), (3, 3),
        "not in the paper: 21,393 Foursquare check-ins of 962 people, hours or days apart", checkins=True,
    ),
    SIMULATED: Place(
        "", "", "trip", ((41.13, -8.70), (41.19, -8.55)), (2, 2),
        "simulated trips on the bundled roads: nobody drove them",
    ),
}  # fmt: skip


def read_records(city: str) -> Traces:
    """Return the records of a city as they are."""
    if city == SIMULATED:
        return load_traces(bundled_trips(trips=TRIPS, seed=0))
    place = PLACES[city]
    return load_traces(data_file(f"{place.folder}/{place.table}.parquet"), trip=place.trip)


def fixes_of(city: str) -> Floats:
    """Return the coordinates of all fixes of a city within its box."""
    points = read_records(city).coordinates
    low, high = np.array(PLACES[city].box)
    return np.asarray(points[np.all((points >= low) & (points <= high), axis=1)])


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of consecutive records: `points[:, 0]` is X_t, `points[:, l]` the record l before it.

    `speeds[:, l - 1]` is the mean speed from X_{t-l} to X_t in mph, as the paper groups runs; `known_speed` that over
    the `KNOWN` places before X_t alone. The region of X_t is `region`, that of X_{t-1} `known_region`; `owner` is the
    recorded trip.
    """

    points: Floats
    speeds: Floats
    known_speed: Floats
    region: Integers
    known_region: Integers
    hour: Integers
    owner: Integers
    regions: tuple[int, int]

    def __len__(self) -> int:
        return len(self.points)

    def select(self, keep: Integers) -> Runs:
        """Return the chosen runs."""
        parts = {one.name: getattr(self, one.name)[keep] for one in fields(self) if one.name != "regions"}
        return replace(self, **parts)

    def bins(self, feature: str, m: int, *, known: bool) -> Integers:
        """Return the bin of every run: as published (X_t counts), or from what is `known` before X_t."""
        if feature == "region":
            return self.known_region if known else self.region
        if feature == "hour":
            return self.hour
        speed = self.known_speed if known else self.speeds[:, m - 1]
        return np.floor(np.minimum(speed, published.MOST_MPH - 0.1) / published.SPEED_MPH).astype(np.int64)

    def groups(self, m: int, *, known: bool) -> Integers:
        """Return a row (hour, speed bin, region) per run."""
        return np.column_stack([self.bins(name, m, known=known) for name in ("hour", "speed", "region")])


def runs_of(city: str, *, step_seconds: float | None = None, length: int = published.MOST_M + 2) -> Runs:
    """Return all runs of `length` records within the city's box; hours are UTC, as in the paper.

    Without `step_seconds` the records are taken as they come; with it they are interpolated to a regular clock first.
    Check-ins follow each other whatever time lies between.
    """
    place, traces = PLACES[city], read_records(city)
    if not place.checkins:
        traces = clean(traces)
    if step_seconds is not None:
        traces = resample(traces, step_seconds=step_seconds, most_gap_seconds=MOST_GAP_SECONDS)
    low, high = np.array(place.box)
    inside = np.all((traces.coordinates >= low) & (traces.coordinates <= high), axis=1)
    gaps = np.diff(traces.seconds, prepend=traces.seconds[0])
    fresh = np.r_[True, (traces.trip[1:] != traces.trip[:-1]) | ~inside[1:] | ~inside[:-1]]
    if not place.checkins:
        fresh |= gaps > MOST_GAP_SECONDS
    part = np.cumsum(fresh)
    ends = np.arange(length - 1, len(part))
    ends = ends[(part[ends] == part[ends - (length - 1)]) & inside[ends]]
    back = ends[:, None] - np.arange(length)
    points, clock = traces.coordinates[back], traces.seconds[back]
    steps = Haversine()(points[:, :-1], points[:, 1:])
    travelled = np.cumsum(steps, axis=1)
    elapsed = np.maximum(clock[:, :1] - clock[:, 1:], 1.0) / 3600.0
    before = np.maximum(clock[:, 1] - clock[:, KNOWN], 1.0) / 3600.0
    cells = np.floor((points[:, :2] - low) / (high - low) * np.array(place.regions)).astype(np.int64)
    cells = np.clip(cells, 0, np.array(place.regions) - 1)
    region = cells[..., 0] * place.regions[1] + cells[..., 1]
    return Runs(
        points,
        travelled / elapsed / KMH_PER_MPH,
        steps[:, 1:KNOWN].sum(axis=1) / before / KMH_PER_MPH,
        region[:, 0],
        region[:, 1],
        np.floor(np.mod(clock[:, 0] / 3600.0, 24.0)).astype(np.int64),
        traces.owner[ends],
        place.regions,
    )
