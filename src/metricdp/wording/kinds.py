"""The sentences about a promise of either kind: pure, or concentrated, which says that it is approximate."""

from __future__ import annotations

from metricdp.numerals import number
from metricdp.wording import concentrated, promises, rows
from metricdp.wording.concentrated import Concentrated
from metricdp.wording.promises import Promise, templates


def promised(promise: Promise | Concentrated) -> str:
    """Return the promise in numbers."""
    return (
        concentrated.concentrated_promised(promise) if isinstance(promise, Concentrated) else promises.promised(promise)
    )


def promised_in_parts(promise: Promise | Concentrated) -> str:
    """Return the promise in numbers, that of a sum of metrics part by part."""
    parts = promises.parts_of(promise)
    if isinstance(promise, Concentrated) or not parts:
        return promised(promise)
    slack = templates()["promise"]["slack"]
    more = slack.format(slack=number(promise.slack, templates()["digits"]["slack"], "up")) if promise.slack else ""
    return f"epsilon {promises.part_by_part(parts)}{more}, by {promise.basis}"


def short(promise: Promise | Concentrated) -> str:
    """Return the promise as one sentence, or as one for every part of a sum of metrics."""
    if parts := promises.parts_of(promise):
        return promises.short_of_parts(parts)
    return concentrated.concentrated_short(promise) if isinstance(promise, Concentrated) else promises.short(promise)


def lead(promise: Promise | Concentrated) -> str:
    """Return the promise as the opening sentence of a report, or as one for every part of a sum of metrics."""
    if parts := promises.parts_of(promise):
        return promises.short_of_parts(parts)
    return concentrated.concentrated_short(promise) if isinstance(promise, Concentrated) else promises.lead(promise)


def meaning_lines(promise: Promise | Concentrated) -> list[str]:
    """Return the table that explains a promise, one line a distance."""
    if isinstance(promise, Concentrated):
        return concentrated.concentrated_meaning_lines(promise)
    different = {(part.epsilon, part.unit): part for part in promises.parts_of(promise)}
    if not different:
        return promises.meaning_lines(promise)
    lines = []
    for part in different.values():
        rate = promises.epsilon(part.epsilon, part.unit)
        lines.append(f"For a part with epsilon {rate}, while the other parts stay the same:")
        lines += promises.meaning_lines(part)
    return lines


def row_promise(promise: Promise | Concentrated) -> str:
    """Return the promise for one row of a table."""
    if isinstance(promise, Concentrated):
        return rows.rows_promise(concentrated.concentrated_promised(promise))
    return rows.rows_promise(promised_in_parts(promise))


def history(promise: Promise | Concentrated, count: int, column: str, most: int) -> str:
    """Return what the rows of one person add up to."""
    if isinstance(promise, Concentrated):
        return concentrated.concentrated_history(promise, count, column, most)
    return rows.history(promise, count, column, most)


def released_again(promise: Promise | Concentrated) -> str:
    """Return what a second release of the same rows adds up to."""
    return (
        concentrated.concentrated_again(promise) if isinstance(promise, Concentrated) else rows.released_again(promise)
    )
