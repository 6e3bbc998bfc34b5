"""Endless rows, line by line, and their reports in the same way: CSV on pipes and in growing files."""

from __future__ import annotations

import csv
import datetime
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import check_target, existing_file, lock_target
from metricdp.mobility.streams import Stream
from metricdp.rendering import plural

COLUMNS = ("person", "t", "lat", "lon")
LONGEST = 1 << 16  # letters of one line
PAUSE = 0.2  # seconds between two looks at a file that grows


@dataclass(frozen=True)
class FeedRow:
    """One row: whose it is, when as it was written and in seconds, and where."""

    person: str
    written: str
    seconds: float
    place: tuple[float, float]


class BadRow(InvalidInput):
    """A line that is not a row; the message has the line number and the reason, never the content."""


def rows_of(lines: Iterable[str], columns: Sequence[str], separator: str = ",") -> Iterator[FeedRow | BadRow]:
    """Yield the rows of lines, or the reason why a line is not a row; the first line names the columns."""
    waiting = iter(lines)
    first = next(waiting, None)
    if first is None:
        raise InvalidInput("nothing came in: the first line must name the columns, such as person,t,lat,lon.")
    names = [name.strip() for name in _cells(first, separator)]
    if missing := [name for name in columns if names.count(name) != 1]:
        raise InvalidInput(
            f"the first line must name the columns {', '.join(columns)}, each once; it does not name "
            f"{', '.join(missing)}. Say what yours are called with --columns."
        )
    at = [names.index(name) for name in columns]
    for number, line in enumerate(waiting, start=2):
        if line.strip():
            yield _row(line, number, at, len(names), separator)


def _row(line: str, number: int, at: Sequence[int], width: int, separator: str) -> FeedRow | BadRow:
    if len(line) > LONGEST:
        return BadRow(f"line {number:,} is longer than {LONGEST:,} letters.")
    cells = _cells(line, separator)
    if len(cells) != width:
        return BadRow(f"line {number:,} has {len(cells)} cells instead of {width}.")
    person, when, *place = (cells[column].strip() for column in at)
    if not person:
        return BadRow(f"line {number:,} does not say whose it is.")
    seconds = seconds_of(when)
    if seconds is None:
        return BadRow(f"line {number:,} has no time: unix seconds, or a date such as 2026-11-16T12:00:00.")
    try:
        latitude, longitude = (float(value) for value in place)
    except ValueError:
        return BadRow(f"line {number:,} has no two numbers as its place.")
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):  # NaN is neither
        return BadRow(f"line {number:,} lies nowhere on the Earth: latitude first, then longitude, in degrees.")
    return FeedRow(person, when, seconds, (latitude, longitude))


def seconds_of(written: str) -> float | None:
    """Return a time in unix seconds, None for anything else; a date without a zone counts as UTC."""
    try:
        number = float(written)
        return number if math.isfinite(number) else None
    except ValueError:
        pass
    try:
        date = datetime.datetime.fromisoformat(written)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=datetime.UTC)).timestamp()


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
    except csv.Error:
        return []


def incoming_lines(file: IO[str]) -> Iterator[str]:
    """Yield lines as they arrive; one that is too long comes in pieces, none of which is a row."""
    while line := file.readline(LONGEST + 1):
        yield line


def follow_file(source: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the whole lines of a file, and forever those that are added to it."""
    path = existing_file(source, "stream")
    with path.open("rb") as file:
        kept = b""
        while True:
            read = file.readline(LONGEST)
            if not read:
                if path.stat().st_size < file.tell():
                    raise InvalidInput(f"{str(source)!r} became shorter: only lines that are added are followed.")
                time.sleep(PAUSE)
                continue
            kept += read
            if kept.endswith(b"\n") or len(kept) > LONGEST:
                yield kept.decode("utf-8", errors="replace")
                kept = b""


class ReportWriter:
    """Where reports go, a line each, handed over at once."""

    def __init__(self, file: IO[str], columns: Sequence[str], *, begun: bool, done: dict[str, float]) -> None:
        self._file, self.done = file, done
        if not begun:
            self._write([*columns, "fresh"])

    def add(self, row: FeedRow, latitude: float, longitude: float, *, fresh: bool) -> None:
        """Write one report; it is on its way when this returns."""
        self._write([row.person, row.written, repr(latitude), repr(longitude), str(fresh).lower()])

    def _write(self, cells: Sequence[Any]) -> None:
        csv.writer(self._file, lineterminator="\n").writerow(cells)
        self._file.flush()


def answer_rows(
    stream: Stream,
    rows: Iterable[FeedRow | BadRow],
    sink: ReportWriter,
    *,
    drop: bool = False,
    show: Callable[[float, str], object] | None = None,
) -> int:
    """Answer rows as they come; with `drop`, return how many lines were not rows or older than all that is known."""
    dropped = 0
    for row in rows:
        try:
            if isinstance(row, BadRow):
                raise row
            if row.seconds <= sink.done.get(row.person, -math.inf):
                continue  # its report is in the output already
            answer = stream.step(row.person, row.seconds, row.place)
        except InvalidInput:
            if not drop:
                raise
            dropped += 1
            continue
        if show is not None:
            show(0.0, plural(stream.count.rows, "row"))
        if answer is not None:
            sink.add(row, answer.latitude, answer.longitude, fresh=answer.fresh)
    return dropped


@contextmanager
def append_reports(
    target: str | os.PathLike[str],
    columns: Sequence[str],
    *,
    source: str | os.PathLike[str] | None,
    resume: bool,
    overwrite: bool,
) -> Iterator[ReportWriter]:
    """Yield the writer of a CSV file that grows; with `resume` it continues after its last whole line.

    Its `done` then holds the time of each person's last report there.
    """
    path = Path(target)
    if path.exists() and not (resume or overwrite):
        raise OutputProblem(
            f"cannot write {str(target)!r}: it is there already. Go on behind its last line with --resume, choose "
            "another name, or replace it with --overwrite."
        )
    check_target(path, source=source)
    with lock_target(path):
        done = _last_times(path, columns) if resume and path.exists() else None
        with path.open("a" if done is not None else "w", encoding="utf-8", newline="") as file:
            yield ReportWriter(file, columns, begun=done is not None, done=done or {})


def _last_times(path: Path, columns: Sequence[str]) -> dict[str, float] | None:
    """Cut off a line that a kill left unfinished, and return each person's last time; None for no lines."""
    done: dict[str, float] = {}
    whole = 0
    with path.open("rb+") as file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n"):
                break
            cells = _cells(line.decode("utf-8", errors="replace"), ",")
            if number == 0 and cells != [*columns, "fresh"]:
                raise InvalidInput(f"{str(path)!r} was not written by a stream with these columns: it is left alone.")
            seconds = seconds_of(cells[1]) if number and len(cells) == len(columns) + 1 else None
            if seconds is not None:
                done[cells[0]] = max(seconds, done.get(cells[0], -math.inf))
            whole += len(line)
        file.truncate(whole)
    return done if whole else None
