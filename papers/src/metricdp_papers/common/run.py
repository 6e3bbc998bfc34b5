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
from pathlib import Path
from types import FrameType

from metricdp.errors import CorruptFile, MetricdpError
from metricdp.files import make_folder
from metricdp_papers.common import page
from metricdp_papers.common.outcome import Outcome, StudyRequest
from metricdp_papers.common.pieces import PieceRecord, load_piece, save_piece
from metricdp_papers.common.rows import Row, average_repetitions, write_csv
from metricdp_papers.common.shapes import Piece, Study, StudyTable, rows_of
from metricdp_papers.common.workers import results


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
    asked = [piece for piece in pieces if numbers & set(piece.tables)]
    left = [piece for piece in asked if piece.key not in done or done[piece.key].failure]
    say(f"{study.name}: {len(asked)} pieces, {len(asked) - len(left)} of them done before, in {str(folder)!r}")
    for line in _plan_lines(wanted, left if request.minutes != 0 else ()):
        say(line)
    stopped = None
    try:
        _run(left, request, folder, done, say)
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


def _run(
    left: Sequence[Piece],
    request: StudyRequest,
    folder: Path,
    done: dict[str, PieceRecord],
    say: Callable[[str], None],
) -> None:
    """Run pieces and keep each as it ends, unless somebody asked for the end meanwhile.

    A piece that was interrupted is not whole, even where a solver answered with its best so far.
    """
    started = time.monotonic()
    until = None if request.minutes is None else started + 60.0 * request.minutes
    with _catch_stop() as stopped:
        for count, (piece, found) in enumerate(results(left, request.jobs, until=until), 1):
            if stopped.is_set():
                raise KeyboardInterrupt
            save_piece(folder, found)
            done[piece.key] = found
            ahead = (time.monotonic() - started) / count * (len(left) - count)
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
        write_csv(rows[table.number], folder / f"{table.stem}.csv", about=outcome.provenance(table))
        if study.picture is not None:
            try:
                study.picture(table, rows[table.number], folder / f"{table.stem}.png")
            except MetricdpError as error:  # without matplotlib there are tables still
                outcome.notes.append(f"No picture of {table.heading}: {error}")
    page.write(outcome)
    return outcome


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
                f"`{outcome.command(table)} --folder {outcome.folder}` runs them"
            )
        for done in outcome.failures(table):
            yield f"{table.heading}: {done.key} failed: {done.failure}"
    yield from outcome.notes
    yield f"The page of the study: {outcome.folder / 'index.html'}"


@contextmanager
def _catch_stop() -> Iterator[threading.Event]:
    """Note Ctrl-C, and answer SIGTERM in the same way: a machine that takes its time back leaves tables behind."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def answer(number: int, frame: FrameType | None) -> None:
        stopped.set()
        raise KeyboardInterrupt

    # Where Ctrl-C is ignored, as in the background of a shell, it stays so.
    numbers = [signal.SIGTERM, *([signal.SIGINT] if signal.getsignal(signal.SIGINT) != signal.SIG_IGN else [])]
    before = {number: signal.signal(number, answer) for number in numbers}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
