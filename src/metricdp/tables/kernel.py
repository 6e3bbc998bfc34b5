"""The one kernel of all tables: columns of a record batch in, reports out.

Every path (data frames, files, engines) comes through `protect`: numbers are read without a copy, bad rows are found
before anything is drawn, the mechanism draws once for the whole batch, and the reports go back in the type that came.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import Mechanism
from metricdp.randomness import Randomness
from metricdp.spaces import Box, FiniteSpace
from metricdp.tables.columns import OnError, Task, holds_text, is_geographic, table_metric, task_for

ROWS_NAMED = 10
NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


@dataclass(frozen=True)
class Protected:
    """The reports of one batch, one array per column, and the numbers of the rows that were bad."""

    columns: tuple[pa.Array, ...]
    bad: Integers

    def kept(self, rows: int) -> pa.Array:
        """Return the mask of the rows that were good."""
        mask = np.ones(rows, dtype=bool)
        mask[self.bad] = False
        return pa.array(mask)


def perturb_batch(
    batch: pa.RecordBatch,
    mechanism: Mechanism,
    columns: Sequence[str] | str | None = None,
    *,
    snap: float = 0.0,
    on_error: OnError = "fail",
    rng: Randomness = None,
    first_row: int = 0,
) -> pa.RecordBatch:
    """Return the record batch with the named columns replaced by reports; all other columns stay as they are.

    `first_row` is the number of the first row in error messages, for a batch that is part of something longer.
    """
    task = task_for(batch.schema.names, mechanism, columns=columns, snap=snap, on_error=on_error)
    return replace(batch, task, protect(_picked(batch, task), task, rng=rng, first_row=first_row))


def _picked(batch: pa.RecordBatch, task: Task) -> list[pa.Array]:
    return [batch.column(name) for name in task.columns]


def replace(batch: Any, task: Task, protected: Protected) -> Any:
    """Put reports into a record batch or table, and drop the bad rows where that was asked for."""
    for name, column in zip(task.columns, protected.columns, strict=True):
        position = batch.schema.get_field_index(name)
        batch = batch.set_column(position, report_field(batch.schema.field(position), task), column)
    if task.on_error == "drop" and protected.bad.size:
        batch = batch.filter(protected.kept(batch.num_rows))
    return batch


def report_field(field: pa.Field, task: Task) -> pa.Field:
    """Return the field of a column after it was replaced by reports."""
    nullable = field.nullable or task.on_error == "null"
    return field.with_type(report_type(field.type, task)).with_nullable(nullable)


def report_type(given: pa.DataType, task: Task) -> pa.DataType:
    """Return the type of reports for a column of the given type: the same one where it can hold them."""
    outputs = task.mechanism.outputs
    if holds_text(outputs):
        return given
    if pa.types.is_float32(given) or pa.types.is_float64(given):
        return given
    if pa.types.is_integer(given) and isinstance(outputs, FiniteSpace):
        values = np.asarray(outputs.coordinates, dtype=np.float64)
        unsigned = pa.types.is_unsigned_integer(given)
        bits = given.bit_width - (0 if unsigned else 1)
        whole = bool(np.all(values == np.rint(values)))
        if whole and values.min() >= (0 if unsigned else -(2.0**bits)) and values.max() < 2.0**bits:
            return given
    return pa.float64()


def protect(arrays: Sequence[pa.Array], task: Task, *, rng: Randomness = None, first_row: int = 0) -> Protected:
    """Return one report per row, or raise an error that names the bad rows."""
    if holds_text(task.mechanism.inputs):
        return _protect_words(arrays[0], task, rng, first_row)
    count = len(arrays[0])
    values = np.empty((count, len(arrays)))
    for column, (array, name) in enumerate(zip(arrays, task.columns, strict=True)):
        values[:, column] = _numbers(array, name)
    good, secrets = _encode(values, task)
    bad = np.flatnonzero(~good)
    if bad.size and task.on_error == "fail":
        row = int(bad[0])
        shown = tuple(_shown(array[row]) for array in arrays)
        raise _refusal(bad + first_row, _why(values[row], shown, task), task)
    reports = _draw(task.mechanism, secrets, rng)
    if bad.size:
        full = np.zeros((count, reports.shape[1]))
        full[good] = reports
        reports = full
    mask = ~good if bad.size else None
    columns = tuple(
        _as_type(np.ascontiguousarray(reports[:, column]), mask, report_type(array.type, task))
        for column, array in enumerate(arrays)
    )
    return Protected(columns, bad)


def _as_type(values: Floats, mask: Booleans | None, wanted: pa.DataType) -> pa.Array:
    array = pa.array(values, mask=mask)
    return array if array.type == wanted else array.cast(wanted, safe=False)


def _numbers(array: pa.Array, name: str) -> Floats:
    """Return a column as doubles, NaN where it is null or, in text, where it is no number."""
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
    try:
        return array.cast(pa.float64())
    except pa.ArrowInvalid:
        proper = pc.match_substring_regex(array, NUMBER)
        kept = pc.if_else(proper, array, pa.scalar(None, array.type))
        return pc.utf8_trim_whitespace(kept).cast(pa.float64())


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _encode(values: Floats, task: Task) -> tuple[Booleans, Any]:
    """Return which rows are legal, and the secrets (codes or coordinates) of those rows."""
    space = task.mechanism.inputs
    good = np.isfinite(values[:, 0])
    for column in range(1, values.shape[1]):
        good &= np.isfinite(values[:, column])
    if is_geographic(space):
        good &= (np.abs(values[:, 0]) <= 90.0) & (np.abs(values[:, 1]) <= 360.0)
    if isinstance(space, Box):
        good &= ((values >= space.lower) & (values <= space.upper)).all(axis=1)
    kept = values if good.all() else values[good]
    if not isinstance(space, FiniteSpace):
        return good, kept
    if not len(kept):
        return good, np.empty(0, dtype=np.int64)
    codes, away = space.nearest(kept)
    near = away <= space.tolerance(task.snap)
    if not near.all():
        codes = codes[near]
        good[np.flatnonzero(good)[~near]] = False
    return good, codes


def _draw(mechanism: Mechanism, secrets: Any, rng: Randomness) -> Floats:
    outputs = mechanism.outputs
    if not len(secrets):
        return np.empty((0, outputs.coordinates.shape[1] if isinstance(outputs, FiniteSpace) else outputs.dimension))
    reports = mechanism.sample(secrets, rng=rng)
    return np.asarray(outputs.decode(reports) if isinstance(outputs, FiniteSpace) else reports, dtype=np.float64)


def _protect_words(array: pa.Array, task: Task, rng: Randomness, first_row: int) -> Protected:
    inputs, outputs = task.mechanism.inputs, task.mechanism.outputs
    assert isinstance(inputs, FiniteSpace)
    assert isinstance(outputs, FiniteSpace)
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    if not is_text(plain.type) and not pa.types.is_null(plain.type):
        raise InvalidInput(f"the column {task.columns[0]!r} must hold words, it holds {array.type}.")
    words = pa.array(inputs.coordinates[:, 0].tolist(), pa.string())
    found = pc.index_in(plain.cast(pa.string()), value_set=words, skip_nulls=True)
    codes = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    good = codes >= 0
    bad = np.flatnonzero(~good)
    if bad.size and task.on_error == "fail":
        raise _refusal(bad + first_row, _why_word(plain[int(bad[0])].as_py(), inputs), task)
    reports = np.zeros(len(codes), dtype=np.int64)
    if len(bad) < len(codes):
        reports[good] = task.mechanism.sample(codes[good], rng=rng)
    chosen = pa.array(reports, mask=~good if bad.size else None)
    column = pa.array(outputs.coordinates[:, 0].tolist(), pa.string()).take(chosen)
    if pa.types.is_dictionary(array.type):
        column = column.cast(array.type.value_type).dictionary_encode()
    return Protected((column.cast(array.type),), bad)


def _shown(scalar: Any) -> str:
    value = scalar.as_py()
    if value is None or value == "":
        return "nothing"
    return repr(value) if isinstance(value, str) else f"{value:.9g}" if isinstance(value, float) else str(value)


def _why(row: Floats, shown: tuple[str, ...], task: Task) -> str:
    """Say what is wrong with a row and what would be right."""
    space = task.mechanism.inputs
    came = ", ".join(f"{name} is {text}" for name, text in zip(task.columns, shown, strict=True))
    if not np.isfinite(row).all():
        return f"{came}; a number is needed in every column"
    if is_geographic(space) and not (abs(row[0]) <= 90.0 and abs(row[1]) <= 360.0):
        legal = (float(np.clip(row[0], -90, 90)), float(np.clip(row[1], -360, 360)))
        swapped = " Are latitude and longitude exchanged?" if abs(row[1]) <= 90 < abs(row[0]) <= 360 else ""
        return f"{came}; latitude must lie in [-90, 90] and longitude in [-360, 360], the nearest is {legal}.{swapped}"
    if isinstance(space, Box):
        nearest = np.clip(row, space.lower, space.upper).tolist()
        return (
            f"{came}; outside the box from {space.lower.tolist()} to {space.upper.tolist()}, the nearest is {nearest}"
        )
    assert isinstance(space, FiniteSpace)
    codes, away = space.nearest(row[None])
    nearest = [float(f"{v:.9g}") for v in space.coordinates[codes[0]].tolist()]
    unit = f" {table_metric(space).unit}" if table_metric(space).unit else ""
    limit = f", beyond the declared snap of {task.snap:g}{unit}" if task.snap else ""
    advice = "Raise the snap distance" if task.snap else "Ask for snapping (snap=, --snap; its slack is stated)"
    return (
        f"{came}; not a secret of this mechanism, the nearest is {nearest}, {away[0]:.6g}{unit} away{limit}. {advice}"
    )


def _why_word(word: str | None, space: FiniteSpace) -> str:
    if word is None:
        return "there is no word"
    close = difflib.get_close_matches(word, space.coordinates[:, 0].tolist(), n=1, cutoff=0.0)
    return f"{word!r} is not a word of this vocabulary; the nearest spelling is {close[0]!r}"


def _refusal(rows: Integers, why: str, task: Task) -> OutOfDomain:
    more = ""
    if rows.size > 1:
        named = ", ".join(str(row) for row in rows[:ROWS_NAMED])
        more = f" {rows.size} rows are bad so far: {named}{', ...' if rows.size > ROWS_NAMED else ''}."
    return OutOfDomain(
        f"row {rows[0]} (the first is row 0): {why.rstrip('.')}.{more} Repair them, or leave them out with "
        'on_error="drop" or "null" (--on-error on the command line).',
        rows=tuple(int(row) for row in rows[:1000]),
    )
