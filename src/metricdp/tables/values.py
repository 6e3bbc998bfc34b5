"""Cells of columns: numbers, texts, lists of numbers, and columns whose values lie elsewhere (views, tensors)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that holds the same values without views; of tensors (Arrow's, Ray's) the lists behind them."""
    if _is_tensor(kind):
        return plain_type(kind.storage_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, plain_type(kind.value_type), kind.ordered)
    if pa.types.is_list_view(kind):
        kind = pa.list_(kind.value_field)
    if pa.types.is_large_list_view(kind):
        kind = pa.large_list(kind.value_field)
    if pa.types.is_union(kind):
        return kind
    return rebuild_type(kind, lambda field: field.with_type(plain_type(field.type)))


LISTS: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def rebuild_type(kind: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Return a type with the fields inside it changed; one that holds no other as it is."""
    if pa.types.is_struct(kind):
        return pa.struct([change(kind.field(number)) for number in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(change(kind.key_field), change(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(change(kind.value_field), kind.list_size)
    if pa.types.is_union(kind):
        return pa.union([change(kind.field(number)) for number in range(kind.num_fields)], kind.mode, kind.type_codes)
    return next((make(change(kind.value_field)) for is_one, make in LISTS if is_one(kind)), kind)


def plain(column: Any) -> Any:
    """Return a column without views; one that has none as it is."""
    kind = plain_type(column.type)
    return column if kind == column.type else _cast_values(column, kind)


def _cast_values(column: Any, kind: pa.DataType) -> Any:
    """Return a column in another type of the same values; Arrow's own cast of views of lists gives broken lists."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_cast_values(chunk, kind) for chunk in column.chunks], kind)
    if _is_tensor(column.type):
        return plain(column.storage)
    if is_view_of_lists(column.type):
        return join_lists(plain(column.flatten()), np.maximum(lengths_of(column), 0), kind, column.is_null())
    if any(is_view_of_lists(inner) for inner in (*_inner_types(column.type), kind, *_inner_types(kind))):
        return pa.array(column.to_pylist(), kind)
    return column.cast(kind)


def _is_tensor(kind: pa.DataType) -> bool:
    """Tell whether a type is that of vectors or arrays of one shape, kept as lists."""
    return isinstance(kind, pa.BaseExtensionType) and _is_plain_list(kind.storage_type)


def _is_plain_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_view_of_lists(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _inner_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield the types that a type is made of."""
    for number in range(kind.num_fields):
        yield kind.field(number).type
        yield from _inner_types(kind.field(number).type)


def drop_views(table: Any) -> Any:
    """Return a record batch or table none of whose columns holds views."""
    return _cast_columns(table, [plain_type(kind) for kind in table.schema.types])


def take_rows(table: Any, rows: pa.Array) -> Any:
    """Return rows of a record batch or table by their numbers, in the types it has."""
    return _pick(table, lambda plain: plain.take(rows))


def filter_rows(table: Any, kept: pa.Array) -> Any:
    """Return the rows of a record batch or table that are kept, in the types it has."""
    return _pick(table, lambda plain: plain.filter(kept))


def _pick(table: Any, choose: Callable[[Any], Any]) -> Any:
    """Return rows in types whose rows Arrow picks; of lists that are views it does, and makes none of lists."""

    def is_picked(kind: pa.DataType) -> bool:
        return _is_tensor(kind) or (is_view_of_lists(kind) and plain_type(kind.value_type) == kind.value_type)

    kinds = table.schema.types
    picked = choose(_cast_columns(table, [kind if is_picked(kind) else plain_type(kind) for kind in kinds]))
    return _cast_columns(picked, kinds)


def _cast_columns(table: Any, kinds: Sequence[pa.DataType]) -> Any:
    for place, kind in enumerate(kinds):
        if table.schema.field(place).type != kind:
            field = table.schema.field(place).with_type(kind)
            table = table.set_column(place, field, _cast_values(table.column(place), kind))
    return table


WIDEST_PLACE = 3  # a list of up to three numbers is a place, whose coordinates become columns; a longer one is a vector


def is_list(kind: pa.DataType) -> bool:
    """Tell whether a column holds lists."""
    return _is_plain_list(plain_type(kind))


def holds_vectors(kind: pa.DataType) -> bool:
    """Tell whether a column holds lists of numbers."""
    return is_list(kind) and holds_numbers(plain_type(kind).value_type)


def holds_numbers(kind: pa.DataType) -> bool:
    """Tell whether a column holds numbers."""
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
    if not holds_numbers(array.type.value_type):
        raise InvalidInput(f"the column {name!r} must hold lists of numbers, it holds {array.type}.")
    fits = lengths_of(array) == width
    if fits.all():
        return doubles_of(array.flatten()).reshape(len(array), width)
    rows = np.full((len(array), width), np.nan)
    rows[fits] = doubles_of(array.filter(pa.array(fits)).flatten()).reshape(-1, width)
    return rows


def lengths_of(array: pa.Array) -> Any:
    """Return how long every list is; -1 where there is none."""
    return pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False)


def doubles_of(values: pa.Array) -> Floats:
    """Return numbers as doubles, NaN where there is none."""
    plain = values if pa.types.is_floating(values.type) else values.cast(pa.float64(), safe=False)
    return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.float64)


def codes_of(array: pa.Array) -> Integers:
    """Return where in the dictionary of a column every value stands; -1 where there is none."""
    return np.asarray(array.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def ticks_of(array: pa.Array) -> pa.Array:
    """Return the whole numbers that times are kept as."""
    return array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())


def decode(array: pa.Array) -> pa.Array:
    """Return a column without a dictionary."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


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
        made = rows.astype(kind.value_type.to_pandas_dtype(), copy=False)
    mask = None if good is None else pa.array(~good)
    if pa.types.is_fixed_size_list(kind):
        if good is not None:
            spread = np.zeros((len(good), width), dtype=made.dtype)
            spread[good], made = made, spread
        return pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), type=kind, mask=mask)
    lengths = np.full(len(rows), width) if good is None else np.where(good, width, 0)
    return join_lists(pa.array(made.ravel()), lengths, kind, mask)


