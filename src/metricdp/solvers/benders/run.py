"""Benders decomposition of a ratio program: boundary rows in a master, inner rows in blocks.

Every round the master proposes boundary rows, the blocks answer with their least cost for them (or with the proof
that there are no inner rows), and the answer becomes a cut. The costs of the boundary are counted once, in the
master; the cuts hold the variable z_Y. The bounds reported are proven: the multipliers of master and cuts together
are multipliers of the whole program, and these give a lower bound in directed rounding whatever the solvers did.

Stabilised (in-out separation): cuts are taken between the master's point and the best feasible point so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import TimeUp
from metricdp.solvers.benders.block import Block, BlockAnswer, ModelState
from metricdp.solvers.benders.cuts import Cut, Multipliers, cut_from, natural_scale, proven_bound
from metricdp.solvers.benders.master import Master, MasterPoint, MasterState
from metricdp.solvers.benders.partition import boundary_of
from metricdp.solvers.benders.workers import LocalWorkers, Workers
from metricdp.solvers.bounds import relative_gap
from metricdp.solvers.program import Progress, Status

WorkersFactory = Callable[..., Workers]
MIX = 0.5  # how far towards the best feasible point cuts are taken
PATIENCE = 25  # rounds without weight after which a cut goes
STORE_INTERVAL_FACTOR = 20.0  # times as long as keeping takes: so long nothing is kept again


@dataclass(frozen=True)
class Decomposition:
    """A ratio program and its blocks: costs, closed log ratios (infinite: unrelated), block numbers, boundary."""

    cost: Floats
    log_ratios: Floats
    scale: Floats
    labels: Integers
    boundary: Integers
    blocks: tuple[Block, ...]
    tolerance: float

    @staticmethod
    def of(
        cost: Floats, log_ratios: Floats, adjacency: Booleans, labels: Integers, *, tolerance: float
    ) -> Decomposition:
        """Split the rows of every block into inner rows and boundary rows."""
        edge = boundary_of(labels, adjacency)
        scale = natural_scale(cost, log_ratios)
        blocks: list[Block] = []
        for number in range(int(labels.max()) + 1):
            inner = np.flatnonzero((labels == number) & ~edge)
            if not inner.size:
                continue  # its cost is the master's
            touched = np.flatnonzero(adjacency[inner].any(axis=0) & edge)
            rows = np.concatenate([inner, touched])
            blocks.append(
                Block(len(blocks), inner, touched, cost[inner], log_ratios[np.ix_(rows, rows)], scale[inner], tolerance)
            )
        return Decomposition(cost, log_ratios, scale, labels, np.flatnonzero(edge), tuple(blocks), tolerance)


@dataclass(frozen=True)
class BendersRound:
    """The bounds after one round: proven from below, and the cost of the best matrix so far (to the tolerance)."""

    lower: float
    upper: float
    seconds: float
    cuts: int
    feasible: bool


@dataclass(frozen=True)
class BendersSolution:
    """The best matrix (feasible to the tolerance only), the proven lower bound, and how it went."""

    matrix: Floats
    objective: float
    lower_bound: float
    multipliers: Multipliers
    rounds: tuple[BendersRound, ...]
    seconds: float
    status: Status

    @property
    def gap(self) -> float:
        if not np.isfinite(self.objective):
            return float("inf")
        return relative_gap(self.objective, self.lower_bound)


@dataclass
class BendersMemory:
    """Everything a run has learnt; enough to go on from."""

    master: MasterState | None = None
    states: dict[int, ModelState] = field(default_factory=dict)
    best: Floats | None = None
    upper: float = np.inf
    lower: float = -np.inf
    proof: Multipliers = field(default_factory=Multipliers.no_multipliers)
    rounds: list[BendersRound] = field(default_factory=list)


class Benders:
    """One run: `solve` goes on until the gap is closed, time is up or the user interrupts."""

    def __init__(
        self,
        problem: Decomposition,
        *,
        gap: float,
        seconds: float | None = None,
        stabilise: bool = True,
        workers: WorkersFactory = LocalWorkers,
        memory: BendersMemory | None = None,
        keep: Callable[[BendersMemory], None] | None = None,
        progress: Progress | None = None,
    ) -> None:
        """`memory.best` may hold a feasible matrix to begin with; `keep` is called with what was learnt so far."""
        self._problem, self._gap, self._seconds, self._stabilise = problem, gap, seconds, stabilise
        self._memory = self._recompute_bounds(BendersMemory() if memory is None else memory)
        self._store, self._progress = keep, progress
        self._started = time.perf_counter()
        self._factory = workers
        self._fixed: dict[int, BlockAnswer] = {}  # blocks without boundary are solved once
        floors = np.array([float(block.cost.min(axis=1).sum()) for block in problem.blocks])
        self._master = Master(
            problem.cost, problem.log_ratios, problem.scale, problem.boundary, floors, tolerance=problem.tolerance
        )
        if self._memory.master is not None:
            self._master.restore(self._memory.master)
        elif len(self._memory.proof):
            self._master.add_cuts(self._cuts_of(self._memory.proof))

    def _recompute_bounds(self, memory: BendersMemory) -> BendersMemory:
        """Return what was learnt with its bounds computed again: no stored bound is believed."""
        problem = self._problem
        memory.lower = proven_bound(problem.cost, problem.log_ratios, memory.proof)
        memory.upper = np.inf if memory.best is None else float((problem.cost * memory.best).sum())
        return memory

    def solve(self) -> BendersSolution:
        """Run and return the best matrix with its bound."""
        workers = self._factory(self._problem.blocks, states=self._memory.states)
        status = Status.OPTIMAL
        try:
            status = self._run(workers)
        except TimeUp:
            status = Status.LIMIT
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        finally:
            workers.close()
            self._remember(force=True)
        memory = self._memory
        best = np.empty((0, 0)) if memory.best is None else memory.best
        return BendersSolution(
            best, memory.upper, memory.lower, memory.proof, tuple(memory.rounds), self._elapsed(), status
        )

    def _run(self, workers: Workers) -> Status:
        memory = self._memory
        if self._is_closed():
            return Status.OPTIMAL
        if self._is_late():
            return Status.LIMIT
        self._remember()
        if memory.states:  # asked before, their cuts are in the master
            alone = [block for block in self._problem.blocks if not len(block.boundary)]
            self._fixed = workers.solve({block.number: block.cost[:0] for block in alone}, keep_states=False)
        elif self._stabilise and memory.best is not None:
            self._visit(workers, memory.best[self._problem.boundary])  # the first cuts, where it matters
        while True:
            left = None if self._seconds is None else self._seconds - self._elapsed()
            point = self._master.solve(seconds=left, between=self._remember)
            if point is None:
                return Status.LIMIT
            self._bound(point)
            if self._is_closed():
                self._report(False)
                return Status.OPTIMAL
            useful, feasible = self._visit(workers, point.boundary, point)
            if self._stabilise and memory.best is not None and not self._is_closed():
                between = MIX * memory.best[self._problem.boundary] + (1.0 - MIX) * point.boundary
                more, inside = self._visit(workers, between, point)
                useful, feasible = useful + more, feasible or inside
            self._report(feasible)
            if self._is_closed():
                return Status.OPTIMAL
            if useful == 0:
                return Status.STALLED  # no cut tells more: the bounds agree to the solvers' tolerance
            if self._stabilise:
                self._master.clean_up(PATIENCE)
            self._remember()
            if self._is_late():
                return Status.LIMIT

    def _visit(self, workers: Workers, boundary: Floats, point: MasterPoint | None = None) -> tuple[int, bool]:
        """Ask all blocks at one boundary; return how many cuts the master's point breaks, and if it was feasible."""
        problem, memory = self._problem, self._memory
        full = np.zeros_like(problem.cost)
        full[problem.boundary] = boundary
        wanted = {block.number: full[block.boundary] for block in problem.blocks if block.number not in self._fixed}
        answers = workers.solve(wanted, keep_states=self._store is not None)
        for block in problem.blocks:
            answer = self._fixed.get(block.number) or answers[block.number]
            if not len(block.boundary):
                self._fixed[block.number] = answer
            if answer.state is not None:
                memory.states[block.number] = answer.state
            full[block.inner] = answer.matrix
        feasible = all(answer.feasible for answer in answers.values())
        if feasible:
            value = float((problem.cost * full).sum())
            if value < memory.upper:
                memory.best, memory.upper = full.copy(), value
        fresh = []
        useful = 0
        asked = None
        if point is not None:
            asked = np.zeros_like(problem.cost)
            asked[problem.boundary] = point.boundary
        for number, answer in answers.items():
            cut = answer.cut
            if asked is None or point is None:
                fresh.append(cut)
                continue
            short = cut.value_at(asked) - cut.share * float(point.estimates[number])
            # less than the master's own tolerance it would not see, and ask for the same point again and again
            least = 0.1 * problem.tolerance * self._master.size_of(cut)
            if cut.share:
                size = abs(memory.upper) if np.isfinite(memory.upper) else 1.0
                least = max(least, 1e-3 * self._gap * size / len(problem.blocks))
            if short > least:
                useful += 1
                fresh.append(cut)
            elif answer.feasible and self._stabilise:
                fresh.append(cut)  # true at the point asked, though not yet needed
        self._master.add_cuts(fresh)
        return useful, feasible

    def _cuts_of(self, proof: Multipliers) -> list[Cut]:
        """Return what multipliers of the whole program say: a cut for each block, and one row for the boundary.

        With these rows alone the master's value is at least the bound that the multipliers prove.
        """
        problem = self._problem
        width = problem.cost.shape[1]
        owner = np.full(len(problem.cost), -1, dtype=np.int64)
        for block in problem.blocks:
            owner[block.inner] = block.number
        of = np.maximum(owner[proof.tail], owner[proof.head])  # neighbours have at most one block between them
        cuts = [
            cut_from(
                proof.part(of == block.number),
                block=block.number,
                inside=block.inner,
                cost=block.cost,
                log_ratios=problem.log_ratios,
                width=width,
            )
            for block in problem.blocks
        ]
        own = proof.part(of < 0)
        constraint_sums = own.constraint_sums(problem.log_ratios, width).tocoo()
        rows, columns = (np.asarray(axis, dtype=np.int64) for axis in constraint_sums.coords)
        return [*cuts, Cut(-1, 0.0, 0.0, rows, columns, constraint_sums.data, own)] if len(own) else cuts

    def _bound(self, point: MasterPoint) -> None:
        value = proven_bound(self._problem.cost, self._problem.log_ratios, point.multipliers)
        if value > self._memory.lower:
            self._memory.lower, self._memory.proof = value, point.multipliers.drop_negligible()

    def _is_closed(self) -> bool:
        memory = self._memory
        return memory.upper - memory.lower <= self._gap * abs(memory.upper) if np.isfinite(memory.upper) else False

    def _report(self, feasible: bool) -> None:
        memory = self._memory
        seconds = self._elapsed()
        memory.rounds.append(BendersRound(memory.lower, memory.upper, seconds, len(self._master.cuts), feasible))
        if self._progress is not None:
            self._progress(memory.lower, memory.upper, seconds, len(memory.rounds))

    def _remember(self, *, force: bool = False) -> None:
        """Hand what was learnt to the keeper, at most a twentieth of the time."""
        if self._store is None:
            return
        now = time.perf_counter()
        if not force and now - self._stored_at < STORE_INTERVAL_FACTOR * self._store_seconds:
            return
        if force and not self._master.whole():
            return  # stopped in the middle of a change: what was kept last stands
        self._memory.master = self._master.state()
        self._store(self._memory)
        self._stored_at = time.perf_counter()
        self._store_seconds = self._stored_at - now

    _stored_at = -np.inf
    _store_seconds = 0.0

    def _is_late(self) -> bool:
        return self._seconds is not None and self._elapsed() >= self._seconds

    def _elapsed(self) -> float:
        return time.perf_counter() - self._started
