"""The one entry for callers: a strictly feasible matrix with a proven gap, from a cost and log ratios."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from metricdp.arrays import Floats, Integers, as_matrix, as_positive
from metricdp.errors import InvalidInput, SolverFailure
from metricdp.solvers.backends.chains import chain_of_blocks
from metricdp.solvers.bounds import lower_bound, relative_gap, row_minima, signed
from metricdp.solvers.edges import (
    all_pairs,
    near_pairs,
    non_redundant,
    path_distances,
    unique_pairs,
    violated_pairs,
)
from metricdp.solvers.program import Edges, Progress, RatioProgram, Solution, Solver
from metricdp.solvers.repair.quotient import lifted, merged
from metricdp.solvers.repair.recombine import Repaired, recombine

SolverName: TypeAlias = Literal["auto", "interior", "first_order", "gpu", "highs", "clarabel"]
SOLVERS = ("auto", "interior", "first_order", "gpu", "highs", "clarabel")
# gap asked for -> how much detour the first edges allow
STRETCHES = ((2e-2, 1.03), (3e-3, 1.014), (8e-4, 1.005), (0.0, 1.002))
ROUGH_GAP, ROUGH_SIZE = 2e-3, 50_000  # from here on the first-order method is faster
MANY_ROWS = 600  # above, only near rows are looked at for the first pairs
MOST_ROUNDS_ROWS = 2000  # above, no pairs are added to what the GPU solved
MOST_MULTIPLIERS = 200_000_000  # above, the bound is not evaluated a second time on the host
MEMORY = 5e9  # bytes the interior-point method may take before the first-order method is chosen
OPERATIONS = 1.2e10  # floating-point operations a second, two cores, small blocks


@dataclass(frozen=True)
class RatioSolution:
    """A matrix that keeps all ratios, and how far it can be from the best one.

    `dual` are multipliers for `edges` that prove `lower_bound`.
    """

    matrix: Floats
    objective: float
    lower_bound: float
    gap: float
    edges: Edges
    dual: NDArray[Any]
    method: str
    seconds: float
    iterations: int
    note: str = ""


def solve_ratio(
    cost: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    edges: Edges | None = None,
    gap: float = 1e-3,
    seconds: float | None = None,
    solver: SolverName = "auto",
    progress: Progress | None = None,
    start: Floats | None = None,
) -> RatioSolution:
    """Minimise <cost, Z> over row-stochastic Z with |ln z_ik - ln z_jk| <= W_ij for ALL pairs.

    `weights` is W, symmetric with the triangle inequality; or `edges` alone, which induce W by shortest
    paths. Where both are given, `edges` are the pairs to begin with. Stops once
    (objective - lower bound) / objective <= `gap`, or near `seconds`, or on Ctrl-C: then the best matrix so
    far comes back with a note.

    Guarantee: the matrix keeps every ratio in float64 with a margin for rounding, and `lower_bound` holds for
    every matrix that keeps them. Otherwise SolverFailure is raised.
    """
    started = time.perf_counter()
    costs = as_matrix(cost, "cost")
    if costs.size == 0:
        raise InvalidInput(f"`cost` must have at least one row and one column, got shape {costs.shape}.")
    as_positive(gap, "gap")
    if seconds is not None:
        as_positive(seconds, "seconds")
    if solver not in SOLVERS:
        raise InvalidInput(f"`solver` must be one of {', '.join(SOLVERS)}, got {solver!r}.")
    matrix_weights, exact = checked_weights(costs.shape[0], weights, edges)
    classes = merged(matrix_weights, costs)
    if classes is None:
        return _Search(costs, matrix_weights, edges, exact, gap, seconds, solver, progress, start, started).run()
    # rows that must be equal become one row
    labels, reduced_weights, reduced_costs = classes
    first = np.unique(labels, return_index=True)[1]
    inner = _Search(
        reduced_costs,
        reduced_weights,
        None,
        False,
        gap,
        seconds,
        solver,
        progress,
        None if start is None else start[first],
        started,
    ).run()
    proof, dual = lifted(costs, matrix_weights, labels, inner.matrix, inner.edges, inner.dual)
    bound = max(row_minima(costs), lower_bound(costs, proof.pairs, proof.log_ratios, dual))
    return replace(
        inner,
        matrix=inner.matrix[labels],
        lower_bound=bound,
        gap=relative_gap(inner.objective, bound),
        edges=proof,
        dual=dual,
        note=inner.note or shortfall(gap, relative_gap(inner.objective, bound), "some rows are almost at one place"),
    )


def solve_parts(
    cost: ArrayLike,
    edges: Edges,
    *,
    gap: float = 1e-3,
    seconds: float | None = None,
    solver: SolverName = "auto",
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
        answer = solve_ratio(costs[rows], edges=own, gap=gap, seconds=seconds, solver=solver, progress=progress)
        matrix[rows] = answer.matrix
        found.append(answer)
        proofs.append(Edges(rows[answer.edges.pairs], answer.edges.log_ratios))
    pairs = np.concatenate([proof.pairs for proof in proofs])
    log_ratios = np.concatenate([proof.log_ratios for proof in proofs])
    dual = np.concatenate([signed(answer.dual) for answer in found])
    objective = float((matrix * costs).sum())
    bound = max(row_minima(costs), lower_bound(costs, pairs, log_ratios, dual))
    reached = relative_gap(objective, bound)
    notes = sorted({answer.note for answer in found if answer.note}) if reached > gap else []
    return RatioSolution(
        matrix=matrix,
        objective=objective,
        lower_bound=bound,
        gap=reached,
        edges=Edges(pairs, log_ratios),
        dual=dual,
        method=f"{found[-1].method}, {parts} parts",
        seconds=time.perf_counter() - started,
        iterations=sum(answer.iterations for answer in found),
        note=" ".join(notes),
    )


def checked_weights(size: int, weights: ArrayLike | None, edges: Edges | None) -> tuple[Floats, bool]:
    """Return the checked n x n log ratios and whether `edges` alone define them."""
    if weights is None:
        if edges is None:
            raise InvalidInput("`weights` or `edges` must be given: without them no pair of rows is related.")
        program = RatioProgram(np.zeros((size, 1)), edges.pairs, edges.log_ratios)
        if size == 1:
            return np.zeros((1, 1)), True
        return path_distances(size, program.edges, program.log_ratios), True
    matrix = as_matrix(weights, "weights", (size, size))
    if np.any(matrix < 0) or np.any(matrix.diagonal() != 0):
        raise InvalidInput("`weights` must be non-negative with a zero diagonal.")
    tolerance = 1e-9 * max(float(matrix.max()), 1e-300)
    if float(np.abs(matrix - matrix.T).max()) > tolerance:
        raise InvalidInput("`weights` must be symmetric: ratios bind in both directions.")
    return np.minimum(matrix, matrix.T), False


class _Search:
    """Solve on some pairs, bound, repair for all pairs, add pairs, until the gap is closed."""

    def __init__(
        self,
        cost: Floats,
        weights: Floats,
        edges: Edges | None,
        exact: bool,
        gap: float,
        seconds: float | None,
        solver: SolverName,
        progress: Progress | None,
        start: Floats | None,
        started: float,
    ) -> None:
        self.cost, self.weights, self.edges, self.exact = cost, weights, edges, exact
        self.gap, self.seconds, self.solver = gap, seconds, solver
        self.progress, self.start, self.started = progress, start, started
        self.iterations = 0
        self.pairs: Integers | None = None
        self.device: Any = None
        self.lower = row_minima(cost)
        self.best: Repaired | None = None if start is None else self._candidate(start)
        self.proof: tuple[Integers, NDArray[Any]] = (
            np.empty((0, 2), dtype=np.int64),
            np.empty((2, 0, cost.shape[1])),
        )
        self.stopped = ""
        self.method = "closed form"

    def run(self) -> RatioSolution:
        """Return the best matrix with its proof."""
        n, m = self.cost.shape
        if n == 1 or m == 1:
            matrix = np.zeros((n, m))
            matrix[np.arange(n), self.cost.argmin(axis=1)] = 1.0
            self.best = Repaired(matrix, float((matrix * self.cost).sum()), "row minimum")
            return self._result()
        try:
            self._rounds()
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.stopped = "interrupted"
        except MemoryError as error:
            if self.best is None:
                raise SolverFailure(
                    f"not enough memory for {n} rows and {m} columns: use fewer, or solver='first_order'."
                ) from error
            self.stopped = "memory ran out"
        return self._result()

    def _rounds(self) -> None:
        """Solve, bound and repair on more and more pairs."""
        n = len(self.weights)
        pairs = self._first_pairs()
        while True:
            solution = self._solve_pairs(pairs)
            self._bound(pairs, solution.dual, solution.bound)
            if not self._closed():
                self._take(self._candidate(solution.primal))
            if self._closed() or self.stopped or self._left() <= 0.0 or len(pairs) == n * (n - 1) // 2:
                return
            if self.solver == "gpu" and n > MOST_ROUNDS_ROWS:
                return
            more = violated_pairs(solution.primal, self.weights, pairs, max(n, len(pairs) // 2))
            if self.exact or len(more) == 0:
                return
            pairs = unique_pairs(np.concatenate([pairs, more]))
            self.start = solution.primal

    def _first_pairs(self) -> Integers:
        if self.edges is not None:
            return unique_pairs(self.edges.pairs)
        n = len(self.weights)
        if n <= 24:
            return all_pairs(n)
        stretch = next(value for limit, value in STRETCHES if self.gap >= limit)
        if n > MANY_ROWS:
            return near_pairs(self.weights, stretch=stretch)
        return non_redundant(self.weights, stretch=stretch)

    def _solve_pairs(self, pairs: Integers) -> Solution:
        self.pairs = pairs
        program = RatioProgram(self.cost, pairs, self.weights[pairs[:, 0], pairs[:, 1]])
        chosen = self._choose(program)
        if self.method in ("first_order", "gpu") and self.start is None:
            # the best mixture of kernels is a good start and a first answer
            self.best = self._candidate(np.full(self.cost.shape, 1.0 / self.cost.shape[1]))
            self.start = self.best.matrix
        before = self.iterations

        def report(lower: float, upper: float, seconds: float, iterations: int) -> None:
            self.iterations = before + iterations
            if self.progress is not None:
                best = np.inf if self.best is None else self.best.objective
                self.progress(max(self.lower, lower), best, time.perf_counter() - self.started, self.iterations)

        solution = chosen.solve(program, warm=self.start, progress=report).raise_for_status()
        self.iterations = before + solution.iterations
        if solution.status == "interrupted":
            self.stopped = "interrupted"
        return solution

    def _choose(self, program: RatioProgram) -> Solver:
        """Pick the solver by name, or by the work the interior-point method would have."""
        name = self.solver
        if name == "auto":
            work, memory = interior_needs(program)
            limit = 3600.0 if self.seconds is None else self.seconds
            possible = memory <= MEMORY and 25.0 * work / OPERATIONS <= limit
            compiled = find_spec("numba") is not None
            rough = self.cost.size > ROUGH_SIZE and self.gap >= ROUGH_GAP
            name = "first_order" if compiled and (rough or not possible) else "interior"
        self.method = name
        left = None if self.seconds is None else max(self._left(), 1e-3)
        if name == "highs":
            from metricdp.solvers.backends.highs import Highs

            return Highs(tolerance=min(1e-7, 0.01 * self.gap), seconds=left)
        if name == "clarabel":
            from metricdp.solvers.backends.clarabel import Interior

            return Interior(tolerance=min(1e-6, 0.01 * self.gap), seconds=left)
        if name == "first_order":
            from metricdp.solvers.backends.first_order import FirstOrder

            return FirstOrder(gap=self.gap, seconds=left, upper=self._upper, dual=self._warm_dual(program))
        if name == "gpu":
            from metricdp.solvers.backends.gpu import Gpu

            return Gpu(gap=self.gap, seconds=left, upper=self._upper, dual=self._warm_dual(program))
        from metricdp.solvers.backends.interior import Structured

        return Structured(gap=0.25 * self.gap, seconds=left)

    def _upper(self, matrix: Any) -> float:
        self._take(self._candidate(matrix))
        assert self.best is not None
        return self.best.objective

    def _warm_dual(self, program: RatioProgram) -> NDArray[Any] | None:
        """Return the multipliers of the last round, zero for the pairs added since."""
        pairs, dual = self.proof
        if len(pairs) == 0 or dual.ndim != 2:
            return None
        n = program.shape[0]
        place = np.searchsorted(program.edges @ [n, 1], pairs @ [n, 1])
        result = np.zeros((len(program.edges), program.shape[1]), dtype=np.float32)
        result[place] = dual
        return result

    def _left(self) -> float:
        """Return the seconds left, less what a last repair takes."""
        if self.seconds is None:
            return float("inf")
        n, m = self.cost.shape
        repair = 0.0 if self.method == "gpu" else 8.0e-9 * n * n * m
        return self.seconds - (time.perf_counter() - self.started) - repair

    def _bound(self, pairs: Integers, dual: NDArray[Any], proved: float = -np.inf) -> None:
        """Evaluate the bound again from the multipliers; where that takes too long keep the solver's own."""
        value = proved
        if dual.size <= MOST_MULTIPLIERS or not np.isfinite(proved):
            log_ratios = self.weights[pairs[:, 0], pairs[:, 1]]
            value = lower_bound(self.cost, pairs, log_ratios, dual)
        if value > self.lower:
            self.lower, self.proof = value, (pairs, dual)

    def _candidate(self, matrix: Any) -> Repaired:
        # what is within the gap: upper - lower <= gap |upper|
        enough = self.lower / (1.0 - self.gap) if self.lower > 0.0 else self.lower / (1.0 + self.gap)
        if self.solver == "gpu":
            on_device: Repaired = self._device().recombine(matrix, enough)
            return on_device
        return recombine(matrix, self.cost, self.weights, pairs=self.pairs, enough=enough)

    def _device(self) -> Any:
        """Return the repair on the GPU, its matrices sent there once."""
        if self.device is None:
            from metricdp.solvers.backends.gpu import Repair

            self.device = Repair(self.cost, self.weights, self.pairs)
        self.device.pairs = self.pairs
        return self.device

    def _take(self, candidate: Repaired) -> None:
        if self.best is None or candidate.objective < self.best.objective:
            self.best = candidate

    def _closed(self) -> bool:
        return self.best is not None and relative_gap(self.best.objective, self.lower) <= self.gap

    def _result(self) -> RatioSolution:
        if self.best is None:
            raise SolverFailure("no matrix was found before the limit: allow more seconds.")
        reached = relative_gap(self.best.objective, self.lower)
        late = "the time limit came first" if self._left() <= 0.0 else "no better one was found"
        pairs, dual = self.proof
        return RatioSolution(
            matrix=self.best.matrix,
            objective=self.best.objective,
            lower_bound=self.lower,
            gap=reached,
            edges=Edges(pairs, self.weights[pairs[:, 0], pairs[:, 1]]),
            dual=dual,
            method=f"{self.method}, {self.best.method}",
            seconds=time.perf_counter() - self.started,
            iterations=self.iterations,
            note=shortfall(self.gap, reached, self.stopped or late),
        )


def shortfall(asked: float, reached: float, why: str) -> str:
    """Return the sentence about a gap that was missed, nothing where it was reached."""
    return "" if reached <= asked else f"asked for a gap of {asked:.3g}, reached {reached:.3g}: {why}."


def interior_needs(program: RatioProgram) -> tuple[float, float]:
    """Return about how many operations a step and how many bytes the structured interior point takes."""
    n, m = program.shape
    chain = chain_of_blocks(n, program.edges)
    sizes = np.diff(chain.cuts).astype(np.float64)
    factors = float((sizes**2).sum() + (sizes[:-1] * sizes[1:]).sum())
    return m * chain.work(), 8.0 * m * (factors + 20.0 * len(program.edges))
