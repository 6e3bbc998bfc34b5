"""Benders decomposition exactly as published: Eqs. (9) to (17) of Qiu (2024), faults included, each an option.

    master       min <c_Y, z_Y> + sum_l w_l   over boundary rows and one guess w_l >= 0 for each subset
    subproblem   min <c_X, z_X>   over the inner rows of a subset, for the boundary that the master proposes
    cut          w_l >= (b - B z_Y) a + <c_Yl, z_Yl>   or, where there are no inner rows,   (b - B z_Y) a <= 0

The master holds the cost of the boundary already, so the printed cut (Eq. 15, case C2) counts it twice and the master's
value is no lower bound; `boundary_twice=False` puts that right. No start, no stabilisation, no cut is ever dropped.

`Rules.of_the_code()` is what the authors' program runs instead: every ratio row may be broken by 0.01, entries of the
master are at least 0.001, there are no initial cuts, and the run ends at 0.001. Its matrices keep no guarantee. (Its
master leaves the boundary pairs of one subset to the subproblems, a ray at a time; here it holds them, as in Eq. 25.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import SolverFailure
from metricdp.solvers import Block, Cut, Master, MasterPoint, Subproblem, boundary_of, natural_scale

TOLERANCE = 1e-8


@dataclass(frozen=True)
class Rules:
    """What the paper prints (the defaults), or what its program does instead.

    `threshold` is xi of Section 3.2; `initial_cuts` are the ratios along shortest paths (Property 3.2, so with epsilon,
    which the printed initial cuts leave out); ratio rows are z_i <= e^W z_j + slack, master entries at least `least`.
    """

    boundary_twice: bool = True
    threshold: float = 0.01
    initial_cuts: bool = True
    slack: float = 0.0
    least: float = 0.0

    @staticmethod
    def to_a_tolerance() -> Rules:
        """Return what is printed, with every ratio row kept to 1e-4 only, as a solver with that tolerance does."""
        return Rules(slack=1e-4)

    @staticmethod
    def of_the_code(least: float = 0.001) -> Rules:
        """Return the rules of the authors' program; a remark in it has 0.000002 for Rome and words."""
        return Rules(threshold=0.001, initial_cuts=False, slack=0.01, least=least)


@dataclass(frozen=True)
class PublishedRound:
    """One iteration: the master's value, the cost of the best matrix so far, and what it took.

    `unbounded` counts the subproblems without a solution; `master` and `blocks` are the processor seconds of the master
    and of all subproblems, `slowest` those of the slowest one: with a processor for each, what an iteration takes.
    """

    lower: float
    upper: float
    unbounded: int
    cuts: int
    master: float
    blocks: float
    slowest: float


@dataclass(frozen=True)
class PublishedRun:
    """All iterations; `matrix` is the cheapest combination of master and subproblems, None where there was none.

    `ended` says why a run ended that has not converged, and is empty where the bounds met the threshold. For every
    subproblem: `since`, the first iteration at which it had a solution (0: none had), how many `inner` rows it has and
    how many boundary rows it `touched`.
    """

    rounds: tuple[PublishedRound, ...]
    matrix: Floats | None
    ended: str
    since: Integers
    inner: Integers
    touched: Integers
    boundary: int

    @property
    def converged(self) -> bool:
        return not self.ended

    @property
    def upper(self) -> float:
        return self.rounds[-1].upper if self.rounds else np.inf

    @property
    def lower(self) -> float:
        return self.rounds[-1].lower if self.rounds else -np.inf


