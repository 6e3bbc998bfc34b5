"""What lies between a table as it is stored and flat columns of numbers: stages that go there and back.

Secrets may lie in structs, lists or geometries, as whole numbers that have to be scaled, with decimal commas, or in
projected coordinates. A layout makes flat columns of them, one number each, before anything else sees the rows, and
puts reports back in the same form. The way back sees reports alone, so it is post-processing: no promise changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.tables.formats import Format
from metricdp.tables.values import is_text, numbers_of


class Stage(Protocol):
    """One step of the way, for record batches of any length, none included."""

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        """Return rows as `protect` takes them."""

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        """Return reports, with all else that is released, as a format holds them."""


@dataclass(frozen=True)
class ColumnLayout:
    """The whole way: its stages, the flat columns of the secret (None for the usual ones), what to say of it.

    `point` are the flat columns of latitude and longitude, where the table has a geometry. `reads` says what a cell of
    the secret has to be, for messages. `notes` are sentences for the summary. `width` is how many numbers a secret has
    where columns were named: as many as there are flat columns, or the length of the lists in one of them.
    """

    stages: tuple[Stage, ...] = ()
    columns: tuple[str, ...] | None = None
    point: tuple[str, str] | None = None
    reads: str = "number"
    notes: tuple[str, ...] = ()
    width: int | None = None

    def flat(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with every coordinate of the secret in a column of its own."""
        for stage in self.stages:
            batch = stage.forward(batch)
        return batch

    def back(self, batch: pa.RecordBatch, made: Format) -> pa.RecordBatch:
        """Return reports in the form the secrets came in, as far as the format has it."""
        for stage in reversed(self.stages):
            batch = stage.backward(batch, made)
        return batch

    def flat_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the rows after `flat`."""
        return self.flat(empty_batch(schema)).schema

    def back_schema(self, schema: pa.Schema, made: Format) -> pa.Schema:
        """Return the schema of reports after `back`."""
        return self.back(empty_batch(schema), made).schema


PLAIN = ColumnLayout()


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def replace_columns(
    batch: pa.RecordBatch, gone: Sequence[int], at: int, new: Sequence[tuple[pa.Field, Any]]
) -> pa.RecordBatch:
    """Return a batch with some columns taken out and others put in, where the first of them was."""
    kept = [(batch.schema.field(i), batch.column(i)) for i in range(batch.num_columns) if i not in set(gone)]
    before = sum(1 for i in range(at) if i not in set(gone))
    columns = [*kept[:before], *new, *kept[before:]]
    schema = pa.schema([field for field, _ in columns], metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays([column for _, column in columns], schema=schema)


@dataclass(frozen=True)
class UniqueNames:
    """Repeated names become lat#1, lat#2, ..., counted from the left."""

    names: tuple[str, ...]  # all of the table, each once
    before: dict[str, str]  # numbered name -> name

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        return batch.rename_columns(list(self.names))

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        names = batch.schema.names
        old = [self.before.get(name, name) for name in names]
        if not made.repeats:  # those whose twins are gone
            old = [before if old.count(before) == 1 else name for before, name in zip(old, names, strict=True)]
        return batch.rename_columns(old)


def unique_names(names: Sequence[str]) -> UniqueNames | None:
    """Return the stage that tells columns of one name apart; None where all names differ."""
    repeated = {name for name, count in Counter(names).items() if count > 1}
    if not repeated:
        return None
    seen: Counter[str] = Counter()
    new: list[str] = []
    before: dict[str, str] = {}
    for name in names:
        made = name
        while name in repeated and (made == name or made in names):
            seen[name] += 1
            made = f"{name}#{seen[name]}"
        if made != name:
            before[made] = name
        new.append(made)
    return UniqueNames(tuple(new), before)


@dataclass(frozen=True)
class StructFields:
    """Some fields of a struct become columns `struct.field`; what else is in it stays a struct."""

    column: str
    keys: tuple[str, ...]
    order: tuple[str, ...]  # all fields of the struct

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        at = batch.schema.get_field_index(self.column)
        whole = batch.column(at)
        parts = dict(zip(self.order, whole.flatten(), strict=True))
        kinds = {whole.type.field(number).name: whole.type.field(number) for number in range(whole.type.num_fields)}
        new = [(kinds[key].with_name(f"{self.column}.{key}").with_nullable(True), parts[key]) for key in self.keys]
        rest = [key for key in self.order if key not in self.keys]
        if rest:
            made = pa.StructArray.from_arrays(
                [parts[key] for key in rest],
                fields=[kinds[key].with_nullable(True) for key in rest],
                mask=whole.is_null(),
            )
            new.append((pa.field(self.column, made.type), made))
        return replace_columns(batch, [at], at, new)

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        names = batch.schema.names
        parts: dict[str, Any] = {
            key: batch.column(names.index(f"{self.column}.{key}"))
            for key in self.keys
            if f"{self.column}.{key}" in names
        }
        if not made.nested or not parts:
            return batch
        gone = [names.index(f"{self.column}.{key}") for key in parts]
        if self.column in names:
            gone.append(names.index(self.column))
            left = batch.column(self.column)
            inner = [left.type.field(number).name for number in range(left.type.num_fields)]
            parts |= dict(zip(inner, left.flatten(), strict=True))
        order = [key for key in self.order if key in parts]
        whole = pa.StructArray.from_arrays([parts[key] for key in order], names=order)
        return replace_columns(batch, gone, min(gone), [(pa.field(self.column, whole.type), whole)])


