"""Distances that a file holds instead of a metric that it cannot hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from metricdp.artifacts.codecs import ManifestEncoder
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MECHANISMS
from metricdp.metrics import Lp, Metric, Precomputed
from metricdp.spaces import FiniteSpace


def tabulate_metric(mechanism: Any) -> Any:
    """Return a table with `Precomputed` distances if its metric is a function of the user's; any other unchanged.

    The distribution and the guarantee stay: the distances are the very numbers that the guarantee was certified with.
    What tables hold is looked up by its coordinates, as before; how far others lie from it, in that metric, the file
    does not know.
    """
    if not MECHANISMS.has("rows", mechanism) or (_fits(mechanism.inputs) and _fits(mechanism.outputs)):
        return mechanism
    inputs = _measure_space(mechanism.inputs)
    outputs = inputs if mechanism.outputs is mechanism.inputs else _measure_space(mechanism.outputs)
    old_guarantee = mechanism.guarantee
    if old_guarantee.metric is mechanism.inputs.metric:
        old_guarantee = replace(old_guarantee, metric=inputs.metric)
    return replace(mechanism, inputs=inputs, outputs=outputs, guarantee=old_guarantee)


def _measure_space(space: FiniteSpace) -> FiniteSpace:
    if _fits(space):
        return space
    metric = space.metric if _is_storable(space.metric) else Precomputed(space.distances, unit=space.unit)
    points = space.points if metric is space.metric else np.arange(len(space), dtype=float)[:, None]
    ground = space.ground if _is_storable(space.ground) else metric if space.is_text else Lp(2)
    return FiniteSpace(points, metric, coordinates=space.coordinates, ground=ground, columns=space.columns)


def _fits(space: FiniteSpace) -> bool:
    return _is_storable(space.metric) and _is_storable(space.ground)


def _is_storable(metric: Metric) -> bool:
    try:
        ManifestEncoder().metric(metric)
    except InvalidInput:
        return False
    return True
