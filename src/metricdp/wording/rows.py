"""Sentences about the rows of a table: what each promises, what a person's add up to, what stays unprotected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from metricdp.numerals import number
from metricdp.wording.promises import (
    Promise,
    distance,
    epsilon,
    part_by_part,
    parts_of,
    templates,
    things,
)


def rows_promise(promise: str) -> str:
    """Return that a promise, in words, is for one row of a table."""
    return _of_rows("promise", promise=promise)


def uncounted() -> str:
    """Return that rows of one person add up, where nobody was counted."""
    return _of_rows("unknown")


def without_person(count: int, column: str) -> str:
    """Return how many rows belong to nobody who was counted."""
    return _of_rows("without", rows=f"{count:,}", column=column)


def kept(columns: Sequence[str]) -> str:
    """Return which columns stay unprotected."""
    return _of_rows("kept", columns=", ".join(columns))


def not_carried_over(what: Sequence[str]) -> str:
    """Return which metadata of a table were left behind."""
    return _of_rows("not_carried_over", what=", ".join(what))


def simulated() -> str:
    """Return the mark of what was drawn from a seed."""
    return _of_rows("simulated")


class Snapped(Protocol):
    """What is read of snapping: how far, in which unit, and the slack of epsilon * apart that it costs."""

    @property
    def snap(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def apart(self) -> float: ...
    @property
    def slack(self) -> float: ...
    @property
    def same_ground(self) -> bool: ...
    @property
    def unit(self) -> str: ...


def snapped(snapping: Snapped, promise: Promise) -> str:
    """Return what putting values on the nearest secret cost, and between what distances are meant."""
    digits = templates()["digits"]
    return _of_rows(
        "snap" if snapping.same_ground else "detour",
        snap=distance(snapping.snap, snapping.unit, "up"),
        epsilon=number(snapping.epsilon, digits["epsilon"], "up"),
        value=number(snapping.snap if snapping.same_ground else snapping.apart, digits["epsilon"], "up"),
        apart=distance(snapping.apart, promise.unit, "up"),
        slack=number(snapping.slack, digits["slack"], "up"),
    )


def history(promise: Promise, count: int, column: str, most: int) -> str:
    """Return what the rows of one person add up to, slack included."""
    digits = templates()["digits"]
    slack = number(most * promise.slack, digits["slack"], "up")
    return _of_rows(
        "person",
        count=f"{count:,}",
        column=column,
        rows=f"{most:,}",
        epsilon=_each(promise),
        total=_total(promise, most),
        slack=templates()["promise"]["slack"].format(slack=slack) if promise.slack else "",
    )


def released_again(promise: Promise) -> str:
    """Return what a second release of the same rows adds up to, slack included."""
    digits = templates()["digits"]
    slack = number(2 * promise.slack, digits["slack"], "up")
    return _of_rows(
        "twice",
        epsilon=_each(promise),
        total=_total(promise, 2),
        slack=templates()["promise"]["slack"].format(slack=slack) if promise.slack else "",
    )


def _each(promise: Promise) -> str:
    parts = parts_of(promise)
    return f"({part_by_part(parts)})" if parts else number(promise.epsilon, templates()["digits"]["epsilon"], "up")


def _total(promise: Promise, rows: int) -> str:
    parts = parts_of(promise)
    return part_by_part(parts, rows) if parts else epsilon(rows * promise.epsilon, promise.unit)


def whole_history(promise: Promise, near: float, whose: str) -> str:
    """Return what all rows of a person together are worth; `near` is what `reach_together` returns."""
    if near <= 0.0:
        return f"{whose}: the slack of all rows together is beyond a factor of two, however near their places are."
    called = things(promise.unit)
    return (
        f"{whose}: the odds between two histories whose {called} lie up to {short_distance(near, promise.unit)} apart"
        f"{promise.along} in every row shift by at most a factor of two; farther apart by more."
    )


def reach_together(promise: Promise, total: float, slack: float) -> float:
    """Return how far apart places may lie in every row for all rows together to keep a factor of two.

    `total` is the epsilon of all rows: histories whose places lie d apart in every row differ by a factor of
    exp(total * d + slack) at most.
    """
    near = max(0.0, math.log(2.0) - slack) / total if total > 0.0 else math.inf
    return near if promise.radius is None else min(near, promise.radius)


def short_distance(value: float, unit: str) -> str:
    """Return a distance as people say it, rounded down, in centimetres below a metre."""
    if unit == "km" and 0.0 < value < 1e-3:
        return f"{number(1e5 * value, 2, 'down')} cm"
    return distance(value, unit, "down")


def _of_rows(kind: str, **values: str) -> str:
    return str(templates()["rows"][kind].format(**values))
