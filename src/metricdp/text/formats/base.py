"""The result of every format of vectors: words, numbers, and the place of each word in the file."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from metricdp.errors import InvalidInput

Singles = NDArray[np.float32]
MOST_VALUES = 2**30  # numbers that are read at once: 4 GB
LARGEST_DIMENSION = 2**16
LONGEST_WORD = 2**12  # bytes
BLOCK = 2**22  # bytes read at a time
GZIP = b"\x1f\x8b"
READ_ERRORS = (EOFError, OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error, MemoryError)


@dataclass(frozen=True)
class VectorSource:
    """A file of vectors, or one that is packed in it; `limit` is how many words are wanted, None for all."""

    path: Path
    member: str = ""
    limit: int | None = None

    def __str__(self) -> str:
        return repr(f"{self.path.name}::{self.member}" if self.member else self.path.name)

    def is_enough(self, count: int) -> bool:
        """Return whether `count` words are all that is wanted."""
        return self.limit is not None and count >= self.limit

    def refuse(self, problem: str) -> NoReturn:
        """Say what is wrong with the file."""
        raise InvalidInput(f"the file of vectors {self} {problem}")

    def refuse_size(self, words: int, dimension: int) -> None:
        """Refuse more numbers than are read at once, and vectors without numbers."""
        if not 1 <= dimension <= LARGEST_DIMENSION:
            self.refuse(f"must have vectors of 1 to {LARGEST_DIMENSION:,} numbers, got {dimension:,}.")
        wanted = words if self.limit is None else min(words, self.limit)
        if wanted * dimension > MOST_VALUES:
            self.refuse(
                f"holds {words:,} vectors of {dimension:,} numbers, more than are read at once. Take the first "
                f"{MOST_VALUES // dimension:,} with `limit` or fewer: files have the most frequent words first."
            )


@dataclass(frozen=True, eq=False)
class VectorRows:
    """What a file holds: words, one row of numbers each, and where word i stands ("line 7", "row 6")."""

    words: Sequence[str]
    array: Singles
    place: str = "row"
    numbers: Sequence[int] | None = None  # of the places, where they are not 0, 1, 2, ...
    notes: tuple[str, ...] = field(default=())

    def at(self, row: int) -> str:
        """Return where a word stands, with the word: vocabularies are public."""
        number = row if self.numbers is None else self.numbers[row]
        return f"{self.place} {number:,} ({self.words[row][:40]!r})"


@contextmanager
def open_source(source: VectorSource) -> Iterator[IO[bytes]]:
    """Open a file, or what is packed in it, for reading from its beginning; damage is said in a sentence."""
    try:
        with ExitStack() as opened:
            stream: IO[bytes] = opened.enter_context(source.path.open("rb"))
            is_gzip = stream.read(2) == GZIP
            stream.seek(0)
            if source.member:
                stream = opened.enter_context(opened.enter_context(zipfile.ZipFile(stream)).open(source.member))
            elif is_gzip:
                stream = io.BufferedReader(opened.enter_context(gzip.open(stream, "rb")), BLOCK)
            yield stream
    except InvalidInput:
        raise
    except READ_ERRORS as error:
        reason = str(error).strip().rstrip(".") or type(error).__name__
        source.refuse(f"cannot be read: {reason}. It is damaged or was not copied whole.")


def head_of(source: VectorSource, size: int) -> bytes:
    """Return the first bytes of what is in a file."""
    with open_source(source) as stream:
        return stream.read(size)


def decode_words(words: Sequence[Any], source: VectorSource, place: str) -> list[str]:
    """Return words that a format holds as text or as bytes in UTF-8."""
    found = []
    for row, word in enumerate(words):
        try:
            found.append(word.decode("utf-8") if isinstance(word, bytes) else str(word))
        except UnicodeDecodeError:
            source.refuse(f"has a word in {place} {row:,} that is not UTF-8.")
    return found
