"""From columns to secrets: which rows hold a legal secret, what it is, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Limited
from metricdp.spaces import Space, checked, exchange_hint
from metricdp.tables.lanes import Lane
from metricdp.tables.vectors import broken_list, rows_of
from metricdp.tables.views import plain

NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
SHOWN_ITEMS = 6
JOINT = "\x1f"  # between the columns of words of several columns


@dataclass(frozen=True, repr=False)
class Secrets:
    """The secrets of one batch: which rows are legal, codes or coordinates of all rows, and what was read.

    Rows that are not legal hold a placeholder in `values`. `content` is what the secrets were read from, in a form that
    does not depend on how the engine stores it: it binds keyed noise to the data (see `draws`).
    """

    space: Space
    good: Booleans
    values: Any
    content: Any

    def of(self, rows: Booleans | None) -> Any:
        """Return the secrets of the chosen rows (all of them for None), marked as checked where they are coordinates.

        Without chosen rows all must be good.
        """
        return marked_as(self.values if rows is None else self.values[rows], self.space)


def marked_as(values: Any, space: Space) -> Any:
    """Return secrets that a space found legal, marked so where they are coordinates."""
    return values if space.size is not None or space.is_text else checked(np.asarray(values), space)


def secrets_of(arrays: Sequence[pa.Array], lane: Lane, first_row: int = 0, table: str = "") -> Secrets:
    """Read the secrets of one lane from its columns; where something is wrong with all of them, with table and row."""
    space = lane.mechanism.inputs
    if space.is_text and space.size is None:
        content = texts_in(arrays[0], lane.columns[0], first_row, table)
        return Secrets(space, *space.admit(content), content)
    if space.is_text:
        return _words(arrays, lane)
    rows = rows_in(arrays, lane)
    good, values = space.admit(rows, snap=lane.snap)
    if isinstance(lane.mechanism, Limited):  # noise has limits of its own
        good = _held(lane.mechanism, good, np.asarray(values))
    return Secrets(space, good, values, rows)


def _held(noise: Limited, good: Booleans, rows: Floats) -> Booleans:
    """Return which of the good rows noise can be added to."""
    if good.all():
        return noise.holds(rows)
    left = good.copy()
    left[good] = noise.holds(rows[good])
    return left


def rows_in(arrays: Sequence[pa.Array], lane: Lane) -> Floats:
    """Return the numbers of a lane, one row each, NaN where there is none."""
    if lane.packed:
        return rows_of(arrays[0], lane.mechanism.inputs.width, lane.columns[0])
    rows = np.empty((len(arrays[0]), len(arrays)))
    for column, (array, name) in enumerate(zip(arrays, lane.columns, strict=True)):
        rows[:, column] = numbers_of(array, name)
    return rows


def numbers_of(array: pa.Array, name: str) -> Floats:
    """Return a column as doubles, NaN where it is null or, in text, where it is no number."""
    array = plain(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_text(array.type):
        array = _parsed(array)
    elif pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    elif not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        raise InvalidInput(f"the column {name!r} must hold numbers, it holds {array.type}.")
    if array.type != pa.float64():
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def _parsed(array: pa.Array) -> pa.Array:
    """Return text as numbers, null where it is none; Arrow's own complaint would show the text."""
    numbers = _cast(array)
    if numbers is not None:
        return numbers
    proper = pc.match_substring_regex(array, NUMBER)
    kept = pc.if_else(proper, array, pa.scalar(None, array.type))
    return pc.utf8_trim_whitespace(kept).cast(pa.float64())


def _cast(array: pa.Array) -> pa.Array | None:
    try:
        return array.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def texts_in(column: Any, name: str, first_row: int = 0, table: str = "") -> pa.Array:
    """Return a column of texts that are all UTF-8."""
    column = plain(column)
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    row = text_that_is_no_utf8(column)
    if row is not None:
        raise InvalidInput(
            f"{f'{table!r}: ' if table else ''}the column {name!r} holds text that is not UTF-8 in row "
            f"{first_row + row} (the first is row 0), so nobody knows its words. Save it as UTF-8."
        )
    return column.cast(pa.large_string())


