"""Sentences about the rows of a table: what each promises, what a person's add up to, what stays unprotected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from metricdp.numerals import number
from metricdp.wording.promises import Promise, distance, epsilon, templates


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
        epsilon=number(promise.epsilon, digits["epsilon"], "up"),
        total=epsilon(most * promise.epsilon, promise.unit),
        slack=templates()["promise"]["slack"].format(slack=slack) if promise.slack else "",
    )


def released_again(promise: Promise) -> str:
    """Return what a second release of the same rows adds up to, slack included."""
    digits = templates()["digits"]
    slack = number(2 * promise.slack, digits["slack"], "up")
    return _of_rows(
        "twice",
        epsilon=number(promise.epsilon, digits["epsilon"], "up"),
        total=epsilon(2 * promise.epsilon, promise.unit),
        slack=templates()["promise"]["slack"].format(slack=slack) if promise.slack else "",
    )


def _of_rows(kind: str, **values: str) -> str:
    return str(templates()["rows"][kind].format(**values))
