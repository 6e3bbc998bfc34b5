"""Streams without end: one row in, one report out, and a ledger that holds everything that a restart needs.

Every test and every fresh report is a release of the ledger, committed before its answer is used. What it keeps says
which step of which stream it was, what the step asked for and what came out. A step that repeats a report without a
test leaks nothing; it is charged the least amount there is, a millionth, so that the ledger knows it too. So a process
that was killed knows where everybody is: the steps of the last window are read back, and a row that comes again gets
the answer it got.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.errors import BudgetExceeded, InvalidInput, LedgerUnavailable
from metricdp.mobility.budgets import Absorption, Distribution
from metricdp.mobility.fixes import Fixes, Person, mark_fresh, unix_seconds
from metricdp.mobility.prediction import predictive
from metricdp.mobility.release_methods import METRIC, TripRelease, TripRequest
from metricdp.mobility.runs import StepCost, TraceRun
from metricdp.names import count_near
from metricdp.rendering import plural
from metricdp.tables import Charging
from metricdp.tables.charging import name_of
from metricdp.tables.people import near_names
from metricdp.units import SECONDS

LEAST = 1e-6  # per kilometre, for a step that costs nothing
KEY = "stream"  # the scope of request ids
MARK = "metricdp stream 1"
MOST_STANDING = 100_000  # reports of a person that late rows are answered from
BUDGETS: dict[str, type[Distribution] | type[Absorption]] = {"distribution": Distribution, "absorption": Absorption}


@dataclass(frozen=True)
class StreamReport:
    """The answer to one row: a place, whether it is fresh, and whether it was known before."""

    latitude: float
    longitude: float
    fresh: bool
    known: bool = False


@dataclass
class StreamCounts:
    """The counts of a stream since it was opened."""

    rows: int = 0
    fresh: int = 0
    known: int = 0
    refused: int = 0
    charged: int = 0  # millionths per kilometre


class _StreamState:
    """The state of one person's stream: the steps of the last window, and the reports with their times."""

    def __init__(self, keep: int) -> None:
        self.run, self.keep, self.number, self.last = TraceRun(), keep, 0, -math.inf
        self.times: list[float] = []
        self.reports: list[Any] = []
        self.open: tuple[float, StepCost] | None = None  # a test that failed, and whose report is still to be drawn

    def add(self, time: float, step: StepCost, report: Any = None) -> None:
        """Take a step that was answered: with a fresh report, or with the last one again."""
        self.run.add(self.run.reports[-1] if report is None else report, step, fresh=report is not None)
        self.run.forget(self.keep)
        self.number, self.last, self.open = self.number + 1, time, None
        if report is not None:
            self.times.append(time)
            self.reports.append(report)
            if len(self.times) > MOST_STANDING:
                del self.times[:1000], self.reports[:1000]

    def end_test(self, time: float | None = None) -> None:
        """Take the step of a paid test whose row never came again, unless it comes at this time."""
        if self.open is not None and self.open[0] != time:
            self.add(*self.open)

    def standing_report(self, time: float) -> StreamReport:
        """Return the report that stood at a time that is over."""
        at = bisect_right(self.times, time) - 1
        if at < 0:
            raise InvalidInput("a row is older than all known rows of its person: rows must come in order of time.")
        latitude, longitude = (float(value) for value in self.reports[at])
        return StreamReport(latitude, longitude, self.times[at] == time, known=True)


