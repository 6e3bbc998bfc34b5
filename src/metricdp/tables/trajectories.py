"""Trips as tables: a file of fixes in, a file of reports on a public clock out, and what that promises."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp import wording
from metricdp.arrays import Floats, Integers
from metricdp.design.contextual import contextual
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.metrics import Haversine
from metricdp.mobility import (
    PREDICTIONS,
    Care,
    FixedUtility,
    Mobility,
    Run,
    Traces,
    Trajectories,
    clean,
    estimate,
    load_traces,
    predictive,
    resample,
    trajectory_problem,
    trip_numbers,
)
from metricdp.spaces import FiniteSpace
from metricdp.tables.checks import refuse_odd_points
from metricdp.tables.delivery import delivered
from metricdp.tables.formats import (
    AS_IT_IS,
    Location,
    Reading,
    Storage,
    located,
    open_writer,
    read_batches,
    target_location,
)
from metricdp.tables.sources import open_table
from metricdp.tables.task import there_are
from metricdp.tables.values import is_text, numbers_of

COLUMNS = ("trip", "t", "lat", "lon")
TIMES = (pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))  # what text may say about a time


@dataclass(frozen=True)
class Journey:
    """What is asked of a release of trips.

    `columns` are trip, time, latitude and longitude, or trip, time and a geometry; `reading` is what is said about the
    file besides. Coordinates that look wrong are refused unless `yes_really`.

    `learn` is the budget of whole trips at which steps are counted in this very table; `history` is another, public
    file to count them in. Without either, every possible step is equally likely and nothing is learnt.

    `predict` ("parrot" or "linear") is for `predict_trajectories`, and `total` what a trip may spend there at most.
    """

    epsilon: float
    columns: Sequence[str] = COLUMNS
    step_seconds: float = 60.0
    weights: Sequence[float] = (0.5,)
    most_km: float | None = None
    most_kmh: float = 60.0
    learn: float | None = None
    history: str | os.PathLike[str] | None = None
    gap: float = 1e-2
    predict: str = "parrot"
    total: float | None = None
    reading: Reading = AS_IT_IS
    yes_really: bool = False


@dataclass(frozen=True, eq=False)
class TripSummary:
    """What was done to a table of trips: the problem that was stated, the mechanism that was made for it."""

    source: str
    target: str
    trajectories: Trajectories
    mechanism: MatrixMechanism

    def lines(self) -> list[str]:
        """Return what was done, what is promised and what stays unprotected, one sentence a line."""
        made, found = self.trajectories, self.mechanism.certificate
        most = int(made.reports_per_trip.max())
        per_km, unit = made.problem.epsilon, made.augmented.base.unit
        together = most * per_km * (1.0 + float(made.augmented.weights.sum()))  # every report sees place and history
        lines = [
            f"{self.target}: {len(made.walks):,} reports of {len(made.reports_per_trip):,} trips over "
            f"{len(made.augmented.base):,} places, each drawn from the current place and the "
            f"{made.augmented.lags} before it ({len(made.augmented):,} histories).",
            wording.report_promise(per_km, made.guarantee.slack, made.most_km, unit),
            wording.trip_promise(made.epsilon_per_place, together, most, unit),
            wording.trip_loss(found.loss, found.lower_bound, unit),
        ]
        if made.model.spent is not None:
            lines.append(
                f"Steps were counted in this table at a budget of {made.model.spent.epsilon:g} for "
                f"{made.model.spent.protects}, on top of the promises above ({made.model.spent.mechanism})."
            )
        lines.append(
            "Not protected: which trips there are, when they begin and end, how many reports they have"
            + (f", and that {made.lost:,} fixes lie far from every place (they have no report)." if made.lost else ".")
        )
        return lines


@dataclass(frozen=True, eq=False)
class PredictedSummary:
    """What was done to a table of trips by the predictive mechanism."""

    target: str
    runs: tuple[Run, ...]
    ticks: tuple[int, ...]
    budget: FixedUtility

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
            "Not protected: which trips there are, when they begin and end, how many reports they have. Which reports "
            "are fresh is part of the release and paid for"
            + (f"; {lost:,} ticks have none, since the budget of their trip was spent." if lost else "."),
        ]


def perturb_trajectories(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    places: FiniteSpace,
    journey: Journey,
    *,
    progress: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> TripSummary:
    """Release the trips of a table in a file over public places, with a mechanism that knows the step before.

    The result has one row for every tick of the clock: trip, time, latitude and longitude of the reported place.
    """
    origin, goal = _locations(source, target, journey)
    if journey.learn is not None and journey.history is not None:
        raise InvalidInput("steps are counted in this table (`learn`) or in another (`history`): choose one.")
    with delivered(goal, origin, overwrite=overwrite) as partial:
        made, mechanism, result = _released(origin, places, journey, progress)
        _write(partial, goal, result)
    _tell(progress, 1.0)
    return TripSummary(str(source), str(target), made, mechanism)


def predict_trajectories(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    journey: Journey,
    *,
    progress: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> PredictedSummary:
    """Release the trips of a table with the predictive mechanism: fresh noise only where a private test asks for it.

    A fresh report costs `journey.epsilon` per kilometre, and the tests their share of it. The result has one row for
    every tick of the clock: trip, time, latitude, longitude, and whether the report is fresh.
    """
    origin, goal = _locations(source, target, journey)
    if journey.predict not in PREDICTIONS:
        raise InvalidInput(f"`predict` must be one of {', '.join(PREDICTIONS)}, got {journey.predict!r}.")
    budget = FixedUtility(Care().noise_constant / journey.epsilon, journey.total)
    mechanism = predictive(Haversine(), budget=budget, prediction=PREDICTIONS[journey.predict])
    with delivered(goal, origin, overwrite=overwrite) as partial:
        table, fixes = _read(origin, journey)
        ticks = resample(clean(fixes, most_kmh=journey.most_kmh), step_seconds=journey.step_seconds)
        # A trip that was cut at a gap stays one trace: its parts share one budget.
        traces = np.split(np.arange(len(ticks)), np.flatnonzero(np.diff(ticks.owner)) + 1)
        runs, rows = [], []
        for number, trace in enumerate(traces):
            runs.append(mechanism.release(ticks.coordinates[trace]))
            rows.append(trace[: len(runs[-1])])
            _tell(progress, 0.95 * (number + 1) / len(traces))
        kept = ticks.select(np.concatenate(rows))
        at = np.array([report for run in runs for report in run.reports]).reshape(-1, 2)
        result = _reports(table, kept.owner, kept.seconds, at)
        fresh = pa.array([fresh for run in runs for fresh in run.fresh], pa.bool_())
        _write(partial, goal, result.append_column("fresh" if "fresh" not in result.column_names else "fresh_1", fresh))
    _tell(progress, 1.0)
    return PredictedSummary(str(target), tuple(runs), tuple(len(trace) for trace in traces), budget)


def _locations(source: Any, target: Any, journey: Journey) -> tuple[Location, Location]:
    if len(tuple(journey.columns)) not in (3, 4):
        raise InvalidInput(
            f"`columns` must be four, {', '.join(COLUMNS)}, or three where one holds both coordinates; got "
            f"{', '.join(journey.columns)}."
        )
    return located(source, journey.reading.source_format), target_location(target)


def _write(partial: Any, goal: Location, result: pa.Table) -> None:
    with open_writer(partial, result.schema, Storage(goal.format.name, goal.packing, table=goal.table)) as writer:
        for batch in result.to_batches():
            writer.write(batch)


def _released(
    origin: Location,
    places: FiniteSpace,
    journey: Journey,
    progress: Callable[[float], None] | None,
) -> tuple[Trajectories, MatrixMechanism, pa.Table]:
    """Read, design and draw, with nobody else at work on the target."""
    table, fixes = _read(origin, journey)
    made = _stated(fixes, places, journey)
    _tell(progress, 0.2)
    mechanism = contextual(made.problem, gap=journey.gap)
    _tell(progress, 0.9)
    at = places.decode(made.release(mechanism))
    return made, mechanism, _reports(table, made.walks.owner, made.walks.seconds, at)


def _reports(table: pa.Table, numbers: Integers, clock: Floats, at: Floats) -> pa.Table:
    """Return reports with the names and kinds that trips, times and coordinates have in the table they came from."""
    trip, time, latitude, longitude = table.column_names
    names = trip_numbers(table[trip].to_numpy())[1]
    owners = numbers if names is None else names[numbers]
    seconds: pa.Array = pa.array(clock)
    if pa.types.is_timestamp(table.schema.field(time).type):
        seconds = pa.array(np.round(clock * 1e6).astype("datetime64[us]"))
    return pa.table({trip: pa.array(owners), time: seconds, latitude: at[:, 0], longitude: at[:, 1]})


def _read(location: Location, journey: Journey) -> tuple[pa.Table, Traces]:
    """Return trip, time, latitude and longitude of a file in any format, and the traces in them."""
    trip, time, *place = journey.columns
    with open_table(location, place, journey.reading) as opened:
        table = pa.Table.from_batches(list(read_batches(opened)), schema=opened.schema)
        latitude, longitude = opened.columns or place
    wanted = [trip, time, latitude, longitude]
    if missing := [name for name in wanted if name not in table.column_names]:
        # Where none is there, the first line may be a row: it is not shown.
        there = "None is there: has the file a header?" if len(missing) == 4 else there_are(table.column_names)
        raise InvalidInput(
            f"{location.text!r} must have the columns {', '.join(missing)}. {there} Say what yours are "
            "called, trip and time first, with columns (--columns trip,t,lat,lon)."
        )
    columns = [_labels(table[trip]), _times(table[time])]
    columns += [pa.array(numbers_of(table[name].combine_chunks(), name)) for name in (latitude, longitude)]
    table = pa.table(dict(zip(wanted, columns, strict=True)))
    fixes = load_traces(table, trip=trip, time=time, latitude=latitude, longitude=longitude)
    if not journey.yes_really:
        degrees = np.column_stack([table[latitude].to_numpy(), table[longitude].to_numpy()])
        refuse_odd_points(degrees, (latitude, longitude), geographic=True)
    return table, fixes


def _labels(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the labels of trips, as whole numbers where text writes nothing else."""
    if not is_text(column.type):
        return column
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if numbers.cast(column.type).equals(column) else column  # 007 is no number


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as numbers or dates, where a format has only text for them."""
    for kind in TIMES if is_text(column.type) else ():
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


def _stated(fixes: Traces, places: FiniteSpace, journey: Journey) -> Trajectories:
    """State the problem; a model is counted over the walks of the problem without one."""

    def problem(traces: Traces, model: Mobility | None = None) -> Trajectories:
        return trajectory_problem(
            traces, places, journey.epsilon, step_seconds=journey.step_seconds, weights=journey.weights,
            most_km=journey.most_km, most_kmh=journey.most_kmh, model=model,
        )  # fmt: skip

    plain = problem(fixes)
    if journey.learn is None and journey.history is None:
        return plain
    known = plain if journey.history is None else problem(_read(located(journey.history), journey)[1])
    return problem(fixes, estimate(known.walks, known.model.allowed, order=1, private_epsilon=journey.learn))


def _tell(progress: Callable[[float], None] | None, share: float) -> None:
    if progress is not None:
        progress(share)
