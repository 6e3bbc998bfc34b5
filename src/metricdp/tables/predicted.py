"""Trips that are released by prediction, as tables: with books, every test and every fresh report is charged once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp import wording
from metricdp.arrays import Floats
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.metrics import Haversine
from metricdp.mobility import PREDICTIONS, Care, FixedUtility, PredictiveMechanism, Run, clean, predictive, resample
from metricdp.tables.charging import name_of
from metricdp.tables.options import Charging
from metricdp.tables.results import delivered
from metricdp.tables.trips import Fixes, Journey, locations, read_fixes, reports_like, tell, write_reports

METRIC = Haversine()


@dataclass(frozen=True, eq=False)
class PredictedSummary:
    """What was done to a table of trips by the predictive mechanism."""

    target: str
    runs: tuple[Run, ...]
    ticks: tuple[int, ...]
    budget: FixedUtility
    books: str = ""

    def lines(self) -> list[str]:
        """Return what was done, what is promised, what it would have cost otherwise and what stays unprotected."""
        reports, fresh = sum(len(run) for run in self.runs), sum(sum(run.fresh) for run in self.runs)
        spent = max(run.spent for run in self.runs)
        rate, total = self.budget.epsilon, self.budget.total
        lost = sum(self.ticks) - reports
        return [
            f"{self.target}: {reports:,} reports of {len(self.runs):,} trips, {fresh:,} of them fresh; the others are "
            "what could be predicted from the reports before.",
            wording.predicted_promise(spent, total, "km"),
            wording.predicted_cost(sum(run.spent for run in self.runs), reports * rate, "km"),
            wording.predicted_loss(self.budget.accuracy, self.budget.care.caution, self.budget.care.confidence, "km"),
            *([self.books] if self.books else []),
            "Not protected: which trips there are, when they begin and end, how many reports they have. Which reports "
            "are fresh is part of the release and paid for"
            + (f"; {lost:,} ticks have none, since the budget of their trip was spent." if lost else "."),
        ]


def predict_trajectories(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    journey: Journey,
    *,
    charging: Charging | None = None,
    progress: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> PredictedSummary:
    """Release the trips of a table with the predictive mechanism: fresh noise only where a private test asks for it.

    A fresh report costs `journey.epsilon` per kilometre, and the tests their share of it. The result has one row for
    every tick of the clock: trip, time, latitude, longitude, and whether the report is fresh.

    With books every test and every fresh report is charged to the trip's person before it is drawn, by trip, time and
    all that was asked for. So a run that is killed goes on when it is started again: what was drawn before is answered
    from the books and costs nothing. Where `charging.refused` is "fail", the books must hold the dearest way that all
    trips can go before anything is drawn; with "report" a trip ends where its person's budget does.
    """
    origin, goal = locations(source, target, journey)
    if journey.predict not in PREDICTIONS:
        raise InvalidInput(f"`predict` must be one of {', '.join(PREDICTIONS)}, got {journey.predict!r}.")
    budget = FixedUtility(Care().noise_constant / journey.epsilon, journey.total)
    mechanism = predictive(METRIC, budget=budget, prediction=PREDICTIONS[journey.predict])
    with delivered(goal, origin, overwrite=overwrite) as partial:
        fixes = read_fixes(origin, journey)
        ticks = resample(clean(fixes.traces, most_kmh=journey.most_kmh), step_seconds=journey.step_seconds)
        # A trip that was cut at a gap stays one trace: its parts share one budget.
        traces = np.split(np.arange(len(ticks)), np.flatnonzero(np.diff(ticks.owner)) + 1)
        accounts = [
            None
            if charging is None
            else _Account(charging, fixes, journey, int(ticks.owner[trace[0]]), ticks.seconds[trace])
            for trace in traces
        ]
        if charging is not None and charging.refused == "fail":
            _hold(
                charging,
                mechanism,
                [one for one in accounts if one is not None],
                [ticks.coordinates[t] for t in traces],
            )
        runs, rows = [], []
        for number, (trace, account) in enumerate(zip(traces, accounts, strict=True)):
            runs.append(mechanism.release(ticks.coordinates[trace], spend=None if account is None else account.spend))
            rows.append(trace[: len(runs[-1])])
            tell(progress, 0.95 * (number + 1) / len(traces))
        kept = ticks.select(np.concatenate(rows))
        at = np.array([report for run in runs for report in run.reports]).reshape(-1, 2)
        result = reports_like(fixes.table, kept.owner, kept.seconds, at)
        fresh = pa.array([fresh for run in runs for fresh in run.fresh], pa.bool_())
        name = "fresh" if "fresh" not in result.column_names else "fresh_1"
        write_reports(partial, goal, result.append_column(name, fresh))
    tell(progress, 1.0)
    books = "" if charging is None else _told([one for one in accounts if one is not None])
    return PredictedSummary(str(target), tuple(runs), tuple(len(trace) for trace in traces), budget, books)


class _Account:
    """The account of one trip's person: asked before every test and every fresh report of the trip."""

    def __init__(self, charging: Charging, fixes: Fixes, journey: Journey, trip: int, clock: Floats) -> None:
        self.charging, self.clock = charging, clock
        self.person = name_of(fixes.persons[trip])
        # Whatever changes what is drawn is part of the request, so that another wish is another release.
        asked = (journey.predict, journey.epsilon, journey.total, journey.step_seconds, journey.most_kmh)
        self._begin = f"{fixes.name(trip)!r} {asked!r}"
        self.charged = self.repeated = 0

    def spend(self, label: str, epsilon: float, draw: Callable[[], bytes]) -> bytes:
        """Charge a test or a fresh report, once, and return its answer."""
        number, what = label.split()
        request = hashlib.sha256(f"{self._begin} {float(self.clock[int(number)])!r} {what}".encode()).hexdigest()
        receipt = self.charging.ledger.release(
            self.person, request, key="trajectories", metric=METRIC, epsilon=epsilon, purpose=self.charging.purpose,
            draw=draw,
        )  # fmt: skip
        self.repeated += receipt.repeated
        self.charged += receipt.charged * (not receipt.repeated)
        return receipt.report

    def known(self, label: str, epsilon: float, draw: Callable[[], bytes]) -> bytes:
        """Return what was answered before; nothing is drawn or charged."""

        def nothing() -> bytes:
            raise BudgetExceeded("nothing was answered yet.", asked=0)

        return self.spend(label, epsilon, nothing)


