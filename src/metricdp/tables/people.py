"""How often one person occurs in a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import InvalidInput
from metricdp.tables.summary import People
from metricdp.tables.task import there_are
from metricdp.tables.values import is_text


class PeopleCounter:
    """Counts the rows of every person."""

    def __init__(self, column: str, names: Sequence[str]) -> None:
        if column not in names:
            raise InvalidInput(f"no column {column!r} to count persons by. {there_are(names)}")
        self.column = column
        self._rows: Counter[Any] = Counter()
        self._without = 0

    def add(self, batch: pa.RecordBatch) -> None:
        column = batch.column(self.column)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if is_text(column.type):
            column = column.cast(pa.binary())  # the bytes will do, whatever their encoding
        try:
            counts = pc.value_counts(column)
        except pa.ArrowException as error:
            raise InvalidInput(f"persons cannot be counted by {self.column!r}: it holds {column.type}.") from error
        for key, count in zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True):
            if key is None or key == b"":
                self._without += count
            else:
                self._rows[key] += count

    @property
    def people(self) -> People:
        most = max(self._rows.values(), default=0)
        return People(self.column, len(self._rows), most, self._without)
