"""What leaves with a table besides its rows: names and types, and of everything else only what is known to be harmless.

Metadata outlive the rows they were made from: the bounding box of a GeoParquet file, the attributes of a pandas frame,
notes on a column, the categories of values that no row holds any more (Parquet writes them into its dictionary pages).
Statistics are not copied anywhere: a writer makes them from the rows it writes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from metricdp.tables.compact import LISTS, compact
from metricdp.tables.marks import SIMULATED_KEY

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
            if kept is not None:
                metadata[key] = kept
            if not all_of_it:
                dropped.append("pandas attributes")
        else:
            text = key.decode("utf-8", "replace")
            dropped.append(f"metadata {text!r}" if PLAIN.fullmatch(text) else "metadata")
    fields = []
    for field in schema:
        fields.append(_field(field))
        if not fields[-1].equals(field, check_metadata=True):
            dropped.append(f"notes on the column {field.name!r}")
    return pa.schema(fields, metadata=metadata or None), tuple(dropped)


def _field(field: pa.Field) -> pa.Field:
    notes = {key: value for key, value in (field.metadata or {}).items() if key in FIELD_KEYS}
    return pa.field(field.name, _type(field.type), field.nullable, notes or None)


def _type(kind: pa.DataType) -> pa.DataType:
    """Return a type without the notes inside it; of an extension that is not Arrow's own, what it is stored as."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind if kind.extension_name.startswith("arrow.") else _type(kind.storage_type)
    if pa.types.is_struct(kind):
        return pa.struct([_field(kind.field(number)) for number in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _type(kind.value_type), kind.ordered)
    if pa.types.is_run_end_encoded(kind):
        return pa.run_end_encoded(kind.run_end_type, _type(kind.value_type))
    if pa.types.is_union(kind):
        return pa.union([_field(kind.field(number)) for number in range(kind.num_fields)], kind.mode, kind.type_codes)
    return next((make(_field(kind.value_field)) for is_one, make in LISTS if is_one(kind)), kind)


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


def harmless(table: Any) -> Any:
    """Return a record batch or table without what is not known to be harmless.

    Rows and types stay; what is copied are columns that hold more than the values of their rows.
    """
    schema, _ = harmless_schema(table.schema)
    columns = [compact(column, field.type) for column, field in zip(table.columns, schema, strict=True)]
    return type(table).from_arrays(columns, schema=schema)


def fewer_categories(before: pa.RecordBatch, after: pa.RecordBatch) -> set[str]:
    """Return the columns whose dictionaries held more than the rows that are left."""
    both = [
        field.name for field in after.schema if pa.types.is_dictionary(field.type) and field.name in before.schema.names
    ]
    return {name for name in both if len(after.column(name).dictionary) < len(before.column(name).dictionary)}
