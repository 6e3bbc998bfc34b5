"""ConstOPT: an optimal program whose far entries are tied to one kernel per report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from metricdp import deadlines
from metricdp.arrays import Floats, Integers, as_choice, as_positive
from metricdp.auditing.exact import float_leakage
from metricdp.auditing.loss import packing_lower_bound
from metricdp.design._certify import certify, safe_epsilon
from metricdp.design.components import build_by_component, is_disconnected
from metricdp.design.exponential import BUDGETS, Budget
from metricdp.design.time_limits import build_in_time
from metricdp.errors import InvalidInput, TimeUp
from metricdp.mechanisms import MatrixMechanism
from metricdp.mechanisms.base import Objective
from metricdp.problems import Problem
from metricdp.progress import SEARCHING, report_step
from metricdp.solvers.program import Status
from metricdp.solvers.repair.recombine import repair
from metricdp.solvers.tied_program import TiedProgram, replacements

PUBLISHED_PENALTIES = (0.001, 0.1, 1.0)  # the sweep of Section 5.1
FIRST_PENALTY, STEP = 100.0, 10.0  # where the search begins, and the factor between one penalty and the next
PAYS = 1e-3  # a penalty or an inner budget that gains less is not worth another program
STEPS = 4  # programs for one penalty: every one corrects the inner budget by what the last one leaked
MOST_LOG_RATIO = 25.0  # min(a d, 25) is a metric too: the guarantee is only stronger, the program well scaled


def constopt(
    problem: Problem,
    *,
    nearest: int = 10,
    penalty: float | Sequence[float] | None = None,
    budget: Budget = "certified",
    objective: Literal["worst", "expected"] = "worst",
    seconds: float | None = None,
) -> MatrixMechanism:
    """Build ConstOPTMech: M_uv is free where v is among the `nearest` reports of u, Y_v exp(-a d_uv) elsewhere.

    Rows of M sum to at least one, what is above is charged `penalty`, and the rows are normalised at the end. With
    `budget="half"`, a = epsilon / 2 as published; with "certified", the whole epsilon where the audit allows it, and
    otherwise the inner budget a of least loss whose normalised distribution keeps the guarantee. `penalty` is one
    number, several to choose the best of, or by itself as large as it pays: tenfold steps until both neighbours of the
    best are no better. Where the whole epsilon does not fit, half of it with the published penalties is tried too, and
    the better one taken. The constraints (25) and (26) of the paper are used in their corrected form: (26) bounds M_vw
    from below by Y_w max_u exp(-a (d_uw + d_uv)).

    At `seconds`, or on Ctrl-C, the best distribution so far comes back, and `certificate.note` says so. Where `seconds`
    end before the first program is solved, a mixture of kernels comes back.

    References: Imola et al. (2022), Algorithm 1.
    """
    started = time.perf_counter()
    size = len(problem.inputs)
    if problem.outputs is not problem.inputs:
        raise InvalidInput("`constopt` reports the secrets themselves: leave `outputs` out.")
    if is_disconnected(problem):

        def build(part: Problem, **options: Any) -> MatrixMechanism:
            return constopt(part, nearest=min(nearest, len(part.inputs)), **options)

        options: dict[str, Any] = {"penalty": penalty, "budget": budget, "objective": objective}
        return build_by_component(problem, build, inside=True, seconds=seconds, **options)
    if not 1 <= nearest <= size:
        raise InvalidInput(f"`nearest` must be from 1 to {size}, got {nearest}.")
    as_choice(budget, "budget", BUDGETS)
    several = [penalty] if isinstance(penalty, int | float) else penalty
    if several is not None and not len(several):
        raise InvalidInput("`penalty` must be a positive number or several, got none.")

    def search() -> MatrixMechanism:
        left = deadlines.cap_seconds(seconds)
        ends = None if left is None else time.perf_counter() + left
        found, note = _PenaltySearch(problem, nearest, budget, objective, ends).best_attempt(several)
        inner, bound = f"inner budget {found.inner / problem.epsilon:.4f} epsilon", None
        if objective == "worst" and np.array_equal(problem.loss, problem.inputs.distances):
            bound = packing_lower_bound(problem.inputs, problem.epsilon, radius=problem.radius)
        method = f"constopt, {nearest} nearest, penalty {found.penalty:g}, {inner}"
        made: dict[str, Any] = {"method": method, "started": started, "note": note}
        return certify(problem, found.matrix, objective=objective, lower_bound=bound, **made)

    return build_in_time(problem, seconds, search, objective=objective)


@dataclass(frozen=True, eq=False)
class _Attempt:
    """A distribution that keeps the guarantee, what it costs, and what its program leaked before any repair."""

    matrix: Floats
    value: float
    inner: float
    penalty: float
    leaked: float

    def __lt__(self, other: _Attempt) -> bool:
        return self.value < other.value


class _PenaltySearch:
    """Looks for the penalty and the inner budget of least loss; every distribution it compares keeps the guarantee."""

    def __init__(
        self, problem: Problem, nearest: int, budget: Budget, objective: Objective, ends: float | None
    ) -> None:
        self.problem, self.budget, self.ends = problem, budget, ends
        self.best: _Attempt | None = None
        self.distances = problem.inputs.distances
        self.free = replacements(self.distances, nearest)
        self.learned: list[tuple[Integers, Integers]] = []  # rows that one program lacked, the next one has
        self.prior = problem.prior if objective == "expected" else None
        self.goal = safe_epsilon(problem.epsilon, self.distances)
        # Rows of M sum to at least one: a loss below nothing would make them sum to anything.
        self.loss = problem.loss - min(0.0, float(problem.loss.min()))

    def best_attempt(self, penalties: Sequence[float] | None) -> tuple[_Attempt, str]:
        """Return the best of the penalties (or over all), with a note where the search ended before it was done."""
        try:
            if penalties is None:
                return self.bracket_penalty(), ""
            return min(self.tune(as_positive(value, "penalty")) for value in penalties), ""
        except (TimeUp, KeyboardInterrupt) as end:
            if self.best is None:
                raise
            why = Status.INTERRUPTED if isinstance(end, KeyboardInterrupt) else Status.LIMIT
            return self.best, f"the best of the penalties and inner budgets that were tried: {why.value}."

    def bracket_penalty(self) -> _Attempt:
        """Return the best over penalties in tenfold steps, both of whose neighbours were tried and are no better."""
        best = self.tune(FIRST_PENALTY)
        # A larger penalty buys a larger inner budget: once the whole epsilon is inside, only a smaller one can gain.
        whole = best.inner == self.goal and best.leaked <= (1.0 + PAYS) * self.goal
        for factor in (1.0 / STEP,) if whole else (STEP, 1.0 / STEP):
            gained = True
            while gained:
                following = self.tune(best.penalty * factor, best.inner)
                gained = following.value < best.value - PAYS * abs(best.value)  # losses may be negative
                best = min(best, following)
            if best.penalty > FIRST_PENALTY:
                break  # its lower neighbour is what it was reached from
        if self.budget == "certified" and not whole:
            # From the other end: half the budget always keeps the guarantee, so what is found is never worse than that.
            published = min(self._attempt(self.goal / 2, value) for value in PUBLISHED_PENALTIES)
            if published.value < best.value:
                best = min(published, self.tune(published.penalty, published.inner))
        return best

    def tune(self, penalty: float, inner: float | None = None) -> _Attempt:
        """Return the best distribution of one penalty: the inner budget follows what the last program leaked."""
        if self.budget == "half":
            return self._attempt(self.goal / 2, penalty)
        inner = self.goal if inner is None else inner
        tried: list[_Attempt] = []
        for _ in range(STEPS):
            tried.append(self._attempt(inner, penalty))
            # What normalising adds grows with a: scale a by what was used, up to the whole, never below one half.
            used = tried[-1].leaked / self.goal
            following = min(self.goal, max(self.goal / 2, inner / used)) if used > 0.5 else self.goal
            if abs(following - inner) <= PAYS * self.goal:
                break
            inner = following
        return min(tried)

    def _attempt(self, inner: float, penalty: float) -> _Attempt:
        log_ratios = np.minimum(inner * self.distances, MOST_LOG_RATIO)
        left = None if self.ends is None else self.ends - time.perf_counter()
        late = left is not None and left <= 0 and self.best is not None
        program = None if late else TiedProgram(log_ratios, self.loss, self.free, penalty, self.prior, self.learned)
        matrix = None if program is None else program.solve(seconds=None if left is None else max(left, 0.01))
        if matrix is None:
            raise TimeUp(
                "no distribution was found before the limit: the first program alone takes longer. Allow more "
                "seconds, or take fewer places or a smaller `nearest`."
            )
        leaked = float_leakage(matrix, self.distances)
        if leaked > self.goal:
            matrix = repair(matrix, self.goal * self.distances)
        losses = (matrix * self.problem.loss).sum(axis=1)
        value = float(losses.max() if self.prior is None else self.prior @ losses)
        found = _Attempt(matrix, value, inner, penalty, leaked)
        self.best = found if self.best is None else min(self.best, found)
        report_step(SEARCHING)
        return found
