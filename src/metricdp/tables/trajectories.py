"""Trips as tables: a file of fixes in, a file of reports on a public clock out, and what that promises."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from metricdp import wording
from metricdp.design.contextual import contextual
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.mobility import Mobility, Traces, Trajectories, estimate, trajectory_problem
from metricdp.spaces import FiniteSpace
from metricdp.tables.formats import Location, located
from metricdp.tables.results import delivered
from metricdp.tables.trips import Journey, locations, read_fixes, reports_like, tell, write_reports


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
    origin, goal = locations(source, target, journey)
    if journey.learn is not None and journey.history is not None:
        raise InvalidInput("steps are counted in this table (`learn`) or in another (`history`): choose one.")
    with delivered(goal, origin, overwrite=overwrite) as partial:
        made, mechanism, result = _released(origin, places, journey, progress)
        write_reports(partial, goal, result)
    tell(progress, 1.0)
    return TripSummary(str(source), str(target), made, mechanism)


def _released(
    origin: Location,
    places: FiniteSpace,
    journey: Journey,
    progress: Callable[[float], None] | None,
) -> tuple[Trajectories, MatrixMechanism, pa.Table]:
    """Read, design and draw, with nobody else at work on the target."""
    fixes = read_fixes(origin, journey)
    made = _stated(fixes.traces, places, journey)
    tell(progress, 0.2)
    mechanism = contextual(made.problem, gap=journey.gap)
    tell(progress, 0.9)
    at = places.decode(made.release(mechanism))
    return made, mechanism, reports_like(fixes.table, made.walks.owner, made.walks.seconds, at)


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
    known = plain if journey.history is None else problem(read_fixes(located(journey.history), journey).traces)
    return problem(fixes, estimate(known.walks, known.model.allowed, order=1, private_epsilon=journey.learn))
