"""Columns of values in one statement: a hundred thousand persons go in as one parameter and come out as one answer.

A statement that is run once for every person costs microseconds each time and lets go of the interpreter each time, for
which whatever else is at work makes it queue again. So a column goes in as one run of bytes, pieces of equal length,
which the database takes apart by number (`substr`), and comes out as one text of whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa

from metricdp.arrays import Integers
from metricdp.ledger.backends import backend_of

MOST = 1 << 17  # persons in one statement
DIGITS = 19  # of a number of 63 bits


def chunks(count: int) -> Iterator[slice]:
    """Yield what goes into one statement each."""
    return (slice(start, min(count, start + MOST)) for start in range(0, count, MOST))


def numbers(connection: sa.Connection, count: int) -> Any:
    """Return the numbers from 0 to `count` - 1 as a table with the column `i`."""
    return backend_of(connection).numbers(connection, count)


def piece(column: bytes, i: Any, width: int) -> Any:
    """Return the piece with the number `i` of a column whose pieces are `width` bytes long."""
    return sa.func.substr(sa.literal(column, sa.LargeBinary), i * width + 1, width, type_=sa.LargeBinary)


def whole(connection: sa.Connection, column: Integers, i: Any) -> Any:
    """Return the number at the place `i` of a column of whole numbers of at least 0."""
    return sa.cast(backend_of(connection).as_text(piece(_digits(column), i, DIGITS)), sa.BigInteger)


def question_columns(connection: sa.Connection, rows: Any) -> tuple[Integers, int]:
    """Return the columns of a question about whole numbers but for the first, and the largest number in the first.

    The order of the rows is unknown: a column has to say it.
    """
    table = rows.subquery("asked")
    first, *others = table.c
    line = backend_of(connection).join_words(others)
    packed = sa.select(sa.func.aggregate_strings(line, " "), sa.func.max(first)).select_from(table)
    text, largest = connection.execute(packed).one()
    return np.fromstring(text or "", dtype=np.int64, sep=" ").reshape(-1, len(others)).T, largest or 0


def _digits(column: Integers) -> bytes:
    """Return whole numbers as pieces of 19 digits each."""
    rest = np.asarray(column, dtype=np.int64)
    pieces = np.empty((len(rest), DIGITS), dtype=np.uint8)
    for place in reversed(range(DIGITS)):
        rest, pieces[:, place] = np.divmod(rest, 10)
    return (pieces + ord("0")).tobytes()
