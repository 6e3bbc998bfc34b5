"""The registry entries of the spaces that files hold."""

from __future__ import annotations

from typing import Any

from metricdp import constants
from metricdp.metrics import StreetPath, measuring_effort, width_of
from metricdp.registry import Array, Effort, Field, Many, Number, Part, Registry, Schema, Text, Whole
from metricdp.spaces.continuous import Box, Sphere, Unbounded
from metricdp.spaces.finite import FiniteSpace
from metricdp.spaces.streets import Streets

SPACES = Registry("space")
FAR = constants.LARGEST_COORDINATE
CORNER = Many(Number(least=-FAR, most=FAR), least=1)
PLACES = Array("points", least=-FAR, most=FAR)
METRIC: dict[str, Field] = {"metric": Part("metric")}


def _finite(*, points: Any, coordinates: Any, **rest: Any) -> FiniteSpace:
    return FiniteSpace(points, coordinates=None if coordinates is points else coordinates, **rest)


def _making(*, points: Any, metric: Any, **rest: Any) -> Effort:
    # some metrics prepare themselves when the first point is checked; sorting finds points that stand twice
    return measuring_effort(metric, 1, 1, width_of(points)) + Effort(4.0 * points.size, 200.0 * points.size)


def _streets(metric: StreetPath) -> Streets:
    made = Streets(metric.network)
    made.__dict__["metric"] = metric  # one object, as in a space that was just built
    return made


for _declaration in (
    Schema(
        FiniteSpace,
        "finite",
        "finitely many secrets, numbered from 0",
        METRIC
        | {
            "points": PLACES,
            "coordinates": PLACES,
            "ground": Part("metric"),
            "columns": Many(Text(longest=1000)),
        },
        make=_finite,
        effort=_making,
    ),
    Schema(
        Box,
        "box",
        "every point between two corners",
        METRIC | {"lower": CORNER, "upper": CORNER},
        read=lambda box: {"metric": box.metric, "lower": box.lower.tolist(), "upper": box.upper.tolist()},
    ),
    Schema(
        Unbounded,
        "unbounded",
        "every point of a dimension",
        METRIC | {"dimension": Whole(1, constants.LARGEST_DIMENSION)},
    ),
    Schema(
        Sphere,
        "sphere",
        "every direction of a dimension: unit vectors, or vectors of any length, which is then dropped",
        METRIC | {"dimension": Whole(2, constants.LARGEST_DIMENSION), "lengths": Text(("unit", "any"))},
        since=2,
    ),
    Schema(
        Streets,
        "streets",
        "every place along the streets of a network",
        {"metric": Part("metric", ("StreetPath",))},
        make=_streets,
    ),
):
    SPACES.declare(_declaration)
