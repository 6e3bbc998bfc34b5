"""What a study is: tables as the paper numbers them, and pieces of work that fill them.

A piece is a function of a module and plain arguments. It computes the same rows in any process, on any machine and in
any order, so that a study can be cut short, continued and spread out without anybody noticing in its tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metricdp.errors import InvalidInput
from metricdp.registry import load_function
from metricdp_papers.common.rows import Row

KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+,=-]{0,199}")


@dataclass(frozen=True)
class StudyTable:
    """A table or figure of the paper.

    Attributes:
        number: As in the paper: "2", "III" or "figure 7". It names the files: `table_2.csv`, `figure_7.csv`.
        title: What it shows.
        reports: What the paper reports there, in a sentence or two.
        differs: What differs here, and why; empty where nothing does.
        takes: How long its pieces run, in words, where it is worth saying before.
    """

    number: str
    title: str
    reports: str = ""
    differs: str = ""
    takes: str = ""

    @property
    def stem(self) -> str:
        """The name of its files, without a suffix."""
        words = re.sub(r"[^a-z0-9]+", "_", self.number.lower()).strip("_")
        return f"table_{words}" if re.match(r"\d|[ivx]+$", words) else words

    @property
    def heading(self) -> str:
        """Number and title, as a heading."""
        name = f"Table {self.number}" if self.stem.startswith("table_") else self.number.capitalize()
        return f"{name}: {self.title}"


@dataclass(frozen=True)
class Piece:
    """One to five minutes of work at most: `function(*arguments)` returns flat rows.

    Attributes:
        key: A name for the piece that holds all its parameters: letters, digits and . _ + , = -
        table: The number of the table it fills. A piece that fills several names them all, and a row says under
            "table" where it belongs where that is not the first of them.
        function: A function of a module, which other processes import by name.
        arguments: What it is called with: numbers, texts, tuples and frozen dataclasses of these.
    """

    key: str
    table: str | tuple[str, ...]
    function: Callable[..., Sequence[Row]]
    arguments: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not KEY.fullmatch(self.key):
            raise InvalidInput(
                f"the key of a piece must be 1 to 200 letters, digits and . _ + , = -, got {self.key!r}."
            )

    @property
    def tables(self) -> tuple[str, ...]:
        """The numbers of the tables it fills."""
        return (self.table,) if isinstance(self.table, str) else self.table

    @property
    def call(self) -> str:
        """The function and its arguments in words; a finished piece with another call is run again."""
        values = ", ".join(repr(one) for one in self.arguments)
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__qualname__}({values})"


@dataclass(frozen=True)
class Study:
    """A paper's study: `metricdp reproduce NAME` runs it.

    Attributes:
        name: What people type.
        about: One line that says what it shows.
        tables: The tables and figures, in the paper's order.
        pieces: `pieces(full)` lists the work, the most valuable first: short, or at the published size.
        picture: `picture(table, rows, path)` draws a table to a PNG file, or leaves the path alone where there is
            nothing to draw.
        notes: What a reader should know about the whole: data, what cannot be repeated, and why.
        needs: The data sets of the full run, by the names of their folders under METRICDP_DATA.
        derived: `derived(rows)` returns more rows by the number of their table, made of the averaged rows of others:
            what is read off several pieces together. The pieces it is made of name its table too.
    """

    name: str
    about: str
    tables: tuple[StudyTable, ...]
    pieces: Callable[[bool], Iterable[Piece]]
    picture: Callable[[StudyTable, Sequence[Row], Path], None] | None = None
    notes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    derived: Callable[[Mapping[str, Sequence[Row]]], Mapping[str, Sequence[Row]]] | None = None

    def __post_init__(self) -> None:
        stems = [table.stem for table in self.tables]
        if not stems or len(set(stems)) < len(stems) or "" in stems:
            raise InvalidInput(
                f"the tables of the study {self.name!r} must be one or more with different numbers, got "
                f"{', '.join(repr(table.number) for table in self.tables) or 'none'}."
            )

    def select_tables(self, numbers: Sequence[str]) -> tuple[StudyTable, ...]:
        """Return the tables of these numbers ("2", "table 2", "figure_7"); all where none is named."""
        found = []
        for number in numbers:
            stem = StudyTable(number.strip().lower().removeprefix("table").strip(" _"), "").stem
            match = [table for table in self.tables if table.stem == stem]
            if not match:
                known = ", ".join(table.number for table in self.tables)
                raise InvalidInput(f"the study {self.name!r} has no table {number!r}: use one of {known}.")
            found += match
        return tuple(dict.fromkeys(found)) or self.tables

    def work(self, full: bool, tables: Sequence[StudyTable]) -> list[Piece]:
        """Return the pieces that fill the tables, in order; two with one key are an error."""
        known, numbers = {table.number for table in self.tables}, {table.number for table in tables}
        found: dict[str, Piece] = {}
        for piece in self.pieces(full):
            if piece.key in found:
                raise InvalidInput(f"two pieces of the study {self.name!r} have the key {piece.key!r}.")
            if strange := set(piece.tables) - known:
                raise InvalidInput(f"the piece {piece.key!r} fills {strange}, which {self.name!r} does not declare.")
            found[piece.key] = piece
        return [piece for piece in found.values() if numbers & set(piece.tables)]

    def whole(self) -> Study:
        """Return the study itself."""
        return self


@dataclass(frozen=True)
class DeferredStudy:
    """A study that is imported when somebody asks for it: `at` is "module:NAME" of its `Study`."""

    name: str
    about: str
    at: str

    def whole(self) -> Study:
        """Import the study."""
        found: Any = load_function(self.at)
        if not isinstance(found, Study) or found.name != self.name:
            raise InvalidInput(f"{self.at} must be the study {self.name!r}.")
        return found


def rows_of(piece: Piece, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Row]]:
    """Return the rows of a piece by the number of their table."""
    found: dict[str, list[Row]] = {number: [] for number in piece.tables}
    for row in rows:
        values = dict(row)
        number = values.pop("table", piece.tables[0]) if not isinstance(piece.table, str) else piece.table
        if number not in found:
            raise InvalidInput(
                f"a row of the piece {piece.key!r} belongs to {number!r}, which the piece does not fill."
            )
        found[str(number)].append(values)
    return found
