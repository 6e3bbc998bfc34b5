"""The plain columns of a table: those inside structs and lists too, each with the path that names it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.arrays import Booleans, Floats

PLACES = 4  # of a list: a point has two to four numbers
PARSED = 0.99  # the share of a text column that must be numbers for it to be one


@dataclass(frozen=True, repr=False)
class Leaf:
    """A plain column: `column` is the one of the table it lies in, `path` what it is called."""

    column: str
    path: str
    array: pa.Array

    def numbers(self) -> Floats | None:
        """Return the values as doubles, NaN where there is none; None where they are no numbers."""
        kind = self.array.type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return _doubles(self.array)
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            whole = pa.int32() if kind.bit_width == 32 else pa.int64()
            return _doubles(self.array.view(whole))
        return self._parsed() if self.is_text else None

    @property
    def is_text(self) -> bool:
        kind = self.array.type
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))

    def _parsed(self) -> Floats | None:
        text = pc.utf8_trim_whitespace(self.array)
        filled = pc.and_kleene(text.is_valid(), pc.greater(pc.binary_length(text), 0))
        proper = pc.match_substring_regex(text, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
        many = pc.sum(filled).as_py() or 0
        if not many or (pc.sum(proper).as_py() or 0) < PARSED * many:
            return None
        return _doubles(pc.if_else(proper.fill_null(False), text, pa.scalar(None, text.type)).cast(pa.float64()))


def leaves(table: pa.Table | pa.RecordBatch, *, without: frozenset[str]) -> Iterator[Leaf]:
    """Yield the plain columns of a table but some; paths in `without` may lie inside structs."""
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if name not in without:
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if isinstance(whole, pa.ChunkedArray):  # too long for one piece
                whole = whole.chunk(0)
            yield from (leaf for leaf in _inside(name, name, whole) if leaf.path not in without)


def _inside(column: str, path: str, array: Any) -> Iterator[Leaf]:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _inside(column, path, array.storage)
    elif pa.types.is_dictionary(kind):
        yield from _inside(column, path, array.dictionary_decode())
    elif pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _inside(column, f"{path}.{kind.field(number).name}", pc.struct_field(array, [number]))
    elif pa.types.is_map(kind):
        yield Leaf(column, path, array)  # its name is all that is looked at
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        for number, items in enumerate(_places(array)):
            yield from _inside(column, f"{path}[{number}]", items)
    else:
        leaf = Leaf(column, path, array)
        yield Leaf(column, path, _readable(array)) if leaf.is_text else leaf


def _readable(array: Any) -> Any:
    """Return texts that can be read; letters of another encoding are replaced."""
    try:
        return array.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = array.cast(pa.large_binary()).to_pylist()
        return pa.array(
            [None if text is None else text.decode("utf-8", "replace") for text in texts], pa.large_string()
        )


def _places(array: Any) -> Iterator[Any]:
    """Yield the first items of all lists, the second, and so on, null where a list is shorter."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    start = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else np.empty(0, dtype=np.int64)
    values = array.flatten()
    for number in range(min(PLACES, int(lengths.max(initial=0)))):
        there: Booleans = lengths > number
        yield values.take(pa.array(np.where(there, start + number, 0), pa.int64(), mask=~there))


def _doubles(array: Any) -> Floats:
    return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