def text_that_is_no_utf8(column: pa.Array) -> int | None:
    """Return the first row of a column of text whose bytes are no UTF-8; None where all are."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        return None
    raw = column.cast(pa.binary()).to_pylist()
    return next((number for number, cell in enumerate(raw) if cell is not None and not _is_utf8(cell)), 0)


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _words(arrays: Sequence[pa.Array], lane: Lane) -> Secrets:
    """Read words; every different one is looked up once."""
    text = []
    for array, name in zip(arrays, lane.columns, strict=True):
        held = plain(array)
        held = held.dictionary_decode() if pa.types.is_dictionary(held.type) else held
        if not is_text(held.type) and not pa.types.is_null(held.type):
            raise InvalidInput(f"the column {name!r} must hold words, it holds {array.type}.")
        text.append(held.cast(pa.string()))
    joined = text[0] if len(text) == 1 else pc.binary_join_element_wise(*text, JOINT)
    different = joined.dictionary_encode()
    rows = [tuple(word.split(JOINT)) if len(text) > 1 else (word,) for word in different.dictionary.to_pylist()]
    legal, codes = lane.mechanism.inputs.admit(rows)
    places = different.indices.fill_null(len(rows)).to_numpy(zero_copy_only=False)
    good = np.append(legal, False)[places]
    return Secrets(lane.mechanism.inputs, good, np.append(codes, 0)[places], joined)


def broken_rule(arrays: Sequence[pa.Array], row: int, lane: Lane) -> str:
    """Say which rule a row breaks, without its values."""
    space = lane.mechanism.inputs
    if space.is_text:
        missing = [name for array, name in zip(arrays, lane.columns, strict=True) if not array[row].is_valid]
        return f"{' and '.join(missing)} hold{'s' * (len(missing) == 1)} no word" if missing else space.rule()
    values = _row(arrays, row, lane)
    if lane.packed:
        broken = broken_list(arrays[0], row, lane.mechanism.inputs.width, lane.columns[0])
        return broken or f"in {lane.columns[0]}, {_rule(lane, values)}"
    missing = [name for value, name in zip(values, lane.columns, strict=True) if not np.isfinite(value)]
    if missing:
        return f"{' and '.join(missing)} hold{'s' * (len(missing) == 1)} no {lane.reads}"
    hint = exchange_hint(space.ground, values[None])
    if not hint and space.size is not None:
        hint = ". Raise the snap distance" if lane.snap else ". Ask for snapping (snap=, --snap; its slack is stated)"
    return f"in {', '.join(lane.columns)}, {_rule(lane, values)}{hint}"


def rules_of(lane: Lane) -> list[str]:
    """Return the rules that rows of a lane must keep: those of the secrets, and of the noise where it has any."""
    own = [lane.mechanism.limit] if isinstance(lane.mechanism, Limited) and lane.mechanism.limit else []
    return [lane.mechanism.inputs.rule(snap=lane.snap), *own]


def _rule(lane: Lane, values: Floats) -> str:
    """Say which rule numbers break: that of the secrets, or that of the noise."""
    space = lane.mechanism.inputs
    if isinstance(lane.mechanism, Limited) and space.legal(values[None])[0]:
        return lane.mechanism.limit
    return space.rule(snap=lane.snap)


def shown_row(arrays: Sequence[pa.Array], row: int, lane: Lane) -> str:
    """Show the values of a row and what would be legal: only for a caller who asked for it."""
    space = lane.mechanism.inputs
    shown = [_shown(array[row]) for array in arrays]
    came = ", ".join(f"{name} is {text}" for name, text in zip(lane.columns, shown, strict=True))
    if space.is_text:
        words = [array[row].as_py() for array in arrays]
        return came if None in words else f"{came}; {space.why(words)}"
    values = _row(arrays, row, lane)
    return came if not np.isfinite(values).all() or space.legal(values[None])[0] else f"{came}; {space.why(values)}"


def _row(arrays: Sequence[pa.Array], row: int, lane: Lane) -> Floats:
    return np.asarray(rows_in([array.slice(row, 1) for array in arrays], lane)[0])


def _shown(scalar: Any) -> str:
    value = scalar.as_py()
    if value is None or value == "":
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)} that begins with {', '.join(str(item) for item in value[:SHOWN_ITEMS])}"
    return repr(value) if isinstance(value, str) else f"{value:.9g}" if isinstance(value, float) else str(value)
