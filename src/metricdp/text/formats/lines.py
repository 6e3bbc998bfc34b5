"""Vectors as text, one word and its numbers a line: GloVe, word2vec and fastText (.vec), which have a header.

Lines are read in blocks of a few megabytes; a block of plain lines is parsed at once, any other line by line.
"""

from __future__ import annotations

import array
import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import IO

import numpy as np
import pyarrow as pa
from pyarrow import csv

from metricdp import progress
from metricdp.text.formats.base import (
    BLOCK,
    LARGEST_DIMENSION,
    LONGEST_WORD,
    Singles,
    VectorRows,
    VectorSource,
    open_source,
)

ROUND = 50_000  # words between two signs of life


def read_binary(source: VectorSource, header: tuple[int, int]) -> VectorRows:
    """Read words and vectors in binary; words that are not UTF-8 are left out with a note."""
    count, dimension = header
    source.refuse_size(count, dimension)
    wanted = count if source.limit is None else min(count, source.limit)
    words: list[str] = []
    numbers: list[int] = []
    values, width, damaged = bytearray(), 4 * dimension, 0
    with open_source(source) as stream, progress.report_task("reading vectors"):
        stream.readline()
        held, at = stream.read(BLOCK), 0
        for number in range(count):
            if len(words) == wanted:
                break
            if at + LONGEST_WORD + width + 2 > len(held):
                held, at = held[at:] + stream.read(max(BLOCK, width)), 0
            space = held.find(b" ", at, at + LONGEST_WORD)
            if space < 0 or space + 1 + width > len(held):
                source.refuse(
                    f"says {count:,} words in its first line and ends, or holds something else, at word {number:,}. It "
                    "was not copied whole."
                )
            try:
                words.append(held[at:space].lstrip(b"\n").decode("utf-8"))
                values += held[space + 1 : space + 1 + width]
                numbers.append(number)
            except UnicodeDecodeError:
                damaged += 1
            at = space + 1 + width
            if number % ROUND == 0:
                progress.report_step(f"reading vectors, {number:,} of {count:,} words")
    if not words:
        source.refuse("holds no words: it is empty.")
    notes = (f"{source}: {damaged:,} words left out, not UTF-8.",) if damaged else ()
    return VectorRows(words, np.frombuffer(values, dtype="<f4").reshape(len(words), dimension), "word", numbers, notes)


def is_binary(head: bytes, dimension: int) -> bool:
    """Tell whether behind a header comes a word with floats in binary: their bytes are hardly ever text in UTF-8."""
    rest = head.partition(b"\n")[2]
    if has_numbers(rest, dimension):
        return False
    behind = rest.lstrip(b"\n").partition(b" ")[2][: min(4 * dimension, 4096)]
    try:
        return b"\0" in behind or not behind[: len(behind) - 3].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(behind) - 6  # not merely cut within a character


HEADER = re.compile(rb"\s*(\d{1,12})[ \t]+(\d{1,9})\s*")
LONGEST_LINE = 2**22  # bytes
MOST_DAMAGED = 0.01  # of the lines, before a file is taken for something else than UTF-8


