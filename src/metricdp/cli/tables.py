"""What every command that reads a table lets people say about it: one group of options, one way in."""

from __future__ import annotations

import csv
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from metricdp.cli import terminal
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.metrics import Haversine, Lp, Metric

if TYPE_CHECKING:
    from metricdp.tables import Reading  # pyarrow is imported where something is read

STANDARD = "-"  # standard input or output
Overwrite = Annotated[bool, Parameter(name="--overwrite", negative="")]


@dataclass(frozen=True)
class Source:
    """How a table is read, where that cannot be told from the file.

    Attributes:
        columns: The columns of the coordinates with commas between, such as lat,lon (trip,t,lat,lon for trips). pos.lat
            is a field of a struct, pos[0] an item of a list, pos a whole list, struct or geometry, lat#2 the second of
            two columns lat, and e_* or e_0..e_299 are many columns at once.
        scale: What numbers are multiplied with, such as 1e-7 for degrees stored as whole numbers; reports are stored
            the same way.
        crs: The columns hold projected coordinates of this system, east first, such as EPSG:25832; reports too. The
            promise stays about kilometres on the Earth.
        separator: What stands between the cells of a CSV file; found out unless said.
        decimal: point or comma: how a CSV file writes its numbers; found out unless said.
        source_format: The format of the file, where its name does not say it; `metricdp formats` lists them.
        yes_really: The coordinates are right although they look exchanged, constant or far from all others.
    """

    columns: str | None = None
    scale: float = 1.0
    crs: str | None = None
    separator: str | None = None
    decimal: Literal["point", "comma"] | None = None
    source_format: Annotated[str | None, Parameter(name="--from")] = None
    yes_really: Annotated[bool, Parameter(name="--yes-really", negative="")] = False

    @property
    def names(self) -> list[str] | None:
        """The columns that were named; a name with a comma in it stands in double quotes."""
        if self.columns is None:
            return None
        try:
            found = [name.strip() for name in next(csv.reader([self.columns], skipinitialspace=True), [])]
        except csv.Error:  # a line break outside of quotes
            found = []
        if not found or not all(found):
            raise InvalidInput(
                f"--columns must name columns with commas between, such as lat,lon; got {self.columns!r}."
            )
        return found

    def reading(self, target_format: str | None = None) -> Reading:
        """Return what was said, for the opener of tables."""
        from metricdp.tables import Reading

        separator = None if self.separator is None else self.separator.replace("\\t", "\t")
        if separator is not None and len(separator.encode()) != 1:
            raise InvalidInput(f"--separator must be one character, such as ';' or '\\t', got {self.separator!r}.")
        if not (self.scale > 0.0 and self.scale < float("inf")):
            raise InvalidInput(f"--scale must be a number above 0, such as 1e-7, got {self.scale:g}.")
        return Reading(self.source_format, target_format, separator, self.decimal, self.crs, self.scale)


AS_IT_IS = Source()


def refuse_vectors(source: str, table: Source, metric: Metric) -> None:
    """Refuse a column of vectors where places on the Earth are meant, before an epsilon is asked for its unit."""
    if not isinstance(metric, Haversine) or table.names is None or source == STANDARD:
        return
    from metricdp.tables import WIDEST_PLACE

    try:
        width = dimension_in(source, table, Lp(2))
    except MetricdpError:  # whoever reads the table says what is wrong with it
        return
    if width is not None and width > WIDEST_PLACE:
        raise InvalidInput(
            f"{', '.join(table.names)} has {width} numbers a row, and a place on the Earth has two: name the metric of "
            "the vectors, such as --metric l2, or --metric angular for unit vectors. Epsilon then needs no unit."
        )


def check_places(source: str, table: Source, metric: Metric) -> None:
    """Refuse a table without any column of places, where they are to be found by their names."""
    if not isinstance(metric, Haversine) or table.names is not None or not Path(source).is_file():
        return
    from metricdp.spaces import Unbounded
    from metricdp.tables import LATITUDES, LONGITUDES, default_columns, open_table
    from metricdp.tables.formats import located

    with open_table(located(source, table.source_format), None, table.reading()) as opened:
        names = {name.partition("#")[0].strip().lower() for name in opened.schema.names}
        if opened.columns is None and not names & {*LATITUDES, *LONGITUDES}:
            default_columns(opened.schema.names, Unbounded(metric, 2))


def dimension_in(source: str, table: Source, metric: Metric) -> int | None:
    """Return how many numbers a secret of a table has, for noise of a metric that takes any; None where 2 are usual."""
    from metricdp.tables import open_table
    from metricdp.tables.formats import located
    from metricdp.tables.jobs import sources_of

    if isinstance(metric, Haversine):
        return None
    if source == STANDARD:
        return None if table.names is None else len(table.names)
    many = not Path(source).is_file() and (Path(source).is_dir() or any(mark in source for mark in "*?["))
    path = str(sources_of(source)[0]) if many else source
    with open_table(
        located(path, table.source_format), table.names, table.reading(), geographic=False, vectors=True
    ) as opened:
        return opened.layout.width


def beside_output(output: str) -> AbstractContextManager[object]:
    """Have what people read printed on the error stream, where the table itself goes to standard output."""
    return redirect_stdout(sys.stderr) if output == STANDARD else nullcontext()


def formats() -> int:
    """List the formats of tables that can be read and written, with what each keeps as it came.

    An example: `metricdp formats`
    """
    from metricdp.tables.formats import FORMATS

    rows = [
        {
            "format": one.name,
            "files": " ".join(one.suffixes) + (" (.gz .zst)" if one.packed else "") + ("::table" if one.tables else ""),
            "about": one.about,
            "needs": one.extra and f"metricdp[{one.extra}]",
        }
        for one in FORMATS
    ]
    terminal.say(*terminal.table_lines(["format", "files", "about", "needs"], rows))
    return 0
