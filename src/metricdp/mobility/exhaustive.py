"""The exact audit of a predictive mechanism on finite places: every run that it can give, every pair of traces.

Given the run before a step, what the step gives depends on the place of that step alone. So the two traces that a run
tells apart best, at most d apart at every step, differ at every step by the worst pair of places at most d apart:

    max over traces of ln Pr[r | x] - ln Pr[r | x'] = sum_t L_t(d),
    L_t(d) = max {ln p_t(x) - ln p_t(x'): d(x, x') <= d},

and the promise of a run is checked at every distance d that two places have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing.report import AuditReport, Finding
from metricdp.errors import InvalidInput
from metricdp.mobility.predictive import PredictiveMechanism
from metricdp.mobility.runs import Run, Step

MOST_RUNS = 200_000
BITS = 128


@dataclass(frozen=True)
class _Outcome:
    """One thing a step can give: a report, fresh or not, and upper bounds of L_t(d) for every distance d."""

    report: Any
    fresh: bool
    leaks: Floats


@dataclass
class _Tally:
    """What the runs looked at so far leak and spend."""

    runs: int = 0
    epsilon: float = 0.0
    spent: float = 0.0
    broken: str = ""
    known: dict[tuple[Any, Step], list[_Outcome]] = field(default_factory=dict)


def audit_runs(mechanism: PredictiveMechanism, steps: int) -> AuditReport:
    """Judge every run of so many steps against what it spent; a proof, for a few places and steps.

    `claimed` is the most that any run spends, `epsilon` the most that any run leaks per unit of distance, an upper
    bound in interval arithmetic. The promise holds where every single run leaks at most what it spent itself.
    """
    space = mechanism.finite.space
    levels = np.unique(space.distances[(space.distances > 0) & np.isfinite(space.distances)])
    if steps < 1 or (len(space) + 1.0) ** steps > MOST_RUNS:
        raise InvalidInput(
            f"{len(space)} places and {steps} steps have {(len(space) + 1.0) ** steps:.3g} runs; at most {MOST_RUNS:,} "
            "are looked at one by one."
        )
    tally = _Tally()
    _walk(mechanism, Run(), steps, np.zeros(len(levels)), levels, tally)
    return AuditReport(
        claimed=tally.spent,
        epsilon=tally.epsilon,
        basis="proof",
        method=f"exact, {tally.runs:,} runs of {steps} steps, each against what it spent",
        refuted=bool(tally.broken),
        pairs=len(space) * (len(space) - 1) // 2,
        findings=(Finding("run", tally.broken, convicts=True),) if tally.broken else (),
        vacuous=len(space) == 1,
    )


def _walk(mechanism: PredictiveMechanism, run: Run, left: int, leaks: Floats, levels: Floats, tally: _Tally) -> None:
    """Go on from a run in every way there is."""
    step = mechanism.budget(run) if left else None
    if step is None:
        _judge(run, leaks, levels, tally)
        return
    prediction = mechanism.predict(run, step)
    key = (prediction, step)
    if key not in tally.known:
        tally.known[key] = _outcomes(mechanism, prediction, step, levels)
    for outcome in tally.known[key]:
        longer = run.copy()
        longer.add(outcome.report, step, fresh=outcome.fresh)
        _walk(mechanism, longer, left - 1, np.nextafter(leaks + outcome.leaks, np.inf), levels, tally)


def _judge(run: Run, leaks: Floats, levels: Floats, tally: _Tally) -> None:
    tally.runs += 1
    tally.spent = max(tally.spent, run.spent)
    tally.epsilon = max(tally.epsilon, float(np.nextafter(leaks / levels, np.inf).max(initial=0.0)))
    allowed = [Fraction(run.spent) * Fraction(level) for level in levels.tolist()]
    if any(leak > most for leak, most in zip(leaks.tolist(), allowed, strict=True)) and not tally.broken:
        tally.broken = (
            f"The run {run.reports} (fresh: {run.fresh}) spent {run.spent:.12g} and leaks "
            f"{float((leaks / levels).max()):.12g}."
        )


def _outcomes(mechanism: PredictiveMechanism, prediction: Any, step: Step, levels: Floats) -> list[_Outcome]:
    """Return what a step can give, with interval arithmetic on the stored tables."""
    ground, size = mechanism.finite, len(mechanism.finite.space)
    test = _logs(ground.test(prediction, step).matrix) if step.test > 0 else None
    found = []
    if step.noise == 0 or test is not None:
        found.append(_Outcome(prediction, False, _worst([0] * size if test is None else test[0], ground, levels)))
    if step.noise:
        far = [0] * size if test is None else test[1]
        for report, column in enumerate(_logs(ground.noise(step.noise).matrix)):
            if any(one is not None for one in column):
                both = [None if other is None else one + other for one, other in zip(far, column, strict=True)]
                found.append(_Outcome(report, True, _worst(both, ground, levels)))
    return found


def _logs(matrix: Floats) -> list[list[Any]]:
    """Return the logarithms of row / sum(row), column by column, as balls; None for reports that nobody gives."""
    import flint

    with flint.ctx.workprec(BITS):
        columns: list[list[Any]] = [[] for _ in range(matrix.shape[1])]
        for row in matrix.tolist():
            total = sum((Fraction(value) for value in row), start=Fraction(0))
            for column, value in zip(columns, row, strict=True):
                share = Fraction(value) / total
                column.append(flint.arb(flint.fmpq(share.numerator, share.denominator)).log() if value else None)
    return columns


def _worst(logs: list[Any], ground: Any, levels: Floats) -> Floats:
    """Return, rounded up, how much two places at most so far apart differ in a logarithm; at every level."""
    import flint

    apart = ground.space.distances
    worst = np.zeros(len(levels))
    with flint.ctx.workprec(BITS):
        for i, one in enumerate(logs):
            for j, other in enumerate(logs):
                if i == j or one is None or not math.isfinite(apart[i, j]):
                    continue
                upper = math.inf if other is None else float(flint.arb(one - other).upper())
                bound = math.nextafter(upper, math.inf) if upper else 0.0
                at = int(np.searchsorted(levels, apart[i, j]))
                worst[at] = max(worst[at], bound)
    return np.maximum.accumulate(worst)
