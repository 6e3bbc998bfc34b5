"""Noise among finitely many secrets: which noise fits their metric, at the same promise, then the nearest secret."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

import metricdp.design.laplace  # noqa: F401 - it registers which noise there is
from metricdp.arrays import Floats, Integers
from metricdp.design.builders import Builder
from metricdp.design.comparison.measures import Draw
from metricdp.errors import InvalidInput
from metricdp.metrics import METRICS, Lp, exponent_of, graph_of, norm_of, points_are
from metricdp.spaces import FiniteSpace

NOWHERE = "noise needs coordinates, on the Earth, in a plane, on a sphere or in hyperbolic space"
UNIT = 1e-3  # how far from one the length of a unit vector may be, as noise on the sphere takes it
AT_ONCE = 2**20  # distances
PAIRED = 4  # vectors of a bag up to which all pairings are looked at


def noise_mismatch(builder: Builder, space: FiniteSpace) -> str:
    """Say why a noise does not fit these secrets, before anything is built; nothing where it does."""
    if builder.promise == "concentrated":
        return "its promise is concentrated, which is approximate: at no epsilon is it the same promise"
    if space.is_text:
        return "noise on words is madlib"
    if builder.name == "von_mises_fisher":
        units = points_are(space.metric, "directions") or exponent_of(space.metric) == 2.0
        if units and space.dimension >= 3 and space.coordinates is space.points and _are_unit(space.points):
            return ""
        return "it is for unit vectors of three numbers or more, under l2 or their angle"
    return "" if METRICS.has("laplace", space.ground) else NOWHERE


def noise_of(builder: Builder, space: FiniteSpace, epsilon: float) -> tuple[Draw, float]:
    """Return noise on the coordinates, then the nearest secret, which is post-processing, and a ratio.

    It promises epsilon along the ground (von Mises-Fisher: in l_2, which is never above the angle). Where that is not
    the metric (roads), ground distances are at most `ratio` times those of the metric, so noise of epsilon / ratio
    keeps the promise asked for. What is drawn under Frechet is an outline: the nearest secret is that of the nearest
    outline.
    """
    ratio = ground_ratio(space)
    under = Lp(2) if builder.name == "von_mises_fisher" else space.ground
    options: dict[str, Any] = {}
    if "dimension" in builder.options:
        options["dimension"] = None if points_are(space.ground, "degrees") else space.width
    noise: Any = builder.function(under, epsilon / ratio, **options)

    def draw(secrets: Integers, generator: np.random.Generator) -> Integers:
        reports = np.asarray(noise.sample(space.decode(secrets), rng=generator))
        if points_are(space.ground, "curves"):
            return _nearest_codes(lambda rows: _gaps(rows, noise.outline(space.points)), reports, len(space))
        if points_are(space.ground, "directions"):
            return np.asarray((reports @ space.points.T).argmax(axis=1))  # the least angle
        if norm_of(space.ground) is not None or points_are(space.ground, "degrees"):
            return space.nearest(reports)[0]
        return _nearest_codes(lambda rows: _secret_distances(space, rows), reports, len(space))

    return draw, ratio


def ground_ratio(space: FiniteSpace) -> float:
    """Return the most that two places lie apart on the ground for a distance of one in the metric.

    At least 1, unless the two are counted in different units (hops).
    """
    if space.same_ground:
        return 1.0
    least = 1.0 if space.unit == space.ground.unit else 0.0
    if (graph := graph_of(space.metric)) is not None:  # along every path the ground distances of its edges add up
        codes = np.full(graph.nodes, -1)
        codes[space.points[:, 0].astype(int)] = np.arange(len(space))
        ends = codes[graph.edges]
        if np.any(ends < 0):
            raise InvalidInput(
                "the streets between these places lead outside: noise cannot be set to the same promise."
            )
        away = space.ground(space.coordinates[ends[:, 0]], space.coordinates[ends[:, 1]])
        return max(least, float((away / graph.lengths).max()) * (1.0 + 1e-9))
    apart = space.distances
    away = np.asarray(space.ground(space.coordinates[:, None], space.coordinates[None]))
    off = ~np.eye(len(space), dtype=bool)
    return max(least, float((away[off] / apart[off]).max()) * (1.0 + 1e-9))


def _are_unit(vectors: Floats) -> bool:
    return bool(np.all(np.abs(np.linalg.norm(vectors, axis=1) - 1.0) <= UNIT))


def _gaps(rows: Floats, others: Floats) -> Floats:
    return np.asarray(np.abs(rows[:, None] - others[None]).max(axis=2))


def _secret_distances(space: FiniteSpace, rows: Floats) -> Floats:
    """Return the distances of rows to all secrets; those of small bags by all pairings at once."""
    metric: Any = space.ground
    if not points_are(metric, "bags") or space.width // metric.dimension > PAIRED:
        return np.asarray(metric(rows[:, None], space.points[None]))
    count = space.width // metric.dimension
    first, second = (bags.reshape(len(bags), count, metric.dimension) for bags in (rows, space.points))
    apart = np.asarray(metric.ground(first[:, None, :, None], second[None, :, None]))
    pairings = (apart[:, :, np.arange(count), order].sum(axis=2) for order in itertools.permutations(range(count)))
    return np.asarray(functools.reduce(np.minimum, pairings))


def _nearest_codes(distances: Any, rows: Floats, size: int) -> Integers:
    """Return the code of the nearest secret of every row, some rows at a time."""
    step = max(1, AT_ONCE // size)
    found = [np.asarray(distances(rows[at : at + step])).argmin(axis=1) for at in range(0, len(rows), step)]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
