"""Which columns that stay give the secret away, by their names and by what is in them.

What is found depends on the secrets: it is for the owner of the table. It names columns and kinds, never values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Floats, Integers
from metricdp.errors import InvalidInput
from metricdp.tables.leaks.leaf import Leaf, leaves
from metricdp.tables.leaks.names import kind_by_name
from metricdp.tables.leaks.numbers import FEWEST, Places, agreed
from metricdp.tables.leaks.sample import BLOCKS, FEWEST_ROWS, NUMBERS_LOOKED_AT
from metricdp.tables.leaks.texts import bytes_kind, text_kind
from metricdp.tables.leaks.times import fineness
from metricdp.tables.trim import Step, coarser

SAMPLED_FROM = 100_000  # rows at the beginning of a table, whose secrets are doubted before anything is drawn
FEWEST_LINKED = 10  # different values: fewer may be the parts of anything
STANDS, NARROWS, FOLLOWS = 0.98, 0.5, 0.8  # shares of the variance, see `numbers`

HOUR = Step.of("1h")
Evidence = Literal["value", "name"]


@dataclass(frozen=True)
class Finding:
    """A column that may give the secret away: which, in what way, and whether its values or its name say so."""

    column: str
    kind: str
    evidence: Evidence
    is_time: bool = False  # and can be coarsened to an hour: it is harmless where many others are in the same


@dataclass(frozen=True, repr=False, eq=False)
class Secret:
    """What is protected, as far as a look needs it: coordinates or words, one row each.

    `places` are numbers (geographic ones are latitude, longitude), `words` codes; one of the two is None.
    """

    columns: tuple[str, ...]
    places: Floats | None
    words: Integers | None
    geographic: bool


def rows_looked_at(width: int) -> int:
    """Return how many rows at the beginning of a table are doubted, where a secret has so many numbers."""
    return min(SAMPLED_FROM, max(FEWEST_ROWS, NUMBERS_LOOKED_AT // width))


def look(table: Any, secret: Secret, *, person: str | None = None, kept: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Return what is found in the columns of a sample that are neither protected nor looked at already (`kept`).

    Args:
        table: The rows of `sample_of`, with the columns that will leave.
        secret: The protected columns of the same rows.
        person: The column that says whose row it is.
        kept: Columns that somebody has looked at.
    """
    without = frozenset((*secret.columns, *kept, *(() if person is None else (person,))))
    people = None if person is None or person not in table.schema.names else _codes(_whole(table.column(person)))
    found = []
    for leaf in leaves(table, without=without):
        kind, evidence = _seen(leaf, secret, people), "value"
        if kind is None:
            kind, evidence = _named(leaf), "name"
        if kind is not None:
            is_time = kind in ("seconds", "minutes", "time") and _becomes_hours(leaf)
            found.append(Finding(leaf.path, kind, "value" if evidence == "value" else "name", is_time))
    return tuple(found)


def _becomes_hours(leaf: Leaf) -> bool:
    """Tell whether a column can be coarsened to hours: `hour` may hold 0 to 23, and no name leads into a list."""
    try:
        coarser(leaf.array, leaf.path, HOUR)
    except (InvalidInput, pa.ArrowException):
        return False
    return "[" not in leaf.path


def _named(leaf: Leaf) -> str | None:
    kind = kind_by_name(leaf.path) or kind_by_name(leaf.path.rpartition(".")[2])
    return None if kind == "time" and fineness(leaf.array) == "coarse" else kind


