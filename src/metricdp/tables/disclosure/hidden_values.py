"""What is left behind: metadata, categories, and bytes of values that no row shows.

Metadata outlive the rows they were made from: the bounding box of a GeoParquet file, the attributes of a pandas frame,
notes on a column, the categories of values that no row holds any more (Parquet writes them into its dictionary pages).
Statistics are not copied anywhere: a writer makes them from the rows it writes.

Arrow leaves much behind: a dictionary keeps the words of rows that are gone, a slice the rows around it, and a value
that was made null stays where it stood. All of that is written to files. `compact` removes it, in every nesting.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Integers
from metricdp.tables.batch import SIMULATED_KEY
from metricdp.tables.values import LISTS, is_text, is_view_of_lists, plain, rebuild_type


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

    if pa.types.is_dictionary(kind):
        return plain_values(kind.value_type)
    return rebuild_type(kind, lambda field: field.with_type(plain_values(field.type)))


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
    null_rows = _null_mask(array, hidden)
    bits = None if null_rows is None or not array.null_count else _pack_bits(~null_rows)
    if pa.types.is_struct(kind):
        parts = [_compact(array.field(number), null_rows, field.type) for number, field in enumerate(kind)]
        return pa.Array.from_buffers(kind, len(array), [bits], children=parts)
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        inside = None if null_rows is None else np.repeat(null_rows, size)
        return pa.Array.from_buffers(kind, len(array), [bits], children=[_compact(items, inside, kind.value_type)])
    if pa.types.is_map(kind) or any(is_one(kind) for is_one, _ in LISTS):
        return _lists(array, null_rows, bits, kind)
    if is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _texts(array, null_rows, bits)
    return _numbers(array, null_rows, bits)


def _null_mask(array: Any, hidden: Booleans | None) -> Booleans | None:
    """Return which rows show no value; None where all do."""
    if not array.null_count:
        return hidden
    empty: Booleans = array.is_null().to_numpy(zero_copy_only=False)
    return empty if hidden is None else empty | hidden


def _pack_bits(values: Booleans) -> Any:
    return pa.py_buffer(np.packbits(values, bitorder="little").tobytes())


def _numbers(array: Any, null_rows: Booleans | None, bits: Any) -> Any:
    """Return an array of values of one width, zero where no value is seen."""
    kind, rows, (before, values) = array.type, len(array), array.buffers()
    if pa.types.is_boolean(kind):
        shown = np.unpackbits(np.frombuffer(values, np.uint8), bitorder="little")[array.offset : array.offset + rows]
        shown = shown if null_rows is None else np.where(null_rows, 0, shown)
        return pa.Array.from_buffers(kind, rows, [bits, _pack_bits(shown.astype(bool))])
    width = kind.bit_width // 8
    if null_rows is None and before is None and array.offset == 0 and (values is None or values.size == rows * width):
        return array
    made = np.zeros((rows, width), np.uint8)
    if rows and width:
        held = np.frombuffer(values, np.uint8)[array.offset * width : (array.offset + rows) * width]
        made[:] = held.reshape(rows, width)
    if null_rows is not None:
        made[null_rows] = 0
    return pa.Array.from_buffers(kind, rows, [bits, pa.py_buffer(made)])


def _offsets(array: Any, number: int, count: int) -> Integers:
    """Return whole numbers of a buffer of a list or a text, such as where every row begins."""
    buffer = array.buffers()[number]
    if buffer is None or not buffer.size:
        return np.zeros(count, dtype=np.int64)
    return np.frombuffer(buffer, _offset_type(array.type))[array.offset : array.offset + count].astype(np.int64)


def _offset_type(kind: pa.DataType) -> Any:
    """Return the numbers that lists and texts of a type count their items with."""
    types = pa.types
    wide = (types.is_large_string, types.is_large_binary, types.is_large_list, types.is_large_list_view)
    return np.int64 if any(is_one(kind) for is_one in wide) else np.int32


def _row_offsets(lengths: Integers, kind: pa.DataType) -> Any:
    """Return the offsets of rows that lie one behind the other."""
    return pa.py_buffer(np.concatenate([[0], np.cumsum(lengths)]).astype(_offset_type(kind)))


def _texts(array: Any, null_rows: Booleans | None, bits: Any) -> Any:
    begins = _offsets(array, 1, len(array) + 1)
    lengths, data = np.diff(begins), array.buffers()[2]
    if null_rows is not None and lengths[null_rows].any():
        lengths = np.where(null_rows, 0, lengths)
        shown = array.filter(pa.array(~null_rows))
        begins, data = _offsets(shown, 1, len(shown) + 1), shown.buffers()[2]
    held = b"" if data is None else data.slice(int(begins[0]), int(begins[-1] - begins[0])).to_pybytes()
    return pa.Array.from_buffers(array.type, len(array), [bits, _row_offsets(lengths, array.type), pa.py_buffer(held)])


def _lists(array: Any, null_rows: Booleans | None, bits: Any, kind: pa.DataType) -> Any:
    rows = len(array)
    if is_view_of_lists(array.type):
        begins, lengths = _offsets(array, 1, rows), _offsets(array, 2, rows)
    else:
        offsets = _offsets(array, 1, rows + 1)
        begins, lengths = offsets[:-1], np.diff(offsets)
    if null_rows is not None:
        lengths = np.where(null_rows, 0, lengths)
    ends = np.cumsum(lengths)
    items = np.repeat(begins - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
    start = int(items[0]) if len(items) else 0
    if np.array_equal(items, np.arange(start, start + len(items))):
        values = array.values.slice(start, len(items))
    else:
        values = plain(array.values).take(pa.array(items))  # of views Arrow takes no rows
    entries = pa.struct([kind.key_field, kind.item_field]) if pa.types.is_map(kind) else kind.value_type
    made = _compact(values, None, entries)
    if is_view_of_lists(kind):
        places = [pa.py_buffer(numbers.astype(_offset_type(kind))) for numbers in (ends - lengths, lengths)]
    else:
        places = [_row_offsets(lengths, kind)]
    return pa.Array.from_buffers(kind, rows, [bits, *places], children=[made])


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
    return pa.DictionaryArray.from_arrays(_compact(indices, None, kind.index_type), values, ordered=kind.ordered)


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


FIELD_KEYS = (b"PARQUET:field_id",)
NOTES_OF_TYPES = ("timezone", "ordered")  # of pandas' notes on columns
PLAIN = re.compile(r"[\w.:-]{1,60}")


def harmless_schema(schema: pa.Schema) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return names, types and what is harmless of the metadata, and what of it was left out."""
    metadata, dropped = {}, []
    for key, value in (schema.metadata or {}).items():
        if key == SIMULATED_KEY.encode():
            metadata[key] = value
        elif key == b"pandas":
            kept, all_of_it = _pandas(value, schema.names)
            metadata |= {} if kept is None else {key: kept}
            dropped += [] if all_of_it else ["pandas attributes"]
        else:
            text = key.decode("utf-8", "replace")
            dropped.append(f"metadata {text!r}" if PLAIN.fullmatch(text) else "metadata")
    fields = [_field(field) for field in schema]
    changed = (old.name for old, new in zip(schema, fields, strict=True) if not new.equals(old, check_metadata=True))
    dropped += [f"notes on the column {name!r}" for name in changed]
    return pa.schema(fields, metadata=metadata or None), tuple(dropped)