class _LineReader:
    """What has been read so far: words, numbers, line numbers, and lines that are not UTF-8."""

    def __init__(self, source: VectorSource) -> None:
        self.source = source
        self.dimension = 0
        self.words: list[str] = []
        self.values = bytearray()
        self.numbers = array.array("q")
        self.damaged: list[int] = []
        self.spaced = 0

    def take(self, block: bytes, first: int) -> None:
        """Take lines, the first of which has that number."""
        lines = block.split(b"\n")
        if not lines[-1].strip():
            lines.pop()
        if self.dimension == 0:
            self.dimension = self._dimension(lines)
        if self.source.limit is not None:
            lines = lines[: self.source.limit - len(self.words)]
        if not lines or not self.dimension:
            return
        found = self._parse_plain(lines)
        if found is None:
            for number, line in enumerate(lines, start=first):
                self._parse_line(line, number)
        else:
            self.words += found[0]
            self.values += found[1].tobytes()
            self.numbers.extend(range(first, first + len(lines)))
        self.source.refuse_size(len(self.words), self.dimension)

    def _dimension(self, lines: list[bytes]) -> int:
        """Return how many numbers most lines have: words may hold spaces, so some lines have more fields."""
        counts = Counter(len(line.split()) - 1 for line in lines if line.strip())
        return counts.most_common(1)[0][0] if counts else 0

    def _parse_plain(self, lines: list[bytes]) -> tuple[list[str], Singles] | None:
        """Return words and numbers of lines that have one word and single spaces or tabs each, else None."""
        mark = b"\t" if b"\t" in lines[0] else b" "
        rows = [line.rstrip().partition(mark) for line in lines]
        names = [str(place) for place in range(self.dimension)]
        try:
            words = [word.decode("utf-8") for word, _, _ in rows]
            table = csv.read_csv(
                io.BytesIO(b"\n".join(rest for _, _, rest in rows)),
                csv.ReadOptions(column_names=names, use_threads=False, block_size=4 * BLOCK),
                csv.ParseOptions(delimiter=mark.decode(), quote_char=False, ignore_empty_lines=False),
                csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[], check_utf8=False),
            )
        except (UnicodeDecodeError, pa.ArrowException):
            return None
        if table.num_rows != len(lines) or not all(words):
            return None
        return words, np.column_stack([column.to_numpy() for column in table.columns])

    def _parse_line(self, line: bytes, number: int) -> None:
        """Take one line with care."""
        fields = line.split()
        if not fields:
            return
        if len(fields) <= self.dimension:
            had = max(len(fields) - 1, 0)
            self.source.refuse(f"has {had:,} numbers in line {number:,}, where most lines have {self.dimension:,}.")
        try:
            with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused as that
                values = np.array(fields[-self.dimension :], dtype=np.float32)
        except ValueError:
            self.source.refuse(
                f"has something else than {self.dimension:,} numbers behind the word in line {number:,}."
            )
        try:
            word = b" ".join(fields[: -self.dimension]).decode("utf-8")
        except UnicodeDecodeError:
            self.damaged.append(number)
            return
        self.spaced += " " in word
        self.words.append(word)
        self.values += values.tobytes()
        self.numbers.append(number)

    def read(self) -> VectorRows:
        """Return the rows, with notes on what was left out."""
        source, notes = self.source, []
        if len(self.damaged) > MOST_DAMAGED * (len(self.damaged) + len(self.words)):
            source.refuse(
                f"is not UTF-8: line {self.damaged[0]:,} and {len(self.damaged) - 1:,} others cannot be read. "
                "Convert it first (iconv -t UTF-8)."
            )
        if self.damaged:
            lines = f"line {self.damaged[0]:,}" + (f" and {len(self.damaged) - 1:,} others" if self.damaged[1:] else "")
            notes.append(f"{source}: {lines} left out, not UTF-8.")
        if self.spaced:
            notes.append(f"{source}: {self.spaced:,} words hold spaces; texts find them as multiword units.")
        values = np.frombuffer(self.values, dtype=np.float32).reshape(len(self.words), -1)
        return VectorRows(self.words, values, "line", self.numbers, tuple(notes))


def header_of(head: bytes) -> tuple[int, int] | None:
    """Return how many words and numbers a header guarantees; None where the first line is a word's.

    Two whole numbers are a header, unless the next line too is a word with one number and they say another dimension.
    """
    line, _, rest = head.partition(b"\n")
    match = HEADER.fullmatch(line)
    if match is None:
        return None
    count, dimension = int(match[1]), int(match[2])
    return None if dimension != 1 and has_numbers(rest, 1) else (count, dimension)


def has_numbers(text: bytes, dimension: int) -> bool:
    """Tell whether the first line of a text is a word with a given count of numbers."""
    fields = text.partition(b"\n")[0].split()
    try:
        return len(fields) == dimension + 1 and bool([float(field) for field in fields[1:]])
    except ValueError:
        return False


def read_lines(source: VectorSource, header: tuple[int, int] | None) -> VectorRows:
    """Read vectors as text."""
    lines = _LineReader(source)
    with open_source(source) as stream, progress.report_task("reading vectors"):
        number = 1
        if header is not None:
            stream.readline()
            number = 2
            if not 1 <= header[1] <= LARGEST_DIMENSION:
                source.refuse_size(header[0], header[1])
        for block in _blocks(stream, source):
            lines.take(block, number)
            number += block.count(b"\n")
            progress.report_step(f"reading vectors, {len(lines.words):,} words")
            if source.is_enough(len(lines.words)):
                break
    if header is not None:
        _check_header(source, header, lines)
    if not lines.words and not lines.damaged:
        source.refuse("holds no words: it is empty.")
    return lines.read()


def _check_header(source: VectorSource, header: tuple[int, int], lines: _LineReader) -> None:
    """Refuse a file that holds something else than its first line says."""
    words, dimension = header
    found = len(lines.words) + len(lines.damaged)
    if lines.dimension not in (0, dimension):
        source.refuse(f"says {dimension:,} numbers a word in line 1, and line 2 has {lines.dimension:,}.")
    if found > words or (found < words and not source.is_enough(len(lines.words))):
        source.refuse(
            f"says {words:,} words in line 1 and holds {found:,}{' or more' if found > words else ''}. It was not "
            "copied whole, or the line is wrong."
        )


def _blocks(stream: IO[bytes], source: VectorSource) -> Iterator[bytes]:
    """Yield whole lines, a few megabytes at a time."""
    left = b""
    while piece := stream.read(BLOCK):
        whole, end, rest = piece.rpartition(b"\n")
        if not end:
            left += rest
            if len(left) > LONGEST_LINE:
                source.refuse(f"has a line of over {LONGEST_LINE:,} bytes, and so holds no words with vectors as text.")
            continue
        block = left + whole + end
        yield block
        left = rest
    if left.strip():
        yield left
