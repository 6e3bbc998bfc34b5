"""Trips with home zones, as tables: coarse near home, precise elsewhere, and what a visit to the border reveals."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from metricdp import wording
from metricdp.arrays import Floats, Integers, as_positive
from metricdp.design.exponential import exponential
from metricdp.design.optimal import optimal
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.mobility import Visit, Walks, Zones, clean, home_of, resample, snap, spacing_km, stay_points, zones
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.tables.charging import name_of
from metricdp.tables.options import Charging
from metricdp.tables.results import delivered
from metricdp.tables.trips import Fixes, Journey, locations, read_fixes, reports_like, tell, write_reports

MOST_PLACES = 400  # of which everybody's zone has a mechanism of its own


@dataclass(frozen=True, eq=False)
class HomeZones:
    """Where zones lie and how coarse they are.

    Either `centres` are public, latitude and longitude of districts say, and everybody has the same zones. Or the zone
    of a person lies around a report of their home, drawn at `centre_epsilon` per kilometre; the home is where their own
    trips stay longest, a stay being `stay_seconds` within `stay_km`.
    """

    radius_km: float
    scale: float = 0.2
    centres: Floats | None = None
    centre_epsilon: float | None = None
    stay_seconds: float = 600.0
    stay_km: float = 0.2

    def __post_init__(self) -> None:
        as_positive(self.radius_km, "radius_km")
        if (self.centres is None) == (self.centre_epsilon is None):
            raise InvalidInput(
                "a zone lies around public `centres`, or around a report of the home at `centre_epsilon`."
            )
        if self.centre_epsilon is not None:
            as_positive(self.centre_epsilon, "centre_epsilon")


@dataclass(frozen=True, eq=False)
class _Zone:
    """One zone that was used: the places with it, the mechanism on them, what a visit to it reveals."""

    zone: Zones
    mechanism: MatrixMechanism
    visit: Visit


@dataclass(frozen=True, eq=False)
class ZonedSummary:
    """What was done to a table of trips with home zones. It holds no centre: who reads it learns no place."""

    target: str
    walks: Walks
    persons: int
    visits: int  # reports of the person who has most
    places: int
    most_km: float
    apart: float  # how far apart the places can be that a fix could be put on
    epsilon: float
    homes: HomeZones
    loss: float
    lower_bound: float
    visit: Visit
    lost: int
    books: str = ""

    def lines(self) -> list[str]:
        """Return what was done, what is promised, what a visit to a border reveals and what stays unprotected."""
        per_trip = np.unique(self.walks.owner, return_counts=True)[1]
        most, rate, scale = int(per_trip.max()), self.epsilon, self.homes.scale
        centres = (
            wording.given_centres(len(self.homes.centres))
            if self.homes.centres is not None
            else wording.drawn_centres(
                self.homes.centre_epsilon or 0.0,
                (self.homes.centre_epsilon or 0.0) + self.visits * rate * scale,
                self.visits,
                "km",
                kept=bool(self.books),
            )
        )
        return [
            f"{self.target}: {len(self.walks):,} reports of {len(per_trip):,} trips of {self.persons:,} persons over "
            f"{self.places:,} places, coarse in a zone of {wording.distance(self.homes.radius_km, 'km', 'up')} and "
            "precise elsewhere.",
            wording.zoned_promise(rate, scale, rate * self.apart, self.most_km, "km"),
            wording.zoned_trip(rate, scale, most, "km"),
            centres,
            f"A visit to the border, with every place equally likely: {self.visit}",
            wording.zoned_loss(self.loss, self.lower_bound, "km"),
            *([self.books] if self.books else []),
            "Not protected: which trips there are, when they begin and end, how many reports they have"
            + (f", and that {self.lost:,} fixes lie far from every place (they have no report)." if self.lost else "."),
        ]


def zone_trajectories(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    places: FiniteSpace,
    journey: Journey,
    homes: HomeZones,
    *,
    charging: Charging | None = None,
    progress: Callable[[float], None] | None = None,
    overwrite: bool = False,
) -> ZonedSummary:
    """Release the trips of a table over public places, with distances inside zones counting less.

    With books the report of everybody's home is drawn and charged once and kept there; the reports of a table are
    charged when all of them are ready and not yet to be seen, epsilon each, and the slack of putting fixes on places.
    """
    origin, goal = locations(source, target, journey)
    if places.unit != "km":
        raise InvalidInput(f"zones are measured in kilometres, and these places in {places.unit or 'no unit'}.")
    if len(places) > MOST_PLACES:
        raise InvalidInput(
            f"every zone has an optimum of its own, over {MOST_PLACES} places at most, got {len(places):,}: take fewer "
            "with --count."
        )
    near = spacing_km(places) if journey.most_km is None else as_positive(journey.most_km, "most_km")
    with delivered(goal, origin, overwrite=overwrite) as partial:
        fixes = read_fixes(origin, journey)
        on_clock = resample(clean(fixes.traces, most_kmh=journey.most_kmh), step_seconds=journey.step_seconds)
        walks = snap(on_clock, places, most_km=near)
        trips = _trips_of(fixes, walks)
        tell(progress, 0.1)
        costs = {} if charging is None else _cost(charging, journey, near, places)
        if charging is not None:
            charging.ledger.granted(_rows(trips, walks), **costs)  # before anything is drawn or charged
        centres = _centres(fixes, walks, places, homes, journey, trips, charging)
        made: dict[tuple[int, ...], _Zone] = {}
        reports = np.empty(len(walks), dtype=np.int64)
        for number, (person, mine) in enumerate(trips.items()):
            around = centres[person]
            if around not in made:
                made[around] = _zone(places, around, homes, journey)
            rows = np.isin(walks.owner, mine)
            reports[rows] = made[around].mechanism.sample(walks.codes[rows])
            tell(progress, 0.1 + 0.8 * (number + 1) / len(trips))
        result = reports_like(fixes.table, walks.owner, walks.seconds, np.asarray(places.decode(reports)))
        write_reports(partial, goal, result)
        books = ""
        if charging is not None:  # all or nobody; the table appears afterwards
            rows_of, once = _rows(trips, walks), secrets.token_hex(16)
            charging.ledger.release_batch(rows_of, once, key="trajectories", draw=lambda granted: b"", **costs)
            books = f"{len(trips):,} persons were charged for {len(walks):,} reports."
            if homes.centre_epsilon is not None:
                books += " The report of everybody's home was charged on its own, once."
    tell(progress, 1.0)
    visits = max(_rows(trips, walks).values())
    worst = max(made.values(), key=lambda one: one.visit.across)
    dearest = max(made.values(), key=lambda one: one.mechanism.certificate.loss).mechanism.certificate
    return ZonedSummary(
        str(target), walks, len(trips), visits, len(places), near, places.charge(near), journey.epsilon, homes,
        dearest.loss, dearest.lower_bound, worst.visit, len(on_clock) - len(walks), books,
    )  # fmt: skip


def _trips_of(fixes: Fixes, walks: Walks) -> dict[Any, Integers]:
    """Return the trips of every person that have a report."""
    found: dict[Any, list[int]] = {}
    for trip in np.unique(walks.owner).tolist():
        found.setdefault(name_of(fixes.persons[trip]), []).append(trip)
    return {person: np.array(trips) for person, trips in found.items()}


def _centres(
    fixes: Fixes,
    walks: Walks,
    places: FiniteSpace,
    homes: HomeZones,
    journey: Journey,
    trips: dict[Any, Integers],
    charging: Charging | None,
) -> dict[Any, tuple[int, ...]]:
    """Return the centres of everybody's zones, as places: given ones, or a report of the home, drawn once."""
    if homes.centres is not None:
        codes = tuple(np.unique(places.nearest(homes.centres)[0]).tolist())
        return dict.fromkeys(trips, codes)
    stays = stay_points(
        clean(fixes.traces, most_kmh=journey.most_kmh), radius_km=homes.stay_km, least_seconds=homes.stay_seconds
    )
    rate = homes.centre_epsilon or 0.0
    mechanism = exponential(places, rate)
    # Another map, rate or size is another report of the home: it is charged again.
    asked = (places.coordinates.tolist(), rate, homes.radius_km, homes.stay_seconds, homes.stay_km)
    request = f"home zone {hashlib.sha256(repr(asked).encode()).hexdigest()}"
    found: dict[Any, tuple[int, ...]] = {}
    for person, mine in trips.items():
        home = home_of(stays, walks, places, mine)

        def draw(home: int = home) -> bytes:
            return str(int(mechanism.sample([home])[0])).encode()

        if charging is None:
            found[person] = (int(draw()),)
            continue
        receipt = charging.ledger.release(
            person, request, key="trajectories", metric=places.metric, epsilon=rate, dimension=places.dimension,
            purpose=charging.purpose, draw=draw,
        )  # fmt: skip
        found[person] = (int(receipt.report),)
    return found


