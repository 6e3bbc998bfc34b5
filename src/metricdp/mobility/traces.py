"""From fixes to walks over places: clean, resample, snap."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from metricdp.arrays import Floats, Integers, as_positive
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.spaces import FiniteSpace

KMH_PER_MPH = 1.609344


@dataclass(frozen=True, eq=False)
class _Rows:
    """Columns of one length, a row for each fix or step, and whether they were simulated."""

    trip: Integers

    def __len__(self) -> int:
        return len(self.trip)

    def select(self, keep: Any) -> Self:
        """Return the chosen rows."""
        columns = [column.name for column in fields(self) if column.name != "simulated"]
        return replace(self, **{name: getattr(self, name)[keep] for name in columns})


@dataclass(frozen=True, eq=False)
class Traces(_Rows):
    """Fixes of many trips, sorted by trip and time: latitude and longitude in degrees, times in unix seconds."""

    seconds: Floats
    coordinates: Floats
    owner: Integers  # the trip as recorded, which stays the same where a trip is cut into parts
    simulated: bool = False

    def speeds_kmh(self) -> Floats:
        """Return the speed from the fix before, NaN at the first fix of a trip."""
        speeds = np.full(len(self), np.nan)
        same = np.flatnonzero(self.trip[1:] == self.trip[:-1]) + 1
        apart = Haversine()(self.coordinates[same], self.coordinates[same - 1])
        hours = (self.seconds[same] - self.seconds[same - 1]) / 3600.0
        speeds[same] = np.where(hours > 0, apart / np.where(hours > 0, hours, 1.0), np.where(apart > 0, np.inf, 0.0))
        return speeds


def clean(traces: Traces, *, most_kmh: float = 150.0) -> Traces:
    """Drop every fix that could only be reached from the last kept fix of its trip faster than `most_kmh`."""
    limit = as_positive(most_kmh, "most_kmh") / 3600.0
    speeds = traces.speeds_kmh()
    suspects = np.unique(traces.trip[speeds > most_kmh])
    keep = np.ones(len(traces), dtype=bool)
    starts, ends = (np.searchsorted(traces.trip, suspects, side=side) for side in ("left", "right"))
    measure = Haversine()
    for last, end in zip(starts.tolist(), ends.tolist(), strict=True):
        for at in range(last + 1, end):
            apart = float(measure(traces.coordinates[at], traces.coordinates[last]))
            if apart > limit * (traces.seconds[at] - traces.seconds[last]):
                keep[at] = False
            else:
                last = at
    return traces.select(keep)


def resample(traces: Traces, *, step_seconds: float, most_gap_seconds: float = 300.0) -> Traces:
    """Return fixes at regular times by linear interpolation; a longer gap splits the trip in two.

    The new trip numbers count the parts; parts that are shorter than one step are dropped.
    """
    step = as_positive(step_seconds, "step_seconds")
    gaps = np.diff(traces.seconds)
    breaks = (np.diff(traces.trip) != 0) | (gaps > most_gap_seconds)
    parts = []
    for part, (start, end) in enumerate(pairwise([0, *(np.flatnonzero(breaks) + 1).tolist(), len(traces)])):
        clock = traces.seconds[start:end]
        if end - start < 2 or clock[-1] - clock[0] < step:
            continue
        ticks = np.arange(clock[0], clock[-1] + 1e-9, step)
        places = [np.interp(ticks, clock, traces.coordinates[start:end, axis]) for axis in (0, 1)]
        numbers = (np.full(len(ticks), number, dtype=np.int64) for number in (part, traces.owner[start]))
        parts.append((ticks, np.stack(places, axis=1), *numbers))
    if not parts:
        usual = float(np.median(gaps[np.diff(traces.trip) == 0])) if np.any(np.diff(traces.trip) == 0) else np.nan
        raise InvalidInput(
            f"no trip lasts one step of {step:g} seconds without a gap of more than {most_gap_seconds:g}; fixes of a "
            f"trip are usually {usual:g} apart. Times must be in seconds; if they are, raise `most_gap_seconds`."
        )
    seconds, coordinates, trip, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Traces(trip, seconds, coordinates, owner, traces.simulated)


@dataclass(frozen=True, eq=False)
class Walks(_Rows):
    """Trips as sequences of place codes at regular times; a new number starts wherever a trip was cut."""

    seconds: Floats
    codes: Integers
    owner: Integers
    simulated: bool = False

    def windows(self, length: int) -> tuple[Integers, Integers]:
        """Return every run of `length` steps within a trip, the newest first, and the row at which it ends."""
        if length < 1 or len(self) < length:
            return np.empty((0, max(length, 1)), dtype=np.int64), np.empty(0, dtype=np.int64)
        ends = np.arange(length - 1, len(self))
        ends = ends[self.trip[ends] == self.trip[ends - (length - 1)]]
        return np.stack([self.codes[ends - lag] for lag in range(length)], axis=1), ends

    def histories(self, lags: int) -> Integers:
        """Return one row per step, the current place first; before the start of a trip its first place is repeated."""
        first = np.searchsorted(self.trip, self.trip)  # row at which the trip of each step begins
        rows = np.arange(len(self))
        return np.stack([self.codes[np.maximum(rows - lag, first)] for lag in range(lags + 1)], axis=1)


def snap(traces: Traces, space: FiniteSpace, *, most_km: float, allowed: Any = None) -> Walks:
    """Put every fix on the nearest place; a fix farther than `most_km` from all places cuts its trip in two.

    `allowed[a, b]` says which steps are possible; a step that is not also cuts. This is the nearest place, not map
    matching: streets, driving directions and the fixes before and after are not looked at, so a fix between two places
    may go to either. What it costs is the distance from fix to place (`snap_distances`), which comes on top of a loss
    that is stated for places. The guarantee is about the place: it holds for the distance between the places that fixes
    were put on. Between two fixes it has a slack of epsilon * `space.charge(most_km)`, which on roads is far more than
    2 * epsilon * most_km: neighbouring fixes can be put on crossings that are far apart by road.
    """
    codes, away = space.nearest(traces.coordinates)
    near = away <= as_positive(most_km, "most_km")
    if not near.any():
        raise InvalidInput(
            f"no fix lies within {most_km:g} km of a place: are the places in the same city, and latitude and "
            "longitude the right way round? `space.nearest(traces.coordinates)` says how far the fixes are."
        )
    breaks = np.zeros(len(traces), dtype=bool)
    breaks[1:] = (traces.trip[1:] != traces.trip[:-1]) | ~near[1:] | ~near[:-1]
    if allowed is not None:
        steps = np.asarray(allowed, dtype=bool)
        if steps.shape != (len(space), len(space)):
            raise InvalidInput(f"`allowed` must be {len(space)} x {len(space)} like the places, got {steps.shape}.")
        breaks[1:] |= ~steps[codes[:-1], codes[1:]]
    parts = np.cumsum(breaks).astype(np.int64)
    return Walks(parts[near], traces.seconds[near], codes[near], traces.owner[near], traces.simulated)


def snap_distances(traces: Traces, space: FiniteSpace, *, most_km: float) -> Floats:
    """Return how far `snap` moves the fixes it keeps, in kilometres, in ascending order."""
    away = space.nearest(traces.coordinates)[1]
    return np.sort(away[away <= as_positive(most_km, "most_km")])


def split_trips(walks: Walks, *, share: float = 0.7, seed: int = 0) -> tuple[Walks, Walks]:
    """Return two sets of whole recorded trips: a random `share` of them, and the rest."""
    if not 0 < share < 1:
        raise InvalidInput(f"`share` must lie between 0 and 1, got {share:g}.")
    numbers = np.unique(walks.owner)
    order = np.random.default_rng(seed).permutation(numbers)  # the choice of training trips is public
    chosen = np.isin(walks.owner, order[: max(1, round(share * len(order)))])
    return walks.select(chosen), walks.select(~chosen)
