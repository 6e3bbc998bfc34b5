"""Columns of views (texts, bytes and lists that lie elsewhere), whose rows Arrow cannot pick, and of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(number)) for number in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return kind


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def plain(column: Any) -> Any:
    """Return a column without views; one that has none as it is."""
    kind = plain_type(column.type)
    return column if kind == column.type else _as(column, kind)


def _as(column: Any, kind: pa.DataType) -> Any:
    """Return a column in another type of the same values; Arrow's own cast of views of lists gives broken lists."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_as(chunk, kind) for chunk in column.chunks], kind)
    if _is_tensor(column.type):
        return plain(column.storage)
    if _is_view_of_lists(column.type):
        large = pa.types.is_large_list(kind)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64() if large else pa.int32())
        made = pa.LargeListArray if large else pa.ListArray
        return made.from_arrays(offsets, plain(column.flatten()), type=kind, mask=column.is_null())
    if any(_is_view_of_lists(inner) for inner in (*_inside(column.type), kind, *_inside(kind))):
        return pa.array(column.to_pylist(), kind)
    return column.cast(kind)


def _is_tensor(kind: pa.DataType) -> bool:
    """Tell whether a type is that of vectors or arrays of one shape, kept as lists."""
    if not isinstance(kind, pa.BaseExtensionType):
        return False
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_one(kind.storage_type) for is_one in lists)


def _is_view_of_lists(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _inside(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield the types that a type is made of."""
    for number in range(kind.num_fields):
        yield kind.field(number).type
        yield from _inside(kind.field(number).type)


def without_views(table: Any) -> Any:
    """Return a record batch or table none of whose columns holds views."""
    return _cast(table, {place: plain_type(kind) for place, kind in enumerate(table.schema.types)})


def taken(table: Any, rows: pa.Array) -> Any:
    """Return rows of a record batch or table by their numbers, in the types it has."""
    return _cast(_cast(table, _pickable(table.schema)).take(rows), dict(enumerate(table.schema.types)))


def filtered(table: Any, kept: pa.Array) -> Any:
    """Return the rows of a record batch or table that are kept, in the types it has."""
    return _cast(_cast(table, _pickable(table.schema)).filter(kept), dict(enumerate(table.schema.types)))


def _pickable(schema: pa.Schema) -> dict[int, pa.DataType]:
    """Return types whose rows Arrow picks; of lists that are views it does, and makes none of lists."""
    return {place: kind if _is_picked(kind) else plain_type(kind) for place, kind in enumerate(schema.types)}


def _is_picked(kind: pa.DataType) -> bool:
    """Tell whether Arrow picks rows of a type that `plain_type` would change."""
    return _is_tensor(kind) or (_is_view_of_lists(kind) and plain_type(kind.value_type) == kind.value_type)


def _cast(table: Any, kinds: dict[int, pa.DataType]) -> Any:
    for place, kind in kinds.items():
        if table.schema.field(place).type != kind:
            field = table.schema.field(place).with_type(kind)
            table = table.set_column(place, field, _as(table.column(place), kind))
    return table