def _zone(places: FiniteSpace, around: tuple[int, ...], homes: HomeZones, journey: Journey) -> _Zone:
    zone = zones(places, around, radius=homes.radius_km, scale=homes.scale)
    if zone.inside.all():
        raise InvalidInput(
            f"a zone of {homes.radius_km:g} km holds all {len(places):,} places, so nothing is precise anywhere: make "
            "it smaller, or take places of a larger area."
        )
    problem = Problem(zone.space, journey.epsilon, loss=places.distances)
    mechanism = cast(MatrixMechanism, optimal(problem, gap=journey.gap))  # so few places are a table
    return _Zone(zone, mechanism, zone.visit(mechanism))


def _rows(trips: dict[Any, Integers], walks: Walks) -> dict[Any, int]:
    """Return how many reports everybody has."""
    return {person: int(np.isin(walks.owner, mine).sum()) for person, mine in trips.items()}


def _cost(charging: Charging, journey: Journey, near: float, places: FiniteSpace) -> dict[str, Any]:
    """Return what one report costs, and in which account."""
    slack = journey.epsilon * places.charge(near)
    return {
        "metric": places.metric, "epsilon": journey.epsilon, "slack": slack, "dimension": places.dimension,
        "purpose": charging.purpose,
    }  # fmt: skip
