"""The ways to release the trips of a table: for each way a record of options and a function that draws reports."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from metricdp import messages
from metricdp.arrays import Booleans, Floats, as_positive
from metricdp.design.contextual import contextual
from metricdp.design.exponential import exponential
from metricdp.design.laplace import laplace
from metricdp.design.optimal import optimal
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.mechanisms import MatrixMechanism, Mechanism
from metricdp.metrics import Haversine, Lp, Temporal
from metricdp.mobility.budgets import FixedUtility, PredictionTuning
from metricdp.mobility.cloaking import cloak_traces
from metricdp.mobility.fixes import Fixes, FixesTable, Person, mark_fresh
from metricdp.mobility.home_zones import Visit, home_of, stay_points, zones
from metricdp.mobility.models import Mobility, estimate
from metricdp.mobility.prediction import PredictiveMechanism, predictive
from metricdp.mobility.runs import PREDICTIONS, TraceRun
from metricdp.mobility.traces import Traces, Walks, clean, resample, snap
from metricdp.mobility.trajectories import Trajectories, spacing_km, trajectory_problem
from metricdp.problems import Problem
from metricdp.rendering import plural
from metricdp.spaces import FiniteSpace
from metricdp.tables import Charging, Job
from metricdp.tables.formats import locate_table

if TYPE_CHECKING:
    from metricdp.ledger import Receipt  # its database is imported where a ledger is charged

METRIC = Haversine()
KEY = "trajectories"  # the scope of request ids
MOST_PLACES = 400  # every zone has a mechanism of its own over them
DAY = 1440.0  # minutes
MOST_TIMES = 288  # on the clock of a day: every five minutes
NOT_PROTECTED = "Not protected: which trips there are, when they begin and end, how many reports they have"


@dataclass(frozen=True)
class TripRequest:
    """A release of trips: from which table, and who is charged."""

    table: FixesTable
    job: Job
    charging: Charging | None = None

    def report_progress(self, share: float) -> None:
        """Report the finished share."""
        if self.job.progress is not None:
            self.job.progress(share)

    def release(self, person: Person, request: str, draw: Callable[[], bytes], **cost: Any) -> Receipt:
        """Charge a person for one draw, once for a request."""
        assert self.charging is not None
        return self.charging.ledger.release(person, request, key=KEY, purpose=self.charging.purpose, draw=draw, **cost)

    def charge_rows(self, rows: Mapping[Person, int], **cost: Any) -> Callable[[], object]:
        """Return a call that charges all persons for their rows, or none; refuse now what the ledger does not hold."""
        if self.charging is None:
            return lambda: None
        ledger, cost = self.charging.ledger, {**cost, "purpose": self.charging.purpose}
        ledger.granted(rows, **cost)  # before anything is drawn or charged
        return lambda: ledger.release_batch(rows, secrets.token_hex(16), key=KEY, draw=lambda granted: b"", **cost)


@dataclass(frozen=True, eq=False)
class TripRelease:
    """Reports that are ready, the lines about them, and the charge that is due before they are shown."""

    table: pa.Table
    lines: Sequence[str]
    charge: Callable[[], object] = lambda: None
    lost: int = 0
    runs: tuple[TraceRun, ...] = ()
    mechanism: MatrixMechanism | None = None


def _far_fixes(lost: int) -> str:
    return f", and that {lost:,} fixes lie far from every place (they have no report)." if lost else "."


# --- with their history -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Contextual:
    """Trips over public places, drawn by a mechanism that knows where a vehicle came from (`mdp.contextual`).

    Attributes:
        places: What may be reported.
        epsilon: Per kilometre, for a place together with its history.
        step_seconds: The public clock: seconds between two reports.
        weights: How much each step back counts in the distance, the latest first.
        most_km: How far a fix may lie from its place; as far as places lie apart unless given.
        most_kmh: The fastest anyone drives.
        learn: The budget of whole trips at which steps are counted in this very table.
        history: Another, public file to count them in. Without either, every possible step is equally likely.
        gap: How close to its proven bound the mechanism must be.
    """

    places: FiniteSpace
    epsilon: float
    step_seconds: float = 60.0
    weights: Sequence[float] = (0.5,)
    most_km: float | None = None
    most_kmh: float = 60.0
    learn: float | None = None
    history: str | os.PathLike[str] | None = None
    gap: float = 1e-2

    def __post_init__(self) -> None:
        if self.learn is not None and self.history is not None:
            raise InvalidInput("steps are counted in this table (`learn`) or in another (`history`): choose one.")

    def problem(self, traces: Traces, model: Mobility | None = None) -> Trajectories:
        """Return the problem of traces, with what is known of their steps."""
        return trajectory_problem(
            traces, self.places, self.epsilon, step_seconds=self.step_seconds, weights=self.weights,
            most_km=self.most_km, most_kmh=self.most_kmh, model=model,
        )  # fmt: skip

    def release(self, request: TripRequest, fixes: Fixes) -> TripRelease:
        """Release trips with a mechanism that knows the steps before."""
        made = self.problem(fixes.traces)
        if self.learn is not None or self.history is not None:  # counted over the walks of the problem without a model
            counted = None if self.history is None else request.table.read(locate_table(self.history)).traces
            known = made if counted is None else self.problem(counted)
            model = estimate(known.walks, known.model.allowed, order=1, private_epsilon=self.learn)
            made = self.problem(fixes.traces, model)
        request.report_progress(0.2)
        mechanism = contextual(made.problem, gap=self.gap)
        request.report_progress(0.9)
        at = self.places.decode(made.release(mechanism))
        found, unit = mechanism.certificate, made.augmented.base.unit
        most = int(made.reports_per_trip.max())
        # every report sees place and history
        together = most * self.epsilon * (1.0 + float(made.augmented.weights.sum()))
        lines = [
            f"{plural(len(made.walks), 'report')} of {plural(len(made.reports_per_trip), 'trip')} over "
            f"{len(self.places):,} places, each drawn from the current place and the "
            f"{made.augmented.lags} before it ({len(made.augmented):,} histories).",
            messages.report_guarantee(self.epsilon, made.guarantee.slack, made.most_km, unit),
            messages.trip_guarantee(made.epsilon_per_place, together, most, unit),
            messages.trip_loss(found.loss, found.lower_bound, unit),
        ]
        if (spent := made.model.spent) is not None:
            lines.append(
                f"Steps were counted in this table at a budget of {spent.epsilon:g} for {spent.protects}, on top of "
                f"the guarantees above ({spent.mechanism})."
            )
        lines.append(NOT_PROTECTED + _far_fixes(made.lost))
        table = fixes.reports(made.walks.owner, made.walks.seconds, at)
        return TripRelease(table, lines, lost=made.lost, mechanism=mechanism)


# --- by prediction ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictive:
    """Trips by prediction: fresh noise only where a private test says that the last report is too old (`predictive`).

    Attributes:
        epsilon: What a fresh report costs per kilometre; tests cost their share of it on top.
        total: What a whole trip may cost; then it has no more reports.
        predict: "parrot" repeats the last report, "linear" goes on in a line.
        step_seconds: The public clock: seconds between two reports.
        most_kmh: The fastest anyone drives.
    """

    epsilon: float
    total: float | None = None
    predict: str = "parrot"
    step_seconds: float = 60.0
    most_kmh: float = 60.0

    def __post_init__(self) -> None:
        if self.predict not in PREDICTIONS:
            raise InvalidInput(f"`predict` must be one of {', '.join(PREDICTIONS)}, got {self.predict!r}.")

    @property
    def budget(self) -> FixedUtility:
        """What the next step may cost."""
        return FixedUtility(PredictionTuning().noise_constant / self.epsilon, self.total)

    def release(self, request: TripRequest, fixes: Fixes) -> TripRelease:
        """Release trips with the predictive mechanism; the result has a column that says which reports are fresh.

        With a ledger every test and every fresh report is charged to the trip's person before it is drawn, by trip,
        time and all that was asked for. So a run that is killed goes on when it is started again: what was drawn before
        is answered from the ledger and costs nothing. Where `refused` is "fail", the ledger must hold the dearest way
        that all trips can go before anything is drawn; with "report" a trip ends where its person's budget does.
        """
        budget = self.budget
        mechanism = predictive(METRIC, budget=budget, prediction=PREDICTIONS[self.predict])
        ticks = resample(clean(fixes.traces, most_kmh=self.most_kmh), step_seconds=self.step_seconds)
        # A trip that was cut at a gap stays one trace: its parts share one budget.
        rows = np.split(np.arange(len(ticks)), np.flatnonzero(np.diff(ticks.owner)) + 1)
        # Whatever changes what is drawn is part of the request, so that another wish is another release.
        asked = (self.predict, self.epsilon, self.total, self.step_seconds, self.most_kmh)
        trips = [_Trip(request, fixes, ticks.select(one), asked) for one in rows]
        if request.charging is not None and request.charging.refused == "fail":
            _check_balance(request, mechanism, trips)
        runs = []
        for trip in trips:
            spend = None if request.charging is None else trip.spend
            runs.append(mechanism.release(trip.trace, spend=spend))
            request.report_progress(0.95 * len(runs) / len(trips))
        kept = ticks.select(np.concatenate([one[: len(run)] for one, run in zip(rows, runs, strict=True)]))
        at = np.array([report for run in runs for report in run.reports]).reshape(-1, 2)
        fresh = [fresh for run in runs for fresh in run.fresh]
        lost, tuning = len(ticks) - len(kept), budget.tuning
        lines = [
            f"{plural(len(kept), 'report')} of {plural(len(runs), 'trip')}, "
            f"{sum(fresh):,} of them fresh; the others are what could be "
            "predicted from the reports before.",
            messages.prediction_guarantee(max(run.spent for run in runs), budget.total, "km"),
            messages.predicted_cost(sum(run.spent for run in runs), len(kept) * budget.epsilon, "km"),
            messages.predicted_loss(budget.accuracy, tuning.caution, tuning.confidence, "km"),
            *([] if request.charging is None else [_charges(trips)]),
            f"{NOT_PROTECTED}. Which reports are fresh is part of the release and paid for"
            + (f"; {lost:,} ticks have none, since the budget of their trip was spent." if lost else "."),
        ]
        table = mark_fresh(fixes.reports(kept.owner, kept.seconds, at), fresh)
        return TripRelease(table, lines, lost=lost, runs=tuple(runs))


class _Trip:
    """One trip and its person, who is charged before every test and every fresh report."""

    def __init__(self, request: TripRequest, fixes: Fixes, ticks: Traces, asked: tuple[Any, ...]) -> None:
        self.request, self.clock, self.trace = request, ticks.seconds, ticks.coordinates
        trip = int(ticks.owner[0])
        self.person, self._begin = fixes.person(trip), f"{fixes.name(trip)!r} {asked!r}"
        self.charged = self.repeated = 0

    def spend(self, label: str, epsilon: float, draw: Callable[[], bytes]) -> bytes:
        """Charge a test or a fresh report, once, and return its answer."""
        number, what = label.split()
        asked = hashlib.sha256(f"{self._begin} {float(self.clock[int(number)])!r} {what}".encode()).hexdigest()
        receipt = self.request.release(self.person, asked, draw, metric=METRIC, epsilon=epsilon)
        self.repeated += receipt.repeated
        self.charged += receipt.charged * (not receipt.repeated)
        return receipt.report

    def recall(self, label: str, epsilon: float, draw: Callable[[], bytes]) -> bytes:
        """Return an earlier answer; nothing is drawn or charged."""

        def nothing() -> bytes:
            raise BudgetExceeded("nothing was answered yet.", asked=0)

        return self.spend(label, epsilon, nothing)


def _check_balance(request: TripRequest, mechanism: PredictiveMechanism, trips: Sequence[_Trip]) -> None:
    """Raise `BudgetExceeded` unless the ledger holds the largest cost of all trips, less earlier draws."""
    budget = cast(FixedUtility, mechanism.budget)

    def granted(runs: Sequence[TraceRun]) -> None:
        most: dict[Person, float] = {}
        for trip, run in zip(trips, runs, strict=True):
            most[trip.person] = most.get(trip.person, 0.0) + _largest_cost(budget, run, len(trip.trace))
        wanted = {person: amount for person, amount in most.items() if amount > 0}
        if wanted:
            request.charge_rows(dict.fromkeys(wanted, 1), metric=METRIC, epsilon=wanted)

    try:
        granted([TraceRun()] * len(trips))
    except BudgetExceeded:
        # Some of it may have been paid for by a run that was killed: replay that, without drawing anything.
        before = [mechanism.release(trip.trace, spend=trip.recall) for trip in trips]
        for trip in trips:
            trip.charged = trip.repeated = 0
        if not any(run.spent for run in before):
            raise
        granted(before)


def _largest_cost(budget: FixedUtility, run: TraceRun, ticks: int) -> float:
    """Return the most that the rest of a trip can cost, with what the ledger rounds up."""
    steps, each = ticks - len(run), budget.tuning.step(budget.epsilon)
    most = steps * each.most - (0.0 if len(run) else each.test)  # the first report is not tested
    if budget.total is not None:
        most = min(most, budget.total - run.spent)
    return max(0.0, most) + 2e-6 * steps


def _charges(trips: Sequence[_Trip]) -> str:
    """Return a sentence on the charges, which are counted in millionths."""
    again = sum(one.repeated for one in trips)
    amount = messages.epsilon(sum(one.charged for one in trips) / 1e6, "km")
    more = f" {again:,} answers were drawn and charged before; they cost nothing now." if again else ""
    persons = len({one.person for one in trips})
    return f"{persons:,} persons were charged {amount} in all, test by test and report by report.{more}"


# --- with home zones --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Zoned:
    """Trips over public places in which distances inside zones count less: coarse near home, precise elsewhere.

    Either `centres` are public, latitude and longitude of districts say, and everybody has the same zones. Or the zone
    of a person lies around a report of their home, drawn at `centre_epsilon` per kilometre; the home is where their own
    trips stay longest, a stay being `stay_seconds` within `stay_km`.

    Attributes:
        places: What may be reported.
        epsilon: Per kilometre, for one report; inside a zone it counts `scale` times.
        radius_km: How far a zone reaches.
        scale: How much distances count inside a zone, above 0 and at most 1.
        centres: Latitude and longitude of public centres.
        centre_epsilon: What a report of the home may leak that its zone lies around; it is spent once.
        stay_seconds: How long a person must be in one place for a stay.
        stay_km: How far they may move meanwhile.
        step_seconds: The public clock: seconds between two reports.
        most_km: How far a fix may lie from its place; as far as places lie apart unless given.
        most_kmh: The fastest anyone drives.
        gap: How close to its proven bound the mechanism of a zone must be.
    """

    places: FiniteSpace
    epsilon: float
    radius_km: float
    scale: float = 0.2
    centres: Floats | None = None
    centre_epsilon: float | None = None
    stay_seconds: float = 600.0
    stay_km: float = 0.2
    step_seconds: float = 60.0
    most_km: float | None = None
    most_kmh: float = 60.0
    gap: float = 1e-2

    def __post_init__(self) -> None:
        as_positive(self.radius_km, "radius_km")
        if (self.centres is None) == (self.centre_epsilon is None):
            raise InvalidInput(
                "a zone lies around public `centres`, or around a report of the home at `centre_epsilon`."
            )
        if self.centre_epsilon is not None:
            as_positive(self.centre_epsilon, "centre_epsilon")
        if self.places.unit != "km":
            raise InvalidInput(
                f"zones are measured in kilometres, and these places in {self.places.unit or 'no unit'}."
            )
        if len(self.places) > MOST_PLACES:
            raise InvalidInput(
                f"every zone has an optimum of its own, over {MOST_PLACES} places at most, got {len(self.places):,}: "
                "take fewer with --count."
            )

    def mechanism(self, around: tuple[int, ...]) -> tuple[MatrixMechanism, Visit]:
        """Return the mechanism of zones around some places, and what a visit to them reveals."""
        zone = zones(self.places, around, radius=self.radius_km, scale=self.scale)
        if zone.inside.all():
            raise InvalidInput(
                f"a zone of {self.radius_km:g} km holds all {len(self.places):,} places, so nothing is precise "
                "anywhere: make it smaller, or take places of a larger area."
            )
        problem = Problem(zone.space, self.epsilon, loss=self.places.distances)
        mechanism = cast(MatrixMechanism, optimal(problem, gap=self.gap))  # so few places are a table
        return mechanism, zone.visit(mechanism)

    def release(self, request: TripRequest, fixes: Fixes) -> TripRelease:
        """Release trips over public places, with distances inside zones counting less.

        With a ledger the report of each home is drawn and charged once and kept there. The reports of a table are
        charged when all of them are ready and none is shown: epsilon for each, and the slack of moving fixes to places.
        """
        places = self.places
        near = spacing_km(places) if self.most_km is None else as_positive(self.most_km, "most_km")
        on_clock = resample(clean(fixes.traces, most_kmh=self.most_kmh), step_seconds=self.step_seconds)
        walks = snap(on_clock, places, most_km=near)
        mine = fixes.rows_of(walks.owner)
        request.report_progress(0.1)
        visits, apart = {person: int(rows.sum()) for person, rows in mine.items()}, places.charge(near)
        charge = request.charge_rows(
            visits, metric=places.metric, epsilon=self.epsilon, slack=self.epsilon * apart, dimension=places.dimension
        )
        centres = self._centres(request, fixes, walks, mine)
        made: dict[tuple[int, ...], tuple[MatrixMechanism, Visit]] = {}
        reports = np.empty(len(walks), dtype=np.int64)
        for number, (person, rows) in enumerate(mine.items()):
            around = centres[person]
            if around not in made:
                made[around] = self.mechanism(around)
            reports[rows] = made[around][0].sample(walks.codes[rows])
            request.report_progress(0.1 + 0.8 * (number + 1) / len(mine))
        lost, per_trip = len(on_clock) - len(walks), np.unique(walks.owner, return_counts=True)[1]
        found = max((mechanism.certificate for mechanism, _ in made.values()), key=lambda one: one.loss)
        worst = max((visit for _, visit in made.values()), key=lambda one: one.across)
        lines = [
            f"{plural(len(walks), 'report')} of {plural(len(per_trip), 'trip')} of "
            f"{plural(len(mine), 'person')} over {len(places):,} places, "
            f"coarse in a zone of {messages.distance(self.radius_km, 'km', 'up')} and precise elsewhere.",
            messages.zone_guarantee(self.epsilon, self.scale, self.epsilon * apart, near, "km"),
            messages.zoned_trip(self.epsilon, self.scale, int(per_trip.max()), "km"),
            self._centre_sentences(request, max(visits.values())),
            f"A visit to the border, with every place equally likely: {worst}",
            messages.zoned_loss(found.loss, found.lower_bound, "km"),
        ]
        if request.charging is not None:
            once = " The report of each home was charged separately, once." if self.centre_epsilon else ""
            who = plural(len(mine), "person was", "persons were")
            lines.append(f"{who} charged for {plural(len(walks), 'report')}.{once}")
        lines.append(NOT_PROTECTED + _far_fixes(lost))
        table = fixes.reports(walks.owner, walks.seconds, np.asarray(places.decode(reports)))
        return TripRelease(table, lines, charge, lost=lost)

    def _centre_sentences(self, request: TripRequest, visits: int) -> str:
        """Return sentences on the centres of zones; `visits` are the reports of the person with the most."""
        if self.centres is not None:
            return messages.given_centres(len(self.centres))
        rate = self.centre_epsilon or 0.0
        together = rate + visits * self.epsilon * self.scale
        return messages.drawn_centres(rate, together, visits, "km", kept=request.charging is not None)

    def _centres(
        self, request: TripRequest, fixes: Fixes, walks: Walks, mine: Mapping[Person, Booleans]
    ) -> dict[Person, tuple[int, ...]]:
        """Return the centres of each person's zones as places: given ones, or a report of the home, drawn once."""
        places = self.places
        if self.centres is not None:
            return dict.fromkeys(mine, tuple(np.unique(places.nearest(self.centres)[0]).tolist()))
        traces, rate = clean(fixes.traces, most_kmh=self.most_kmh), self.centre_epsilon or 0.0
        stays = stay_points(traces, radius_km=self.stay_km, least_seconds=self.stay_seconds)
        mechanism = exponential(places, rate)
        # Another map, rate or size is another report of the home: it is charged again.
        asked = (places.coordinates.tolist(), rate, self.radius_km, self.stay_seconds, self.stay_km)
        once = f"home zone {hashlib.sha256(repr(asked).encode()).hexdigest()}"
        found: dict[Person, tuple[int, ...]] = {}
        for person, rows in mine.items():
            home = home_of(stays, walks, places, np.unique(walks.owner[rows]))

            def draw(home: int = home) -> bytes:
                return str(int(mechanism.sample([home])[0])).encode()

            cost = {"metric": places.metric, "epsilon": rate, "dimension": places.dimension}
            report = draw() if request.charging is None else request.release(person, once, draw, **cost).report
            found[person] = (int(report),)
        return found