def _hold(charging: Charging, mechanism: PredictiveMechanism, accounts: list[_Account], traces: list[Floats]) -> None:
    """Raise `BudgetExceeded` unless the books hold the dearest way of all trips, less what was drawn before."""
    budget: Any = mechanism.budget
    try:
        _granted(charging, budget, [(one, Run(), len(trace)) for one, trace in zip(accounts, traces, strict=True)])
    except BudgetExceeded:
        # Some of it may have been paid for by a run that was killed: replay that, without drawing anything.
        before = [
            (one, mechanism.release(trace, spend=one.known), len(trace))
            for one, trace in zip(accounts, traces, strict=True)
        ]
        for one in accounts:
            one.charged = one.repeated = 0
        if not any(run.spent for _, run, _ in before):
            raise
        _granted(charging, budget, before)


def _granted(charging: Charging, budget: FixedUtility, trips: list[tuple[_Account, Run, int]]) -> None:
    most: dict[str | bytes | int, float] = {}
    for account, run, ticks in trips:
        most[account.person] = most.get(account.person, 0.0) + _dearest(budget, run, ticks)
    wanted = {person: amount for person, amount in most.items() if amount > 0}
    if wanted:
        charging.ledger.granted(dict.fromkeys(wanted, 1), metric=METRIC, epsilon=wanted, purpose=charging.purpose)


def _dearest(budget: FixedUtility, run: Run, ticks: int) -> float:
    """Return the most that the rest of a trip can cost, with what the books round up."""
    steps, each = ticks - len(run), budget.care.step(budget.epsilon)
    most = steps * each.most - (0.0 if len(run) else each.test)  # the first report is not tested
    if budget.total is not None:
        most = min(most, budget.total - run.spent)
    return max(0.0, most) + 2e-6 * steps


def _told(accounts: list[_Account]) -> str:
    """Say what was charged, in millionths brought back."""
    persons = len({one.person for one in accounts})
    amount = sum(one.charged for one in accounts) / 1e6
    again = sum(one.repeated for one in accounts)
    more = f" {again:,} answers were drawn and charged before; they cost nothing now." if again else ""
    return (
        f"{persons:,} persons were charged {wording.epsilon(amount, 'km')} in all, test by test and report by report."
        f"{more}"
    )
