"""What a file of rows is: something read, or written, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from metricdp.errors import InvalidInput

FileKind = Literal["CSV", "Parquet"]
SUFFIXES: dict[str, FileKind] = {".csv": "CSV", ".tsv": "CSV", ".txt": "CSV", ".parquet": "Parquet", ".pq": "Parquet"}
PARQUET_BATCH_ROWS = 1 << 17


@dataclass(frozen=True)
class Storage:
    """How rows lie in a file, so that the output can lie the same way."""

    kind: FileKind
    delimiter: str = ","  # CSV
    codec: str = "snappy"  # Parquet: the compression
    dictionaries: tuple[str, ...] = ()  # Parquet: the columns stored with one

    def without(self, reports: Sequence[str]) -> Storage:
        """Return the same without dictionaries for columns of reports: they hardly repeat."""
        return replace(self, dictionaries=tuple(name for name in self.dictionaries if name not in reports))


class Reader(Protocol):
    """Rows read in batches."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def storage(self) -> Storage: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""

    def share(self, rows: int) -> float:
        """Return the share of the whole that `rows` rows are."""


class Writer(Protocol):
    """A file written in batches."""

    def write(self, batch: pa.RecordBatch, /) -> None:
        """Append rows."""

    def close(self) -> None:
        """Write what is left."""


def format_of(path: Path) -> FileKind:
    """Return the format a file name stands for."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InvalidInput(f"{str(path)!r} must be a CSV or Parquet file, named .csv or .parquet.")
    return kind
