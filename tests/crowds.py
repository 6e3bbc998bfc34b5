"""A crowd charged twice: in batches by a ledger, and one by one in plain dictionaries; all answers must agree."""

import datetime

import pytest

from books import DAY, HOUR
from metricdp.errors import BudgetExceeded

POLICY = "40/km per day, 90/km ever, slack 2 ever, slack 1 per hour, 25/km per day for ads, 60/km ever for maps"
MICRO = 1_000_000


class OneByOne:
    """The same policy kept in plain dictionaries: every release of everybody with its time, nothing else."""

    def __init__(self) -> None:
        self.released = {}
        self.closed = set()

    def left(self, person, purpose, now):
        day, hour = (
            datetime.datetime.fromtimestamp(now, datetime.UTC).replace(minute=0, second=0).timestamp() - offset
            for offset in (3600 * datetime.datetime.fromtimestamp(now, datetime.UTC).hour, 0)
        )
        mine = self.released.get(person, [])

        def spent(kind, since, *purposes):
            return sum(
                one[kind] for one in mine if one["time"] >= since and (not purposes or one["purpose"] in purposes)
            )

        epsilon = min(40 * MICRO - spent("epsilon", day), 90 * MICRO - spent("epsilon", 0))
        if purpose == "ads":
            epsilon = min(epsilon, 25 * MICRO - spent("epsilon", day, "ads"))
        else:
            epsilon = min(epsilon, 60 * MICRO - spent("epsilon", 0, "maps"))
        slack = min(2 * MICRO - spent("slack", 0), MICRO - spent("slack", hour))
        return (0, 0) if person in self.closed else (epsilon, slack)

    def granted(self, rows, costs, purpose, now):
        found = {}
        for person, count in rows.items():
            epsilon, slack = costs[person]
            left, slack_left = self.left(person, purpose, now)
            while count and (count * epsilon > left or count * slack > slack_left):
                count -= 1
            found[person] = count
        return found

    def charge(self, granted, costs, purpose, now):
        for person, count in granted.items():
            epsilon, slack = costs[person]
            one = {"time": now, "purpose": purpose, "epsilon": count * epsilon, "slack": count * slack}
            self.released.setdefault(person, []).append(one)


def asked(dice, people):
    """Draw a batch: few kinds of charges or many, some with slack."""
    rows = {person: dice.randint(1, 4) for person in dice.sample(people, dice.randint(1, len(people)))}
    kinds = [(dice.choice([0.5, 1, 3, 7]), dice.choice([0, 0, 0.25])) for _ in range(dice.choice([1, 12]))]
    return rows, {person: dice.choice(kinds) for person in rows}


def compared(ledger, clock, dice, rounds):
    """Charge batches, and everybody one by one in plain dictionaries; all answers must agree."""
    reference, people = OneByOne(), [f"person {number}" for number in range(23)]
    for number in range(rounds):
        clock.now += dice.choice([0, HOUR / 3, HOUR, DAY])
        if number in (5, 9):
            erased = dice.choice(people)
            ledger.erase(erased)
            reference.closed.add(erased)
        rows, costs = asked(dice, people)
        purpose, partial = dice.choice(["ads", "maps"]), dice.random() < 0.7
        whole = {person: (int(epsilon * MICRO), int(slack * MICRO)) for person, (epsilon, slack) in costs.items()}
        expected = reference.granted(rows, whole, purpose, clock.now)
        options = {
            "metric": "haversine/km",
            "epsilon": {person: epsilon for person, (epsilon, _) in costs.items()},
            "slack": {person: slack for person, (_, slack) in costs.items()},
            "purpose": purpose,
            "partial": partial,
        }
        if (not partial and expected != rows) or not any(expected.values()):
            for call in (ledger.granted, lambda rows, n=number, **o: charged(ledger, rows, n, o)):
                with pytest.raises(BudgetExceeded, match="Nobody was charged"):
                    call(rows, **options)
            continue
        positive = {person: count for person, count in expected.items() if count}
        assert ledger.granted(rows, **options) == positive
        done = charged(ledger, rows, number, options)
        assert done.granted == positive
        assert list(done.left) == list(rows)
        reference.charge(positive, whole, purpose, clock.now)
        left = {person: max(0, reference.left(person, purpose, clock.now)[0]) for person in rows}
        assert done.left == left
        again = charged(ledger, rows, number, options)
        assert (again.granted, again.left, again.repeated) == (done.granted, done.left, True)
    assert ledger.verify().faults == ()


def charged(ledger, rows, number, options):
    return ledger.release_batch(rows, f"batch {number}", key="app", draw=lambda granted: b"drawn", **options)