class Published:
    """One run as published.

    `log_ratios` holds epsilon d of neighbours and is infinite elsewhere; `paths` is the same along shortest paths.
    """

    def __init__(
        self, cost: Floats, log_ratios: Floats, paths: Floats, labels: Integers, rules: Rules | None = None
    ) -> None:
        self.rules = rules = Rules() if rules is None else rules
        self._cost = cost
        near: Booleans = np.isfinite(log_ratios) & ~np.eye(len(cost), dtype=bool)
        edge = boundary_of(labels, near)
        self.boundary = np.flatnonzero(edge)
        # without slack a row along a path is implied, and finds what is broken sooner
        known = log_ratios if rules.slack else paths
        scale = natural_scale(cost, paths)
        self._blocks: list[Block] = []
        self._owned: list[Integers] = []
        for label in range(int(labels.max()) + 1):
            inner = np.flatnonzero((labels == label) & ~edge)
            if not inner.size:
                continue
            touched = np.flatnonzero(near[inner].any(axis=0) & edge)
            rows = np.concatenate([inner, touched])
            own = known[np.ix_(rows, rows)]
            number = len(self._blocks)
            self._blocks.append(Block(number, inner, touched, cost[inner], own, scale[inner], TOLERANCE, rules.slack))
            self._owned.append(np.flatnonzero(edge & (labels == label)))
        self._subproblems = [Subproblem(block) for block in self._blocks]
        self._master = Master(
            cost,
            paths if rules.initial_cuts else log_ratios,
            scale,
            self.boundary,
            np.zeros(len(self._blocks)),
            tolerance=TOLERANCE,
            slack=rules.slack,
            least=rules.least,
        )

    def solve(self, *, rounds: int = 500, seconds: float = np.inf) -> PublishedRun:
        """Iterate until the best upper bound is within the threshold of the master's value, or a limit comes first."""
        end = time.process_time() + seconds
        found: list[PublishedRound] = []
        best: Floats | None = None
        since = np.zeros(len(self._blocks), dtype=np.int64)
        ended = "the limit of iterations"
        while len(found) < rounds:
            started = time.process_time()
            upper = found[-1].upper if found else np.inf
            try:
                point = self._master.solve(seconds=end - started if np.isfinite(end) else None)
                if point is None:
                    ended = "the limit of time, in the master"
                    break
                solved = time.process_time()
                full, cuts, unbounded, slowest = self._solve_blocks(point, since, len(found) + 1)
            except SolverFailure as error:
                ended = str(error)
                break
            loss = float((full * self._cost).sum())
            if not unbounded and loss < upper:
                best, upper = full, loss
            self._master.add_cuts(cuts)
            done = time.process_time()
            times = solved - started, done - solved, slowest
            found.append(PublishedRound(point.value, upper, unbounded, len(self._master.cuts), *times))
            if upper - point.value <= self.rules.threshold:
                ended = ""
                break
            if done >= end or not cuts:
                ended = "no cut tells more" if not cuts else "the limit of time"
                break
        inner = np.array([len(block.inner) for block in self._blocks], dtype=np.int64)
        touched = np.array([len(block.boundary) for block in self._blocks], dtype=np.int64)
        return PublishedRun(tuple(found), best, ended, since, inner, touched, len(self.boundary))

    def _solve_blocks(self, point: MasterPoint, since: Integers, count: int) -> tuple[Floats, list[Cut], int, float]:
        """Ask all subproblems; return the whole matrix, the cuts, how many have no solution, and the most seconds."""
        full = np.zeros_like(self._cost)
        full[self.boundary] = point.boundary
        cuts: list[Cut] = []
        unbounded, slowest = 0, 0.0
        for block, subproblem in zip(self._blocks, self._subproblems, strict=True):
            before = time.process_time()
            answer = subproblem.solve(full[block.boundary])
            slowest = max(slowest, time.process_time() - before)
            full[block.inner] = answer.matrix
            cut = self._add_printed_term(answer.cut)
            if not answer.feasible:
                unbounded += 1
                cuts.append(cut)
                continue
            since[block.number] = since[block.number] or count
            if cut.value_at(full) > point.estimates[block.number] + TOLERANCE:
                cuts.append(cut)
        return full, cuts, unbounded, slowest

    def _add_printed_term(self, cut: Cut) -> Cut:
        """Add <c_Yl, z_Yl> to an optimality cut, as Eq. (15) and case C2 print it."""
        if not (self.rules.boundary_twice and cut.share):
            return cut
        count, width = len(self._cost), self._cost.shape[1]
        slope = np.zeros((count, width))
        slope[cut.rows, cut.columns] = cut.slope
        slope[self._owned[cut.block]] += self._cost[self._owned[cut.block]]
        rows, columns = np.nonzero(slope)
        return replace(cut, rows=rows, columns=columns, slope=slope[rows, columns])
