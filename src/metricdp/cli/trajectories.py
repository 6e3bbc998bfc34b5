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
    epsilon: Epsilon,
    output: Output,
    places: str | None = None,
    predict: str | None = None,
    total: str | None = None,
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
    """Release trips, one report for every tick of a clock: knowing where a vehicle came from, or by prediction.

    An example: `metricdp trajectories trips.parquet --places porto --epsilon 0.5/km -o out.parquet`

    With `--predict` a report is repeated (parrot) or goes on in a line (linear) as long as a private test says that it
    is still good, and fresh noise is drawn only where not: `metricdp trajectories trips.parquet --predict parrot
    --epsilon 2/km --total 40/km -o out.parquet`

    Args:
        source: A table of fixes (`metricdp formats`) with the columns trip, t (unix seconds or dates), lat and lon.
        epsilon: How much one report may leak per distance, such as 0.5/km, for a place together with its history; with
            `--predict`, what a fresh report may leak.
        output: Where the reports go, in any format; the file appears when everything went well.
        places: What may be reported: a file of points with lat and lon, or a road network (a city or a folder), of
            which `--count` crossings are taken that cover it. With `--predict` anything may be.
        predict: How reports are predicted from those before, parrot or linear.
        total: How much a whole trip may leak per distance with `--predict`, such as 40/km; then it has no more reports.
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
    from metricdp.tables.trajectories import COLUMNS, Journey, perturb_trajectories, predict_trajectories

    if predict is not None and (places, snap, learn, history, mechanism) != (None, None, None, None, None):
        raise InvalidInput(
            "--predict reports places anywhere: --places, --snap, --learn, --history and --mechanism go without it."
        )
    if predict is None and total is not None:
        raise InvalidInput("--total is what a whole trip may leak with --predict; without it every tick has a report.")
    if predict is None and places is None:
        raise InvalidInput("--places says what may be reported, a file of points or a city; or give --predict parrot.")
    space = None if places is None else _places(places, count, yes_really=table.yes_really)
    unit = "km" if space is None else space.unit
    journey = Journey(
        parse_epsilon(epsilon, unit),
        columns=table.names or COLUMNS,
        step_seconds=step,
        weights=_weights(weights),
        most_km=None if snap is None else parse_distance(snap, "km"),
        most_kmh=speed,
        learn=learn,
        history=history,
        reading=table.reading(),
        yes_really=table.yes_really,
        predict=predict or "parrot",
        total=None if total is None else parse_epsilon(total, unit),
    )
    if space is None:
        with terminal.progress_bar(f"Releasing {Path(source).name}") as progress:
            predicted = predict_trajectories(source, output, journey, progress=progress, overwrite=overwrite)
        print("\n".join(predicted.lines()))
        return 0
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
