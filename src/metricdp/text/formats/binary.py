"""Vectors as word2vec writes them in binary: a header, then each word, a space and its floats."""

from __future__ import annotations

import numpy as np

from metricdp import progress
from metricdp.text.formats.base import BLOCK, LONGEST_WORD, VectorRows, VectorSource, open_source
from metricdp.text.formats.lines import has_numbers

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
