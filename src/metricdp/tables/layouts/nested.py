"""Secrets inside structs and lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.tables.formats import Format
from metricdp.tables.layouts.base import exchanged


@dataclass(frozen=True)
class Fields:
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
        return exchanged(batch, [at], at, new)

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
        return exchanged(batch, gone, min(gone), [(pa.field(self.column, whole.type), whole)])


@dataclass(frozen=True)
class Items:
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
        return exchanged(batch, [at], at, new)

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
        return exchanged(batch, gone, min(gone), [(pa.field(self.column, whole.type), whole)])

    def _list(self, values: pa.Array, null: Any, width: int) -> pa.Array:
        mask = pa.array(null) if null.any() else None
        if pa.types.is_fixed_size_list(self.kind):
            return pa.FixedSizeListArray.from_arrays(values, width, mask=mask)
        offsets = np.arange(len(null) + 1) * width
        if pa.types.is_large_list(self.kind):
            return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=mask)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)
