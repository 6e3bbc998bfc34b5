"""Reading with errors of our own: Arrow's words show what it could not read, so they go no further."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import SUFFIXES, Reader

DELIMITERS = (",", ";", "\t", "|")
HARMLESS = (
    r"Expected \d+ columns, got \d+|Empty CSV file|In CSV column #\d+|invalid UTF8 data|straddl\w+ .*block boundaries|"
    r"Parquet magic bytes not found in footer|Corrupt \w+ compressed data|Couldn't deserialize thrift|"
    r"Parquet file size is \d+ bytes|Unexpected end of stream|corrupted|codec '?\w+'? not supported"
)
T = TypeVar("T")


def reading(name: str, call: Callable[[], T]) -> T:
    """Call something that reads and turn what Arrow raises into an error that names the file.

    The error is raised when Arrow's own is no longer at hand, so that none hides behind it.
    """
    try:
        return call()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = _harmless(error)
    where = _odd_row(Path(name)) if reason.startswith("Expected") else ""
    raise InvalidInput(f"{name!r} cannot be read: {reason}{where}. Is it a whole, valid file?")


def read_batches(reader: Reader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; what goes wrong names the file."""
    batches = reader.batches()
    while (batch := reading(reader.name, lambda: next(batches, None))) is not None:
        yield batch


def delimiter_of(path: Path) -> str:
    """Return the most frequent delimiter of the header line, quoted parts left out."""
    with path.open("rb") as file:
        line = "\n"
        while line and not line.strip("\r\n"):
            line = file.readline(1 << 20).decode("utf-8", errors="replace")
    bare = "".join(line.split('"')[::2])
    return max(DELIMITERS, key=lambda mark: (bare.count(mark), mark == ","))


def _harmless(error: Exception) -> str:
    """Return the part of a reader's complaint that is known to show no data."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    found = re.search(HARMLESS, str(error))
    return found[0] if found else f"the reader stopped with {type(error).__name__}"


def _odd_row(path: Path) -> str:
    """Return which row of a CSV file has too many or too few columns."""
    from pyarrow import csv

    if SUFFIXES.get(path.suffix.lower()) != "CSV" or not path.is_file():
        return ""
    seen: list[int] = []

    def note(row: Any) -> str:
        seen.append(row.number)
        return "error"

    parse = csv.ParseOptions(delimiter=delimiter_of(path), newlines_in_values=True, invalid_row_handler=note)
    with suppress(pa.ArrowException):
        for _ in csv.open_csv(path, read_options=csv.ReadOptions(use_threads=False), parse_options=parse):
            pass
    return f" in row {seen[0] - 2} (the first below the header is row 0)" if seen else ""
