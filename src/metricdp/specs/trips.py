"""Ways to release trips by names: by the steps before, by prediction, with zones, or with hidden times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.mobility import Cloaked, Contextual, Predictive, Zoned
from metricdp.places import road_network, spread_places
from metricdp.spaces import FiniteSpace
from metricdp.specs.options import TripSpec
from metricdp.tables.points import read_points
from metricdp.units import parse_distance, parse_duration, parse_epsilon, parse_numbers, parse_time_epsilon

HOME = "home"


def read_method(spec: TripSpec, *, force: bool = False) -> Contextual | Predictive | Zoned | Cloaked:
    """Return how trips are released; with `force` also over points that look wrong."""
    spec.check()
    zone = {} if spec.zones is None else _read_zones(spec, spec.zones, force=force)
    space = None if spec.places is None else _read_places(spec.places, spec.count, force=force)
    rate = parse_epsilon(spec.epsilon, "km" if space is None else space.unit)
    clock: dict[str, Any] = {"step_seconds": spec.step, "most_kmh": spec.speed}
    near = None if spec.snap is None else parse_distance(spec.snap, "km", option="snap")
    if spec.predict is not None:
        return Predictive(rate, None if spec.total is None else parse_epsilon(spec.total, "km"), spec.predict, **clock)
    if spec.times is not None:
        minutes = None if spec.clock is None else parse_duration(spec.clock) / 60.0
        return Cloaked(rate, parse_time_epsilon(spec.times), clock_minutes=minutes, most_kmh=spec.speed)
    assert space is not None  # `check` asks for places
    if spec.zones is not None:
        return Zoned(space, rate, most_km=near, **zone, **clock)
    weights = parse_numbers(spec.weights, "weights", "numbers with commas between, such as 0.5 or 1,0.5")
    return Contextual(space, rate, weights=weights, most_km=near, learn=spec.learn, history=spec.history, **clock)


def _read_zones(spec: TripSpec, zones: str, *, force: bool) -> dict[str, Any]:
    """Return what was asked for, as arguments of `Zoned`."""
    if not 0 < spec.zone_scale <= 1:
        raise InvalidInput(f"--zone-scale must lie above 0 and at most 1, got {spec.zone_scale:g}.")
    zone: dict[str, Any] = {
        "radius_km": parse_distance(spec.zone_radius, "km", option="zone-radius"),
        "scale": spec.zone_scale,
    }
    if zones != HOME:
        if spec.centre_epsilon is not None or spec.stay != TripSpec.stay:
            raise InvalidInput("--centre-epsilon and --stay belong to --zones home: given centres are public already.")
        return zone | {"centres": _read_points(zones, "they are the centres of the zones", force=force)}
    if spec.centre_epsilon is None:
        raise InvalidInput(
            "a home zone lies around a report of the home, never around the home itself: say how much that report may "
            "leak with --centre-epsilon, such as 1/km. It is spent once."
        )
    return zone | {
        "centre_epsilon": parse_epsilon(spec.centre_epsilon, "km"), "stay_seconds": parse_duration(spec.stay)
    }  # fmt: skip


def _read_places(source: str, count: int, *, force: bool) -> FiniteSpace:
    """Return the points of a file, or crossings that cover a road network."""
    if Path(source).is_file():
        points = _read_points(source, "places are measured along the Earth", force=force)
        return FiniteSpace(points, Haversine(), columns=("lat", "lon"))
    return spread_places(road_network(source), count)


def _read_points(source: str, why: str, *, force: bool) -> Floats:
    """Return the latitudes and longitudes of a file."""
    found = read_points(source, force=force)
    if not found.geographic:
        raise InvalidInput(f"{source!r} must have the columns lat and lon: {why}.")
    return found.points
