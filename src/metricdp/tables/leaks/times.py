"""How fine the times of a column are: to the second, to the minute, or coarse, with many others in the same hour."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Floats
from metricdp.tables.leaks.leaf import Leaf
from metricdp.tables.leaks.texts import is_dated

Fineness = Literal["seconds", "minutes", "coarse"]
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
EPOCH = (1.0e9, 2.2e9)  # seconds since 1970, from 2001 to 2039
CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?"


def fineness(array: pa.Array) -> Fineness | None:
    """Return how fine the times of a column are; None where it holds no times.

    Numbers are times where they lie where seconds (or milli-, micro-, nanoseconds) since 1970 lie.
    """
    kind = array.type
    if pa.types.is_date(kind):
        return "coarse"
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        whole = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        return _of(_doubles(whole) / PER_SECOND[kind.unit])
    leaf = Leaf("", "", array)
    if leaf.is_text and is_dated(array):
        return _clock(array)
    numbers = leaf.numbers()
    if numbers is None or pa.types.is_temporal(kind):
        return None
    seconds = since_epoch(numbers)
    return None if seconds is None else _of(seconds)


def since_epoch(numbers: Floats) -> Floats | None:
    """Return seconds where nearly all numbers lie where a count since 1970 lies; else None."""
    filled = numbers[np.isfinite(numbers)]
    if len(filled) < 3:
        return None
    for scale in PER_SECOND.values():
        if np.mean((filled >= EPOCH[0] * scale) & (filled <= EPOCH[1] * scale)) >= 0.99:
            return np.asarray(filled / scale)
    return None


def _of(seconds: Floats) -> Fineness | None:
    seconds = np.floor(seconds[np.isfinite(seconds)])
    if not len(seconds):
        return None
    if np.mean(seconds % 60 != 0) > 0.01:
        return "seconds"
    return "minutes" if np.mean(seconds % 3600 != 0) > 0.01 else "coarse"


def _clock(array: pa.Array) -> Fineness | None:
    parts = pc.extract_regex(array, CLOCK)
    if parts.null_count == len(parts):
        return "coarse"  # dates alone
    minute, second = (pc.struct_field(parts, name) for name in ("minute", "second"))
    second = pc.if_else(pc.greater(pc.binary_length(second), 0), second, "0")
    return _of(_doubles(minute.cast(pa.int32())) * 60.0 + _doubles(second.cast(pa.int32())))


def _doubles(array: pa.Array) -> Floats:
    return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