class Stream:
    """A stream of rows of many persons, of which any `window` steps of one person cost at most the budget's total.

    Guarantee: for two streams of a person that differ within `window` rows only, there by at most d kilometres, every
    sequence of reports is at most exp(total * d) times likelier from one than from the other. Not protected: who has
    rows, how many and when.

    One process at a time steps a stream: two would each know only their own steps. The ledger holds a lock until it is
    closed, and refuses the second one. Threads of one process take turns. A person is who they are in the ledger: 7
    and "7", and the two spellings of "é", are one person with one window.
    """

    def __init__(self, charging: Charging, budget: Distribution | Absorption, *, name: str = "stream") -> None:
        if not 0 < len(name) <= 100 or not name.isprintable():
            raise InvalidInput("`name` of a stream must be 1 to 100 letters.")
        self.charging, self.budget, self.name = charging, budget, name
        self.setup = f"{type(budget).__name__} {json.dumps(asdict(budget), sort_keys=True)}"
        self.mechanism = predictive(METRIC, budget=self._next_budget)
        self.count = StreamCounts()
        self._people: dict[bytes, _StreamState] = {}

    def step(self, person: Any, time: float, place: tuple[float, float]) -> StreamReport | None:
        """Return the report of one row; None where the ledger refuses it and `charging.refused` is "report".

        A row that is not later than the last one of its person gets the report that stood then: nothing is drawn and
        nothing charged. `time` is in seconds, `place` latitude and longitude.
        """
        from metricdp.ledger.keys import name_bytes  # its database is imported where a ledger is charged

        who = name_bytes(name_of(person), "person")
        if not math.isfinite(time):
            raise InvalidInput("a time must be a finite number of seconds.")
        secret = self.mechanism.ground.encode(np.array([place]))[0]
        with self.charging.ledger.turn(self.name):
            return self._take_step(who, time, secret)

    def _take_step(self, who: bytes, time: float, secret: Any) -> StreamReport | None:
        self.hold()
        if who not in self._people:
            self._people[who] = self._recover(who)
        state = self._people[who]
        self.count.rows += 1
        if time <= state.last:
            self.count.known += 1
            return state.standing_report(time)
        state.end_test(time)
        return self._advance(who, state, time, secret)

    def hold(self) -> None:
        """Take the lock of this stream or refuse; steps of another process are then read again."""
        ledger = self.charging.ledger
        if not ledger.holds(self.name, self):
            self._people.clear()
            ledger.hold(self.name, self)

    def _next_budget(self, run: TraceRun) -> StepCost:
        """Return what the next step may cost; nothing where the window holds more than it should.

        Ledgers of earlier versions may hold one person in two spellings, or steps of two processes, each with its own
        windows. Read back together they may exceed the total. Then nothing is tested or drawn until it fits again.
        """
        step = self.budget(run)
        room = (1.0 - self.budget.share) * self.budget.total - run.recent_noise(self.budget.window - 1)
        return step if step.noise <= room else StepCost(0.0, 0.0)

    def _advance(self, who: bytes, state: _StreamState, time: float, secret: Any) -> StreamReport | None:
        step, run = self._next_budget(state.run), state.run.copy()
        refusal, receipts = list[BudgetExceeded](), list[Any]()

        def spend(label: str, epsilon: float, draw: Callable[[], bytes]) -> bytes:
            what = label.split()[1]

            def record() -> bytes:
                if not self.charging.ledger.holds(self.name, self):  # asked inside the transaction
                    raise LedgerUnavailable(
                        f"the lock of the stream {self.name!r} was lost: nothing was drawn or charged. Send the row "
                        "again; the stream is then read from the ledger."
                    )
                asked = [step.test, step.noise, step.threshold]
                entries = {"mark": MARK, "name": self.name, "setup": self.setup, "number": state.number, "time": time}
                return json.dumps(entries | {"what": what, "step": asked, "answer": draw().hex()}).encode()

            try:
                receipt = self.charging.ledger.release(
                    who, self._request(state, time, what), key=KEY, metric=METRIC, epsilon=epsilon,
                    purpose=self.charging.purpose, draw=record,
                )  # fmt: skip
            except BudgetExceeded as error:
                refusal.append(error)
                raise
            receipts.append(receipt)
            answer = bytes.fromhex(json.loads(receipt.report)["answer"])
            if answer == b"far":
                state.open = (time, step)
            return answer

        try:
            if step.noise == 0:
                spend("0 rest", LEAST, lambda: b"rest")
            taken = self.mechanism.advance(run, secret, spend=spend)
        except BudgetExceeded:
            taken = False
        drawn = [receipt for receipt in receipts if not receipt.repeated]
        self.count.charged += sum(receipt.charged for receipt in drawn)
        if not taken:
            if self.charging.refused == "fail":
                raise refusal[0]
            state.end_test()
            self.count.refused += 1
            return None
        report, fresh = run.reports[-1], run.fresh[-1]
        state.add(time, step, report if fresh else None)
        self.count.fresh += fresh
        self.count.known += bool(receipts and not drawn)
        return StreamReport(float(report[0]), float(report[1]), fresh)

    def _recover(self, who: Person) -> _StreamState:
        """Return the state of a person's stream, from the ledger."""
        state, number = _StreamState(self.budget.window + 1), 0
        records = (_record(one.report) for one in self.charging.ledger.history(who))
        mine = [entries for entries in records if entries.get("name") == self.name]
        # numbers of two spellings are alike
        mine.sort(key=lambda entries: (entries["time"], entries["what"] == "report"))
        for entries in self._window_records(mine):
            if entries["setup"] != self.setup:
                raise InvalidInput(
                    f"the stream {self.name!r} was begun with other settings ({entries['setup']}): go on with those, "
                    "or give this one another name. Its windows would not be those of the other one."
                )
            time, step, answer = float(entries["time"]), StepCost(*entries["step"]), bytes.fromhex(entries["answer"])
            state.end_test(time)
            if answer == b"far":
                state.open = (time, step)
            else:
                state.add(time, step, None if answer in (b"near", b"rest") else self.mechanism.ground.unpack(answer))
            number = max(number, entries["number"] + (state.open is None))
        state.number = number
        return state

    def _request(self, state: _StreamState, time: float, what: str) -> str:
        """Return the id of a release. The first one is always the same: a ledger that dropped its report refuses it."""
        return f"{self.name} {time!r} {what}" if state.number else f"{self.name} first {what}"

    def _window_records(self, mine: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the records from the first report on; refuse where the last window, or what stands, was dropped."""
        if not mine:
            return []
        known = {entries["number"] for entries in mine}
        last = max(known)
        fresh = [entries["number"] for entries in mine if entries["what"] == "report"]
        needed = min(max(0, last - self.budget.window), max(fresh, default=-1))
        if needed < 0 or not known.issuperset(range(needed, last + 1)):
            raise InvalidInput(
                f"the ledger dropped reports of the stream {self.name!r} (metricdp budget rotate) with the cost of "
                f"its last {self.budget.window:,} steps, so the cost of the next step is unknown. Keep reports for at "
                "least one window. A stream with another name begins anew, with its own windows."
            )
        first = next(place for place, entries in enumerate(mine) if entries["what"] == "report")
        return mine[first:]  # before it tests alone, which cost the same

    def lines(self, step_seconds: float | None = None) -> list[str]:
        """Return what was done, what is guaranteed and what stays unprotected, one sentence a line."""
        done, budget = self.count, self.budget
        first = (
            f"{plural(done.rows, 'row')}, persons: {len(self._people):,}, fresh reports: {done.fresh:,}; "
            f"{plural(done.known, 'row was', 'rows were')} answered before or "
            "came late, and cost nothing."
        )
        if done.refused:
            first += f" {done.refused:,} have no report, because the budget of their person was spent."
        lines = [
            first,
            f"Guarantee: any {budget.window:,} consecutive rows of one person cost at most epsilon {budget.total:g} "
            "per km that they move. Streams that differ for longer are easier to tell apart with every window.",
            f"Charged since the start: {done.charged / 1e6:.6g} per km for all persons, with a millionth for "
            "each row that costs nothing. The ledger holds the number of rows of each person: a run that was killed "
            "continues from there.",
        ]
        if near := count_near(self._people):
            lines.append(near_names(near, "person"))
        if step_seconds is not None:
            lines.append(daily_cost(budget, step_seconds))
        lines.append("Not protected: who has rows, how many and when. The guarantee includes which reports are fresh.")
        return lines


def daily_cost(budget: Distribution | Absorption, step_seconds: float) -> str:
    """Say what a day of a stream costs at most, for the policy of the ledger."""
    windows = math.ceil(SECONDS["d"] / step_seconds / budget.window)
    return (
        f"One row every {step_seconds:g} s: a day costs a person at most {windows * budget.total:g} per km "
        f"({windows:,} windows)."
    )


def _record(report: bytes | None) -> dict[str, Any]:
    """Return what a charge of a stream says about it; nothing for charges of anything else."""
    if report is None or not report.startswith(b'{"mark": "' + MARK.encode()):
        return {}
    return dict(json.loads(report))


def release_stream(request: TripRequest, budget: Distribution | Absorption, fixes: Fixes) -> TripRelease:
    """Release the rows of a table as steps of a stream, in the order of their times.

    The reports are in the order of the rows; rows that the ledger refused are not among them. A run that was killed, or
    one over a table that has grown, gets the answers that the ledger knows for nothing.
    """
    if request.charging is None:
        raise InvalidInput("a stream needs a ledger, from which it continues after a restart: name it (`ledger`).")
    stream = Stream(request.charging, budget, name=request.job.name or "stream")
    stream.hold()
    person, time, latitude, longitude = fixes.table.column_names
    seconds = unix_seconds(fixes.table[time].to_numpy(), time)
    places = np.column_stack([fixes.table[latitude].to_numpy(), fixes.table[longitude].to_numpy()]).tolist()
    whose, answers = fixes.table[person].to_pylist(), dict[int, StreamReport | None]()
    for done, row in enumerate(np.argsort(seconds, kind="stable").tolist()):
        answers[row] = stream.step(whose[row], float(seconds[row]), tuple(places[row]))
        request.report_progress(0.95 * (done + 1) / len(whose))
    given = {row: answer for row, answer in sorted(answers.items()) if answer is not None}
    table = fixes.table.select([person, time]).take(pa.array(list(given), pa.int64()))
    at = np.array([(one.latitude, one.longitude) for one in given.values()]).reshape(-1, 2)
    table = table.append_column(latitude, pa.array(at[:, 0])).append_column(longitude, pa.array(at[:, 1]))
    table = mark_fresh(table, [one.fresh for one in given.values()])
    return TripRelease(table, stream.lines(), lost=len(answers) - len(given))
