"""Prior and loss of a continuous domain as weighted samples: given ones, or the nodes of a quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from metricdp.arrays import Floats, as_floats, as_matrix, as_probabilities
from metricdp.auditing.bounds import block_lower_bound, representative_lower_bound, trivial_lower_bound
from metricdp.design.interpolation.anchors import InterpolationTask
from metricdp.errors import InvalidInput
from metricdp.mechanisms import StreetMechanism
from metricdp.mechanisms.kinds.interpolated import InterpolatedMechanism
from metricdp.metrics import pairwise
from metricdp.spaces import Box

LossFunction: TypeAlias = Callable[[Floats], Any]
NODES = {1: 8, 2: 4, 3: 3}  # Gauss nodes along each axis of a half cell, by dimension; beyond, two
MOST_NODES = 1_000_000
BLOCK_SAMPLES = 1200  # up to this many samples the block bound is computed as well
AT_ONCE = 50_000  # samples whose distributions are held at a time


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

    def mean_loss(self, mechanism: InterpolatedMechanism | StreetMechanism) -> float:
        """Return what the reports of a mechanism cost on average."""
        total = 0.0
        for start in range(0, len(self.points), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            total += float((mechanism.probabilities(self.points[part]) * self.cost[part]).sum())
        return total


def samples_of(task: InterpolationTask, axes: tuple[Floats, ...], loss: Any, prior: Any) -> WeightedSamples:
    """Return the samples behind `loss` and `prior` of a task, on its anchors; the loss is the distance unless given.

    `loss=(points, losses)` are samples, `prior` their weights (default: uniform). `loss=function` maps points (n, d) to
    losses (n, reports); `prior` is then a density up to a factor, or None for uniform, and both are integrated by Gauss
    nodes in every half cell (where the interpolation is smooth).
    """
    box, reports = task.box, len(task.outputs)
    if loss is None:

        def loss(points: Floats) -> Floats:
            return pairwise(box.metric, points, task.outputs.points)

    if callable(loss):
        points, mass = _gauss_nodes(box, axes)
        note = f"integrals by {len(points)} Gauss nodes: loss and bound are those of this quadrature"
        return integrate_samples(points, mass, reports, loss, prior, note)
    try:
        places, losses = loss
    except (TypeError, ValueError) as error:
        raise InvalidInput("`loss` must be (points, losses) or a function of points.") from error
    return weigh_samples(box.encode(places), losses, reports, prior)


def weigh_samples(points: Floats, losses: Any, reports: int, prior: Any) -> WeightedSamples:
    """Return given samples with given weights, equal ones, or those of a density."""
    values = as_matrix(losses, "loss", (len(points), reports))
    if callable(prior):
        prior = as_floats(prior(points), "prior")
        prior = prior / prior.sum()
    weights = np.full(len(points), 1.0 / len(points)) if prior is None else as_probabilities(prior, len(points))
    return WeightedSamples(points, weights, values)


def integrate_samples(
    points: Floats, mass: Floats, reports: int, loss: LossFunction, prior: Any, note: str = ""
) -> WeightedSamples:
    """Return the nodes of a quadrature with their losses and weights, which a density may change."""
    if prior is not None:
        if not callable(prior):
            raise InvalidInput("`prior` must be a function of points, or None, where `loss` is a function.")
        density = as_floats(np.broadcast_to(np.asarray(prior(points), dtype=float), (len(points),)), "prior")
        if np.any(density < 0) or not density.any():
            raise InvalidInput("`prior` must be a non-negative density that is positive somewhere on the domain.")
        mass = mass * density
    losses = as_matrix(np.asarray(loss(points), dtype=float), "loss", (len(points), reports))
    return WeightedSamples(points, mass / mass.sum(), losses, note)


def _gauss_nodes(box: Box, axes: tuple[Floats, ...]) -> tuple[Floats, Floats]:
    """Return the Gauss nodes of all half cells and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES.get(box.dimension, 2))
    total = float(np.prod([2.0 * (len(axis) - 1) * len(nodes) for axis in axes]))
    if total > MOST_NODES:
        raise InvalidInput(
            f"`loss` as a function would be integrated at {total:,.0f} points, more than {MOST_NODES:,}: "
            "give loss=(points, losses) with a sample of the domain."
        )
    coordinates, masses = [], []
    for axis in axes:
        ends = np.sort(np.concatenate([axis, (axis[:-1] + axis[1:]) / 2]))
        half = np.diff(ends)[:, None] / 2
        coordinates.append((ends[:-1, None] + half + half * nodes).ravel())
        masses.append((half * weights).ravel())
    points = np.stack(np.meshgrid(*coordinates, indexing="ij"), axis=-1).reshape(-1, box.dimension)
    return points, np.prod(np.stack(np.meshgrid(*masses, indexing="ij")), axis=0).ravel()


def bound_of(task: InterpolationTask, samples: WeightedSamples) -> float:
    """Return the best of the trivial, the representative and (few samples) the block bound."""
    points, losses, prior = samples.points, samples.losses, samples.weights
    least = trivial_lower_bound(losses, prior)
    if len(points) == 1 or losses.shape[1] == 1:
        return least
    limit = None if task.seconds is None else 0.25 * task.seconds
    options: dict[str, Any] = {"prior": prior, "gap": 3e-3, "seconds": limit}
    if len(points) <= BLOCK_SAMPLES:
        return max(least, block_lower_bound(points, losses, task.box.metric, task.epsilon, blocks=1, **options))
    options["representatives"] = 144
    return max(least, representative_lower_bound(points, losses, task.box.metric, task.epsilon, **options))
