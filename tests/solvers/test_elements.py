"""Columns bounded by norm cones on small elements: the optimum of a program that Clarabel solves as a whole."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
import scipy.sparse as sparse

from metricdp.solvers.backends.elements import ElementProgram, solve_elements


def random_program(seed: int, reports: int = 3) -> ElementProgram:
    """A grid of 3 x 3 anchors, four cells, forms that hold for constant columns: the gradient of constants is zero."""
    rng = np.random.default_rng(seed)
    grid = np.arange(9).reshape(3, 3)
    rows = np.array([grid[i : i + 2, j : j + 2].ravel() for i in range(2) for j in range(2)])
    forms = rng.normal(size=(4, 5, 3, 4))
    forms -= forms.mean(axis=3, keepdims=True)  # a constant column has no slope
    forms[:, :, 0] = rng.dirichlet(np.ones(4), size=(4, 5))  # and the level of a constant is the constant
    return ElementProgram(rng.uniform(size=(9, reports)), rows, forms)


def optimum(program: ElementProgram) -> float:
    """Solve by Clarabel, every cone written out; x[k * 9 + i]."""
    anchors, reports = program.cost.shape
    sums = sparse.hstack([sparse.eye_array(anchors)] * reports, format="csc")
    blocks = []
    for k in range(reports):
        for element, forms in zip(program.rows, program.forms, strict=True):
            for form in forms:
                row = np.zeros((3, anchors * reports))
                row[:, k * anchors + element] = form
                blocks.append(row)
    matrix = sparse.csc_matrix(sparse.vstack([sums, -sparse.csc_matrix(np.vstack(blocks))]))
    right = np.concatenate([np.ones(anchors), np.zeros(3 * len(blocks))])
    cones = [clarabel.ZeroConeT(anchors), *[clarabel.SecondOrderConeT(3)] * len(blocks)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    width = anchors * reports
    zero = sparse.csc_matrix((width, width))
    return float(clarabel.DefaultSolver(zero, program.cost.T.ravel(), matrix, right, cones, settings).solve().obj_val)


@pytest.mark.parametrize("gap", [1e-2, 1e-6])
@pytest.mark.parametrize("seed", range(5))
def test_the_matrix_is_strictly_feasible_and_within_the_gap_of_the_best(seed: int, gap: float) -> None:
    program = random_program(seed)
    found = solve_elements(program, np.full(program.cost.shape, 1 / 3), gap=gap)
    assert found.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    for column in found.T:
        values = np.einsum("evia,ea->evi", program.forms, column[program.rows])
        assert np.all(values[..., 0] > np.hypot(values[..., 1], values[..., 2]))
    best = optimum(program)
    assert best - 1e-6 <= (program.cost * found).sum() <= best + gap * abs(best) + 1e-7


def test_a_time_limit_leaves_a_feasible_matrix() -> None:
    program = random_program(9)
    start = np.full(program.cost.shape, 1 / 3)
    assert solve_elements(program, start, gap=1e-6, seconds=0.0) == pytest.approx(start)
