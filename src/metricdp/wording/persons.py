"""Sentences about what the rows of one person cost together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from metricdp.numerals import number
from metricdp.wording.concentrated import Concentrated, rho
from metricdp.wording.documents import texts_counted
from metricdp.wording.kinds import promised
from metricdp.wording.promises import Promise, distance, epsilon, part_by_part, parts_of, templates


class Asked(Protocol):
    """What is read of a wish for everybody's rows."""

    @property
    def column(self) -> str: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def spread(self) -> str | None: ...
    @property
    def at_most(self) -> int | None: ...
    @property
    def which(self) -> str: ...


class Share(Protocol):
    """What is read of a level: persons with so many rows, what each row costs, the mean distance of its report."""

    @property
    def rows(self) -> int: ...
    @property
    def persons(self) -> int: ...
    @property
    def amount(self) -> float: ...
    @property
    def loss(self) -> float: ...


class Spent(Protocol):
    """What is read of what everybody spends."""

    @property
    def asked(self) -> Asked: ...
    @property
    def released(self) -> Sequence[Share]: ...
    @property
    def amount(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def written(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    @property
    def loss(self) -> float: ...


def spread_promise(promise: Promise | Concentrated) -> str:
    """Return the promise of rows that share a budget: at most this for each."""
    return f"Promise per row: at most {promised(promise)}; less where a person has many rows."


def spent(spending: Spent, promise: Promise | Concentrated | None) -> list[str]:
    """Return what everybody's rows cost, how it was kept small, and what the table says about counts.

    Without a promise nothing is said of costs: rows of texts may have any length.
    """
    asked, levels = spending.asked, spending.released
    persons = sum(level.persons for level in levels)
    most = max((level.rows for level in levels), default=0)
    lines = []
    if asked.at_most is not None:
        how = "the first in the table" if asked.which == "first" else "drawn by chance"
        lines.append(
            f"At most {asked.at_most:,} rows of every person stay, {how}, chosen without looking at the secrets: "
            f"{spending.left_out:,} rows were left out."
        )
    if promise is not None and asked.spread is not None and asked.budget is not None:
        least, largest = (choose((level.amount for level in levels), default=0.0) for choose in (min, max))
        shares = _rate(largest, promise)
        if least < largest:
            shares = f"from {number(least, _digits(), 'up')} to {shares}"
        lines.append(
            f"The budget of {_rate(asked.budget, promise)} is spread evenly: each of a person's rows gets the "
            f"budget divided by how many there are, and at most {_rate(_full(promise), promise)}: {shares}."
        )
    slack = number(spending.slack, templates()["digits"]["slack"], "up")
    extra = templates()["promise"]["slack"].format(slack=slack) if spending.slack else ""
    if promise is None:
        lines.append(texts_counted(persons, asked.column, most))
    else:
        lines.append(
            f"{persons:,} persons by {asked.column}, none with more than {most:,} rows in the output. For every one of "
            f"them all rows together are protected at {_rate(spending.amount, promise)}{extra}."
        )
    lines.append(
        f"How many rows each {asked.column} has is published with the table: there is one report a row, and "
        "nothing hides the counts."
    )
    return lines


def spent_again(spending: Spent, promise: Promise | Concentrated) -> str:
    """Return what a second release of the same rows adds up to for every person."""
    slack = number(2 * spending.slack, templates()["digits"]["slack"], "up")
    extra = templates()["promise"]["slack"].format(slack=slack) if spending.slack else ""
    total = _rate(2 * spending.amount, promise)
    twice = "" if parts_of(promise) else f"2 x {number(spending.amount, _digits(), 'up')} = "
    return (
        "Protecting this table a second time and releasing both costs every person as much again: "
        f"{twice}{total}{extra} for all their rows."
    )


def spread_loss(spending: Spent, unit: str) -> str:
    """Return how far reports lie from the truth where rows have different promises."""
    best, worst = (choose((level.loss for level in spending.released), default=0.0) for choose in (min, max))
    if best == worst:
        return f"On average a report lies {distance(best, unit)} from the truth."
    return (
        f"On average a report lies {distance(best, unit)} from the truth for persons with few rows and "
        f"{distance(worst, unit)} for those with the most; {distance(spending.loss, unit)} over all rows."
    )


def _digits() -> int:
    return int(templates()["digits"]["epsilon"])


def _rate(value: float, promise: Promise | Concentrated) -> str:
    """Return what something costs: an epsilon, or the rho of promises that are approximate."""
    if isinstance(promise, Concentrated):
        return f"rho {rho(value, promise.unit)} (concentrated, not pure)"
    if parts := parts_of(promise):  # the amount counts the sum of metrics
        return part_by_part(parts, value / promise.epsilon)
    return epsilon(value, promise.unit)


def _full(promise: Promise | Concentrated) -> float:
    return promise.rho if isinstance(promise, Concentrated) else promise.epsilon
