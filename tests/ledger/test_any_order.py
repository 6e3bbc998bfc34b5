"""Whatever is done in whatever order, the books agree with a brute-force book that keeps every charge in a list."""

import datetime
import itertools
import tempfile
from fractions import Fraction
from math import ceil
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from books import Clock, quick_folder
from metricdp.errors import BudgetExceeded
from metricdp.ledger import Ledger

LIMITS = [  # amount in millionths, period, purpose, whether of slack
    (10_000_000, "hour", "", False),
    (25_000_000, "day", "", False),
    (90_000_000, "ever", "", False),
    (6_000_000, "day", "ads", False),
    (40_000_000, "week", "maps", False),
    (1_500_000, "day", "", True),
]
POLICY = "10/km per hour, 25/km per day, 90/km ever, 6/km per day for ads, 40/km per week for maps, slack 1.5 per day"
PEOPLE, METRICS = ("anna", "ben"), ("haversine/km", "roads/km")
people, purposes, metrics = st.sampled_from(PEOPLE), st.sampled_from(("ads", "maps")), st.sampled_from(METRICS)
epsilons = st.sampled_from((0.1, 1.0, 2.5, 1 / 3, 6.0))
slacks = st.sampled_from((0.0, 0.0, 0.25))


def same_period(period, one, two):
    """Whether two moments lie in one period of the calendar, in UTC."""
    first, second = (datetime.datetime.fromtimestamp(at, datetime.UTC) for at in (one, two))
    shapes = {"hour": "%Y-%m-%d %H", "day": "%Y-%m-%d", "week": "%G-%V", "ever": ""}
    return first.strftime(shapes[period]) == second.strftime(shapes[period])


class Books(RuleBasedStateMachine):
    """The books beside a list of charges."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory(dir=quick_folder())
        self.place = Path(self.folder.name) / "budget.db"
        self.clock = Clock()
        self.ledger = Ledger.open(self.place, policy=POLICY, clock=self.clock)
        self.latest = self.clock.now  # the time of the books: that of the last commit, or later
        self.charges, self.answers, self.closed, self.numbers = [], {}, set(), itertools.count()

    def teardown(self):
        if hasattr(self, "ledger"):
            assert self.ledger.verify().faults == ()
            self.ledger.close()
            self.folder.cleanup()

    def now(self):
        return max(self.clock.now, self.latest)

    def fits(self, person, metric, purpose, amount, slack):
        for limit, period, under, is_slack in LIMITS:
            if under in ("", purpose):
                spent = sum(
                    one["slack" if is_slack else "amount"]
                    for one in self.charges
                    if (one["person"], one["metric"]) == (person, metric)
                    and under in ("", one["purpose"])
                    and same_period(period, one["time"], self.now())
                )
                if spent + (slack if is_slack else amount) > limit:
                    return False
        return person not in self.closed

    def charge(self, person, metric, purpose, amount, slack):
        time = self.latest = self.now()
        self.charges.append(
            {"person": person, "metric": metric, "purpose": purpose, "amount": amount, "slack": slack, "time": time}
        )

    @rule(person=people, metric=metrics, purpose=purposes, epsilon=epsilons, slack=slacks, request=st.integers(0, 12))
    def release(self, person, metric, purpose, epsilon, slack, request):
        amount, least = ceil(Fraction(epsilon) * 10**6), ceil(Fraction(slack) * 10**6)
        name, fresh = f"{metric} {request}", f"{len(self.charges)} {self.clock.now}".encode()
        options = {"key": "app", "metric": metric, "purpose": purpose, "epsilon": epsilon, "slack": slack}
        known = self.answers.get((person, name)) if person not in self.closed else None
        expected = known or (fresh if self.fits(person, metric, purpose, amount, least) else None)
        try:
            receipt = self.ledger.release(person, name, draw=lambda: fresh, **options)
        except BudgetExceeded:
            assert expected is None
            return
        assert (receipt.report, receipt.repeated) == (expected, known is not None)
        if known is None:
            self.charge(person, metric, purpose, amount, least)
            self.answers[(person, name)] = fresh

    @rule(
        rows=st.dictionaries(people, st.integers(1, 4), min_size=1), metric=metrics, purpose=purposes, epsilon=epsilons,
        slack=slacks, partial=st.booleans(),
    )  # fmt: skip
    def batch(self, rows, metric, purpose, epsilon, slack, partial):
        amount, least = ceil(Fraction(epsilon) * 10**6), ceil(Fraction(slack) * 10**6)
        granted = {
            person: next(
                n for n in range(count, -1, -1) if not n or self.fits(person, metric, purpose, n * amount, n * least)
            )
            for person, count in rows.items()
        }
        possible = any(granted.values()) if partial else granted == rows
        options = {"key": "app", "metric": metric, "purpose": purpose, "epsilon": epsilon, "slack": slack}
        try:
            receipt = self.ledger.release_batch(
                rows, f"batch {next(self.numbers)}", partial=partial, draw=lambda given: b"rows", **options
            )
        except BudgetExceeded:
            assert not possible
            return
        assert possible
        assert dict(receipt.granted) == {person: n for person, n in granted.items() if n}
        for person, n in receipt.granted.items():
            self.charge(person, metric, purpose, n * amount, n * least)

    @rule(hours=st.sampled_from((0.4, 1.0, 7.0, 30.0, 200.0, -3.0, -50.0)))
    def set_the_clock(self, hours):
        self.clock.now += hours * 3600

    @rule()
    def rotate(self):
        self.ledger.rotate()
        self.latest = self.now()

    @rule()
    def open_again(self):
        self.ledger.close()
        self.ledger = Ledger.open(self.place, clock=self.clock)

    @rule(person=people, really=st.integers(0, 9))
    def erase(self, person, really):
        if really == 0 and self.ledger.erase(person):
            self.latest = self.now()
            self.closed.add(person)

    @invariant()
    def balances_are_those_of_the_list(self):
        if not hasattr(self, "ledger"):
            return
        for person in PEOPLE:
            budget = self.ledger.budget(person)
            assert budget.closed == (person in self.closed)
            for account in budget.accounts:
                own = [one for one in self.charges if (one["person"], one["metric"]) == (person, account.metric)]
                assert account.spent == sum(one["amount"] for one in own)
                assert account.slack == sum(one["slack"] for one in own)


Books.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestBooks = Books.TestCase
