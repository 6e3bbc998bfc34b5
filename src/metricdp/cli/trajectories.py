"""The command about trips: fixes in, reports on a public clock out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from metricdp.cli import tables, terminal
from metricdp.cli.charging import UNCHARGED, Charged
from metricdp.cli.choices import Epsilon, Output
from metricdp.cli.journeys import NO_ZONES, NOT_HIDDEN, Hiding, Zoning
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
    zoning: Annotated[Zoning, Parameter(name="*")] = NO_ZONES,
    hiding: Annotated[Hiding, Parameter(name="*")] = NOT_HIDDEN,
    id_: Annotated[str | None, Parameter(name="--id")] = None,
    charged: Annotated[Charged, Parameter(name="*")] = UNCHARGED,
    table: Annotated[tables.Source, Parameter(name="*")] = tables.AS_IT_IS,
    mechanism: str | None = None,
    overwrite: tables.Overwrite = False,
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
        source: A table of fixes (`metricdp formats`) with the columns trip, t (unix seconds or dates), lat and lon.
        epsilon: How much one report may leak per distance, such as 0.5/km, for a place together with its history; with
            `--predict`, what a fresh report may leak; with `--zones` and `--times`, a place.
        output: Where the reports go, in any format; the file appears when everything went well.
        places: What may be reported: a file of points with lat and lon, or a road network (a city or a folder), of
            which `--count` crossings are taken that cover it. With `--predict` and `--times` anything may be.
        predict: How reports are predicted from those before, parrot or linear.
        total: How much a whole trip may leak per distance with `--predict`, such as 40/km; then it has no more reports.
        count: How many crossings of a road network become places.
        step: Seconds between two reports of a trip.
        weights: How much each step back counts in the distance, the latest first, with commas between.
        snap: How far a fix may lie from its place, such as 800m; as far as places lie apart unless given.
        speed: The fastest anyone drives, in km/h.
        learn: Count in this very table how places follow each other, at this budget for every whole trip.
        history: Count that in another file, which is taken as public.
        id_: The column that says whose trip it is, for the books and for homes; unless given every trip has a person
            of its own.
        table: How the table is read; its columns are trip, t, lat and lon unless named.
        mechanism: Where to write the mechanism file as well.
        overwrite: Replace an output that is there.
    """
    from metricdp.tables.trips import COLUMNS, Journey

    homes, hidden = zoning.chosen(yes_really=table.yes_really), hiding.chosen()
    learning = {"--learn": learn, "--history": history, "--mechanism": mechanism}
    if (predict is not None) + (homes is not None) + (hidden is not None) > 1:
        raise InvalidInput("--predict, --zones and --times are three ways to release trips: choose one.")
    if predict is not None:
        _refuse("--predict reports places anywhere", learning | {"--places": places, "--snap": snap})
    elif hidden is not None:
        _refuse("--times reports places anywhere", learning | {"--places": places, "--snap": snap})
    elif places is None:
        raise InvalidInput("--places says what may be reported, a file of points or a city; or give --predict parrot.")
    if homes is not None:
        _refuse("--zones knows nothing of the steps before", learning)
    if predict is None and total is not None:
        raise InvalidInput("--total is what a whole trip may leak with --predict; without it every tick has a report.")
    if predict is None and homes is None and hidden is None and (id_ is not None or charged.ledger is not None):
        raise InvalidInput(
            "--id and --ledger go with --predict, --zones and --times: a mechanism with history has none."
        )
    if predict is None and charged.refused != "fail":
        raise InvalidInput(
            "--refused report goes with --predict, whose trips can end early; others fit or are refused."
        )
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
        person=id_,
    )
    if mechanism is not None:
        from metricdp.files import check_target

        check_target(mechanism, source=source, overwrite=overwrite)
    summary: Any
    with charged.opened() as books, terminal.progress_bar(f"Releasing {Path(source).name}") as progress:
        if hidden is not None:
            from metricdp.tables.clocked import cloak_trajectories

            summary = cloak_trajectories(
                source, output, journey, hidden[0], clock_minutes=hidden[1], charging=books, progress=progress,
                overwrite=overwrite,
            )  # fmt: skip
        elif space is None:
            from metricdp.tables.predicted import predict_trajectories

            summary = predict_trajectories(
                source, output, journey, charging=books, progress=progress, overwrite=overwrite
            )
        elif homes is not None:
            from metricdp.tables.zoned import zone_trajectories

            summary = zone_trajectories(
                source, output, space, journey, homes, charging=books, progress=progress, overwrite=overwrite
            )
        else:
            from metricdp.tables.trajectories import perturb_trajectories

            summary = perturb_trajectories(source, output, space, journey, progress=progress, overwrite=overwrite)
    if mechanism is not None:
        from metricdp.artifacts import save

        save(summary.mechanism, mechanism)
    with tables.beside_output(output):
        terminal.say(*summary.lines())
    return 0


def _refuse(why: str, given: dict[str, Any]) -> None:
    """Refuse options that a way of release does not know."""
    if found := [name for name, value in given.items() if value is not None]:
        raise InvalidInput(f"{why}: {', '.join(found)} {'goes' if len(found) == 1 else 'go'} without it.")


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
