"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from metricdp.tables.formats.base import PARQUET_BATCH_ROWS, Storage


class ParquetReader:
    """A Parquet file."""

    def __init__(self, path: Path, groups: Sequence[int] = ()) -> None:
        from pyarrow import parquet

        self.name = str(path)
        self._groups = list(groups) or None
        self.file = parquet.ParquetFile(path, pre_buffer=False)
        self.schema: pa.Schema = self.file.schema_arrow
        self._rows = max(1, self.file.metadata.num_rows)

    @property
    def storage(self) -> Storage:
        metadata = self.file.metadata
        if not metadata.num_row_groups:
            return Storage("Parquet")
        first = [metadata.row_group(0).column(number) for number in range(metadata.num_columns)]
        codec = first[0].compression.lower() if first else "snappy"
        return Storage(
            "Parquet",
            codec="none" if codec == "uncompressed" else codec,
            dictionaries=tuple(column.path_in_schema for column in first if column.has_dictionary_page),
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self.file.iter_batches(batch_size=PARQUET_BATCH_ROWS, row_groups=self._groups):
            if batch.num_rows:
                yield batch

    def share(self, rows: int) -> float:
        return float(rows / self._rows)

    def close(self) -> None:
        self.file.close()


class ParquetWriter:
    """Writes Parquet with a compression and dictionaries."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(
            path, schema, compression=storage.codec, use_dictionary=list(storage.dictionaries) or False
        )

    def write(self, batch: pa.RecordBatch, /) -> None:
        self._writer.write_batch(batch.cast(self._writer.schema))

    def close(self) -> None:
        self._writer.close()
