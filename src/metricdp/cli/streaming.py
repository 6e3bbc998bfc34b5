"""The command about streams without end: a row in, a report out, and a ledger that knows how far everybody is."""

from __future__ import annotations

import io
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from metricdp.cli import terminal
from metricdp.cli.options import (
    STANDARD,
    Input,
    LedgerOptions,
    Output,
    ReadingOptions,
    option_group,
    redirect_prints,
)
from metricdp.errors import InvalidInput
from metricdp.files import is_server
from metricdp.rendering import plural
from metricdp.tables.options import Charging
from metricdp.units import parse_duration, parse_epsilon

if TYPE_CHECKING:
    from metricdp.mobility import Stream
    from metricdp.mobility.feeds import ReportWriter


@option_group
class StreamLedger(LedgerOptions):
    """The ledger of a stream.

    Attributes:
        ledger: The ledger, budget.db or the address of a server (`metricdp budget`). It charges everybody before their
            report appears. A file that is not there yet is begun with --policy.
    """


@option_group
class StreamTable(ReadingOptions):
    """The rows of a stream.

    Attributes:
        columns: The columns of person, time, latitude and longitude, such as user,when,lat,lon.
        separator: The character between the cells of a CSV file. Lines have a comma unless given; in tables it is
            found out.
    """


NO_LEDGER, DEFAULT_READING = StreamLedger(), StreamTable()


def stream(
    source: Input,
    /,
    *,
    window: int,
    total: str,
    output: Output = STANDARD,
    budget: Literal["distribution", "absorption"] = "distribution",
    name: str = "stream",
    policy: str | None = None,
    every: str | None = None,
    follow: bool = False,
    resume: bool = False,
    on_error: Literal["fail", "drop"] = "fail",
    charged: Annotated[StreamLedger, Parameter(name="*")] = NO_LEDGER,
    table: Annotated[StreamTable, Parameter(name="*")] = DEFAULT_READING,
    overwrite: bool = False,
) -> int:
    """Release a stream without end: a report for every row, and any window of rows costs a person at most a total.

    An example: `app | metricdp stream - --window 60 --total 20/km --ledger budget.db --policy '960/km per day'`

    A CSV file that grows: `metricdp stream fixes.csv --follow --window 60 --total 20/km --ledger budget.db -o out.csv`

    A table so far, of any format: `metricdp stream fixes.parquet --window 60 --total 20/km --ledger budget.db -o
    out.parquet`. Run it again when the table has grown, with --overwrite: known rows are not charged again.

    Args:
        source: Rows with the columns person, t, lat and lon: a table, or - for lines of CSV. t is in unix seconds or
            dates; `metricdp list formats` lists the formats of tables.
        window: How many consecutive rows of one person the guarantee is about.
        total: What they may leak together per distance, such as 20/km.
        output: Where the reports go, - for standard output. Lines appear at once, a table when it is complete.
        budget: Who gets the budget of a window: distribution or absorption. distribution gives a fresh report half of
            what its window has left, absorption the shares of the rows that were skipped before it.
        name: The name of the stream in the ledger. Another name is another stream, with a cost of its own.
        policy: What a new ledger allows a person, such as '960/km per day'.
        every: How often a person has a row, such as 60s, to print what a day costs at most.
        follow: Continue when a CSV file grows, until Ctrl-C.
        resume: Continue behind the last line of an output that is there.
        on_error: What becomes of lines that are no rows: fail or drop.
        overwrite: Replace an output that is there.
    """
    from metricdp.mobility import Absorption, Distribution, Stream, release_trips
    from metricdp.mobility.streams import daily_cost
    from metricdp.tables import Disclosure, Job

    if charged.ledger is None:
        raise InvalidInput(
            "a stream needs a ledger, which knows how far every person is: name it with --ledger budget.db, "
            "and what it allows with --policy where there is none yet."
        )
    live = source == STANDARD or follow
    if not live and resume:
        raise InvalidInput(
            "--resume is for lines that come in; a table is run again with --overwrite, and the ledger answers."
        )
    if follow and source != STANDARD and Path(source).suffix.lower() not in (".csv", ".tsv", ".txt"):
        raise InvalidInput(
            "--follow reads lines that are added to a .csv file; other tables are run again when they have grown."
        )
    rate = parse_epsilon(total, "km")
    chosen = Distribution(window, rate) if budget == "distribution" else Absorption(window, rate)
    _begin(charged, policy)
    code = 0
    with charged.open_people() as people:
        if live:
            assert isinstance(people.ledger, Charging)  # it was named
            flow = Stream(people.ledger, chosen, name=name)
            flow.hold()
            try:
                _lines(flow, source, output, table, on_error=on_error, resume=resume, overwrite=overwrite)
            except KeyboardInterrupt:
                code = 130
            said = flow.lines()
        else:
            with terminal.progress_bar(f"Releasing {Path(source).name}") as progress:
                said = release_trips(
                    source, chosen, columns=table.names, to=output, people=people,
                    disclosure=Disclosure(force=table.force), reading=table.reading(),
                    job=Job(name=name, overwrite=overwrite, progress=progress),
                ).lines()  # fmt: skip
    if every is not None:
        said.insert(-1, daily_cost(chosen, parse_duration(every)))
    with redirect_prints(output):
        terminal.say(*said)
    return code


def _begin(charged: LedgerOptions, policy: str | None) -> None:
    """Make a ledger where there is none yet."""
    place = charged.ledger or ""
    if is_server(place) or Path(place).exists():
        return
    if policy is None:
        raise InvalidInput(
            f"there is no ledger {place!r} yet: say what it allows a person, such as --policy '960/km per day'."
        )
    from metricdp.ledger import Ledger

    Ledger.open(place, policy=policy, key_file=charged.key_file, head_file=charged.head_file).close()


def _lines(
    flow: Stream, source: str, output: str, table: ReadingOptions, *, on_error: str, resume: bool, overwrite: bool
) -> None:
    """Answer lines as they come."""
    from metricdp.mobility.feeds import (
        COLUMNS,
        ReportWriter,
        answer_rows,
        append_reports,
        follow_file,
        incoming_lines,
        rows_of,
    )

    if (table.scale, table.crs, table.decimal, table.format) != (1.0, None, None, None):
        raise InvalidInput("lines hold degrees as they are: --scale, --crs, --decimal and --from are for tables.")
    columns = table.names or list(COLUMNS)
    if len(columns) != len(COLUMNS):
        raise InvalidInput(f"--columns must name four, {', '.join(COLUMNS)}, got {', '.join(columns)}.")
    separator = (table.separator or ",").replace("\\t", "\t")
    if len(separator) != 1:
        raise InvalidInput(f"--separator must be one character, such as ';' or '\\t', got {table.separator!r}.")
    with ExitStack() as held:
        read = None if source == STANDARD else source
        if output == STANDARD:
            sink: ReportWriter = ReportWriter(sys.stdout, columns, begun=resume, done={})
        else:
            sink = held.enter_context(append_reports(output, columns, source=read, resume=resume, overwrite=overwrite))
        show = held.enter_context(terminal.steps_bar("Stream")) if output != STANDARD else None
        if source == STANDARD and isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")  # what is no text is no row
        rows = rows_of(incoming_lines(sys.stdin) if source == STANDARD else follow_file(source), columns, separator)
        dropped = answer_rows(flow, rows, sink, drop=on_error == "drop", show=show)
    if dropped:
        terminal.note(f"without a report, since no row or older than all that is known: {plural(dropped, 'line')}.")
