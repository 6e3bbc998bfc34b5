"""The sentences about a promise of either kind: pure, or concentrated, which says that it is approximate."""

from __future__ import annotations

from metricdp.wording import concentrated, promises, rows
from metricdp.wording.concentrated import Concentrated
from metricdp.wording.promises import Promise


def promised(promise: Promise | Concentrated) -> str:
    """Return the promise in numbers."""
    return (
        concentrated.concentrated_promised(promise) if isinstance(promise, Concentrated) else promises.promised(promise)
    )


def short(promise: Promise | Concentrated) -> str:
    """Return the promise as one sentence."""
    return concentrated.concentrated_short(promise) if isinstance(promise, Concentrated) else promises.short(promise)


def lead(promise: Promise | Concentrated) -> str:
    """Return the promise as the opening sentence of a report."""
    return concentrated.concentrated_short(promise) if isinstance(promise, Concentrated) else promises.lead(promise)


def meaning_lines(promise: Promise | Concentrated) -> list[str]:
    """Return the table that explains a promise, one line a distance."""
    if isinstance(promise, Concentrated):
        return concentrated.concentrated_meaning_lines(promise)
    return promises.meaning_lines(promise)


def row_promise(promise: Promise | Concentrated) -> str:
    """Return the promise for one row of a table."""
    if isinstance(promise, Concentrated):
        return rows.rows_promise(concentrated.concentrated_promised(promise))
    return rows.rows_promise(promises.promised(promise))


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