def _field(field: pa.Field) -> pa.Field:
    notes = {key: value for key, value in (field.metadata or {}).items() if key in FIELD_KEYS}
    return pa.field(field.name, _type(field.type), field.nullable, notes or None)


def _type(kind: pa.DataType) -> pa.DataType:
    """Return a type without the notes inside it; of an extension that is not Arrow's own, what it is stored as."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind if kind.extension_name.startswith("arrow.") else _type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return pa.run_end_encoded(kind.run_end_type, _type(kind.value_type))
    return rebuild_type(kind, _field)


def _pandas(value: bytes, names: list[str]) -> tuple[bytes | None, bool]:
    """Return pandas' notes on the types of the columns that are there, and whether that is all they said."""
    try:
        notes = json.loads(value)
        columns = [_column(entry) for entry in notes["columns"] if entry["field_name"] in names]
        index = [name for name in notes["index_columns"] if isinstance(name, str) and name in names]
        kept = {
            "index_columns": index,
            "column_indexes": [],
            "columns": columns,
            "pandas_version": str(notes["pandas_version"])[:20],
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, False
    return json.dumps(kept).encode(), not notes.get("attributes")


def _column(entry: dict[str, Any]) -> dict[str, Any]:
    more = entry.get("metadata") or {}
    kept = {name: more[name] for name in NOTES_OF_TYPES if isinstance(more.get(name), str | bool)}
    if entry["pandas_type"] == "categorical":
        kept["num_categories"] = 0  # pandas asks for the key, and counts for itself
    return {
        "name": entry["field_name"] if isinstance(entry.get("name"), str) else None,
        "field_name": entry["field_name"],
        "pandas_type": str(entry["pandas_type"]),
        "numpy_type": str(entry["numpy_type"]),
        "metadata": kept or None,
    }


def sanitise_table(table: Any) -> Any:
    """Return a record batch or table without what is not known to be harmless.

    Rows and types stay; what is copied are columns that hold more than the values of their rows.
    """
    schema, _ = harmless_schema(table.schema)
    columns = [compact(column, field.type) for column, field in zip(table.columns, schema, strict=True)]
    return type(table).from_arrays(columns, schema=schema)


def fewer_categories(before: pa.RecordBatch, after: pa.RecordBatch) -> set[str]:
    """Return the columns whose dictionaries held more than the rows that are left."""
    coded = {field.name for field in after.schema if pa.types.is_dictionary(field.type)}
    return {
        name
        for name in coded & set(before.schema.names)
        if len(after.column(name).dictionary) < len(before.column(name).dictionary)
    }
