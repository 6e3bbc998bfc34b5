"""The one entry for callers: a strictly feasible matrix with a proven gap, from a cost and log ratios."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from metricdp import deadlines
from metricdp.arrays import Floats, as_matrix, as_positive
from metricdp.errors import InvalidInput
from metricdp.solvers.bounds import lower_bound, relative_gap, row_minima, signed_multipliers
from metricdp.solvers.choice import check_solver
from metricdp.solvers.edges import path_distances
from metricdp.solvers.program import Edges, Progress, RatioProgram, RatioSolution, Solver, Status, shortfall
from metricdp.solvers.repair.quotient import lift_proof, merge_rows
from metricdp.solvers.search import Options, RatioSearch, RatioTask


def solve_ratio(
    cost: ArrayLike,
    log_ratios: ArrayLike | None = None,
    *,
    edges: Edges | None = None,
    gap: float = 1e-3,
    seconds: float | None = None,
    solver: Solver | None = None,
    progress: Progress | None = None,
    start: Floats | None = None,
) -> RatioSolution:
    """Minimise <cost, Z> over row-stochastic Z with |ln z_ik - ln z_jk| <= W_ij for ALL pairs.

    `log_ratios` is W, symmetric with the triangle inequality; or `edges` alone, which induce W by shortest
    paths. Where both are given, `edges` are the pairs to begin with. Stops once
    (objective - lower bound) / objective <= `gap`, or near `seconds`, or on Ctrl-C: then the best matrix so
    far comes back with a note.

    Guarantee: the matrix keeps every ratio in float64 with a margin for rounding, and `lower_bound` holds for
    every matrix that keeps them. Otherwise SolverFailure is raised.
    """
    costs = as_matrix(cost, "cost")
    if costs.size == 0:
        raise InvalidInput(f"`cost` must have at least one row and one column, got shape {costs.shape}.")
    as_positive(gap, "gap")
    if seconds is not None:
        as_positive(seconds, "seconds")
    everything, exact = checked_log_ratios(costs.shape[0], log_ratios, edges)
    options = Options(gap, seconds, check_solver(solver), progress, start)
    classes = merge_rows(everything, costs)
    if classes is None:
        return RatioSearch(RatioTask(costs, everything, edges, exact), options).run()
    # rows that are almost one become one row, and what is proven for it is proven again for them
    labels, between, added = classes
    if start is not None:
        options = replace(options, start=start[np.unique(labels, return_index=True)[1]])
    inner = RatioSearch(RatioTask(added, between), options).run()
    proof, dual = lift_proof(costs, everything, labels, inner.matrix, inner.edges, inner.dual)
    bound = max(row_minima(costs), lower_bound(costs, proof.pairs, proof.log_ratios, dual))
    reached = relative_gap(inner.objective, bound)
    return replace(
        inner,
        matrix=inner.matrix[labels],
        lower_bound=bound,
        gap=reached,
        edges=proof,
        dual=dual,
        note=inner.note or shortfall(gap, reached, "some rows are almost at one place"),
    )


def solve_parts(
    cost: ArrayLike,
    edges: Edges,
    *,
    gap: float = 1e-3,
    seconds: float | None = None,
    solver: Solver | None = None,
    progress: Progress | None = None,
) -> RatioSolution:
    """Solve over edges that need not connect all rows: every part that they join on its own."""
    started = time.perf_counter()
    costs = as_matrix(cost, "cost")
    size = len(costs)
    graph = sparse.coo_array((np.ones(len(edges.pairs)), (edges.pairs[:, 0], edges.pairs[:, 1])), shape=(size, size))
    parts, label = connected_components(graph, directed=False)
    if parts == 1:
        return solve_ratio(costs, edges=edges, gap=gap, seconds=seconds, solver=solver, progress=progress)
    matrix = np.empty(costs.shape)
    found: list[RatioSolution] = []
    proofs: list[Edges] = []
    for part in range(parts):
        rows = np.flatnonzero(label == part)
        inside = label[edges.pairs[:, 0]] == part
        own = Edges(np.searchsorted(rows, edges.pairs[inside]), edges.log_ratios[inside])
        left = None if seconds is None else seconds - (time.perf_counter() - started)
        left = deadlines.cap_seconds(left)  # a part has its share of what is left
        share = None if left is None else left * len(rows) / np.count_nonzero(label >= part)
        answer = solve_ratio(costs[rows], edges=own, gap=gap, seconds=share, solver=solver, progress=progress)
        matrix[rows] = answer.matrix
        found.append(answer)
        proofs.append(Edges(rows[answer.edges.pairs], answer.edges.log_ratios))
    pairs = np.concatenate([proof.pairs for proof in proofs])
    ratios = np.concatenate([proof.log_ratios for proof in proofs])
    dual = np.concatenate([signed_multipliers(answer.dual) for answer in found])
    objective = float((matrix * costs).sum())
    bound = max(row_minima(costs), lower_bound(costs, pairs, ratios, dual))
    reached = relative_gap(objective, bound)
    ends = [answer.status for answer in found]
    missed = next((end for end in ends if end is not Status.OPTIMAL), Status.OPTIMAL)
    return RatioSolution(
        matrix=matrix,
        objective=objective,
        lower_bound=bound,
        gap=reached,
        edges=Edges(pairs, ratios),
        dual=dual,
        method=f"{found[-1].method}, {parts} parts",
        status=Status.INTERRUPTED if Status.INTERRUPTED in ends else missed,
        seconds=time.perf_counter() - started,
        iterations=sum(answer.iterations for answer in found),
        note=" ".join(sorted({answer.note for answer in found if answer.note})) if reached > gap else "",
    )


def checked_log_ratios(size: int, log_ratios: ArrayLike | None, edges: Edges | None) -> tuple[Floats, bool]:
    """Return the checked n x n log ratios and whether `edges` alone define them."""
    if log_ratios is None:
        if edges is None:
            raise InvalidInput("`log_ratios` or `edges` must be given: without them no pair of rows is related.")
        program = RatioProgram(np.zeros((size, 1)), edges.pairs, edges.log_ratios)
        if size == 1:
            return np.zeros((1, 1)), True
        return path_distances(size, program.edges, program.log_ratios), True
    matrix = as_matrix(log_ratios, "log_ratios", (size, size))
    if np.any(matrix < 0) or np.any(matrix.diagonal() != 0):
        raise InvalidInput("`log_ratios` must be non-negative with a zero diagonal.")
    tolerance = 1e-9 * max(float(matrix.max()), 1e-300)
    if float(np.abs(matrix - matrix.T).max()) > tolerance:
        raise InvalidInput("`log_ratios` must be symmetric: ratios bind in both directions.")
    return np.minimum(matrix, matrix.T), False