# --- with hidden times ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cloaked:
    """Trips whose times are hidden as well: places and times with noise, sorted by the reported times (`cloaked`).

    Without `clock_minutes` times get Laplace noise. With it the time of the day is put on a clock of so many minutes
    and drawn around it by the optimum under `Temporal`; the day stays as it is.

    Attributes:
        epsilon: Per kilometre, for the place of one fix.
        time_epsilon: Per minute, for its time.
        clock_minutes: Minutes between two times of the clock.
        most_kmh: The fastest anyone drives.
    """

    epsilon: float
    time_epsilon: float
    clock_minutes: float | None = None
    most_kmh: float = 60.0

    def time(self) -> tuple[Mechanism, float]:
        """Return a mechanism for times in minutes, and how far a time may lie from the clock's."""
        if self.clock_minutes is None:
            return laplace(Lp(1, unit="min"), self.time_epsilon, dimension=1), 0.0
        step = as_positive(self.clock_minutes, "clock_minutes")
        count = round(DAY / step)
        if abs(count * step - DAY) > 1e-9 or not 2 <= count <= MOST_TIMES:
            raise InvalidInput(
                f"`clock_minutes` must divide a day into 2 to {MOST_TIMES} equal parts, such as 15 or 60; got {step:g}."
            )
        space = FiniteSpace((np.arange(count) * step)[:, None], Temporal(DAY, "min"))
        return optimal(Problem(space, self.time_epsilon), gap=1e-3), step / 2.0

    def release(self, request: TripRequest, fixes: Fixes) -> TripRelease:
        """Release the fixes of trips with noise on places and on times.

        With a ledger everybody is charged for their fixes twice, for places and for times, when the table is ready and
        not yet to be seen.
        """
        time, reach = self.time()
        request.report_progress(0.3)
        made = cloak_traces(
            clean(fixes.traces, most_kmh=self.most_kmh), place=laplace(METRIC, self.epsilon), time=time,
            seconds_per_unit=60.0, snap=(0.0, reach),
        )  # fmt: skip
        request.report_progress(0.8)
        owner, both, found = made.traces.owner, made.both, time.certificate
        rows = {person: int(mine.sum()) for person, mine in fixes.rows_of(owner).items()}
        per_trip = np.unique(owner, return_counts=True)[1]
        lines = [
            f"{plural(len(owner), 'fix', 'fixes')} of {plural(len(per_trip), 'trip')}, "
            "places and times drawn, rows sorted by the reported "
            "times.",
            messages.clock_guarantee(made.place.epsilon, made.time.epsilon, made.time.slack, "km", "min"),
            messages.clocked_trip(made.place.epsilon, made.time.epsilon, int(per_trip.max()), "km", "min"),
            messages.clocked_loss(found.loss, found.lower_bound, 2.0 / made.place.epsilon, "km", "min"),
        ]
        if request.charging is not None:
            who = plural(len(rows), "person was", "persons were")
            lines.append(f"{who} charged for {plural(len(owner), 'fix', 'fixes')}, for places and for times.")
        day = " and on which day each fix was" if self.clock_minutes is not None else ""
        lines.append(f"Not protected: which trips there are, how many fixes they have{day}.")
        # one charge in two accounts: that of places and that of times
        charge = request.charge_rows(rows, metric=both.metric, epsilon=both.epsilon, slack=both.slack)
        return TripRelease(fixes.reports(owner, made.traces.seconds, made.traces.coordinates), lines, charge)
