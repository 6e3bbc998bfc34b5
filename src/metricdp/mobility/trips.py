"""One function that releases trips of a table: with their history, by prediction, with home zones, with hidden times.

`release_trips` reads the fixes, opens the ledger and puts the table in its place. How trips are released is a record of
options, whose `release` draws the reports.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias, cast, get_args

from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.mobility.budgets import Absorption, Distribution
from metricdp.mobility.fixes import COLUMNS, FixesTable, frame_like, write_reports
from metricdp.mobility.release_methods import Cloaked, Contextual, Predictive, TripRelease, TripRequest, Zoned
from metricdp.mobility.runs import TraceRun
from metricdp.mobility.streams import release_stream
from metricdp.rendering import file_name
from metricdp.tables import Disclosure, Job, People, Reading
from metricdp.tables.charging import open_charging
from metricdp.tables.formats import locate_table, target_location
from metricdp.tables.options import WORDS, call_of
from metricdp.tables.plan import PersonLimits
from metricdp.tables.results import open_target

How: TypeAlias = Contextual | Predictive | Zoned | Cloaked | Distribution | Absorption
OF_FRAMES = {"id", "ledger", "purpose", "refused", "force", "name", "progress"}
OF_FILES = OF_FRAMES | {"format", "target_format", "separator", "decimal", "crs", "scale", "block_bytes", "overwrite"}


@dataclass(frozen=True, eq=False)
class TripSummary:
    """The result of a release of a file: its guarantee and what is not protected. It holds no secret place.

    Attributes:
        source: The file that was read.
        target: The file that was written.
        how: The options.
        reports: How many rows were written.
        lost: How many rows or ticks have no report.
        runs: What each trip released, where trips are predicted.
        mechanism: The mechanism, if all trips have the same one.
        sentences: What `lines` returns.
    """

    source: str
    target: str
    how: How
    reports: int
    lost: int
    runs: tuple[TraceRun, ...]
    mechanism: MatrixMechanism | None
    sentences: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain values for JSON; `metricdp.schema.json` describes every field."""
        return {
            "format": "metricdp.trips",
            "version": 1,
            "metricdp": version("metricdp"),
            "source": file_name(self.source),
            "target": file_name(self.target),
            "method": type(self.how).__name__,
            "reports": self.reports,
            "lost": self.lost,
            "guarantee": None if self.mechanism is None else self.mechanism.guarantee.to_dict(),
            "sentences": self.lines(),
        }

    def lines(self) -> list[str]:
        """Return what was done, what is guaranteed, what it costs and what stays unprotected, one sentence a line."""
        return list(self.sentences)


def release_trips(
    fixes: Any,
    how: How,
    *,
    columns: Sequence[str] | None = None,
    to: str | os.PathLike[str] | None = None,
    people: People | None = None,
    disclosure: Disclosure | None = None,
    reading: Reading | None = None,
    job: Job | None = None,
) -> Any:
    """Release the trips of a table: one row for every report, with trip, time, latitude and longitude.

    A file is written to `to`, which appears when everything went well, and a `TripSummary` says what was done. A data
    frame (pandas, Polars, Arrow) comes back as one of the same type; what would be said is logged by "metricdp".

    An example: `release_trips("trips.parquet", Predictive(2.0, total=40.0), to="reports.parquet")`

    Args:
        fixes: A file of fixes in any of the formats that `metricdp list formats` lists, or a data frame.
        how: How trips are released: `Contextual`, `Predictive`, `Zoned` or `Cloaked`. With `Distribution` or
            `Absorption` rows are the steps of a `Stream`, and any window of them has a total.
        columns: Trip, time (unix seconds or dates), latitude and longitude, or trip, time and a geometry; trip, t, lat
            and lon unless named, and person in place of trip for streams.
        to: Where the reports of a file are written, in any format.
        people: Whose trips they are (`id`; without it every trip has a person of its own), and which `ledger` is
            charged for them.
        disclosure: With `force` coordinates are right although they look wrong.
        reading: How a file is read.
        job: `overwrite`, `progress`, and the `name` of a stream.
    """
    records = {"people": people, "disclosure": disclosure, "reading": reading, "job": job}
    call = call_of(cast(Any, how), columns, to, None, records, {})
    if not isinstance(how, How):
        names = ", ".join(kind.__name__ for kind in get_args(How))
        raise InvalidInput(f"`how` must be {names} with its options, got {type(how).__name__}.")
    from_file, what = isinstance(fixes, str | os.PathLike), f"a {type(fixes).__name__}"
    call.refuse((word for word in WORDS if word not in OF_FILES), "{word} is not an option of `release_trips`.")
    if not from_file:
        call.refuse(
            (word for word in WORDS if word not in OF_FRAMES), f"{{word}} is for files, and {what} is not a file."
        )
        if to is not None:
            raise InvalidInput(f"`to` is for files; {what} comes back in memory.")
    if isinstance(how, Contextual):
        call.refuse(
            ["id", "ledger"],
            "--id and --ledger go with --predict, --zones and --times: a mechanism with history has none.",
        )
    stream = isinstance(how, Distribution | Absorption)
    if not stream:
        call.refuse(["name"], "{word} is for streams: a release of trips has none.")
    elif columns is not None:
        call.refuse(["id"], "{word} is the first of `columns` where rows are a stream: name it there.")
    whose = call.people.id
    usual = (whose or "person", *COLUMNS[1:]) if stream else COLUMNS
    table = FixesTable(columns or usual, None if stream else whose, call.reading, call.disclosure)

    def release(source: Any) -> TripRelease:
        read = table.read(source)
        if isinstance(how, Distribution | Absorption):
            return release_stream(request, how, read)
        return how.release(request, read)

    with open_charging(call, PersonLimits(whose or table.columns[0])) as charging:
        if charging is not None and charging.refused != "fail" and isinstance(how, Zoned | Cloaked):
            raise InvalidInput(
                "`refused` is for predicted trips, which can end early, and for streams; others fit or are refused."
            )
        request = TripRequest(table, call.job, charging)
        if not from_file:
            made = release(fixes)
            made.charge()
            for line in made.lines:
                logging.getLogger("metricdp").info("%s", line)
            return frame_like(fixes, made.table)
        if to is None:
            raise InvalidInput('`to` must name the file for the reports, such as to="reports.parquet".')
        origin, goal = locate_table(fixes, call.reading.format), target_location(to, call.reading.target_format)
        with open_target(goal, origin, overwrite=call.job.overwrite) as partial:
            made = release(origin)
            write_reports(partial, goal, made.table)
            made.charge()
    request.report_progress(1.0)
    first, *more = made.lines
    lines = (first if stream else f"{to}: {first}", *more)
    return TripSummary(str(fixes), str(to), how, made.table.num_rows, made.lost, made.runs, made.mechanism, lines)
