"""What is wanted of a study, and what its folder holds of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from metricdp.errors import InvalidInput
from metricdp_papers.common.pieces import PieceRecord
from metricdp_papers.common.rows import Row
from metricdp_papers.common.shapes import Piece, Study, StudyTable

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

    def finished(self, table: StudyTable, *, failed: bool = False) -> list[PieceRecord]:
        """Return the pieces of a table that gave rows, or those that failed."""
        mine = [piece.key for piece in self.pieces if table.number in piece.tables and piece.key in self.done]
        return [self.done[key] for key in mine if bool(self.done[key].failure) == failed]

    def failures(self, table: StudyTable) -> list[PieceRecord]:
        """Return the pieces of a table that failed."""
        return self.finished(table, failed=True)

    def command(self, table: StudyTable) -> str:
        """Return the line that runs a table."""
        return self.request.command(self.study, [table])

    def picture(self, table: StudyTable) -> Path | None:
        """Return the picture of a table, where there is one."""
        path = self.folder / f"{table.stem}.png"
        return path if path.is_file() else None

    def provenance(self, table: StudyTable) -> list[str]:
        """Return where the rows of a table come from: the command, the code, the machines and what did not run."""
        ran, missing, failures = self.finished(table), self.missing(table), self.failures(table)
        loads = [done.load for done in ran if done.load is not None]
        load = f"; load {min(loads):g} to {max(loads):g}" if loads else ""
        total = len(ran) + len(missing) + len(failures)
        lines = [
            f"command: {self.command(table)}",
            f"version: {', '.join(dict.fromkeys(done.version for done in ran)) or 'none'}",
            f"machine: {', '.join(dict.fromkeys(done.machine for done in ran)) or 'none'}{load}",
            f"pieces: {len(ran)} of {total}, {sum(done.seconds for done in ran):.0f} s",
        ]
        if missing:
            named = " ".join(piece.key for piece in missing[:NAMED])
            lines.append(f"missing: {len(missing)} pieces: {named}{' ...' if len(missing) > NAMED else ''}")
        return lines + [f"failed: {done.key}: {done.failure}" for done in failures]
