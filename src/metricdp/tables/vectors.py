"""Vectors in one column: lists of numbers, all of one length, as rows of numbers and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput
from metricdp.tables.views import plain, plain_type

WIDEST_PLACE = 3  # a list of so many numbers is a place, whose coordinates become columns; a longer one is a vector


def is_list(kind: pa.DataType) -> bool:
    """Tell whether a column holds lists."""
    kind = plain_type(kind)
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def holds_vectors(kind: pa.DataType) -> bool:
    """Tell whether a column holds lists of numbers."""
    return is_list(kind) and _is_number(plain_type(kind).value_type)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def rows_of(array: pa.Array, width: int, name: str) -> Floats:
    """Return lists of `width` numbers as rows of doubles; a row is NaN where the list is null or of another length."""
    if pa.types.is_null(array.type):
        return np.full((len(array), width), np.nan)
    if not is_list(array.type):
        raise InvalidInput(
            f"this mechanism needs {width} columns, or one that holds lists of {width} numbers; got {name!r}, which "
            f"holds {array.type}."
        )
    array = plain(array)
    if not _is_number(array.type.value_type):
        raise InvalidInput(f"the column {name!r} must hold lists of numbers, it holds {array.type}.")
    fits = lengths_of(array) == width
    if fits.all():
        return _doubles(array.flatten()).reshape(len(array), width)
    rows = np.full((len(array), width), np.nan)
    rows[fits] = _doubles(array.filter(pa.array(fits)).flatten()).reshape(-1, width)
    return rows


def lengths_of(array: pa.Array) -> Any:
    """Return how long every list is; -1 where there is none."""
    return pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)


def _doubles(values: pa.Array) -> Floats:
    plain = values if pa.types.is_floating(values.type) else values.cast(pa.float64(), safe=False)
    return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.float64)


def report_kind(given: pa.DataType, width: int, item: pa.DataType) -> pa.DataType:
    """Return the type of reports for lists of the given type: the same kind of list, of `width` numbers.

    Views of lists and tensors become lists.
    """
    given = plain_type(given)
    field = given.value_field.with_type(item)
    if pa.types.is_fixed_size_list(given):
        return pa.list_(field, width)
    return pa.large_list(field) if pa.types.is_large_list(given) else pa.list_(field)


def lists_of(rows: Floats, kind: pa.DataType, good: Booleans | None) -> pa.Array:
    """Return rows of numbers as lists of a type; `good` says which rows of the table they are, the others are null.

    Doubles are rounded to the type of the lists, which sees reports alone: post-processing.
    """
    width = rows.shape[1]
    with np.errstate(over="ignore"):
        flat = rows.astype(kind.value_type.to_pandas_dtype(), copy=False).ravel()
    if pa.types.is_fixed_size_list(kind):
        if good is None:
            return pa.FixedSizeListArray.from_arrays(pa.array(flat), type=kind)
        spread = np.zeros((len(good), width), dtype=flat.dtype)
        spread[good] = flat.reshape(-1, width)
        return pa.FixedSizeListArray.from_arrays(pa.array(spread.ravel()), type=kind, mask=pa.array(~good))
    lengths = np.full(len(rows), width) if good is None else np.where(good, width, 0)
    mask = None if good is None else pa.array(~good)
    large = pa.types.is_large_list(kind)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64() if large else pa.int32())
    made = pa.LargeListArray if large else pa.ListArray
    return made.from_arrays(offsets, pa.array(flat), type=kind, mask=mask)


def broken_list(array: pa.Array, row: int, width: int, name: str) -> str | None:
    """Say what is wrong with one list, without its numbers; None where all of it are numbers."""
    array = plain(array)
    if not array[row].is_valid:
        return f"{name} holds no list"
    items = array[row].values
    if len(items) != width:
        return f"{name} holds a list of another length than {width}"
    missing = int(np.count_nonzero(~np.isfinite(_doubles(items))))
    return f"{name} holds a list with {missing} of {width} items that are no number" if missing else None
