"""How a CSV file is written, found out from its beginning: separator, line ends, byte order mark, decimal commas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from metricdp.errors import InvalidInput
from metricdp.tables.options import Reading

HEAD_BYTES = 1 << 18
USUAL, RARE = (",", ";", "\t", "|"), ("~", "^", "\x1f", "\x01", ":", " ")
MARK = b"\xef\xbb\xbf"
WIDE_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
LINES = 200  # that the separator is looked for in
WITH_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?\s*")
WITH_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[0-9]{1,3}(,[0-9]{3})+\s*")
LONGEST = 100_000  # characters of a line that is looked at: the csv module takes no cell above 131,072
DECIMALS = {"comma": True, "point": False}


@dataclass(frozen=True)
class Dialect:
    """How the lines of a file are made; `commas` are the numbers of the columns with decimal commas."""

    delimiter: str
    line_end: str = "\n"
    marked: bool = False
    blank_lines: int = 0  # above the header
    commas: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()  # columns whose commas may be decimal or stand between thousands
    mixed: tuple[int, ...] = ()  # columns with decimal points in some rows and commas in others


def dialect_of(head: bytes, name: str, reading: Reading) -> Dialect:
    """Return how a file is written that begins so; `reading` says what a caller knows better."""
    if head[:2] in WIDE_MARKS:
        raise InvalidInput(f"{name!r} is {WIDE_MARKS[head[:2]]} text, as spreadsheets save it: save it as UTF-8.")
    marked = head.startswith(MARK)
    text = head.removeprefix(MARK).decode("utf-8", errors="replace")
    body = text.lstrip("\r\n")
    blank = text[: len(text) - len(body)].replace("\r\n", "\n").replace("\r", "\n").count("\n")
    lines = _records(body)
    delimiter = reading.separator or _separator(lines)
    end = "\r\n" if "\r\n" in body else "\r" if "\r" in body and "\n" not in body else "\n"
    short = [line for line in lines[1:] if len(line) < LONGEST]
    rows = list(csv.reader(io.StringIO("\n".join(short)), delimiter=delimiter)) if len(delimiter) == 1 else []
    if reading.decimal is not None:
        width = max((len(row) for row in rows), default=0)
        return Dialect(delimiter, end, marked, blank, tuple(range(width)) if DECIMALS[reading.decimal] else ())
    return Dialect(delimiter, end, marked, blank, *_decimals(rows, delimiter))


def _records(text: str) -> list[str]:
    """Return the first lines, those inside quotes joined; the last one may be cut and is left out if it is long."""
    found: list[str] = []
    whole = text.splitlines() if len(text) < HEAD_BYTES // 2 else text.splitlines()[:-1]
    held: list[str] = []
    marks = 0
    for line in whole:
        held.append(line)
        marks += line.count('"')
        if marks % 2 == 0:
            record = "\n".join(held)
            if record.strip():
                found.append(record)
            held, marks = [], 0
            if len(found) > LINES:
                break
    return found or whole[:1]


def _separator(lines: Sequence[str]) -> str:
    """Return the mark that cuts most lines into as many cells as the header has."""
    counts = {
        mark: [_bare(line).count(mark) for line in lines]
        for mark in (*USUAL, *RARE)
        if lines and mark in _bare(lines[0])
    }
    agree = {mark: sum(count == found[0] for count in found) / len(found) for mark, found in counts.items()}
    usual = [mark for mark in USUAL if mark in counts]
    for mark in usual[1:] if "," in usual else ():  # a row of decimal commas where the header belongs
        if agree[mark] == 1.0 and any(WITH_COMMA.fullmatch(cell) for line in lines[:20] for cell in line.split(mark)):
            return mark
    if usual:
        return max(usual, key=lambda mark: (round(agree[mark], 1), counts[mark][0], -USUAL.index(mark)))
    rare = [
        mark
        for mark in RARE
        if agree.get(mark) == 1.0
        and len(lines) > 1
        and (mark not in " :" or all(_some_number(line, mark) for line in lines[1:]))
    ]
    return max(rare, key=lambda mark: (counts[mark][0], -RARE.index(mark))) if rare else ","


def _bare(line: str) -> str:
    """Return a line without its quoted parts."""
    return "".join(line.split('"')[::2])


def _decimals(
    rows: Sequence[Sequence[str]], delimiter: str
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the columns with decimal commas, those where nobody can tell, and those with both marks."""
    commas, unclear, mixed = [], [], []
    for column in range(max((len(row) for row in rows), default=0)):
        cells = [row[column] for row in rows if column < len(row) and row[column].strip()]
        with_comma = [cell for cell in cells if WITH_COMMA.fullmatch(cell)]
        if not with_comma or not all(_numeric(cell) for cell in cells[:20]):
            continue
        if any(WITH_POINT.fullmatch(cell) for cell in cells):
            mixed.append(column)
        elif delimiter == "," and all(THOUSANDS.fullmatch(cell) for cell in with_comma):
            unclear.append(column)
        else:
            commas.append(column)
    return tuple(commas), tuple(unclear), tuple(mixed)


def _some_number(line: str, mark: str) -> bool:
    """Tell whether a mark that words have too cuts a line into cells of which one is a number."""
    return any(cell.strip() and _numeric(cell) for cell in line.split(mark))


def _numeric(cell: str) -> bool:
    return bool(re.fullmatch(r"[\s0-9+\-.,eE]*", cell))