@dataclass(frozen=True)
class ListItems:
    """Items of a list become columns `list[0]`, `list[1]`, ...

    A row whose list has another length holds no secret. With `longer` more items are allowed; they belong to the true
    place (an altitude, say) and are left out.
    """

    column: str
    places: tuple[int, ...]
    kind: pa.DataType  # of the list
    longer: bool = False

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        at = batch.schema.get_field_index(self.column)
        array = batch.column(at)
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        values = array.flatten()
        if pa.types.is_fixed_size_list(array.type) and array.null_count:
            values = array.filter(array.is_valid()).flatten()  # of rows without a list nothing is left
        enough = lengths > max(self.places) if self.longer else lengths == len(self.places)
        new = []
        for place in self.places:
            taken = values.take(pa.array(np.where(enough, starts + place, 0), pa.int64(), mask=~enough))
            new.append((pa.field(f"{self.column}[{place}]", values.type), taken))
        return replace_columns(batch, [at], at, new)

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        names = batch.schema.names
        parts = [f"{self.column}[{place}]" for place in sorted(self.places)]
        if not made.nested or not set(parts) <= set(names):
            return batch
        columns = [batch.column(names.index(name)) for name in parts]
        rows, width = batch.num_rows, len(parts)
        mixed = np.arange(rows)[:, None] + rows * np.arange(width)[None, :]
        values = pa.concat_arrays(columns).take(pa.array(mixed.ravel()))
        null = np.logical_or.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in columns])
        whole = self._list(values, null, width)
        gone = [names.index(name) for name in parts]
        return replace_columns(batch, gone, min(gone), [(pa.field(self.column, whole.type), whole)])

    def _list(self, values: pa.Array, null: Any, width: int) -> pa.Array:
        mask = pa.array(null) if null.any() else None
        if pa.types.is_fixed_size_list(self.kind):
            return pa.FixedSizeListArray.from_arrays(values, width, mask=mask)
        offsets = np.arange(len(null) + 1) * width
        if pa.types.is_large_list(self.kind):
            return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=mask)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)


COMMA_NUMBER = r"^\s*[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?\s*$"


@dataclass(frozen=True)
class NumberColumns:
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
                column = _decimal_points(column)
            values = numbers_of(column, name) * self.scale
            field = pa.field(name, pa.float64())
            batch = replace_columns(batch, [at], at, [(field, pa.array(values, mask=np.isnan(values)))])
        return batch

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        for name, kind in self.kinds.items():
            at = batch.schema.get_field_index(name)
            if at < 0 or batch.schema.field(at).type != pa.float64():
                continue
            column = self._restore_column(batch.column(at), name, kind, made)
            batch = replace_columns(batch, [at], at, [(pa.field(name, column.type), column)])
        return batch

    def _restore_column(self, column: pa.Array, name: str, kind: pa.DataType, made: Format) -> pa.Array:
        if made.on_earth:  # it holds degrees
            return column
        if self.scale != 1.0:
            column = pc.divide(column, self.scale)
        if name in self.whole:
            column = _round_column(column, kind if pa.types.is_integer(kind) else pa.int64())
        elif pa.types.is_float32(kind):
            column = column.cast(kind)
        if name in self.commas and not made.typed:
            column = pc.replace_substring(column.cast(pa.string()), ".", ",")
        return column


def _round_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return reports as whole numbers of a type; what is beyond it is put on its border."""
    limits: Any = np.iinfo(kind.to_pandas_dtype())
    # The largest double that is not above the limit of 64 bits lies 1024 below it.
    top = float(limits.max) if limits.bits < 64 else float(limits.max - 1023)
    kept = pc.min_element_wise(pc.max_element_wise(column, float(limits.min), skip_nulls=False), top, skip_nulls=False)
    return pc.round(kept).cast(kind)


def _decimal_points(column: pa.Array) -> pa.Array:
    """Return text with decimal points, null where it is no number with a decimal comma."""
    proper = pc.match_substring_regex(column, COMMA_NUMBER)
    return pc.replace_substring(pc.if_else(proper, column, pa.scalar(None, column.type)), ",", ".")


def is_whole(column: pa.Array) -> bool:
    """Tell whether a column holds whole numbers only, in text or as integers."""
    if not is_text(column.type):
        return bool(pa.types.is_integer(column.type))
    some = column.filter(pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return bool(len(some) and pc.all(pc.match_substring_regex(some, r"^\s*[+-]?[0-9]+\s*$")).as_py())
