"""Arrays whose buffers hold the values of their rows and nothing else.

Arrow leaves much behind: a dictionary keeps the words of rows that are gone, a slice the rows around it, and a value
that was made null stays where it stood. All of that is written to files. `compact` removes it, in every nesting.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Integers
from metricdp.tables.views import plain


def compact(column: Any, kind: pa.DataType | None = None) -> Any:
    """Return a column whose buffers hold the values of its rows only; the same object where they do already.

    `kind` may be a type of the same values that says less: without notes inside, without extensions, or, as
    `plain_values` gives it, without dictionaries.
    """
    kind = column.type if kind is None else kind
    if isinstance(column, pa.ChunkedArray):
        chunks = [_compact(chunk, None, kind) for chunk in column.chunks]
        same = all(new is old for new, old in zip(chunks, column.chunks, strict=True))
        return column if same and kind.equals(column.type, check_metadata=True) else pa.chunked_array(chunks, kind)
    return _compact(column, None, kind)


def plain_values(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries."""

    def field(given: pa.Field) -> pa.Field:
        return given.with_type(plain_values(given.type))

    if pa.types.is_dictionary(kind):
        return plain_values(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([field(kind.field(number)) for number in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(field(kind.key_field), field(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(field(kind.value_field), kind.list_size)
    for is_one, make in LISTS:
        if is_one(kind):
            return make(field(kind.value_field))
    if pa.types.is_union(kind):
        fields = [field(kind.field(number)) for number in range(kind.num_fields)]
        return pa.union(fields, kind.mode, kind.type_codes)
    return kind


LISTS: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_list, pa.list_),
    (pa.types.is_large_list, pa.large_list),
    (pa.types.is_list_view, pa.list_view),
    (pa.types.is_large_list_view, pa.large_list_view),
)


def _compact(array: Any, hidden: Booleans | None, kind: pa.DataType) -> Any:
    """Return an array of a type; `hidden` are rows of it that nobody sees, since they lie inside of a null."""
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if isinstance(array, pa.ExtensionArray) and not isinstance(kind, pa.BaseExtensionType):
        return _compact(array.storage, hidden, kind)
    if isinstance(kind, pa.BaseExtensionType):
        stored = array.storage if isinstance(array, pa.ExtensionArray) else array  # where `plain` has unpacked it
        made = _compact(stored, hidden, kind.storage_type)
        return array if made is stored and stored is not array else pa.ExtensionArray.from_storage(kind, made)
    if pa.types.is_dictionary(array.type):
        if not pa.types.is_dictionary(kind):
            return _compact(array.dictionary_decode(), hidden, kind)
        return _dictionary(array, hidden, kind)
    if pa.types.is_union(kind):
        return _union(array, hidden, kind)
    if pa.types.is_run_end_encoded(kind):
        made = _compact(pc.run_end_decode(array), hidden, kind.value_type)
        return pc.run_end_encode(made, run_end_type=kind.run_end_type)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        large = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        return _compact(array.cast(large), hidden, large).cast(kind)
    gone = _gone(array, hidden)
    if pa.types.is_struct(kind):
        parts = [_compact(array.field(number), gone, kind.field(number).type) for number in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(array), [_bits(array, hidden)], children=parts)
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        inside = None if gone is None else np.repeat(gone, size)
        made = _compact(items, inside, kind.value_type)
        return pa.Array.from_buffers(kind, len(array), [_bits(array, hidden)], children=[made])
    if pa.types.is_map(kind) or any(is_one(kind) for is_one, _ in LISTS):
        return _lists(array, hidden, kind)
    if any(is_one(kind) for is_one in TEXTS):
        return _texts(array, hidden)
    return _numbers(array, hidden)


TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def _gone(array: Any, hidden: Booleans | None) -> Booleans | None:
    """Return which rows show no value; None where all do."""
    if not array.null_count:
        return hidden
    empty: Booleans = array.is_null().to_numpy(zero_copy_only=False)
    return empty if hidden is None else empty | hidden


def _bits(array: Any, hidden: Booleans | None) -> Any:
    """Return the bits that say which rows are null; None where none is."""
    gone = _gone(array, hidden)
    return None if gone is None or not array.null_count else _packed(~gone)


def _packed(values: Booleans) -> Any:
    return pa.py_buffer(np.packbits(values, bitorder="little").tobytes())


def _numbers(array: Any, hidden: Booleans | None) -> Any:
    """Return an array of values of one width, zero where no value is seen."""
    kind, rows, (bits, values) = array.type, len(array), array.buffers()
    gone = _gone(array, hidden)
    if pa.types.is_boolean(kind):
        shown = np.unpackbits(np.frombuffer(values, np.uint8), bitorder="little")[array.offset : array.offset + rows]
        shown = shown if gone is None else np.where(gone, 0, shown)
        return pa.Array.from_buffers(kind, rows, [_bits(array, hidden), _packed(shown.astype(bool))])
    width = kind.bit_width // 8
    if gone is None and bits is None and array.offset == 0 and (values is None or values.size == rows * width):
        return array
    made = np.zeros((rows, width), np.uint8)
    if rows and width:
        held = np.frombuffer(values, np.uint8)[array.offset * width : (array.offset + rows) * width]
        made[:] = held.reshape(rows, width)
    if gone is not None:
        made[gone] = 0
    return pa.Array.from_buffers(kind, rows, [_bits(array, hidden), pa.py_buffer(made)])


def _offsets(array: Any, number: int, count: int) -> Integers:
    """Return whole numbers of a buffer of a list or a text, such as where every row begins."""
    buffer = array.buffers()[number]
    wide = any(is_one(array.type) for is_one in WIDE)
    if buffer is None or not buffer.size:
        return np.zeros(count, dtype=np.int64)
    held = np.frombuffer(buffer, np.int64 if wide else np.int32)[array.offset : array.offset + count]
    return held.astype(np.int64)


WIDE = (
    pa.types.is_large_string,
    pa.types.is_large_binary,
    pa.types.is_large_list,
    pa.types.is_large_list_view,
)


def _begins(lengths: Integers, kind: pa.DataType) -> Any:
    """Return the offsets of rows that lie one behind the other."""
    wide = any(is_one(kind) for is_one in WIDE)
    return pa.py_buffer(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64 if wide else np.int32))


def _texts(array: Any, hidden: Booleans | None) -> Any:
    begins = _offsets(array, 1, len(array) + 1)
    lengths, data = np.diff(begins), array.buffers()[2]
    gone = _gone(array, hidden)
    if gone is not None and lengths[gone].any():
        lengths = np.where(gone, 0, lengths)
        shown = array.filter(pa.array(~gone))
        begins, data = _offsets(shown, 1, len(shown) + 1), shown.buffers()[2]
    held = b"" if data is None else data.slice(int(begins[0]), int(begins[-1] - begins[0])).to_pybytes()
    buffers = [_bits(array, hidden), _begins(lengths, array.type), pa.py_buffer(held)]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def _lists(array: Any, hidden: Booleans | None, kind: pa.DataType) -> Any:
    rows = len(array)
    if _is_view(array.type):
        begins, lengths = _offsets(array, 1, rows), _offsets(array, 2, rows)
    else:
        offsets = _offsets(array, 1, rows + 1)
        begins, lengths = offsets[:-1], np.diff(offsets)
    gone = _gone(array, hidden)
    if gone is not None:
        lengths = np.where(gone, 0, lengths)
    ends = np.cumsum(lengths)
    items = np.repeat(begins - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
    start = int(items[0]) if len(items) else 0
    if np.array_equal(items, np.arange(start, start + len(items))):
        values = array.values.slice(start, len(items))
    else:
        values = plain(array.values).take(pa.array(items))  # of views Arrow takes no rows
    entries = pa.struct([kind.key_field, kind.item_field]) if pa.types.is_map(kind) else kind.value_type
    made = _compact(values, None, entries)
    if _is_view(kind):
        whole = np.int64 if pa.types.is_large_list_view(kind) else np.int32
        places = [pa.py_buffer((ends - lengths).astype(whole)), pa.py_buffer(lengths.astype(whole))]
    else:
        places = [_begins(lengths, kind)]
    return pa.Array.from_buffers(kind, rows, [_bits(array, hidden), *places], children=[made])


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def _dictionary(array: Any, hidden: Booleans | None, kind: pa.DataType) -> Any:
    """Return a column whose dictionary holds the values of its rows only, in the order they had."""
    codes, words = array.indices, array.dictionary
    places = codes.cast(pa.int64()).fill_null(len(words)).to_numpy(zero_copy_only=False)
    if hidden is not None:
        places = np.where(hidden, len(words), places)
    used = np.zeros(len(words) + 1, dtype=bool)
    used[places] = True
    few = words if used[:-1].all() else plain(words).take(pa.array(np.flatnonzero(used[:-1])))
    values = _compact(few, None, kind.value_type)
    empty = places == len(words)
    if values is words and array.offset == 0 and not empty.any() and codes.buffers()[0] is None:
        return array
    new = (np.cumsum(used) - 1)[places]
    new[empty] = 0
    indices = pa.array(new, pa.int64(), mask=empty if empty.any() else None).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(_numbers(indices, None), values, ordered=kind.ordered)


def _union(array: Any, hidden: Booleans | None, kind: pa.DataType) -> Any:
    """Return a union; what its other members hold in a row, or hold for no row, goes."""
    rows = slice(array.offset, array.offset + len(array))  # the properties of a slice of a union forget where it begins
    numbers = np.frombuffer(array.buffers()[1], np.int8)[rows]
    if hidden is not None:
        numbers = np.where(hidden, kind.type_codes[0], numbers).astype(np.int8)
    fields = [kind.field(number) for number in range(kind.num_fields)]
    names = [field.name for field in fields]
    parts = []
    if kind.mode == "sparse":
        for place, field in enumerate(fields):
            other = numbers != kind.type_codes[place]
            unseen = other if hidden is None else other | hidden
            parts.append(_compact(array.field(place), unseen if unseen.any() else None, field.type))
        return pa.UnionArray.from_sparse(pa.array(numbers), parts, names, kind.type_codes)
    offsets = np.frombuffer(array.buffers()[2], np.int32)[rows]
    made = np.zeros(len(array), dtype=np.int32)
    for place, field in enumerate(fields):
        own = numbers == kind.type_codes[place]
        unseen = None if hidden is None else hidden[own]
        items = plain(array.field(place)).take(pa.array(offsets[own], mask=unseen))
        made[own] = np.arange(int(own.sum()), dtype=np.int32)
        parts.append(_compact(items, unseen, field.type))
    return pa.UnionArray.from_dense(pa.array(numbers), pa.array(made), parts, names, kind.type_codes)
