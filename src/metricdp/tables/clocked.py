"""Trips whose times are hidden as well, as tables: places and times with noise, sorted by the reported times."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metricdp import wording
from metricdp.arrays import as_positive
from metricdp.design.laplace import laplace
from metricdp.design.optimal import optimal
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.metrics import Haversine, Lp, Temporal
from metricdp.mobility import Cloaked, clean, cloaked
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.tables.charging import name_of
from metricdp.tables.options import Charging
from metricdp.tables.results import delivered
from metricdp.tables.trips import Fixes, Journey, locations, read_fixes, reports_like, tell, write_reports

DAY = 1440.0  # minutes
MOST_TIMES = 288  # on the clock of a day: every five minutes


@dataclass(frozen=True, eq=False)
class ClockedSummary:
    """What was done to a table of trips whose times are hidden too."""

    target: str
    released: Cloaked
    time: Mechanism
    clock_minutes: float | None
    books: str = ""

    def lines(self) -> list[str]:
        """Return what was done, what is promised, what it costs and what stays unprotected."""
        made = self.released
        most = int(np.unique(made.traces.owner, return_counts=True)[1].max())
        found = self.time.certificate
        day = " and on which day each fix was" if self.clock_minutes is not None else ""
        return [
            f"{self.target}: {len(made.traces):,} fixes of {len(np.unique(made.traces.owner)):,} trips, places and "
            "times drawn, rows sorted by the reported times.",
            wording.clocked_promise(made.place.epsilon, made.time.epsilon, made.time.slack, "km", "min"),
            wording.clocked_trip(made.place.epsilon, made.time.epsilon, most, "km", "min"),
            wording.clocked_loss(found.loss, found.lower_bound, 2.0 / made.place.epsilon, "km", "min"),
            *([self.books] if self.books else []),
            f"Not protected: which trips there are, how many fixes they have{day}.",
        ]


def cloak_trajectories(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    journey: Journey,
    time_epsilon: float,
    *,
    clock_minutes: float | None = None,
    charging: Charging | None = None,
    progress: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> ClockedSummary:
    """Release the fixes of a table with noise on places (`journey.epsilon` per kilometre) and times (per minute).

    Without `clock_minutes` times get Laplace noise. With it the time of the day is put on a clock of so many minutes
    and drawn around it by the optimum under `Temporal`; the day stays as it is. With books everybody is charged for
    their fixes twice, for places and for times, when the table is ready and not yet to be seen.
    """
    origin, goal = locations(source, target, journey)
    time, reach = hidden_times(time_epsilon, clock_minutes)
    place = laplace(Haversine(), journey.epsilon)
    with delivered(goal, origin, overwrite=overwrite) as partial:
        fixes = read_fixes(origin, journey)
        tell(progress, 0.3)
        made = cloaked(
            clean(fixes.traces, most_kmh=journey.most_kmh), place=place, time=time, seconds_per_unit=60.0,
            snap=(0.0, reach),
        )  # fmt: skip
        tell(progress, 0.8)
        result = reports_like(fixes.table, made.traces.owner, made.traces.seconds, made.traces.coordinates)
        write_reports(partial, goal, result)
        books = "" if charging is None else _charge(charging, fixes, made)
    tell(progress, 1.0)
    return ClockedSummary(str(target), made, time, clock_minutes, books)


def hidden_times(epsilon: float, clock_minutes: float | None) -> tuple[Mechanism, float]:
    """Return a mechanism for times in minutes, and how far a time may lie from the clock's."""
    if clock_minutes is None:
        return laplace(Lp(1, unit="min"), epsilon, dimension=1), 0.0
    step = as_positive(clock_minutes, "clock_minutes")
    count = round(DAY / step)
    if abs(count * step - DAY) > 1e-9 or not 2 <= count <= MOST_TIMES:
        raise InvalidInput(
            f"`clock_minutes` must divide a day into 2 to {MOST_TIMES} equal parts, such as 15 or 60; got {step:g}."
        )
    space = FiniteSpace((np.arange(count) * step)[:, None], Temporal(DAY, "min"))
    return optimal(Problem(space, epsilon), gap=1e-3), step / 2.0


def _charge(charging: Charging, fixes: Fixes, made: Cloaked) -> str:
    """Charge everybody for places and for times; the table appears afterwards."""
    trips, counts = np.unique(made.traces.owner, return_counts=True)
    rows: dict[str | bytes | int, int] = {}
    for trip, count in zip(trips.tolist(), counts.tolist(), strict=True):
        person = name_of(fixes.persons[trip])
        rows[person] = rows.get(person, 0) + count
    both = made.both  # one charge in two accounts: that of places and that of times
    charging.ledger.release_batch(
        rows, secrets.token_hex(16), key="trajectories", metric=both.metric, epsilon=both.epsilon, slack=both.slack,
        purpose=charging.purpose, draw=lambda granted: b"",
    )  # fmt: skip
    return f"{len(rows):,} persons were charged for {sum(rows.values()):,} fixes, for places and for times."