def join_lists(items: pa.Array, lengths: Any, kind: pa.DataType, mask: pa.Array | None) -> pa.Array:
    """Return lists of such lengths, whose items lie one behind the other."""
    large = pa.types.is_large_list(kind)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64() if large else pa.int32())
    made = pa.LargeListArray if large else pa.ListArray
    return made.from_arrays(offsets, items, type=kind, mask=mask)


def broken_list(array: pa.Array, row: int, width: int, name: str) -> str | None:
    """Say what is wrong with one list, without its numbers; None where all of it are numbers."""
    array = plain(array)
    if not array[row].is_valid:
        return f"{name} holds no list"
    items = array[row].values
    if len(items) != width:
        return f"{name} holds a list of another length than {width}"
    missing = int(np.count_nonzero(~np.isfinite(doubles_of(items))))
    return f"{name} holds a list with {missing} of {width} items that are no number" if missing else None


NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


def numbers_of(array: pa.Array, name: str) -> Floats:
    """Return a column as doubles, NaN where it is null or, in text, where it is no number."""
    array = decode(plain(array))
    if is_text(array.type):
        array = _parse_numbers(array)
    elif not (pa.types.is_null(array.type) or holds_numbers(array.type)):
        raise InvalidInput(f"the column {name!r} must hold numbers, it holds {array.type}.")
    return doubles_of(array)


def _parse_numbers(array: pa.Array) -> pa.Array:
    """Return text as numbers, null where it is none; Arrow's own complaint would show the text."""
    with suppress(pa.ArrowInvalid):
        return array.cast(pa.float64())
    proper = pc.match_substring_regex(array, NUMBER)
    kept = pc.if_else(proper, array, pa.scalar(None, array.type))
    return pc.utf8_trim_whitespace(kept).cast(pa.float64())


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Tell whether a column holds bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def texts_in(column: Any, name: str, first_row: int = 0, table: str = "") -> pa.Array:
    """Return a column of texts that are all UTF-8."""
    column = decode(plain(column))
    row = first_non_utf8_row(column)
    if row is not None:
        raise InvalidInput(
            f"{f'{table!r}: ' if table else ''}the column {name!r} holds text that is not UTF-8 in row "
            f"{first_row + row} (the first is row 0), so its words are unknown. Save it as UTF-8."
        )
    return column.cast(pa.large_string())


def row_names(rows: Any, most: int = 10) -> str:
    """Return the first of the numbers of rows, for a message."""
    return ", ".join(str(row) for row in rows[:most]) + (", ..." if len(rows) > most else "")


def first_non_utf8_row(column: pa.Array) -> int | None:
    """Return the first row of a column of text whose bytes are no UTF-8; None where all are."""
    with suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return None
    raw = column.cast(pa.binary()).to_pylist()
    return next((number for number, cell in enumerate(raw) if cell is not None and not _is_utf8(cell)), 0)


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def holds_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds texts, be it by way of a dictionary."""
    kind = plain_type(kind)
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def replace_columns(batch: pa.RecordBatch, gone: Sequence[str], new: Sequence[tuple[pa.Field, Any]]) -> pa.RecordBatch:
    """Return a batch with some columns taken out and others put in, where the first of them was."""
    at = min(map(batch.schema.names.index, gone))
    kept = [pair for pair in zip(batch.schema, batch.columns, strict=True) if pair[0].name not in gone]
    columns = [*kept[:at], *new, *kept[at:]]
    schema = pa.schema([field for field, _ in columns], metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays([column for _, column in columns], schema=schema)


def put_numbers(batch: pa.RecordBatch, name: str, values: Floats) -> pa.RecordBatch:
    """Return a batch with numbers in the place of a column, null where they are NaN."""
    return put_column(batch, [name], name, pa.array(values, pa.float64(), mask=np.isnan(values)))


def put_column(batch: pa.RecordBatch, gone: Sequence[str], name: str, column: pa.Array) -> pa.RecordBatch:
    """Return a batch with one column in the place of others."""
    return replace_columns(batch, gone, [(pa.field(name, column.type), column)])


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
