"""Programs whose blocks a few rows join: the optimum that scipy's own linear programming finds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.optimize import linprog

from metricdp.solvers.backends.joined_program import JoinedProgram, solve_joined
from metricdp.solvers.program import Status


def random_program(seed: int, blocks: int, size: int, rows: int) -> JoinedProgram:
    """Blocks of entries within a ratio of each other, rows that ask for enough of all, and a worst cost to pay."""
    rng = np.random.default_rng(seed)
    width = blocks * size + 1
    owner = np.append(np.repeat(np.arange(blocks), size), blocks)
    pairs = np.array(
        [(b * size + i, b * size + j) for b in range(blocks) for i in range(size) for j in range(size) if i != j]
    )
    values = np.stack([np.exp(-rng.uniform(0.0, 3.0, len(pairs))), -np.ones(len(pairs))], axis=1)
    enough = rng.uniform(size=(rows, width)) * (rng.uniform(size=(rows, width)) < 0.6)
    enough[:, -1] = 0.0
    enough[:, 0] += 0.1
    paid = -enough * rng.uniform(1.0, 5.0, size=enough.shape)
    paid[:, -1] = 1.0
    cost = np.zeros(width)
    cost[-1] = 1.0
    right = np.concatenate([np.ones(rows), np.zeros(rows)])
    return JoinedProgram(cost, owner, pairs, values, sparse.csr_array(np.vstack([enough, paid])), right)


@pytest.mark.parametrize(
    ("seed", "blocks", "size", "rows"), [(0, 3, 2, 4), (1, 8, 3, 10), (2, 1, 6, 3), (3, 12, 5, 20)]
)
def test_the_value_is_that_of_another_solver_and_every_row_holds(seed: int, blocks: int, size: int, rows: int) -> None:
    program = random_program(seed, blocks, size, rows)
    found = solve_joined(program, tolerance=1e-7)
    assert found.status is Status.OPTIMAL
    ties = np.zeros((len(program.pairs), len(program.cost)))
    np.put_along_axis(ties, program.pairs, program.values, axis=1)
    joining = program.joining.toarray()
    best = linprog(program.cost, np.vstack([ties, -joining]), np.append(np.zeros(len(ties)), -program.right))
    assert found.objective == pytest.approx(best.fun, rel=1e-6)
    assert (ties @ found.primal).max() <= 1e-6
    assert (joining @ found.primal - program.right).min() >= -1e-6


def test_a_program_without_a_solution_is_not_called_solved() -> None:
    program = random_program(5, 3, 2, 4)
    nothing = JoinedProgram(
        program.cost, program.blocks, program.pairs, program.values, -abs(program.joining), np.ones(len(program.right))
    )
    assert solve_joined(nothing).status is not Status.OPTIMAL
