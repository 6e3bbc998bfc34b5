"""Builders that keep to `seconds`: a certified first answer at hand, time kept back for the audit, refusal at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from metricdp import deadlines
from metricdp.arrays import as_positive
from metricdp.auditing.exact import audit_matrix
from metricdp.design._certify import cap_bound, certify
from metricdp.errors import InvalidInput, SolverFailure, TimeUp
from metricdp.mechanisms import MatrixMechanism
from metricdp.mechanisms.base import Objective
from metricdp.problems import Problem
from metricdp.solvers.bounds import quick_bound
from metricdp.solvers.program import Status
from metricdp.solvers.repair.closure import excess
from metricdp.solvers.repair.recombine import kernel_mixture

SAMPLE, REPORTS = 256, 128  # secrets and reports of the table that is checked to see how fast this machine is now
CHECKS = 3.0  # a first answer and its audit take at least so many checks of all ratios
SHORT = 0.25  # of the time: where less is left, a search that found nothing was short of it
AGAIN = 1.5  # how much longer the audit of the result may take than that of the first answer


class TimeLimitTooShort(InvalidInput):
    """The time is not enough for any answer, and nothing was begun."""


def build_in_time(
    problem: Problem,
    seconds: float | None,
    build: Callable[[], MatrixMechanism],
    *,
    objective: Objective = "expected",
) -> MatrixMechanism:
    """Return what `build` makes within `seconds`, or a first answer where that is better or nothing else was ready.

    The first answer, kernels at their best reports, is certified before the search begins. Its audit says how long
    the last one takes on this machine now, and so much is kept back. Where even the first answer takes too long, the
    problem is refused before any work. `build` asks `deadlines.seconds_left()` in every loop that may be long.

    A small problem is never refused: its first answer takes hardly any time, and is made only where the search ends
    without one.
    """
    if seconds is None:
        return build()
    as_positive(seconds, "seconds")
    work = len(problem.inputs) ** 2 * len(problem.outputs)
    started = deadlines.clock()
    with deadlines.time_limit(seconds):
        if work < deadlines.LARGE:
            try:
                return build()
            except SolverFailure as failure:
                _raise_unless_late(failure, SHORT * seconds)
            first, _ = _first_answer(problem, objective, started)
            return _replace_note(first, first.certificate.note, started)
        refuse_too_short(
            CHECKS * work,
            f"a certified mechanism of {len(problem.inputs):,} secrets and {len(problem.outputs):,} reports",
            "fewer places or reports",
        )
        first, audited = _first_answer(problem, objective, started)
        bound = first.certificate.lower_bound
        try:
            with deadlines.time_limit(None, reserve=AGAIN * audited):
                made = build()
        except SolverFailure as failure:
            _raise_unless_late(failure, SHORT * seconds)
            return _replace_note(first, first.certificate.note, started)
    bound = max(bound, made.certificate.lower_bound)
    if made.certificate.loss <= first.certificate.loss or made.certificate.interrupted:
        return _replace_bound(made, bound)
    return _replace_note(_replace_bound(first, bound), made.certificate.note, started)


def _raise_unless_late(failure: SolverFailure, short: float) -> None:
    """Raise a failure that is not for want of time: nothing says so, and more is left than would be `short`."""
    if not isinstance(failure, TimeUp) and deadlines.seconds_left() > short:
        raise failure


def refuse_too_short(checks: float, what: str, fewer: str = "fewer places") -> None:
    """Refuse at once what takes longer than is left, at the pace at which ratios are checked on this machine now.

    Only the work itself counts: what takes no longer than `deadlines.SPARE` is done, however little time is left. So a
    machine that stands still for a while has no small problem refused.
    """
    if not deadlines.has_deadline():
        return
    before = deadlines.seconds_left()
    expected = checks * pace()
    if expected > max(deadlines.seconds_left(), deadlines.SPARE):
        raise TimeLimitTooShort(
            f"{max(before, 0.0):.3g} seconds are not enough: {what}, repaired and audited, takes about "
            f"{expected:,.0f} s on this machine now. Allow more seconds, or take {fewer}."
        )


def _first_answer(problem: Problem, objective: Objective, started: float) -> tuple[MatrixMechanism, float]:
    """Return a certified mechanism that takes little time, and how long its audit took."""
    audit_matrix(np.full((2, 2), 0.5), 1.0 - np.eye(2), 1.0)  # what is imported for it is not measured
    # with a radius, far pairs have no ratio, and only kernels of all distances keep those of the near ones
    matrix = kernel_mixture(problem.cost, problem.epsilon * problem.inputs.distances).matrix
    cost, log_ratios = problem.loss * problem.prior[:, None], problem.log_ratios
    weights = problem.prior
    if objective == "worst":  # no mean is above the worst
        weights = np.full(len(problem.inputs), 1.0 / len(problem.inputs))
        cost = problem.loss * weights[:, None]
    bound = quick_bound(cost, log_ratios, weights)
    before = deadlines.clock()
    made = certify(problem, matrix, method="kernels", started=started, objective=objective, lower_bound=bound)
    return made, deadlines.clock() - before


def _replace_bound(made: MatrixMechanism, bound: float) -> MatrixMechanism:
    own = made.certificate
    return replace(made, certificate=replace(own, lower_bound=cap_bound(bound, own.loss)))


def _replace_note(made: MatrixMechanism, note: str, started: float) -> MatrixMechanism:
    text = note or f"a first answer, since the search found none before its end: {Status.LIMIT.value}."
    certificate = replace(made.certificate, note=text, seconds=deadlines.clock() - started)
    return replace(made, certificate=certificate)


def pace() -> float:
    """Return how long the check of one ratio takes on this machine now, measured on a small table."""
    places = np.arange(SAMPLE, dtype=np.float64)
    log_ratios = np.abs(places[:, None] - places[None])
    matrix = np.exp(-log_ratios[:, :REPORTS] / SAMPLE)
    took = []
    for _ in range(3):
        before = deadlines.clock()
        excess(matrix, log_ratios)
        took.append(deadlines.clock() - before)
    return min(took) / (SAMPLE**2 * REPORTS)
