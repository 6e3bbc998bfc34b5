"""Files that are compressed as a whole: read and written as what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.tables.formats.base import Location, Packing

MAGIC: dict[Packing, bytes] = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}


@contextmanager
def opened_bytes(location: Location) -> Iterator[Any]:
    """Open what is in a file, for reading from its beginning."""
    with pa.OSFile(str(location.path)) as file:
        if not location.packing:
            yield file
            return
        with pa.CompressedInputStream(file, location.packing) as stream:
            yield stream


def blocks(location: Location, size: int) -> Iterator[bytes]:
    """Yield what is in a file in pieces of whole lines, each of about so many bytes."""
    with opened_bytes(location) as stream:
        left = b""
        while piece := stream.read(size):
            whole, line_end, rest = (left + piece).rpartition(b"\n")
            if line_end:
                yield whole + line_end
                left = rest
            else:
                left = rest
        if left.strip():
            yield left


def packed_output(path: Path, packing: Packing) -> Any:
    """Open a new file for writing what is packed into it."""
    return pa.CompressedOutputStream(str(path), packing) if packing else path.open("wb")


def packing_of(head: bytes) -> Packing:
    """Return how a file that begins so is compressed."""
    return next((packing for packing, magic in MAGIC.items() if head.startswith(magic)), "")


def unpacked_head(path: Path, packing: Packing, size: int) -> bytes:
    """Return the first bytes of what is in a file, nothing where it is damaged."""
    try:
        with pa.OSFile(str(path)) as file:
            stream: Any = pa.CompressedInputStream(file, packing) if packing else file
            return bytes(stream.read(size))
    except (pa.ArrowException, OSError):
        return b""
