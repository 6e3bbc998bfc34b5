"""The published decomposition: right where it is put right, and wrong in the ways the paper prints it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from brute import least_loss
from decompositions import instance
from metricdp.solvers import cluster_rows
from metricdp_papers.benders.published import Published, Rules


def written_out(seed: int) -> tuple[Any, Any, Any, Any]:
    """Costs, epsilon d of neighbours, epsilon times path lengths by Floyd and Warshall, and three subsets."""
    problem, reach = instance(seed, size=20, reports=5)
    points = problem.inputs.points
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    near = np.where(apart <= reach, problem.epsilon * apart, np.inf)
    paths = near.copy()
    for middle in range(len(paths)):
        paths = np.minimum(paths, paths[:, middle, None] + paths[None, middle])
    labels = cluster_rows(apart <= reach, 3, method="records", records=points)
    return problem.cost, near, paths, labels


def excess(matrix: Any, near: Any) -> float:
    """The most by which a ratio row z_i - e^W z_j <= 0 is broken, pair by pair."""
    worst = 0.0
    for i, j in zip(*np.nonzero(np.isfinite(near) & (near > 0.0)), strict=True):
        worst = max(worst, float((matrix[i] - np.exp(near[i, j]) * matrix[j]).max()))
    return worst


@pytest.mark.parametrize("seed", range(1, 3))
def test_counted_once_the_bounds_meet_at_the_optimum_of_another_solver(seed: int) -> None:
    cost, near, paths, labels = written_out(seed)
    best = least_loss(cost, np.ones(len(cost)), paths)
    rules = Rules(boundary_twice=False, threshold=1e-6)
    run = Published(cost, near, paths, labels, rules).solve(rounds=400)
    assert run.converged
    assert run.upper == pytest.approx(best, abs=2e-6)
    assert all(one.lower <= best + 1e-7 for one in run.rounds)
    assert run.matrix is not None
    np.testing.assert_allclose(run.matrix.sum(axis=1), 1.0, atol=1e-7)
    assert excess(run.matrix, near) < 1e-5
    assert len(run.since) == len(run.inner) == len(run.touched)
    assert run.inner.sum() + run.boundary == len(cost)
    assert (run.since >= 1).all()


def test_as_printed_the_lower_bound_lies_above_the_optimum_and_the_run_ends_too_early() -> None:
    above = []
    for seed in range(1, 3):
        cost, near, paths, labels = written_out(seed)
        best = least_loss(cost, np.ones(len(cost)), paths)
        run = Published(cost, near, paths, labels).solve(rounds=400)
        above.append(run.lower > best + 1e-6)
        assert run.upper >= best - 1e-7  # what it found is a matrix like any other
    assert all(above)


def test_the_authors_program_ends_within_a_few_iterations_at_a_matrix_that_breaks_the_promise() -> None:
    for seed in range(1, 3):
        cost, near, paths, labels = written_out(seed)
        run = Published(cost, near, paths, labels, Rules.of_the_code()).solve(rounds=100)
        assert run.converged
        assert run.matrix is not None
        assert 1e-4 < excess(run.matrix, near) <= 0.01 + 1e-6
        boundary = run.matrix[np.isin(np.arange(len(cost)), boundary_rows(near, labels))]
        assert boundary.min() >= 0.001 - 1e-9


def boundary_rows(near: Any, labels: Any) -> list[int]:
    """Rows with a neighbour in another subset, one by one."""
    return [
        i
        for i in range(len(labels))
        if any(np.isfinite(near[i, j]) and labels[i] != labels[j] for j in range(len(labels)))
    ]


def test_limits_end_a_run_that_has_not_converged() -> None:
    cost, near, paths, labels = written_out(1)
    run = Published(cost, near, paths, labels, Rules(boundary_twice=False, threshold=1e-9)).solve(rounds=2)
    assert len(run.rounds) == 2
    assert not run.converged
    none = Published(cost, near, paths, labels).solve(seconds=0.0)
    assert len(none.rounds) <= 1
