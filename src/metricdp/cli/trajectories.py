"""The command about trips: fixes in, reports on a public clock out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from metricdp.cli import tables, terminal
from metricdp.cli.choices import Epsilon, Output
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.spaces import FiniteSpace
from metricdp.units import parse_distance, parse_epsilon


def trajectories(
    source: str,
    /,
    *,
    places: str,
    epsilon: Epsilon,
    output: Output,
    count: int = 20,
    step: float = 60.0,
    weights: str = "0.5",
    snap: str | None = None,
    speed: float = 60.0,
    learn: float | None = None,
    history: str | None = None,
    table: Annotated[tables.Source, Parameter(name="*")] = tables.AS_IT_IS,
    mechanism: str | None = None,
    overwrite: tables.Overwrite = False,
) -> int:
    """Release trips with a mechanism that knows where a vehicle came from, one report for every tick of a clock.

    An example: `metricdp trajectories trips.parquet --places porto --epsilon 0.5/km -o out.parquet`

    Args:
        source: A table of fixes (`metricdp formats`) with the columns trip, t (unix seconds or dates), lat and lon.
        places: What may be reported: a file of points with lat and lon, or a road network (a city or a folder), of
            which `--count` crossings are taken that cover it.
        epsilon: How much one report may leak per distance, such as 0.5/km, for a place together with its history.
        output: Where the reports go, in any format; the file appears when everything went well.
        count: How many crossings of a road network become places.
        step: Seconds between two reports of a trip.
        weights: How much each step back counts in the distance, the latest first, with commas between.
        snap: How far a fix may lie from its place, such as 800m; as far as places lie apart unless given.
        speed: The fastest anyone drives, in km/h.
        learn: Count in this very table how places follow each other, at this budget for every whole trip.
        history: Count that in another file, which is taken as public.
        table: How the table is read; its columns are trip, t, lat and lon unless named.
        mechanism: Where to write the mechanism file as well.
        overwrite: Replace an output that is there.
    """
    from metricdp.tables.trajectories import COLUMNS, Journey, perturb_trajectories

    space = _places(places, count, yes_really=table.yes_really)
    journey = Journey(
        parse_epsilon(epsilon, space.unit),
        columns=table.names or COLUMNS,
        step_seconds=step,
        weights=_weights(weights),
        most_km=None if snap is None else parse_distance(snap, "km"),
        most_kmh=speed,
        learn=learn,
        history=history,
        reading=table.reading(),
        yes_really=table.yes_really,
    )
    if mechanism is not None:
        from metricdp.files import check_target

        check_target(mechanism, source=source, overwrite=overwrite)
    with terminal.progress_bar(f"Releasing {Path(source).name}") as progress:
        summary = perturb_trajectories(source, output, space, journey, progress=progress, overwrite=overwrite)
    if mechanism is not None:
        from metricdp.artifacts import save

        save(summary.mechanism, mechanism)
    print("\n".join(summary.lines()))
    return 0


def _places(source: str, count: int, *, yes_really: bool) -> FiniteSpace:
    """Return the points of a file, or crossings that cover a road network."""
    if Path(source).is_file():
        from metricdp.cli.reading import read_points

        found = read_points(source, yes_really=yes_really)
        if not found.geographic:
            raise InvalidInput(f"{source!r} must have the columns lat and lon: places are measured along the Earth.")
        return FiniteSpace(found.points, Haversine(), columns=("lat", "lon"))
    from metricdp.places import road_network, spread_places

    return spread_places(road_network(source), count)


def _weights(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--weights must be numbers with commas between, such as 0.5 or 1,0.5; got {text!r}."
        ) from None
