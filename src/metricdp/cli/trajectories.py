"""The command about trips: fixes in, reports on a public clock out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from metricdp.cli import summaries, terminal
from metricdp.cli.options import (
    NO_LEDGER,
    Epsilon,
    LedgerOptions,
    Output,
    ReadingOptions,
    Verbose,
    option_group,
    redirect_prints,
)
from metricdp.errors import InvalidInput
from metricdp.specs import TripSpec


@option_group
class TripOptions(TripSpec):
    """How trips are released, and what a report may leak."""

    epsilon: Epsilon


@option_group
class TripTable(ReadingOptions):
    """The fixes of trips.

    Attributes:
        columns: The columns of trip, time, latitude and longitude, such as trip,t,lat,lon.
    """


DEFAULT_READING = TripTable()


def trajectories(
    source: str,
    /,
    *,
    way: Annotated[TripOptions, Parameter(name="*")],
    output: Output,
    id_: Annotated[str | None, Parameter(name="--id")] = None,
    charged: Annotated[LedgerOptions, Parameter(name="*")] = NO_LEDGER,
    table: Annotated[TripTable, Parameter(name="*")] = DEFAULT_READING,
    verbose: Verbose = False,
    overwrite: bool = False,
) -> int:
    """Release trips: knowing where a vehicle came from, by prediction, with home zones, or with hidden times.

    An example: `metricdp trajectories trips.parquet --places porto --epsilon 0.5/km -o out.parquet`

    With `--predict` a report is repeated (parrot) or goes on in a line (linear) as long as a private test says that it
    is still good, and fresh noise is drawn only where not: `metricdp trajectories trips.parquet --predict parrot
    --epsilon 2/km --total 40/km -o out.parquet`

    With `--zones` reports are coarse near home and precise elsewhere: `metricdp trajectories trips.parquet --places
    porto --zones home --centre-epsilon 1/km --epsilon 4/km -o out.parquet`

    With `--times` the times are hidden as well: `metricdp trajectories trips.parquet --times 0.1/min --epsilon 4/km -o
    out.parquet`

    Args:
        source: A table of fixes with the columns trip, t, lat and lon. t is in unix seconds or dates; `metricdp list
            formats` lists the formats.
        output: Where the reports go, in any format. The file appears when all reports are drawn.
        id_: The column that says whose trip it is, for the ledger and for homes; unless given every trip has a person
            of its own.
        verbose: Print everything that is known about the release.
        overwrite: Replace an output that is there.
    """
    from metricdp.mobility import release_trips
    from metricdp.specs import read_method
    from metricdp.tables import Disclosure, Job

    how, mechanism = read_method(way, force=table.force), way.mechanism
    if way.predict is None and charged.refused != "fail":
        raise InvalidInput(
            "--refused report goes with --predict, whose trips can end early; others fit or are refused."
        )
    if mechanism is not None:
        from metricdp.files import check_target

        check_target(mechanism, source=source, overwrite=overwrite)
    with charged.open_people(id=id_) as people, terminal.progress_bar(f"Releasing {Path(source).name}") as progress:
        summary = release_trips(
            source, how, columns=table.names, to=output, people=people,
            disclosure=Disclosure(force=table.force), reading=table.reading(),
            job=Job(overwrite=overwrite, progress=progress),
        )  # fmt: skip
    if mechanism is not None:
        from metricdp.artifacts import save

        save(summary.mechanism, mechanism)
    with redirect_prints(output):
        terminal.say(*(summary.lines() if verbose else summaries.trip_lines(summary)))
    return 0
