"""What any private mechanism with given reports must lose: bounds for samples of a continuous or very large domain.

The reports are the columns of `losses`: a mechanism that gives others may lose less. Each bound is the value of a
relaxation, stated through multipliers and never read off a solver's primal value. `points`, `losses` and `prior` are
the samples of the domain, the metric is that of the guarantee.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, Integers, as_matrix, as_points, as_positive, as_probabilities, as_whole, row_slices
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, pairwise
from metricdp.metrics.rounding import ROUNDED_DOWN
from metricdp.solvers import Edges, solve_ratio
from metricdp.solvers.edges import nearest
from metricdp.spaces import UNDER_LP, Box, FiniteSpace, require_space

UNIT = 2.0**-53
MOST_PAIRED = 120  # rows up to which all pairs are used
USUAL_CELLS = {1: 400, 2: 30, 3: 8}  # along an axis, by the number of axes
NEIGHBOURS = 32  # beyond that, every row with its nearest ones: a relaxation


def trivial_lower_bound(losses: ArrayLike, prior: ArrayLike | None = None) -> float:
    """Return sum_x prior(x) min_k loss(x, k), what no guarantee at all would cost."""
    values = as_matrix(losses, "losses")
    weights = _weights(prior, len(values))
    least = weights * values.min(axis=1)
    return float(least.sum() - (len(least) + 4) * UNIT * np.abs(least).sum())


def block_lower_bound(
    points: ArrayLike,
    losses: ArrayLike,
    metric: Metric,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    blocks: list[Integers] | int = 9,
    gap: float = 1e-3,
    seconds: float | None = None,
) -> float:
    """Return the sum of the optima of disjoint blocks of samples, each with all its pairs and its own prior mass.

    Dropping the pairs between blocks is a relaxation. Blocks that are spread over the domain are tight; a number of
    blocks means: each block takes points far from one another.
    """
    places, values, weights, rate = _check_samples(points, losses, prior, metric, epsilon)
    groups = spread_blocks(places, metric, blocks) if isinstance(blocks, int) else blocks
    cost = weights[:, None] * values
    covered = np.zeros(len(places), dtype=int)
    total, size = 0.0, 0.0
    for group in groups:
        covered[group] += 1
        apart = _symmetric(pairwise(metric, places[group], places[group]))
        part = _bound(cost[group], rate * apart, gap, None if seconds is None else seconds / len(groups))
        total, size = total + part, size + abs(part)
    if covered.max() > 1:
        raise InvalidInput("`blocks` must be disjoint sets of samples.")
    rest = cost[covered == 0].min(axis=1)
    return float(total + rest.sum() - (len(places) + 4) * UNIT * (size + np.abs(rest).sum()))


def representative_lower_bound(
    points: ArrayLike,
    losses: ArrayLike,
    metric: Metric,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    representatives: ArrayLike | int = 100,
    gap: float = 1e-3,
    seconds: float | None = None,
) -> float:
    """Return one program over representatives m, each speaking for the samples near it.

    z(x) >= e^(-epsilon d(x, m)) z(m), so with b(x) = min_k loss(x, k) the loss is at least
    sum p b + min_Z sum_m sum_k Z_mk sum_{x near m} p(x) (loss(x, k) - b(x)) e^(-epsilon d(x, m)).
    Any set of representatives gives a valid bound.
    """
    places, values, weights, rate = _check_samples(points, losses, prior, metric, epsilon)
    if isinstance(representatives, int):
        centres = central_points(places, weights, metric, representatives)
    else:
        centres = as_points(representatives, "representatives")
    owner, away = _owners(places, centres, metric)
    base = values.min(axis=1)
    decay = weights * np.exp(-rate * away * (1 + ROUNDED_DOWN) - 8 * UNIT)
    cost = np.zeros((len(centres), values.shape[1]))
    np.add.at(cost, owner, decay[:, None] * (values - base[:, None]))
    cost *= 1.0 - (len(places) + 16) * UNIT
    used = np.flatnonzero(cost.any(axis=1))
    fixed = weights * base
    start = float(fixed.sum() - (len(fixed) + 4) * UNIT * np.abs(fixed).sum())
    if not used.size:
        return start
    apart = _symmetric(pairwise(metric, centres[used], centres[used]))
    return start + _bound(cost[used], rate * apart, gap, seconds)


def universal_lower_bound(
    box: Box,
    epsilon: float,
    *,
    loss: tuple[ArrayLike, ArrayLike],
    prior: ArrayLike | None = None,
    cells: tuple[int, ...],
    gap: float = 1e-3,
) -> float:
    """Return the universal lower bound of the AIPO paper (Proposition 5), with the prior and the right norm.

    The inputs are cells, the cost of a cell is its prior mass times the least loss of its samples, and the
    distributions averaged over two cells differ by at most epsilon times the largest corner-to-corner distance in the
    metric of the guarantee. Valid, and weak: `representative_lower_bound` is tighter.
    """
    points, losses = loss
    places, values, weights, rate = _check_samples(box.encode(points), losses, prior, box.metric, epsilon)
    if len(cells) != box.dimension or min(cells) < 1:
        raise InvalidInput(f"`cells` must be {box.dimension} positive numbers, got {cells}.")
    widths = (box.upper - box.lower) / np.array(cells)
    index = np.minimum(((places - box.lower) / widths).astype(int), np.array(cells) - 1)
    flat = np.ravel_multi_index(tuple(index.T), cells)
    used, owner = np.unique(flat, return_inverse=True)
    least = np.full((len(used), values.shape[1]), np.inf)
    np.minimum.at(least, owner, values)
    mass = np.bincount(owner, weights=weights, minlength=len(used))
    low = np.stack(np.unravel_index(used, cells), axis=1) * widths
    # the farthest corners of two equal boxes: |difference of the lower corners| + width on every axis
    gaps = np.abs(low[:, None] - low[None]) + widths
    apart = box.metric(gaps, np.zeros(box.dimension)) * (1 + ROUNDED_DOWN)
    np.fill_diagonal(apart, 0.0)
    scaled = mass[:, None] * least
    scaled -= (len(places) + 16) * UNIT * np.abs(scaled)
    return _bound(scaled, rate * _symmetric(apart), gap, None)


def anywhere_lower_bound(
    space: FiniteSpace,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    cells: int | None = None,
    gap: float = 1e-2,
    seconds: float | None = None,
) -> float:
    """Return what no mechanism with this guarantee loses less than, wherever it reports: the expected distance.

    Proof: a report that is clipped to the box around the secrets comes no farther from any of them under an l_p norm,
    and which cell of the box it lies in is a report too. A report in a cell costs at least the distance to the cell.
    So the bound of the program whose reports are the cells, with these costs, holds for every mechanism.

    `cells` is their number along an axis: more of them cost time and bring the bound nearer to the optimum.
    """
    metric = require_space(space, FiniteSpace, "space", under=UNDER_LP).metric
    points = np.asarray(space.points, dtype=np.float64)
    if points.shape[1] not in USUAL_CELLS:
        raise InvalidInput(f"secrets must have one to three coordinates, got {points.shape[1]}.")
    weights, rate = _weights(prior, len(points)), as_positive(epsilon, "epsilon")
    count = USUAL_CELLS[points.shape[1]] if cells is None else as_whole(cells, "cells")
    edges = [np.unique(np.linspace(axis.min(), axis.max(), count + 1)) for axis in points.T]
    sides = [(edge[:-1], edge[1:]) if len(edge) > 1 else (edge, edge) for edge in edges]
    low, high = (
        np.stack(np.meshgrid(*(side[end] for side in sides), indexing="ij"), axis=-1).reshape(-1, points.shape[1])
        for end in (0, 1)
    )
    beyond = np.maximum(np.maximum(low[None] - points[:, None], points[:, None] - high[None]), 0.0)
    away = np.asarray(metric(beyond, np.zeros(points.shape[1])))
    costs = away * (1.0 - ROUNDED_DOWN) - 16.0 * UNIT * float(np.abs(points).max())  # below the true distances
    return _bound(weights[:, None] * np.maximum(costs, 0.0), rate * _symmetric(space.distances), gap, seconds)


def spread_blocks(points: Floats, metric: Metric, count: int) -> list[Integers]:
    """Return `count` disjoint blocks, each spread over the domain.

    Points are put into small clusters of `count` neighbours (by repeated halving along the longest side) and every
    block takes one member of each cluster.
    """
    if not 1 <= count <= len(points):
        raise InvalidInput(f"`blocks` must be from 1 to {len(points)}, got {count}.")
    blocks: list[list[int]] = [[] for _ in range(count)]
    turn = 0
    stack = [np.arange(len(points))]
    while stack:
        group = stack.pop()
        if len(group) <= count:
            for member in group[np.lexsort(points[group].T)]:
                blocks[turn % count].append(int(member))
                turn += 1
            continue
        side = int(np.ptp(points[group], axis=0).argmax())
        order = group[np.argsort(points[group, side], kind="stable")]
        cut = max(count, (len(order) // 2 // count) * count)
        stack += [order[cut:], order[:cut]]
    return [np.array(sorted(block), dtype=np.int64) for block in blocks if block]


def central_points(points: Floats, weights: Floats, metric: Metric, count: int) -> Floats:
    """Return about `count` representatives: weighted means of groups halved along their longest side."""
    groups = [np.flatnonzero(weights > 0)]
    while len(groups) < count:
        spans = [weights[g].sum() * float(np.ptp(points[g], axis=0).max()) if len(g) > 1 else 0.0 for g in groups]
        at = int(np.argmax(spans))
        if spans[at] <= 0:
            break
        group = groups.pop(at)
        side = int(np.ptp(points[group], axis=0).argmax())
        middle = np.average(points[group, side], weights=weights[group])
        lower = points[group, side] <= middle
        groups += [group[lower], group[~lower]]
    return np.unique([np.average(points[g], axis=0, weights=weights[g]) for g in groups], axis=0)


def _owners(points: Floats, centres: Floats, metric: Metric) -> tuple[Integers, Floats]:
    owner, away = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for part in row_slices(len(points), len(centres), 4_000_000):
        apart = pairwise(metric, points[part], centres)
        owner[part], away[part] = apart.argmin(axis=1), apart.min(axis=1)
    return owner, away


def _bound(cost: Floats, log_ratios: Floats, gap: float, seconds: float | None) -> float:
    """Return a rigorous lower bound of the ratio program with the given log ratios; samples may coincide."""
    if len(cost) == 1:
        return float(cost.min())
    if len(cost) <= MOST_PAIRED:
        return solve_ratio(cost, log_ratios, gap=gap, seconds=seconds).lower_bound
    pairs = nearest(log_ratios, min(NEIGHBOURS, len(cost) - 1))  # a subset of the pairs is a relaxation
    edges = Edges(pairs, log_ratios[pairs[:, 0], pairs[:, 1]])
    return solve_ratio(cost, edges=edges, gap=gap, seconds=seconds).lower_bound


def _check_samples(
    points: ArrayLike, losses: ArrayLike, prior: ArrayLike | None, metric: Metric, epsilon: float
) -> tuple[Floats, Floats, Floats, float]:
    places = as_points(points)
    metric.check(places)
    values = as_matrix(losses, "losses", (len(places), None))
    return places, values, _weights(prior, len(places)), as_positive(epsilon, "epsilon")


def _weights(prior: ArrayLike | None, count: int) -> Floats:
    return np.full(count, 1.0 / count) if prior is None else as_probabilities(prior, count)


def _symmetric(apart: Floats) -> Floats:
    result = np.maximum(apart, apart.T)
    np.fill_diagonal(result, 0.0)
    return result
