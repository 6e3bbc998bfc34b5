"""Columns that leave a table, and columns that get coarser: times to the hour, numbers to a step.

A value that cannot be coarsened is an error that names the column, never a value passed through. Steps are counted from
zero, times from the beginning of 1970 (hours and parts of them from midnight): 17:42 becomes 17:00 for an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import InvalidInput
from metricdp.tables.options import DAY, CoarseningStep, Trim
from metricdp.tables.values import doubles_of, holds_numbers, is_text, ticks_of

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EARLIEST = 1e8  # seconds since 1970: March 1973
CLOCK = r"^(?P<head>.*?)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?P<second>:\d{2})?(?P<fraction>[.,]\d+)?(?P<tail>\D.*)?$"
DATE = r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?P<rest>[T ].*)?$"
Change = Callable[[Any], Any]
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def trim_table(table: Any, trim: Trim) -> Any:
    """Return a record batch or table without what is dropped and with what is coarsened."""
    changes: list[tuple[str, Change]] = [
        *((name, partial(coarsen_column, name=name, step=step)) for name, step in trim.coarsen),
        *((name, lambda array: None) for name in trim.drop),
    ]
    for name, change in changes:
        top, below = _locate_name(table.schema.names, name)
        if not below and name in trim.drop:
            table = table.drop_columns([top])
            continue
        made = _map_chunks(table.column(top), partial(_change_inside, below=below, change=change))
        position = table.schema.get_field_index(top)
        table = table.set_column(position, table.schema.field(position).with_type(made.type), made)
    return table


def _locate_name(names: Sequence[str], name: str) -> tuple[str, tuple[str, ...]]:
    """Return the column of the table that a name lies in, and the way inside."""
    if name in names:
        return name, ()
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        if ".".join(parts[:length]) in names:
            return ".".join(parts[:length]), tuple(parts[length:])
    raise InvalidInput(f"no column {name!r} to drop or coarsen.")


def _map_chunks(column: Any, change: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return change(column)
    chunks = [change(chunk) for chunk in column.chunks] or [change(pa.array([], column.type))]
    return pa.chunked_array(chunks)


def _change_inside(array: Any, below: tuple[str, ...], change: Change) -> Any:
    """Return a column with a field inside it changed, or taken out where the change gives nothing."""
    if not below:
        return change(array)
    fields = [array.type.field(number) for number in range(array.type.num_fields)]
    parts = [pc.struct_field(array, [number]) for number in range(len(fields))]
    at = [field.name for field in fields].index(below[0])
    made = _change_inside(parts[at], below[1:], change)
    parts[at : at + 1] = [] if made is None else [made]
    fields[at : at + 1] = [] if made is None else [fields[at].with_type(made.type)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null() if array.null_count else None)


def coarsen_column(array: Any, name: str, step: CoarseningStep) -> Any:
    """Return a column with its values put down to multiples of a step, in the type it has."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return coarsen_column(array.dictionary_decode(), name, step).dictionary_encode().cast(kind)
    if is_text(kind):
        return (_clock_texts if step.is_time else _number_texts)(array, name, step).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_date(kind):
        return _temporal(array, name, step)
    if holds_numbers(kind):
        return _numbers(array, name, step)
    if pa.types.is_null(kind):
        return array
    raise InvalidInput(f"the column {name!r} cannot be coarsened, it holds {kind}: drop it.")


def _temporal(array: Any, name: str, step: CoarseningStep) -> Any:
    kind = array.type
    if not step.is_time:
        raise InvalidInput(f"the column {name!r} holds times: coarsen it to a time such as {name}=1h.")
    if pa.types.is_date(kind):
        per_day = 1 if pa.types.is_date32(kind) else DAY * 1000
        width = max(1, int(step.size) // DAY) * per_day
    else:
        width = int(step.size) * PER_SECOND[kind.unit]
    return _floor(ticks_of(array), width).view(kind)


def _floor(whole: Any, width: int) -> Any:
    filled = np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False))
    result = filled - np.mod(filled.astype(np.int64), width).astype(filled.dtype)
    return pa.array(result, whole.type, mask=whole.is_null().to_numpy(zero_copy_only=False))


def _numbers(array: Any, name: str, step: CoarseningStep) -> Any:
    kind = array.type
    if step.is_time:
        made = _floor_times(doubles_of(array), name, step)
    elif pa.types.is_integer(kind):
        if step.size.denominator != 1:
            raise InvalidInput(
                f"the column {name!r} holds whole numbers: coarsen it to a whole step, not {step.written}."
            )
        limit = 2 ** (kind.bit_width - (0 if pa.types.is_unsigned_integer(kind) else 1))
        return _floor(array, int(step.size)) if step.size < limit else pc.multiply(array, pa.scalar(0, kind))
    else:
        made = _multiples(doubles_of(array), step)
    empty = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array(np.where(empty, 0.0, made), mask=empty).cast(kind, safe=False)


