"""Where a decomposition begins: a feasible matrix, and multipliers that prove how far it can be from the best."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.solvers.benders.cuts import Multipliers, proven_bound
from metricdp.solvers.benders.run import BendersMemory
from metricdp.solvers.bounds import signed_multipliers
from metricdp.solvers.program import Edges, RatioSolution, Status
from metricdp.solvers.repair.recombine import combine, safe_log_ratios
from metricdp.solvers.solve import solve_ratio


def start_from_kernels(cost: Floats, log_ratios: Floats, parts: Sequence[Integers]) -> BendersMemory:
    """Begin at the best combination of the columns e^-W(., j) in every part: feasible at once."""
    result = np.zeros(cost.shape)
    for rows in parts:
        if len(rows) == 1:
            result[rows[0], int(cost[rows[0]].argmin())] = 1.0
        else:
            shrunk = safe_log_ratios(log_ratios[np.ix_(rows, rows)])
            result[rows] = combine(np.ones((len(rows), 1)), cost[rows], shrunk)
    return _memory(cost, log_ratios, result, Multipliers.no_multipliers())


def start_from_engine(
    cost: Floats,
    log_ratios: Floats,
    adjacency: Booleans,
    parts: Sequence[Integers],
    *,
    gap: float,
    seconds: float | None,
) -> tuple[BendersMemory, bool]:
    """Begin where the interior-point or first-order method ends on the whole program, part by part.

    Its multipliers are valid cuts of all blocks at once. Also says whether the user interrupted it.
    """
    end = None if seconds is None else time.perf_counter() + seconds
    result = np.zeros(cost.shape)
    proofs: list[Multipliers] = []
    interrupted = False
    for rows in parts:
        if len(rows) == 1:
            result[rows[0], int(cost[rows[0]].argmin())] = 1.0
            continue
        pairs = np.argwhere(np.triu(adjacency[np.ix_(rows, rows)]))
        between = log_ratios[np.ix_(rows, rows)]
        left = None if end is None else max(0.1, end - time.perf_counter())
        edges = Edges(pairs, between[pairs[:, 0], pairs[:, 1]])
        answer = solve_ratio(cost[rows], edges=edges, gap=gap, seconds=left)
        result[rows] = answer.matrix
        proofs.append(_multipliers(answer, rows, log_ratios, adjacency))
        interrupted = answer.status is Status.INTERRUPTED
        if interrupted:
            break
    if interrupted:
        return start_from_kernels(cost, log_ratios, parts), True
    return _memory(cost, log_ratios, result, Multipliers.concatenate_all(proofs)), False


def _multipliers(answer: RatioSolution, rows: Integers, log_ratios: Floats, adjacency: Booleans) -> Multipliers:
    """Return lam of z_i <= e^W z_j as pi = e^W lam of e^-W z_i <= z_j, for neighbours only."""
    multipliers = signed_multipliers(answer.dual)
    pair, column = np.nonzero(multipliers)
    value = multipliers[pair, column]
    first, second = rows[answer.edges.pairs[pair, 0]], rows[answer.edges.pairs[pair, 1]]
    tail, head = np.where(value > 0.0, first, second), np.where(value > 0.0, second, first)
    # rows almost at one place are tied to each other, neighbours or not; too heavy edges carry no multiplier
    good = adjacency[tail, head] & (log_ratios[tail, head] < 300.0)
    tail, head, column, value = tail[good], head[good], column[good], np.abs(value[good])
    return Multipliers(tail, head, column, value * np.exp(log_ratios[tail, head])).drop_negligible()


def _memory(cost: Floats, log_ratios: Floats, matrix: Floats, proof: Multipliers) -> BendersMemory:
    return BendersMemory(
        best=matrix,
        upper=float((matrix * cost).sum()),
        lower=proven_bound(cost, log_ratios, proof),
        proof=proof,
    )
