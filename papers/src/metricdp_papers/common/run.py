"""Running a study: what is missing runs, everything that is there becomes tables, pictures and a page.

A folder F of a study holds `pieces/KEY.json`, one file for every piece that ended, here or on another machine;
`table_2.csv` and `table_2.png`, made anew from the pieces at the end of every run; and `index.html`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from metricdp.errors import CorruptFile, InvalidInput, MetricdpError
from metricdp.files import make_folder
from metricdp_papers.common import page
from metricdp_papers.common.pieces import PieceRecord, load_piece, save_piece
from metricdp_papers.common.rows import Row, average_repetitions, write_csv
from metricdp_papers.common.shapes import Piece, Study, StudyTable, rows_of
from metricdp_papers.common.workers import results

NAMED = 20  # missing pieces that are named one by one


@dataclass(frozen=True)
class StudyRequest:
    """What is wanted of a study: which tables (all where none is named), at which size, where, and how.

    Attributes:
        tables: Numbers of tables; all where there is none.
        full: The published size instead of the short version.
        folder: Where everything goes; the name of the study where it is empty.
        jobs: How many processes; with one the pieces run in this process.
        minutes: No piece is begun after that many minutes; zero makes tables and page of what is there.
    """

    tables: tuple[str, ...] = ()
    full: bool = False
    folder: str | Path = ""
    jobs: int = 1
    minutes: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.jobs <= 1024:
            raise InvalidInput(f"`jobs` must be 1 to 1024 processes, got {self.jobs}.")
        if self.minutes is not None and not self.minutes >= 0:
            raise InvalidInput(f"`minutes` must be zero or more, got {self.minutes}.")

    def command(self, study: Study, tables: Sequence[StudyTable] | None = None) -> str:
        """Return the line that runs it, without what only says how."""
        wanted = self.tables if tables is None else [table.number for table in tables]
        words = ["metricdp reproduce", study.name]
        words += [f"--table {number!r}" if " " in number else f"--table {number}" for number in wanted]
        return " ".join([*words, *(["--full"] if self.full else [])])


@dataclass(frozen=True)
class Outcome:
    """What a folder holds of a study: rows by the number of their table, and what is not there."""

    study: Study
    request: StudyRequest
    folder: Path
    tables: tuple[StudyTable, ...]
    rows: dict[str, list[Row]]
    pieces: tuple[Piece, ...]
    done: dict[str, PieceRecord]
    notes: list[str] = field(default_factory=list)

    def missing(self, table: StudyTable) -> list[Piece]:
        """Return the pieces of a table that did not run."""
        return [piece for piece in self.pieces if table.number in piece.tables and piece.key not in self.done]

    def failures(self, table: StudyTable) -> list[PieceRecord]:
        """Return the pieces of a table that failed."""
        mine = (self.done.get(piece.key) for piece in self.pieces if table.number in piece.tables)
        return [done for done in mine if done is not None and done.failure]

    def finished(self, table: StudyTable) -> list[PieceRecord]:
        """Return the pieces of a table that gave rows."""
        mine = (self.done.get(piece.key) for piece in self.pieces if table.number in piece.tables)
        return [done for done in mine if done is not None and not done.failure]

    def picture(self, table: StudyTable) -> Path | None:
        """Return the picture of a table, where there is one."""
        path = self.folder / f"{table.stem}.png"
        return path if path.is_file() else None


def reproduce(study: Study, request: StudyRequest | None = None, *, say: Callable[[str], None] = print) -> Outcome:
    """Run what is missing of a study and write its tables, pictures and page.

    Every piece is kept as soon as it ends. An interruption (Ctrl-C, or being asked to end) loses the pieces that are
    at work, writes the tables of those that are done, and says how to go on; the same call continues.
    """
    request = request or StudyRequest()
    wanted = study.select_tables(request.tables)
    pieces = study.work(request.full, study.tables)
    folder = make_folder(request.folder or study.name)
    make_folder(folder / "pieces")
    done = _load_pieces(folder, pieces, say)
    numbers = {table.number for table in wanted}
    stop_request = [piece for piece in pieces if numbers & set(piece.tables)]
    left = [piece for piece in stop_request if piece.key not in done or done[piece.key].failure]
    say(
        f"{study.name}: {len(stop_request)} pieces, {len(stop_request) - len(left)} of them done before, in "
        f"{str(folder)!r}"
    )
    for line in _plan_lines(wanted, left if request.minutes != 0 else ()):
        say(line)
    stopped = None
    try:
        with _catch_stop() as end:
            _run(left, request, _PieceStore(folder, done, end), say)
    except KeyboardInterrupt:
        stopped = f"interrupted: what was finished is kept in {str(folder)!r}; the same command goes on from there"
        done |= _load_pieces(folder, pieces, say)  # a piece may have been kept and not yet been counted
    # Tables that were not asked for stay on the page where an earlier run has left pieces of them.
    kept_before = {number for piece in pieces if piece.key in done for number in piece.tables}
    tables = [table for table in study.tables if table in wanted or table.number in kept_before]
    outcome = write_results(study, request, folder, (tables, pieces), done)
    for line in summary(outcome):
        say(line)
    if stopped:
        raise KeyboardInterrupt(stopped)
    return outcome


def _plan_lines(tables: Sequence[StudyTable], left: Sequence[Piece]) -> Iterator[str]:
    """Yield what is going to run, table by table, and how long that takes where it is known."""
    for table in tables:
        count = sum(table.number in piece.tables for piece in left)
        if count and (len(tables) > 1 or table.takes):
            yield f"  {table.heading}: {count} {'piece' if count == 1 else 'pieces'}" + (
                f", {table.takes}" if table.takes else ""
            )


def _load_pieces(folder: Path, pieces: Sequence[Piece], say: Callable[[str], None]) -> dict[str, PieceRecord]:
    """Return the pieces that ran before; one that cannot be read is run again, and said."""
    done = {}
    for piece in pieces:
        try:
            found = load_piece(folder, piece)
        except CorruptFile as error:
            say(str(error))
            continue
        if found is not None:
            done[piece.key] = found
    return done


@dataclass
class _StopRequest:
    """Whether somebody asked for the end since the work began."""

    to_end: bool = False


@dataclass(frozen=True)
class _PieceStore:
    """Where pieces are kept as they end, unless somebody asked for the end meanwhile."""

    folder: Path
    done: dict[str, PieceRecord]
    stop_request: _StopRequest

    def save_piece(self, piece: Piece, found: PieceRecord) -> None:
        """Keep a piece; one that was interrupted is not whole, even where a solver answered with its best so far."""
        if self.stop_request.to_end:
            raise KeyboardInterrupt
        save_piece(self.folder, found)
        self.done[piece.key] = found


def _run(left: Sequence[Piece], request: StudyRequest, keeping: _PieceStore, say: Callable[[str], None]) -> None:
    started = time.monotonic()
    until = None if request.minutes is None else started + 60.0 * request.minutes
    for count, (piece, found) in enumerate(results(left, request.jobs, until=until), 1):
        keeping.save_piece(piece, found)
        spent = time.monotonic() - started
        ahead = spent / count * (len(left) - count)
        became = f"failed: {found.failure}" if found.failure else f"{len(found.rows)} rows"
        tail = f"; about {_duration(ahead)} left" if count < len(left) else ""
        say(f"[{count}/{len(left)}] {piece.key}: {became}, {found.seconds:.1f} s{tail}")


def write_results(
    study: Study,
    request: StudyRequest,
    folder: Path,
    work: tuple[Sequence[StudyTable], Sequence[Piece]],
    done: dict[str, PieceRecord],
) -> Outcome:
    """Write tables, pictures and the page of what is done."""
    tables, pieces = work
    rows: dict[str, list[Row]] = {table.number: [] for table in tables}
    for piece in pieces:
        found = done.get(piece.key)
        for number, more in rows_of(piece, found.rows if found else ()).items():
            if number in rows:
                rows[number] += more
    rows = {number: average_repetitions(lines) for number, lines in rows.items()}
    if study.derived is not None:
        for number, read_off in study.derived(rows).items():
            if number in rows:
                rows[number] += read_off
    outcome = Outcome(study, request, folder, tuple(tables), rows, tuple(pieces), done)
    for table in tables:
        if not rows[table.number]:
            continue
        write_csv(rows[table.number], folder / f"{table.stem}.csv", about=provenance(outcome, table))
        if study.picture is not None:
            try:
                study.picture(table, rows[table.number], folder / f"{table.stem}.png")
            except MetricdpError as error:  # without matplotlib there are tables still
                outcome.notes.append(f"No picture of {table.heading}: {error}")
    page.write(_page(outcome), folder)
    return outcome


def _page(outcome: Outcome) -> page.Page:
    sections = [
        page.Section(
            table.stem,
            table.heading,
            table.reports,
            table.differs,
            outcome.rows[table.number],
            outcome.picture(table),
            provenance(outcome, table),
            len(outcome.missing(table)),
            [f"{done.key}: {done.failure}" for done in outcome.failures(table)],
            outcome.request.command(outcome.study, [table]),
        )
        for table in outcome.tables
    ]
    notes = (*outcome.study.notes, *outcome.notes)
    study, request = outcome.study, outcome.request
    return page.Page(study.name, study.about, request.command(study), sections, notes)


def provenance(outcome: Outcome, table: StudyTable) -> list[str]:
    """Return where the rows of a table come from: the command, the code, the machines and what did not run."""
    ran, missing, failures = outcome.finished(table), outcome.missing(table), outcome.failures(table)
    loads = [done.load for done in ran if done.load is not None]
    load = f"; load {min(loads):g} to {max(loads):g}" if loads else ""
    total = len(ran) + len(missing) + len(failures)
    lines = [
        f"command: {outcome.request.command(outcome.study, [table])}",
        f"version: {', '.join(dict.fromkeys(done.version for done in ran)) or 'none'}",
        f"machine: {', '.join(dict.fromkeys(done.machine for done in ran)) or 'none'}{load}",
        f"pieces: {len(ran)} of {total}, {sum(done.seconds for done in ran):.0f} s",
    ]
    if missing:
        named = " ".join(piece.key for piece in missing[:NAMED])
        lines.append(f"missing: {len(missing)} pieces: {named}{' ...' if len(missing) > NAMED else ''}")
    return lines + [f"failed: {done.key}: {done.failure}" for done in failures]


def summary(outcome: Outcome) -> Iterator[str]:
    """Yield what was written and what is not there, in lines."""
    for table in outcome.tables:
        count = len(outcome.rows[table.number])
        if count:
            yield f"{table.heading}: {count} rows in {outcome.folder / table.stem!s}.csv"
            rows = outcome.rows[table.number]
            if not outcome.request.full and not any(row.get("published") is not None for row in rows):
                yield (
                    f"{table.heading}: the short version is on other data than the paper's, so no published number "
                    "stands beside ours; --full runs the published size"
                )
        if missing := outcome.missing(table):
            yield (
                f"{table.heading}: {len(missing)} pieces did not run; "
                f"`{outcome.request.command(outcome.study, [table])} --folder {outcome.folder}` runs them"
            )
        for done in outcome.failures(table):
            yield f"{table.heading}: {done.key} failed: {done.failure}"
    yield from outcome.notes
    yield f"The page of the study: {outcome.folder / 'index.html'}"


@contextmanager
def _catch_stop() -> Iterator[_StopRequest]:
    """Note Ctrl-C, and answer SIGTERM in the same way: a machine that takes its time back leaves tables behind."""
    stop_request = _StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop_request
        return

    def answer(number: int, frame: FrameType | None) -> None:
        stop_request.to_end = True
        raise KeyboardInterrupt

    # Where Ctrl-C is ignored, as in the background of a shell, it stays so.
    numbers = [signal.SIGTERM, *([signal.SIGINT] if signal.getsignal(signal.SIGINT) != signal.SIG_IGN else [])]
    before = {number: signal.signal(number, answer) for number in numbers}
    try:
        yield stop_request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