def _multiples(values: Any, step: CoarseningStep) -> Any:
    """Return multiples of the step at or below values; a value that is one, up to rounding, stays."""
    size = float(step.size)
    _, _, behind = step.written.partition(".")
    return np.round(np.floor(values / size + 1e-9) * size, len(behind))


def _floor_times(values: Any, name: str, step: CoarseningStep) -> Any:
    """Return times since 1970 put down to a step; numbers that are no times are refused.

    In how many parts a number counts a second is known by its size.
    """
    size = np.abs(values)
    if np.any((size > 0) & (size < EARLIEST)):
        raise InvalidInput(
            f"the column {name!r} holds numbers that do not count from 1970, such as hours of a day: coarsen it to a "
            f"number in its own unit, such as {name}=6, or drop it."
        )
    widths = float(step.size) * np.select([size >= 1e17, size >= 1e14, size >= 1e11], [1e9, 1e6, 1e3], 1.0)
    return np.floor(values / widths) * widths


def _number_texts(array: Any, name: str, step: CoarseningStep) -> Any:
    made = _multiples(_parse_numbers(array, name), step)
    return _number_strings(array, pa.array(np.where(np.isfinite(made), made, 0.0)))


def _parse_numbers(array: Any, name: str) -> Any:
    filled = _fill_nulls(array)
    proper = pc.match_substring_regex(array, NUMBER).fill_null(False)
    if pc.any(pc.and_not(filled, proper)).as_py():
        raise InvalidInput(f"the column {name!r} holds texts that are no numbers and cannot be coarsened: drop it.")
    text = pc.if_else(proper, pc.utf8_trim_whitespace(array), pa.scalar(None, array.type))
    return doubles_of(text)


def _number_strings(array: Any, numbers: Any) -> Any:
    """Return numbers as text, nothing where there was nothing."""
    return pc.if_else(_fill_nulls(array), numbers.cast(pa.string()), array.cast(pa.string()))


def _fill_nulls(array: Any) -> Any:
    return pc.greater(pc.binary_length(pc.utf8_trim_whitespace(array)), 0).fill_null(False)


def _clock_texts(array: Any, name: str, step: CoarseningStep) -> Any:
    """Put clocks inside texts down: 2013-07-01T17:42:09Z becomes 2013-07-01T17:00:00Z."""
    filled = _fill_nulls(array)
    if not pc.any(pc.and_not(filled, pc.match_substring_regex(array, NUMBER).fill_null(False))).as_py():
        values = _floor_times(_parse_numbers(array, name), name, step)
        return _number_strings(array, pa.array(np.where(np.isfinite(values), values, 0).astype(np.int64)))
    if step.size > DAY:
        return _day_texts(array, name, step)
    parts = pc.extract_regex(array, CLOCK)
    dates = pc.match_substring_regex(array, r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\s*$")
    proper = pc.or_kleene(parts.is_valid(), dates).fill_null(False)
    if pc.any(pc.and_not(filled, proper)).as_py():
        raise InvalidInput(f"the column {name!r} holds texts that are no times and cannot be coarsened: drop it.")
    get = {key: pc.struct_field(parts, key) for key in ("head", "hour", "minute", "second", "tail")}
    written = pc.replace_substring_regex(get["second"].fill_null(""), "^:", "")
    has_seconds = pc.greater(pc.binary_length(written), 0)
    seconds = _ints(get["hour"], parts.is_valid()) * 3600 + _ints(get["minute"], parts.is_valid()) * 60
    seconds += _ints(written, has_seconds)
    seconds -= np.mod(seconds, int(step.size))
    made = pc.binary_join_element_wise(
        get["head"].cast(pa.string()), _two(seconds // 3600), ":", _two(seconds % 3600 // 60),
        pc.if_else(has_seconds, pc.binary_join_element_wise(":", _two(seconds % 60), ""), ""),
        get["tail"].fill_null("").cast(pa.string()), "",
    )  # fmt: skip
    return pc.if_else(parts.is_valid(), made, array.cast(pa.string()))


def _day_texts(array: Any, name: str, step: CoarseningStep) -> Any:
    parts = pc.extract_regex(array, DATE)
    if pc.any(pc.and_not(_fill_nulls(array), parts.is_valid())).as_py():
        raise InvalidInput(
            f"the column {name!r} can be coarsened to days only where dates are written 2013-07-01: coarsen it to "
            "1d or less, or drop it."
        )
    day = pc.utf8_slice_codeunits(array, 0, 10).cast(pa.string())
    days = pc.strptime(pc.if_else(parts.is_valid(), day, "1970-01-01"), "%Y-%m-%d", "s").cast(pa.int64())
    floored = _floor(days, int(step.size)).cast(pa.timestamp("s"))
    return pc.if_else(parts.is_valid(), pc.strftime(floored, "%Y-%m-%d"), array.cast(pa.string()))


def _ints(texts: Any, there: Any) -> Any:
    """Return the numbers that texts hold, 0 where there are none."""
    return np.asarray(pc.if_else(there, texts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False))


def _two(values: Any) -> Any:
    return pc.utf8_lpad(pa.array(values).cast(pa.string()), 2, "0")
