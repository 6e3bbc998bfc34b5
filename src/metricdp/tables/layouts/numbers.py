"""Numbers that are written in a way of their own: with decimal commas, or as whole numbers of small units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.tables.formats import Format
from metricdp.tables.layouts.base import exchanged
from metricdp.tables.values import is_text, numbers_of

COMMA_NUMBER = r"^\s*[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?\s*$"


@dataclass(frozen=True)
class Numbers:
    """Some columns become doubles, multiplied with `scale`; reports go back divided, and whole where they were whole.

    Rounding a report to the unit of the table is post-processing.
    """

    kinds: dict[str, pa.DataType]  # of the columns, as they are stored
    commas: frozenset[str] = frozenset()
    scale: float = 1.0
    whole: frozenset[str] = frozenset()  # the columns of whole numbers

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        for name in self.kinds:
            at = batch.schema.get_field_index(name)
            column = batch.column(at)
            if name in self.commas and is_text(column.type):
                column = _with_points(column)
            values = numbers_of(column, name) * self.scale
            field = pa.field(name, pa.float64())
            batch = exchanged(batch, [at], at, [(field, pa.array(values, mask=np.isnan(values)))])
        return batch

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        for name, kind in self.kinds.items():
            at = batch.schema.get_field_index(name)
            if at < 0 or batch.schema.field(at).type != pa.float64():
                continue
            column = self._restored(batch.column(at), name, kind, made)
            batch = exchanged(batch, [at], at, [(pa.field(name, column.type), column)])
        return batch

    def _restored(self, column: pa.Array, name: str, kind: pa.DataType, made: Format) -> pa.Array:
        if made.earthly:  # it holds degrees
            return column
        if self.scale != 1.0:
            column = pc.divide(column, self.scale)
        if name in self.whole:
            column = _rounded(column, kind if pa.types.is_integer(kind) else pa.int64())
        elif pa.types.is_float32(kind):
            column = column.cast(kind)
        if name in self.commas and not made.typed:
            column = pc.replace_substring(column.cast(pa.string()), ".", ",")
        return column


def _rounded(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return reports as whole numbers of a type; what is beyond it is put on its border."""
    limits: Any = np.iinfo(kind.to_pandas_dtype())
    # The largest double that is not above the limit of 64 bits lies 1024 below it.
    top = float(limits.max) if limits.bits < 64 else float(limits.max - 1023)
    kept = pc.min_element_wise(pc.max_element_wise(column, float(limits.min), skip_nulls=False), top, skip_nulls=False)
    return pc.round(kept).cast(kind)


def _with_points(column: pa.Array) -> pa.Array:
    """Return text with decimal points, null where it is no number with a decimal comma."""
    proper = pc.match_substring_regex(column, COMMA_NUMBER)
    return pc.replace_substring(pc.if_else(proper, column, pa.scalar(None, column.type)), ",", ".")


def is_whole(column: pa.Array) -> bool:
    """Tell whether a column holds whole numbers only, in text or as integers."""
    if not is_text(column.type):
        return bool(pa.types.is_integer(column.type))
    some = column.filter(pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return bool(len(some) and pc.all(pc.match_substring_regex(some, r"^\s*[+-]?[0-9]+\s*$")).as_py())
