"""Values of any type as text, where a format has no types of its own: dates as ISO 8601, nested values as JSON."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa


def as_text(column: pa.Array) -> pa.Array:
    """Return a column as text; structs and lists as JSON, bytes in hexadecimal digits."""
    kind = column.type
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return pa.array([None if value is None else dumped(value) for value in column.to_pylist()], pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
    if pa.types.is_dictionary(kind):
        return as_text(column.dictionary_decode())
    return column.cast(pa.string())


def dumped(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False)


def jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it: no NaN, dates as text, bytes in hexadecimal digits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): jsonable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.date | datetime.time | datetime.datetime):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    return value
