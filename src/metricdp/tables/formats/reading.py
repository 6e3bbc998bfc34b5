"""Reading with errors of our own: Arrow's words show what it could not read, so they go no further."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import Reader

HARMLESS = (
    r"Expected \d+ columns, got \d+|Empty CSV file|In CSV column #\d+|invalid UTF8 data|straddl\w+ .*block boundaries|"
    r"Parquet magic bytes not found in footer|Corrupt \w+ compressed data|Couldn't deserialize thrift|"
    r"Parquet file size is \d+ bytes|Unexpected end of stream|Truncated compressed stream|corrupted|"
    r"codec '?\w+'? not supported|Not an Arrow file|not an Arrow file|changed from \w+ to \w+|was specified twice|"
    r"Missing a name for object member|Missing a comma or \} after an object member|Invalid value|"
    r"The document root must not be followed by other values|Missing a closing quotation mark in string"
)
T = TypeVar("T")


def reading(name: str, call: Callable[[], T], where: Callable[[str], str] | None = None) -> T:
    """Call something that reads and turn what Arrow raises into an error that names the file.

    The error is raised when Arrow's own is no longer at hand, so that none hides behind it. `where` adds to a reason in
    which row it was found.
    """
    try:
        return call()
    except InvalidInput:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError, RecursionError) as error:
        reason = harmless_reason(error)
    more = "" if where is None else where(reason)
    raise InvalidInput(f"{name!r} cannot be read: {reason}{more}. Is it a whole, valid file?")


def read_batches(reader: Reader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; what goes wrong names the file."""
    batches = reader.batches()
    while (batch := reading(reader.name, lambda: next(batches, None))) is not None:
        yield batch


def harmless_reason(error: Exception) -> str:
    """Return the part of a reader's complaint that is known to show no data."""
    if isinstance(error, UnicodeDecodeError):
        return "the names of its columns are not UTF-8 (in a CSV file only values may be); save it as UTF-8"
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    found = re.search(HARMLESS, str(error))
    return found[0] if found else f"the reader stopped with {type(error).__name__}"
