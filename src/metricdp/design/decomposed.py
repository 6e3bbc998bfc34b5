"""Optimal mechanisms by decomposition: blocks of secrets solved apart, joined by the secrets between them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components, shortest_path

from metricdp import deadlines
from metricdp.arrays import Booleans, Floats, Integers, as_choice, as_positive
from metricdp.checkpoints import Checkpoint, open_checkpoint
from metricdp.design._certify import certify
from metricdp.design.optimal import exact_edges
from metricdp.design.time_limits import build_in_time
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers.benders.memory import load_memory, memory_writer
from metricdp.solvers.benders.partition import PartitionName, balance
from metricdp.solvers.benders.partition import partition as cut_graph
from metricdp.solvers.benders.run import Benders, BendersMemory, BendersSolution, Decomposition, WorkersFactory
from metricdp.solvers.benders.start import start_from_engine, start_from_kernels
from metricdp.solvers.benders.workers import LocalWorkers, ProcessWorkers
from metricdp.solvers.edges import non_redundant
from metricdp.solvers.program import Progress, Status, unit_of
from metricdp.solvers.repair.recombine import Repaired, recombine

Executor: TypeAlias = str | WorkersFactory | None
Start: TypeAlias = Literal["engine", "kernels"]
ENGINE_GAP = 1e-2  # how well the whole program is solved before the blocks are
BEGINS = 4.0  # times that a run goes through its multipliers before its first round
ENGINE_SHARE = 0.5  # of the time there is
CROWDED = 0.8  # share of secrets on the boundary from which on the master is the whole problem, and left to the engine
SAME_LENGTH = 1.0 + 1e-12  # a path this little longer than the distance is the distance, rounded


@dataclass(frozen=True)
class Neighbours:
    """The graph of neighbouring secrets, and what its edges really guarantee.

    Ratios along edges bind every pair at the length of the shortest path between them. `stretch` is the largest
    path length / distance over the pairs that are to be protected: epsilon / stretch along the edges keeps epsilon
    for all of them. `log_ratios` are the log ratios of the edge program, closed by paths, `full` the same at the whole
    epsilon, `guaranteed` those of the problem. All are infinite between secrets that nothing joins.
    """

    adjacency: Booleans
    log_ratios: Floats
    full: Floats
    guaranteed: Floats
    stretch: float
    parts: Integers

    @staticmethod
    def of(problem: Problem, *, reach: float | None = None) -> Neighbours:
        """Join the secrets up to `reach` apart; without it, all pairs that no third secret makes superfluous."""
        distances = problem.inputs.distances
        size = len(distances)
        wanted = np.isfinite(problem.log_ratios) & ~np.eye(size, dtype=bool)
        adjacency = _adjacency(problem, wanted, reach)
        graph = sparse.csr_array(np.where(adjacency, distances, 0.0))
        paths = np.asarray(shortest_path(graph, method="D", directed=False))
        lost = wanted & ~np.isfinite(paths)
        if lost.any():
            raise InvalidInput(_disconnection_message(distances, adjacency, wanted, lost, reach))
        stretch = float((paths[wanted] / distances[wanted]).max()) if wanted.any() else 1.0
        stretch = 1.0 if stretch <= SAME_LENGTH else stretch
        _, parts = connected_components(sparse.csr_array(adjacency), directed=False)
        guaranteed = problem.log_ratios
        if problem.radius is not None:
            # chains of protected pairs protect farther pairs too, at the length of the chain
            chains = shortest_path(sparse.csr_array(np.where(wanted, distances, 0.0)), method="D", directed=False)
            guaranteed = np.minimum(problem.log_ratios, problem.epsilon * np.asarray(chains))
        full = np.minimum(problem.epsilon * paths, guaranteed)
        log_ratios = np.minimum(problem.epsilon / stretch * paths, guaranteed)
        return Neighbours(
            adjacency, log_ratios, full, np.asarray(guaranteed), stretch, np.asarray(parts, dtype=np.int64)
        )

    def members(self) -> list[Integers]:
        """Return the secrets of every connected part."""
        return [np.flatnonzero(self.parts == part) for part in range(int(self.parts.max()) + 1)]


def decomposed(
    problem: Problem,
    *,
    blocks: int = 3,
    partition: PartitionName = "balanced",
    neighbours: float | None = None,
    gap: float = 1e-3,
    seconds: float | None = None,
    start: Start = "engine",
    stabilise: bool = True,
    executor: Executor = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> MatrixMechanism:
    """Build the mechanism of least expected loss by Benders decomposition.

    The secrets are cut into `blocks`. Those with a neighbour in another block form the boundary and are decided by a
    master program; the others are decided block by block, in parallel, for the boundary the master proposes; every
    answer becomes a cut of the master.

    `neighbours` is the distance up to which pairs are constrained directly. It guarantees only what chains of
    neighbours guarantee: the largest detour is measured and epsilon divided by it, so that the guarantee holds for all
    pairs; a pair without any chain is an error, unless `Problem(radius=...)` says that such pairs are meant to stay
    unprotected. Left out, all pairs that matter are constrained, which is exact.

    `partition` is "balanced", or one of "distances", "records", "neighbours" and "spectral" as published.
    `start` is "engine" (what `optimal` would do on the whole problem, to 1 %, or to `gap` where four secrets in five
    lie on the boundary and the blocks have nothing to do; its multipliers are the first cuts) or
    "kernels" (the best combination of exponential columns; the blocks do the rest). `stabilise=False` gives the plain
    method, without any start. `executor` is None (threads), "processes", "ray" (a Ray of its own, or the one at
    RAY_ADDRESS) or "ray:address"; workers that die are replaced and the answer is the same.

    With `checkpoint` cuts, rows, bases, the best matrix and the bounds are kept while the run goes on: in the file of
    that path, or by an object of one's own that loads and saves arrays (`metricdp.checkpoints.Checkpoint`).
    `resume=True` goes on from the file, where there is one: a run that was killed ends with the same bounds as one that
    was not.

    The search ends at the asked `gap`, at `seconds` or on Ctrl-C; the best matrix is repaired to strict feasibility
    and audited exactly, and `certificate.lower_bound` holds at the full epsilon whatever the solvers did.

    References: Qiu (2024), with the cost of the boundary counted once and the cuts in the variable.
    """
    started = time.perf_counter()
    as_positive(gap, "gap")
    if seconds is not None:
        as_positive(seconds, "seconds")
    reach = None if neighbours is None else as_positive(neighbours, "neighbours")
    workers, place = _workers(executor), open_checkpoint(checkpoint, resume=resume)
    as_choice(start, "start", ("engine", "kernels"))

    def build() -> MatrixMechanism:
        seconds_left = deadlines.cap_seconds(seconds)
        end = None if seconds_left is None else time.perf_counter() + seconds_left
        options = _RunOptions(gap, end, start, stabilise, workers, place, progress)
        return _build_from_blocks(problem, blocks, partition, reach, options, started)

    return build_in_time(problem, seconds, build)


def _build_from_blocks(
    problem: Problem, blocks: int, partition: PartitionName, reach: float | None, options: _RunOptions, started: float
) -> MatrixMechanism:
    """Cut the secrets into blocks, run the decomposition and repair its best matrix."""
    end, gap = options.end, options.gap
    graph = Neighbours.of(problem, reach=reach)
    points = problem.inputs.points
    labels = cut_graph(
        graph.adjacency,
        blocks,
        method=partition,
        distances=problem.inputs.distances,
        records=None if points.dtype.kind == "U" else points.reshape(len(points), -1).astype(np.float64),
    )
    half = end if graph.stretch == 1.0 or end is None else 0.5 * (end + time.perf_counter())
    answer, first = _solve_blocks(problem.cost, graph, graph.log_ratios, labels, "", replace(options, end=half))
    candidates = [answer.matrix, first] if answer.matrix.size else [first]
    bound = answer.lower_bound
    if graph.stretch > 1.0:
        # The same edges at the full epsilon relax the guarantee: their bound holds for it, and their matrix, repaired
        # for all pairs, may cost less than the one that paid for the detours.
        if answer.status is Status.INTERRUPTED:
            options = replace(options, start="kernels", end=time.perf_counter())
        relaxed, _ = _solve_blocks(problem.cost, graph, graph.full, labels, "full", options)
        bound = relaxed.lower_bound
        candidates += [relaxed.matrix] if relaxed.matrix.size else []
    matrix, how = _repair_candidates(problem.cost, graph, candidates)
    sizes = balance(labels, graph.adjacency)
    return certify(
        problem,
        matrix,
        method=f"decomposed ({len(answer.rounds)} rounds, {sizes}; {how})",
        started=started,
        lower_bound=bound,
        note=_note(problem, answer, graph, gap, float((matrix * problem.cost).sum())),
    )


@dataclass(frozen=True)
class _RunOptions:
    """How to run: `end` is when to stop, on the clock of `time.perf_counter`."""

    gap: float
    end: float | None
    start: Start
    stabilise: bool
    workers: WorkersFactory
    checkpoint: Checkpoint | None
    progress: Progress | None

    def seconds_left(self, share: float = 1.0) -> float | None:
        """Return a share of the seconds that are left."""
        return None if self.end is None else max(0.01, share * (self.end - time.perf_counter()))


def _adjacency(problem: Problem, wanted: Booleans, reach: float | None) -> Booleans:
    distances = problem.inputs.distances
    if reach is not None:
        return wanted & (distances <= reach)
    if problem.radius is not None:
        return wanted
    known = exact_edges(problem)
    pairs = non_redundant(distances) if known is None else known.pairs
    adjacency = np.zeros(distances.shape, dtype=bool)
    adjacency[pairs[:, 0], pairs[:, 1]] = adjacency[pairs[:, 1], pairs[:, 0]] = True
    return adjacency


def _disconnection_message(
    distances: Floats, adjacency: Booleans, wanted: Booleans, lost: Booleans, reach: float | None
) -> str:
    i, j = (int(x) for x in np.argwhere(lost)[0])
    parts, _ = connected_components(sparse.csr_array(adjacency), directed=False)
    tree = sparse.csgraph.minimum_spanning_tree(sparse.csr_array(np.where(wanted, distances, 0.0)))
    return (
        f"`neighbours` must join every pair that is to be protected by a chain of neighbours, got "
        f"{'none' if reach is None else f'{reach:g}'}, which leaves {parts} parts and no chain between the secrets "
        f"{i} and {j}: they would be unprotected. Use at least {float(tree.data.max()):.6g}, or say with "
        "Problem(..., radius=...) that far pairs are meant to stay unprotected."
    )


def _solve_blocks(
    cost: Floats, graph: Neighbours, log_ratios: Floats, labels: Integers, part: str, options: _RunOptions
) -> tuple[BendersSolution, Floats]:
    """Run the decomposition for closed log ratios; return its answer and the matrix it started from.

    Costs are counted in a unit of their own size, a power of two, so that bounds are the same numbers in any unit.
    """
    unit = unit_of(np.abs(cost).max(axis=1).sum())
    cost = cost / unit
    tolerance = float(np.clip(1e-3 * options.gap, 1e-9, 1e-6))
    program = Decomposition.of(cost, log_ratios, graph.adjacency, labels, tolerance=tolerance)
    first = memory = start_from_kernels(cost, log_ratios, graph.members())
    interrupted = False
    place = options.checkpoint.part(part) if options.checkpoint is not None and part else options.checkpoint
    known = None if place is None else load_memory(place, program)
    if known is not None:
        memory = known
    elif not options.stabilise:
        memory = BendersMemory()
    elif options.start == "engine" and first.upper - first.lower > options.gap * abs(first.upper):
        crowded = len(program.boundary) >= CROWDED * len(cost)
        rough = options.gap if crowded else max(options.gap, ENGINE_GAP)
        limit = options.seconds_left(1.0 if crowded else ENGINE_SHARE)
        numbers = float(program.log_ratios.size) * cost.shape[1]  # of the multipliers that the run begins with
        if limit is not None:
            limit = max(0.01, min(limit, deadlines.seconds_left() - BEGINS * numbers * deadlines.seconds_per_number()))
        found, interrupted = start_from_engine(
            cost, log_ratios, graph.adjacency, graph.members(), gap=rough, seconds=limit
        )
        memory = found if found.upper < first.upper else replace(found, best=first.best, upper=first.upper)
    if (
        memory.best is not None
        and deadlines.has_deadline()
        and not deadlines.fits_deadline(float(log_ratios.size) * cost.shape[1])
    ):
        answer = BendersSolution(memory.best, memory.upper, memory.lower, memory.proof, (), 0.0, Status.LIMIT)
    else:
        answer = Benders(
            program,
            gap=options.gap,
            seconds=0.0 if interrupted else options.seconds_left(),
            stabilise=options.stabilise,
            workers=options.workers,
            memory=memory,
            keep=None if place is None else memory_writer(place, program),
            progress=None if options.progress is None else partial(_report_progress, options.progress, unit),
        ).solve()
    assert first.best is not None
    answer = replace(answer, objective=answer.objective * unit, lower_bound=answer.lower_bound * unit)
    return replace(answer, status=Status.INTERRUPTED) if interrupted else answer, first.best


def _report_progress(progress: Progress, unit: float, lower: float, upper: float, seconds: float, rounds: int) -> None:
    progress(lower * unit, upper * unit, seconds, rounds)


def _repair_candidates(cost: Floats, graph: Neighbours, candidates: list[Floats]) -> tuple[Floats, str]:
    """Return the cheapest strictly feasible matrix near the candidates, part by part, and how it was repaired."""
    result = np.zeros(cost.shape)
    ways: set[str] = set()
    for rows in graph.members():
        if len(rows) == 1:
            result[rows[0], int(cost[rows[0]].argmin())] = 1.0
            continue
        log_ratios = graph.guaranteed[np.ix_(rows, rows)]
        pairs = np.argwhere(np.triu(graph.adjacency[np.ix_(rows, rows)]))
        best: Repaired | None = None
        for candidate in candidates:
            value = float((candidate[rows] * cost[rows]).sum())
            if best is None or value < best.objective:
                enough = value + 1e-7 * abs(value)
                found = recombine(candidate[rows], cost[rows], log_ratios, pairs=pairs, enough=enough)
                best = found if best is None or found.objective < best.objective else best
        if best is not None:
            result[rows] = best.matrix
            ways.add(best.method)
    return result, " and ".join(sorted(ways)) or "row minimum"


def _note(problem: Problem, answer: BendersSolution, graph: Neighbours, gap: float, loss: float) -> str:
    parts = []
    if graph.stretch > 1.0:
        parts.append(
            f"chains of neighbours are up to {graph.stretch:.4f} times longer than the distance, so epsilon "
            f"{problem.epsilon / graph.stretch:.6g} along them is what keeps the guarantee; the gap holds that price."
        )
    if answer.gap > gap or not np.isfinite(answer.objective):
        parts.append(
            f"asked for a gap of {gap:.3g} between the bounds, reached {answer.gap:.3g}: {answer.status.value}."
        )
    elif loss - answer.objective > gap * abs(answer.objective):
        parts.append(f"strict feasibility cost {loss - answer.objective:.3g} of the loss of {loss:.3g}.")
    if problem.radius is not None:
        count = int(graph.parts.max()) + 1
        parts.append(f"{count} parts that no chain joins are unprotected against each other, as asked.")
    return " ".join(parts)


def _workers(executor: Executor) -> WorkersFactory:
    if executor is None:
        return LocalWorkers
    if callable(executor):
        return executor
    if executor == "processes":
        return ProcessWorkers
    name, _, address = executor.partition(":")
    if name == "ray":
        from metricdp.solvers.benders.ray import RayWorkers

        made: Callable[..., RayWorkers] = partial(RayWorkers, address=address or None)
        return made
    raise InvalidInput(f"`executor` must be None, 'processes', 'ray' or 'ray:address', got {executor!r}.")
