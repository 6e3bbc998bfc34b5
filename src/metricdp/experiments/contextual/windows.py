"""Windows of trips and their groups by hour, speed and region: what the tests of independence are asked about."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.experiments.contextual.cities import City
from metricdp.metrics import KM_PER_DEGREE
from metricdp.mobility import Features, Walks, features_of

MANY_FIXES = 50_000  # above this a city gets finer groups
MOST_LAG = 3  # the next place is tested against the current one, one and two steps back


@dataclass(frozen=True)
class Bins:
    """How windows are grouped: width of the hour and speed bins, rows and columns of regions;
    `cell_km` is the side of the cells that are tested, `least` the fewest samples of a group.
    """

    hours: float = 6.0
    speed_mph: float = 5.0
    regions: tuple[int, int] = (2, 2)
    cell_km: float = 0.6
    least: int = 200


def bins_for(city: City) -> Bins:
    """Return finer groups where there are many fixes."""
    return Bins(hours=6.0, regions=(3, 3)) if len(city.traces) > MANY_FIXES else Bins(hours=24.0, regions=(2, 2))


def evaluation_bins(city: City, used: Bins) -> dict[str, Bins]:
    """Return the groupings on which the predictor is scored over halvings of the trips; fixed before any was looked at.

    Half of the trips of a small city leave too few groups of 200 windows, so 100 are enough there. Where there are many
    fixes the published grouping (one hour, 5 mph, nine regions, 200 windows) is scored as well.
    """
    if len(city.traces) > MANY_FIXES:
        return {"groups as used": used, "groups as published": Bins(hours=1.0, regions=(3, 3))}
    return {"groups of 100 windows": replace(used, least=min(100, used.least))}


@dataclass(frozen=True, eq=False)
class Windows:
    """Runs of steps, the next place first: its cell and coordinates, then those of the current place and before it.

    The features belong to the current place and its history, never to the next place: grouping by what is to be
    predicted would make it look predictable.
    """

    cells: Integers
    coordinates: Floats
    features: Features


def windows_of(city: City, owners: Integers, bins: Bins, *, lags: int = MOST_LAG) -> Windows:
    """Return the windows of the next place and `lags` places before it, over the trips of `owners`."""
    traces = city.traces.select(np.isin(city.traces.owner, owners))
    low, high = city.box
    inside = np.all((traces.coordinates >= low) & (traces.coordinates <= high), axis=1)
    side = bins.cell_km / KM_PER_DEGREE / np.array([1.0, np.cos(np.radians(low[0]))])
    cells = np.floor((traces.coordinates - low) / side).astype(np.int64)
    codes = cells[:, 0] * 100_000 + cells[:, 1]
    parts = np.cumsum(np.r_[True, (traces.trip[1:] != traces.trip[:-1]) | ~inside[1:] | ~inside[:-1]]).astype(np.int64)
    walks = Walks(parts[inside], traces.seconds[inside], codes[inside], traces.owner[inside])
    windows, ends = walks.windows(lags + 1)
    points = traces.coordinates[inside]
    paths = np.stack([points[ends - lag] for lag in range(lags + 1)], axis=1)
    features = features_at(paths[:, 1 : MOST_LAG + 1], walks.seconds[ends - 1], city, bins)
    return Windows(windows, paths, features)


def features_at(paths: Floats, seconds: Floats, city: City, bins: Bins) -> Features:
    return features_of(
        paths,
        seconds,
        box=city.box,
        step_seconds=city.step_seconds,
        regions=bins.regions,
        offset_hours=city.offset_hours,
    )
