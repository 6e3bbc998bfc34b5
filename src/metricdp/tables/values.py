"""From columns to secrets: which rows hold a legal secret, what it is, and what is wrong with the others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine, Metric, Precomputed, ShortestPath, Weighted
from metricdp.spaces import Box, FiniteSpace, Streets
from metricdp.tables.task import Lane, holds_text, is_geographic, table_metric

NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
JOINT = "\x1f"  # between the columns of words of several columns


@dataclass(frozen=True)
class Secrets:
    """The secrets of one batch: which rows are legal, codes or coordinates of all rows, and what was read.

    Rows that are not legal hold a placeholder in `values`. `content` is what the secrets were read from, in a form that
    does not depend on how the engine stores it: it binds keyed noise to the data (see `streams`).
    """

    good: Booleans
    values: Any
    content: Any

    def of(self, rows: Booleans | None) -> Any:
        """Return the secrets of the chosen rows (all of them for None)."""
        return self.values if rows is None else self.values[rows]


def secrets_of(arrays: Sequence[pa.Array], lane: Lane) -> Secrets:
    """Read the secrets of one lane from its columns."""
    if holds_text(lane.mechanism.inputs):
        return _words(arrays, lane)
    rows = np.empty((len(arrays[0]), len(arrays)))
    for column, (array, name) in enumerate(zip(arrays, lane.columns, strict=True)):
        rows[:, column] = _numbers(array, name)
    return _encode(rows, lane)


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


def _encode(rows: Floats, lane: Lane) -> Secrets:
    """Return which rows are legal, and the secrets (codes or coordinates) of all rows."""
    space: Any = lane.mechanism.inputs
    # A sum is finite only where every term is; a sum that overflows is looked at again.
    good: Booleans = np.asarray(np.isfinite(rows @ np.ones(rows.shape[1])))
    if not good.all():
        good = np.asarray(np.isfinite(rows).all(axis=1))
    good = good & _legal(table_metric(space), rows, good)
    if isinstance(space, Box):
        good &= ((rows >= space.lower) & (rows <= space.upper)).all(axis=1)
    if isinstance(space, Streets):
        good[good] = space.holds(rows[good])
    if not isinstance(space, FiniteSpace):
        return Secrets(good, rows, rows)
    codes = np.zeros(len(rows), dtype=np.int64)
    every = bool(good.all())
    kept = rows if every else rows[good]
    if len(kept):
        found, near = space.within(kept, space.tolerance(lane.snap))
        if every:
            codes, good = found, near
        else:
            codes[good] = found
            good[good] = near
    return Secrets(good, codes, rows)


def _legal(metric: Metric, rows: Floats, finite: Booleans) -> Booleans:
    """Tell which rows a metric can measure: latitudes and longitudes, or whole numbers for codes."""
    if isinstance(metric, Haversine):
        limits = (90.0, 360.0)
        if all(np.abs(rows[:, c]).max(initial=0.0) <= limits[c] for c in (0, 1)):  # NaN is not
            return finite
        return np.asarray((np.abs(rows[:, 0]) <= limits[0]) & (np.abs(rows[:, 1]) <= limits[1]))
    if isinstance(metric, Weighted):
        parts = [_legal(part, rows[:, list(columns)], finite) for part, columns, _ in metric.parts]
        return np.asarray(np.logical_and.reduce(parts))
    if isinstance(metric, Precomputed | ShortestPath):
        count = len(metric.distances) if isinstance(metric, Precomputed) else metric.nodes
        return np.asarray((rows[:, 0] == np.rint(rows[:, 0])) & (rows[:, 0] >= 0) & (rows[:, 0] < count))
    return finite


def _words(arrays: Sequence[pa.Array], lane: Lane) -> Secrets:
    inputs = lane.mechanism.inputs
    assert isinstance(inputs, FiniteSpace)
    text = []
    for array, name in zip(arrays, lane.columns, strict=True):
        plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        if not is_text(plain.type) and not pa.types.is_null(plain.type):
            raise InvalidInput(f"the column {name!r} must hold words, it holds {array.type}.")
        text.append(plain.cast(pa.string()))
    joined = text[0] if len(text) == 1 else pc.binary_join_element_wise(*text, JOINT)
    words = pa.array([JOINT.join(row) for row in inputs.coordinates.tolist()], pa.string())
    found = pc.index_in(joined, value_set=words, skip_nulls=True)
    codes = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Secrets(codes >= 0, np.maximum(codes, 0), joined)


def why_bad(arrays: Sequence[pa.Array], row: int, lane: Lane) -> str:
    """Say what is wrong with a row and what would be right."""
    space: Any = lane.mechanism.inputs
    shown = [_shown(array[row]) for array in arrays]
    came = ", ".join(f"{name} is {text}" for name, text in zip(lane.columns, shown, strict=True))
    if holds_text(space):
        return _why_word([array[row].as_py() for array in arrays], space)
    numbers = [_numbers(array.slice(row, 1), name) for array, name in zip(arrays, lane.columns, strict=True)]
    values = np.concatenate(numbers)
    if not np.isfinite(values).all():
        return f"{came}; a number is needed in every column"
    if is_geographic(space) and not (abs(values[0]) <= 90.0 and abs(values[1]) <= 360.0):
        legal = (float(np.clip(values[0], -90, 90)), float(np.clip(values[1], -360, 360)))
        swapped = " Are latitude and longitude exchanged?" if abs(values[1]) <= 90 < abs(values[0]) <= 360 else ""
        return f"{came}; latitude must lie in [-90, 90] and longitude in [-360, 360], the nearest is {legal}.{swapped}"
    if isinstance(space, Box):
        nearest = np.clip(values, space.lower, space.upper).tolist()
        return (
            f"{came}; outside the box from {space.lower.tolist()} to {space.upper.tolist()}, the nearest is {nearest}"
        )
    if isinstance(space, Streets):
        return (
            f"{came}; this lies on no street: streets are numbered 0 to {len(space) - 1}, offsets end at their length"
        )
    if not _legal(table_metric(space), values[None], np.ones(1, dtype=bool))[0]:
        return f"{came}; not a value this mechanism's metric can measure"
    return _why_stranger(values, came, lane)


def _why_stranger(values: Floats, came: str, lane: Lane) -> str:
    space = lane.mechanism.inputs
    assert isinstance(space, FiniteSpace)
    codes, away = space.nearest(values[None])
    nearest = [float(f"{v:.9g}") for v in space.coordinates[codes[0]].tolist()]
    unit = f" {table_metric(space).unit}" if table_metric(space).unit else ""
    limit = f", beyond the declared snap of {lane.snap:g}{unit}" if lane.snap else ""
    advice = "Raise the snap distance" if lane.snap else "Ask for snapping (snap=, --snap; its slack is stated)"
    return (
        f"{came}; not a secret of this mechanism, the nearest is {nearest}, {away[0]:.6g}{unit} away{limit}. {advice}"
    )


def _why_word(words: list[str | None], space: FiniteSpace) -> str:
    if any(word is None for word in words):
        return "there is no word"
    known = [" ".join(row) for row in space.coordinates.tolist()]
    spelled = " ".join(str(word) for word in words)
    close = difflib.get_close_matches(spelled, known, n=1, cutoff=0.0)
    return f"{spelled!r} is not a word of this vocabulary; the nearest spelling is {close[0]!r}"


def _shown(scalar: Any) -> str:
    value = scalar.as_py()
    if value is None or value == "":
        return "nothing"
    return repr(value) if isinstance(value, str) else f"{value:.9g}" if isinstance(value, float) else str(value)
