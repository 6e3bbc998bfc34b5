"""The command about trips: fixes in, reports on a public clock out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from metricdp.arrays import Floats
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
from metricdp.metrics import Haversine
from metricdp.spaces import FiniteSpace
from metricdp.units import parse_distance, parse_duration, parse_epsilon, parse_time_epsilon

HOME = "home"
STEPS = ("--learn", "--history", "--mechanism")
# What a way of release does not know, and why.
UNKNOWN = {
    "--predict": ("--predict reports places anywhere", (*STEPS, "--places", "--snap")),
    "--times": ("--times reports places anywhere", (*STEPS, "--places", "--snap")),
    "--zones": ("--zones knows nothing of the steps before", STEPS),
}


@dataclass(frozen=True)
class ZoneOptions:
    """Zones in which places are coarse.

    Attributes:
        zones: Report coarsely in zones: home, or a file of public centres. Elsewhere reports are precise, over
            --places. `home` puts a zone around a report of every person's home, where their trips stay longest; a file
            with lat and lon has public centres, such as those of districts.
        zone_radius: How far a zone reaches.
        zone_scale: How much distances count inside a zone, above 0 and at most 1.
        centre_epsilon: With --zones home: how much the report of the home may leak that its zone lies around, such as
            1/km; it is spent once.
        stay: How long somebody must be within 200 m for a stay.
    """

    zones: str | None = None
    zone_radius: str = "1km"
    zone_scale: float = 0.2
    centre_epsilon: str | None = None
    stay: str = "10min"

    def option_values(self, *, force: bool) -> dict[str, Any] | None:
        """Return what was asked for, as options of `Zoned`."""
        if self.zones is None:
            if (self.centre_epsilon, self.zone_radius, self.zone_scale, self.stay) != (None, "1km", 0.2, "10min"):
                raise InvalidInput(
                    "--zone-radius, --zone-scale, --centre-epsilon and --stay belong to --zones: give --zones home."
                )
            return None
        zone: dict[str, Any] = {"radius_km": parse_distance(self.zone_radius, "km"), "scale": self.zone_scale}
        if not 0 < self.zone_scale <= 1:
            raise InvalidInput(f"--zone-scale must lie above 0 and at most 1, got {self.zone_scale:g}.")
        if self.zones == HOME:
            if self.centre_epsilon is None:
                raise InvalidInput(
                    "a home zone lies around a report of the home, never around the home itself: say how much that "
                    "report may leak with --centre-epsilon, such as 1/km. It is spent once."
                )
            rate = parse_epsilon(self.centre_epsilon, "km")
            return zone | {"centre_epsilon": rate, "stay_seconds": parse_duration(self.stay)}
        if self.centre_epsilon is not None or self.stay != "10min":
            raise InvalidInput("--centre-epsilon and --stay belong to --zones home: given centres are public already.")
        return zone | {"centres": _points(self.zones, "they are the centres of the zones", force=force)}


@dataclass(frozen=True)
class HiddenTimeOptions:
    """Times that are hidden.

    Attributes:
        times: Hide times too: how much a fix may leak about its time, such as 0.1/min. --epsilon is then for places
            with Laplace noise. Every fix has one row, sorted by the reported times.
        clock: With --times: report times of the day on a clock, such as 15min, drawn around it by the optimum; the day
            stays public.
    """

    times: str | None = None
    clock: str | None = None

    def option_values(self) -> dict[str, Any] | None:
        """Return what was asked for, as options of `Cloaked`."""
        if self.times is None:
            if self.clock is not None:
                raise InvalidInput("--clock belongs to --times: say how much a time may leak, such as --times 0.1/min.")
            return None
        minutes = None if self.clock is None else parse_duration(self.clock) / 60.0
        return {"time_epsilon": parse_time_epsilon(self.times), "clock_minutes": minutes}


@option_group
class TripTable(ReadingOptions):
    """The fixes of trips.

    Attributes:
        columns: The columns of trip, time, latitude and longitude, such as trip,t,lat,lon.
    """


DEFAULT_READING = TripTable()
NO_ZONES = ZoneOptions()
NOT_HIDDEN = HiddenTimeOptions()


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
    zoning: Annotated[ZoneOptions, Parameter(name="*")] = NO_ZONES,
    hiding: Annotated[HiddenTimeOptions, Parameter(name="*")] = NOT_HIDDEN,
    id_: Annotated[str | None, Parameter(name="--id")] = None,
    charged: Annotated[LedgerOptions, Parameter(name="*")] = NO_LEDGER,
    table: Annotated[TripTable, Parameter(name="*")] = DEFAULT_READING,
    mechanism: str | None = None,
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
        epsilon: How much one report may leak per distance, such as 0.5/km. It is for a place together with its history;
            with `--predict` for a fresh report; with `--zones` and `--times` for a place.
        output: Where the reports go, in any format. The file appears when all reports are drawn.
        places: What may be reported: a file with lat and lon, or a city or folder of roads. Of roads `--count`
            crossings are taken that cover the network. With `--predict` and `--times` any position may be reported.
        predict: How reports are predicted from those before, parrot or linear.
        total: With `--predict`: how much a whole trip may leak per distance, such as 40/km. After that it has no
            more reports.
        count: How many crossings of a road network become places.
        step: Seconds between two reports of a trip.
        weights: How much each step back counts in the distance, the latest first, with commas between.
        snap: How far a fix may lie from its place, such as 800m; as far as places lie apart unless given.
        speed: The fastest anyone drives, in km/h.
        learn: Count in this very table how places follow each other, at this budget for every whole trip.
        history: Count that in another file, which is taken as public.
        id_: The column that says whose trip it is, for the ledger and for homes; unless given every trip has a person
            of its own.
        mechanism: Where to write the mechanism file as well.
        verbose: Print everything that is known about the release.
        overwrite: Replace an output that is there.
    """
    from metricdp.mobility import Cloaked, Contextual, Predictive, Zoned, release_trips
    from metricdp.tables import Disclosure, Job

    homes, hidden = zoning.option_values(force=table.force), hiding.option_values()
    ways = [
        name for name, given in (("--predict", predict), ("--zones", homes), ("--times", hidden)) if given is not None
    ]
    if len(ways) > 1:
        raise InvalidInput("--predict, --zones and --times are three ways to release trips: choose one.")
    way = "".join(ways)
    asked = {"--learn": learn, "--history": history, "--mechanism": mechanism, "--places": places, "--snap": snap}
    why, unknown = UNKNOWN.get(way, ("", ()))
    if found := [name for name in unknown if asked[name] is not None]:
        raise InvalidInput(f"{why}: {', '.join(found)} {'goes' if len(found) == 1 else 'go'} without it.")
    if places is None and way in ("", "--zones"):
        raise InvalidInput("--places says what may be reported, a file of points or a city; or give --predict parrot.")
    if way != "--predict" and total is not None:
        raise InvalidInput("--total is what a whole trip may leak with --predict; without it every tick has a report.")
    if way != "--predict" and charged.refused != "fail":
        raise InvalidInput(
            "--refused report goes with --predict, whose trips can end early; others fit or are refused."
        )
    space = None if places is None else _places(places, count, force=table.force)
    rate = parse_epsilon(epsilon, "km" if space is None else space.unit)
    clock: dict[str, Any] = {"step_seconds": step, "most_kmh": speed}
    near = None if snap is None else parse_distance(snap, "km")
    steps = _weights(weights)
    how: Any
    if predict is not None:
        how = Predictive(rate, None if total is None else parse_epsilon(total, "km"), predict, **clock)
    elif hidden is not None:
        how = Cloaked(rate, most_kmh=speed, **hidden)
    elif space is not None and homes is not None:
        how = Zoned(space, rate, most_km=near, **homes, **clock)
    elif space is not None:
        how = Contextual(space, rate, weights=steps, most_km=near, learn=learn, history=history, **clock)
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


def _places(source: str, count: int, *, force: bool) -> FiniteSpace:
    """Return the points of a file, or crossings that cover a road network."""
    if Path(source).is_file():
        points = _points(source, "places are measured along the Earth", force=force)
        return FiniteSpace(points, Haversine(), columns=("lat", "lon"))
    from metricdp.places import road_network, spread_places

    return spread_places(road_network(source), count)


def _points(source: str, why: str, *, force: bool) -> Floats:
    """Return the latitudes and longitudes of a file."""
    from metricdp.tables.points import read_points

    found = read_points(source, force=force)
    if not found.geographic:
        raise InvalidInput(f"{source!r} must have the columns lat and lon: {why}.")
    return found.points


def _weights(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"--weights must be numbers with commas between, such as 0.5 or 1,0.5; got {text!r}."
        ) from None