def _seen(leaf: Leaf, secret: Secret, people: Integers | None) -> str | None:
    """Return what the values of a column show, the worst first; None where they show nothing."""
    array = leaf.array
    if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return bytes_kind(array, secret.places if secret.geographic else None)
    if pa.types.is_nested(array.type) or len(array) == array.null_count:
        return None
    numbers = leaf.numbers()
    if numbers is not None and secret.places is not None and Places(secret.places).copied(numbers):
        return "copy"
    if numbers is None and leaf.is_text:
        shape = text_kind(array, secret.places if secret.geographic else None)
        if shape is not None:
            return shape
    codes = _codes(array)
    told = _told(codes, numbers, secret)
    fine = fineness(array)
    if told == "narrows" and fine is not None:
        told = None  # where somebody was at a time is what a table of places is about; the time itself is the finding
    if told is not None:
        return told
    if fine in ("seconds", "minutes"):
        return fine
    return None if fine == "coarse" else _whose(codes, numbers, array, people)


def _told(codes: Integers, numbers: Floats | None, secret: Secret) -> str | None:
    """Return how the column and the secret hang together."""
    if secret.words is not None:
        both = (codes >= 0) & (secret.words >= 0)
        forth, back = agreed(codes[both], secret.words[both]), agreed(secret.words[both], codes[both])
        return "stands" if forth.above(STANDS) else "narrows" if forth.above(NARROWS) or back.above(FOLLOWS) else None
    if secret.places is None:
        return None
    places = Places(secret.places)
    share = places.told_by(codes, continuous=False)
    if share.above(STANDS):
        return "stands"
    if share.above(NARROWS):
        return "narrows"
    if numbers is not None and not _counts_the_rows(numbers):
        filled = np.where(np.isfinite(numbers), codes, -1)
        if places.told_by(filled, continuous=True).above(NARROWS):
            return "narrows"
    return "follows" if places.telling(codes, numbers=numbers).above(FOLLOWS) else None


def _counts_the_rows(numbers: Floats) -> bool:
    """Tell whether a column holds the numbers of the rows: then it tells no more than their order does."""
    steps = np.diff(numbers[np.isfinite(numbers)])
    return bool(len(steps) and (np.mean(steps == 1.0) > 0.9 or np.mean(steps == -1.0) > 0.9))


def _whose(codes: Integers, numbers: Floats | None, array: pa.Array, people: Integers | None) -> str | None:
    """Return whether values name a person or a row."""
    filled = codes >= 0
    rows, different = int(filled.sum()), int(codes.max(initial=-1)) + 1
    if people is not None and different > 1:
        both = filled & (people >= 0)
        pairs = len(np.unique(np.column_stack([codes[both], people[both]]), axis=0))
        if pairs == len(np.unique(people[both])) == len(np.unique(codes[both])) and pairs > 1:
            return "same_person"
    whole = np.zeros(1) if numbers is None else numbers[filled]
    if not np.array_equal(whole, np.rint(whole)):  # measured numbers hardly repeat, and name nobody
        return None
    if people is None and _links(codes[filled], different):
        return "links"
    if rows < FEWEST or different < 0.98 * rows:
        return None
    return None if numbers is not None and _counts_the_rows(whole) else "unique"


def _links(codes: Integers, different: int) -> bool:
    """Tell whether rows of one value stand together, once: as those of a person or a trip do."""
    runs = int(np.count_nonzero(np.diff(codes))) + 1
    return different >= FEWEST_LINKED and runs <= 1.05 * different + BLOCKS and len(codes) >= 3 * different


def _codes(array: pa.Array) -> Integers:
    """Return a number for every value, equal for equal ones and in their order for numbers; -1 where there is none."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_boolean(array.type) or not pa.types.is_primitive(array.type):
        if not (pa.types.is_boolean(array.type) or pa.types.is_null(array.type)) and not pa.types.is_decimal(
            array.type
        ):
            array = pc.if_else(pc.greater(pc.binary_length(array), 0), array, pa.scalar(None, array.type))
        encoded = array.dictionary_encode()
        return np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    filled = array.is_valid().to_numpy(zero_copy_only=False)
    values = np.asarray(array.drop_null().to_numpy(zero_copy_only=False))
    codes = np.full(len(array), -1, dtype=np.int64)
    codes[filled] = np.unique(values, return_inverse=True)[1]
    return codes


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
