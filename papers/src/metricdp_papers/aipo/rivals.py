"""The mechanisms the AIPO paper compares with, as distributions at every point of the plane."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import softmax

from metricdp import constopt, laplace, optimal
from metricdp.arrays import Floats, Integers
from metricdp.auditing import ApproximateDistribution
from metricdp.metrics import Lp, Metric, pairwise
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp_papers.aipo.cities import RoadSetting
from metricdp_papers.aipo.noise import nearest_report_distribution

BETA = 0.001  # Pr[TEM leaves its ball], Carvalho et al. (2021)
PENALTIES = (0.001, 0.1, 1.0)  # the sweep of the ConstOPT paper
DRAWS = 4  # of noise for every secret, where a loss is a mean over draws


@dataclass(frozen=True)
class Rival:
    """A mechanism under comparison: its loss, its distribution at every point, and the seconds its design took."""

    loss: float
    distribution: Callable[[Floats], Floats]
    seconds: float


def exponential_distribution(case: RoadSetting, epsilon: float, reach: float = np.inf) -> Callable[[Floats], Floats]:
    """Return z_k(x) proportional to exp(-epsilon min(d(x, y_k), reach) / 2)."""

    def distribution(points: Floats) -> Floats:
        apart = np.minimum(pairwise(case.box.metric, points, case.outputs.points), reach)
        return np.asarray(softmax(-0.5 * epsilon * apart, axis=1))

    return distribution


def mean_loss(case: RoadSetting, distribution: Callable[[Floats], Floats]) -> float:
    """Return the expected loss over all secrets, in blocks."""
    total = 0.0
    for start in range(0, len(case.points), 50_000):
        part = slice(start, start + 50_000)
        total += float((distribution(case.points[part]) * case.losses[part]).sum())
    return total / len(case.points)


def em(case: RoadSetting, epsilon: float, seed: int) -> Rival:
    """The exponential mechanism."""
    distribution = exponential_distribution(case, epsilon)
    return Rival(mean_loss(case, distribution), distribution, 0.0)


def tem(case: RoadSetting, epsilon: float, seed: int) -> Rival:
    """The truncated exponential mechanism: the exponential one with the metric min(d, gamma)."""
    reach = 2.0 / epsilon * np.log((1 - BETA) * (len(case.outputs) - 1) / BETA)
    distribution = exponential_distribution(case, epsilon, reach)
    return Rival(mean_loss(case, distribution), distribution, 0.0)


def noisy_reports(points: Floats, places: Floats, metric: Lp, epsilon: float, rng: np.random.Generator) -> Integers:
    """Draw Laplace noise for every point, several times, and return the nearest places, one row a draw.

    Nearest in the Euclidean sense under every metric: which report is chosen is post-processing and free.
    """
    mechanism, tree = laplace(metric, epsilon, dimension=points.shape[1]), cKDTree(places)
    return np.stack([tree.query(mechanism.sample(points, rng=rng))[1] for _ in range(DRAWS)]).astype(np.int64)


def drawn_loss(losses: Floats, reports: Integers) -> float:
    """Return the mean loss of drawn reports, one row a draw."""
    return float(np.mean([losses[np.arange(len(row)), row].mean() for row in reports]))


def _draw(case: RoadSetting, epsilon: float, seed: int) -> Integers:
    return noisy_reports(case.points, case.outputs.points, Lp(case.p), epsilon, np.random.default_rng(seed))


def planar_laplace(case: RoadSetting, epsilon: float, seed: int) -> Rival:
    """Planar Laplace noise, then the nearest report: the loss is a mean of draws, the distribution is exact."""
    loss = drawn_loss(case.losses, _draw(case, epsilon, seed))
    return Rival(loss, nearest_report_distribution(case.outputs.points, case.p, epsilon), 0.0)


def laplace_remapped(case: RoadSetting, epsilon: float, seed: int) -> Rival:
    """The same noise, every nearest report replaced by the best one for its posterior."""
    joint = np.zeros((len(case.outputs), len(case.outputs)))
    for row in _draw(case, epsilon, seed):
        np.add.at(joint, row, case.losses / (DRAWS * len(case.points)))
    return _move_reports(nearest_report_distribution(case.outputs.points, case.p, epsilon), joint, 0.0)


def remapped(case: RoadSetting, epsilon: float, seed: int) -> Rival:
    """The exponential mechanism with every report replaced by the best one for its posterior."""
    started = time.perf_counter()
    distribution = exponential_distribution(case, epsilon)
    joint = np.zeros((len(case.outputs), len(case.outputs)))
    for start in range(0, len(case.points), 50_000):
        part = slice(start, start + 50_000)
        joint += distribution(case.points[part]).T @ case.losses[part]
    return _move_reports(distribution, joint / len(case.points), time.perf_counter() - started)


def _move_reports(distribution: Callable[[Floats], Floats], joint: Floats, spent: float) -> Rival:
    """Return the distribution with report k replaced by the column of least joint[k], the loss it then has."""
    target = joint.argmin(axis=1)
    move = np.zeros(joint.shape)
    move[np.arange(len(target)), target] = 1.0

    def moved(points: Floats) -> Floats:
        return np.asarray(distribution(points) @ move)

    # errors of reports that fall together add up
    found = (
        ApproximateDistribution(moved, distribution.error * move.sum(axis=0).max())
        if isinstance(distribution, ApproximateDistribution)
        else moved
    )
    return Rival(float(joint.min(axis=1).sum()), found, spent)


@dataclass(frozen=True)
class Cells:
    """Cells of the box that hold secrets, with their centres, masses and mean losses."""

    centres: Floats
    owner: Integers
    masses: Floats
    losses: Floats
    lookup: Callable[[Floats], Integers]


def cells_of(case: RoadSetting, cells: tuple[int, int]) -> Cells:
    """Return the cells of a grid; an empty cell is served by the nearest centre."""
    low = case.box.lower
    widths = (case.box.upper - low) / np.array(cells)
    index = np.minimum(((case.points - low) / widths).astype(int), np.array(cells) - 1)
    flat = index[:, 0] * cells[1] + index[:, 1]
    used, owner = np.unique(flat, return_inverse=True)
    centres = low + (np.stack(np.divmod(used, cells[1]), axis=1) + 0.5) * widths
    masses = np.bincount(owner, minlength=len(used)) / len(owner)
    losses = np.zeros((len(used), case.losses.shape[1]))
    np.add.at(losses, owner, case.losses)
    losses /= np.bincount(owner, minlength=len(used))[:, None]
    metric = Lp(np.inf)

    def lookup(points: Floats) -> Integers:
        return pairwise_argmin(metric, (points - low) / widths, (centres - low) / widths)

    return Cells(centres, owner.astype(np.int64), masses, losses, lookup)


def lp_on_cells(case: RoadSetting, epsilon: float, cells: tuple[int, int]) -> Rival:
    """The optimal mechanism between cell centres, used for every point of a cell: not private across borders."""
    started = time.perf_counter()
    parts = cells_of(case, cells)
    space = FiniteSpace(parts.centres, case.box.metric)
    problem = Problem(space, epsilon, outputs=case.outputs, loss=parts.losses, prior=parts.masses)
    matrix = optimal(problem, gap=1e-2).matrix
    return Rival(
        float((parts.masses[:, None] * parts.losses * matrix).sum()),
        lambda points: matrix[parts.lookup(points)],
        time.perf_counter() - started,
    )


def constopt_on_cells(case: RoadSetting, epsilon: float, cells: tuple[int, int]) -> Rival:
    """ConstOPT between cell centres, every centre then replaced by its nearest report: not private across borders.

    The published inner budget, epsilon / 2, and the published penalties, of which the least loss counts.
    """
    started = time.perf_counter()
    parts = cells_of(case, cells)
    space = FiniteSpace(parts.centres, case.box.metric)
    target = pairwise_argmin(case.box.metric, parts.centres, case.outputs.points)
    problem = Problem(space, epsilon, loss=parts.losses[:, target], prior=parts.masses)
    near = min(10, len(space))
    best: tuple[float, Floats] | None = None
    for penalty in PENALTIES:
        wide = constopt(problem, nearest=near, penalty=penalty, budget="half", objective="expected").matrix
        matrix = np.zeros(parts.losses.shape)
        np.add.at(matrix.T, target, wide.T)
        loss = float((parts.masses[:, None] * parts.losses * matrix).sum())
        best = (loss, matrix) if best is None or loss < best[0] else best
    assert best is not None
    chosen = best[1]
    return Rival(best[0], lambda points: chosen[parts.lookup(points)], time.perf_counter() - started)


def pairwise_argmin(metric: Metric, points: Floats, centres: Floats) -> Integers:
    """Return the nearest centre of every point, in blocks."""
    result = np.empty(len(points), dtype=np.int64)
    step = max(1, 4_000_000 // len(centres))
    for start in range(0, len(points), step):
        result[start : start + step] = pairwise(metric, points[start : start + step], centres).argmin(axis=1)
    return result
