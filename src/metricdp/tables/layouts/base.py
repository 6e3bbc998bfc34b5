"""What lies between a table as it is stored and flat columns of numbers: stages that go there and back.

Secrets may lie in structs, lists or geometries, as whole numbers that have to be scaled, with decimal commas, or in
projected coordinates. A layout makes flat columns of them, one number each, before anything else sees the rows, and
puts reports back in the same form. The way back sees reports alone, so it is post-processing: no promise changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from metricdp.tables.formats import Format


class Stage(Protocol):
    """One step of the way, for record batches of any length, none included."""

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        """Return rows as the kernel takes them."""

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        """Return reports, with all else that is released, as a format holds them."""


@dataclass(frozen=True)
class Layout:
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
        return self.flat(empty(schema)).schema

    def back_schema(self, schema: pa.Schema, made: Format) -> pa.Schema:
        """Return the schema of reports after `back`."""
        return self.back(empty(schema), made).schema


PLAIN = Layout()


def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows."""
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def exchanged(
    batch: pa.RecordBatch, gone: Sequence[int], at: int, new: Sequence[tuple[pa.Field, Any]]
) -> pa.RecordBatch:
    """Return a batch with some columns taken out and others put in, where the first of them was."""
    kept = [(batch.schema.field(i), batch.column(i)) for i in range(batch.num_columns) if i not in set(gone)]
    before = sum(1 for i in range(at) if i not in set(gone))
    columns = [*kept[:before], *new, *kept[before:]]
    schema = pa.schema([field for field, _ in columns], metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays([column for _, column in columns], schema=schema)
