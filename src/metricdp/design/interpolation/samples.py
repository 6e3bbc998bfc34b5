"""Prior and loss of a continuous domain as weighted samples: given ones, or the nodes of a quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats, as_matrix, as_probabilities
from metricdp.auditing.bounds import block_lower_bound, representative_lower_bound, trivial_lower_bound
from metricdp.design.interpolation.anchors import InterpolationTask
from metricdp.errors import InvalidInput
from metricdp.metrics import pairwise
from metricdp.spaces import Box

LossFunction: TypeAlias = Callable[[Floats], Any]
NODES = {1: 8, 2: 4, 3: 3}  # Gauss nodes along each axis of a half cell, by dimension; beyond, two
MOST_NODES = 1_000_000
BLOCK_SAMPLES = 1200  # up to this many samples the block bound is computed as well


@dataclass(frozen=True)
class WeightedSamples:
    """Points with weights that sum to one and a loss for every report."""

    points: Floats
    weights: Floats
    losses: Floats
    note: str = ""

    @property
    def cost(self) -> Floats:
        """weights[x] * losses[x, k]."""
        return self.weights[:, None] * self.losses


def weighted_samples(box: Box, axes: tuple[Floats, ...], reports: int, loss: Any, prior: Any) -> WeightedSamples:
    """Return the samples behind `loss` and `prior`, on the box.

    `loss=(points, losses)` are samples, `prior` their weights (default: uniform). `loss=function` maps points (n, d) to
    losses (n, reports); `prior` is then a density up to a factor, or None for uniform, and both are integrated by Gauss
    nodes in every half cell (where the interpolation is smooth).
    """
    if callable(loss):
        return _quadrature(box, axes, reports, loss, prior)
    try:
        places, values = loss
    except (TypeError, ValueError) as error:
        raise InvalidInput("`loss` must be (points, losses) or a function of points.") from error
    points = box.encode(places)
    losses = as_matrix(values, "loss", (len(points), reports))
    if callable(prior):
        prior = as_floats(prior(points), "prior")
        prior = prior / prior.sum()
    weights = np.full(len(points), 1.0 / len(points)) if prior is None else as_probabilities(prior, len(points))
    return WeightedSamples(points, weights, losses)


def _quadrature(box: Box, axes: tuple[Floats, ...], reports: int, loss: LossFunction, prior: Any) -> WeightedSamples:
    if prior is not None and not callable(prior):
        raise InvalidInput("`prior` must be a function of points, or None, where `loss` is a function.")
    nodes, weights = np.polynomial.legendre.leggauss(NODES.get(box.dimension, 2))
    total = float(np.prod([2.0 * (len(axis) - 1) * len(nodes) for axis in axes]))
    if total > MOST_NODES:
        raise InvalidInput(
            f"`loss` as a function would be integrated at {total:,.0f} points, more than {MOST_NODES:,}: "
            "give loss=(points, losses) with a sample of the domain."
        )
    coordinates, masses = [], []
    for axis in axes:
        middle = (axis[:-1] + axis[1:]) / 2
        ends = np.sort(np.concatenate([axis, middle]))
        half = np.diff(ends) / 2
        coordinates.append(((ends[:-1] + half)[:, None] + half[:, None] * nodes).ravel())
        masses.append((half[:, None] * weights).ravel())
    points = np.stack(np.meshgrid(*coordinates, indexing="ij"), axis=-1).reshape(-1, box.dimension)
    mass = np.prod(np.stack(np.meshgrid(*masses, indexing="ij")), axis=0).ravel()
    if prior is not None:
        density = as_floats(np.broadcast_to(np.asarray(prior(points), dtype=float), (len(points),)), "prior")
        if np.any(density < 0) or not density.any():
            raise InvalidInput("`prior` must be a non-negative density that is positive somewhere on the box.")
        mass = mass * density
    losses = as_matrix(_call_loss(loss, points), "loss", (len(points), reports))
    note = f"integrals by {len(points)} Gauss nodes: loss and bound are those of this quadrature"
    return WeightedSamples(points, mass / mass.sum(), losses, note)


def _call_loss(loss: LossFunction, points: Floats) -> ArrayLike:
    values: ArrayLike = np.asarray(loss(points), dtype=float)
    return values


def samples_of(task: InterpolationTask, axes: tuple[Floats, ...], loss: Any, prior: Any) -> WeightedSamples:
    """Return the samples of a task on its anchors; the loss is the distance unless given."""

    def distance(points: Floats) -> ArrayLike:
        return pairwise(task.box.metric, points, task.outputs.points)

    return weighted_samples(task.box, axes, len(task.outputs), distance if loss is None else loss, prior)


def bound_of(task: InterpolationTask, samples: WeightedSamples, seconds: float | None) -> float:
    """Return the best of the trivial, the representative and (few samples) the block bound."""
    limit = None if seconds is None else 0.25 * seconds
    points, losses, prior = samples.points, samples.losses, samples.weights
    metric, epsilon = task.box.metric, task.epsilon
    bounds = [trivial_lower_bound(losses, prior)]
    if len(points) > 1 and losses.shape[1] > 1:
        if len(points) <= BLOCK_SAMPLES:
            bounds.append(
                block_lower_bound(points, losses, metric, epsilon, prior=prior, blocks=1, gap=3e-3, seconds=limit)
            )
        else:
            bounds.append(
                representative_lower_bound(
                    points, losses, metric, epsilon, prior=prior, representatives=144, gap=3e-3, seconds=limit
                )
            )
    return max(bounds)
