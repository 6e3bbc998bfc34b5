"""Stays, homes and zones: where a trace stood still, zones that are coarse near home, the attack on zones cut out.

Cutting a zone out of a trace hides nothing: the traces stop at its border, and the border gives its centre
(`cut_out`, `locate_centre`). Here a zone is a local scale of the metric: between places of one zone distances count
less, so the same epsilon tells them apart less. Every other step counts as before, the one across the border included:
scaling that one too would make the zone a shortcut between all places around it, and blur the whole map.

Where the zone lies is public, so its centre must be: a district, or a report of the home that some mechanism drew once,
and that was paid for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_codes, as_floats, as_positive, as_probabilities
from metricdp.auditing.leakage import normalised_rows
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.metrics import KM_PER_DEGREE, Haversine, ShortestPath
from metricdp.mobility.traces import Traces, Walks
from metricdp.places.elastic import path_space
from metricdp.spaces import FiniteSpace


@dataclass(frozen=True, eq=False)
class StayPoints:
    """Stays of many trips: the centre in degrees, when it began and ended, and how many fixes it has.

    They are as secret as the trace: release `centres` with a mechanism. Where every fix of a stay moves by at most d,
    its centre does too, so a report of epsilon guarantees epsilon d for two traces *with the same stays*. How many
    stays there are, and when, is not hidden by noise on their centres: a trace that lingers a little less has one
    report less, whatever the noise.
    """

    owner: Integers
    centres: Floats
    begin: Floats
    end: Floats
    fixes: Integers

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def seconds(self) -> Floats:
        """How long each stay lasted."""
        return self.end - self.begin


def stay_points(traces: Traces, *, radius_km: float = 0.2, least_seconds: float = 600.0) -> StayPoints:
    """Return every stay: a longest run of fixes within `radius_km` of its first one that lasts `least_seconds`.

    Runs are taken from the front; the centre is the mean of the fixes. A trip that was cut at a gap is one trip.

    References: Li, Zheng, Xie, Chen, Liu and Ma (2008).
    """
    near, least = as_positive(radius_km, "radius_km"), as_positive(least_seconds, "least_seconds")
    measure, rows = Haversine(), []
    for at, last in pairwise([0, *(np.flatnonzero(np.diff(traces.owner)) + 1).tolist(), len(traces)]):
        while at < last:
            away = measure(traces.coordinates[at:last], traces.coordinates[at])
            beyond = np.flatnonzero(away > near)
            end = at + int(beyond[0]) if beyond.size else last
            if traces.seconds[end - 1] - traces.seconds[at] >= least:
                rows.append((at, end))
                at = end
            else:
                at += 1
    spans = np.array(rows, dtype=np.int64).reshape(-1, 2)
    means = [traces.coordinates[start:end].mean(axis=0) for start, end in rows]
    return StayPoints(
        owner=traces.owner[spans[:, 0]],
        centres=np.array(means).reshape(-1, 2),
        begin=traces.seconds[spans[:, 0]],
        end=traces.seconds[spans[:, 1] - 1],
        fixes=spans[:, 1] - spans[:, 0],
    )


def home_of(stays: StayPoints, walks: Walks, places: FiniteSpace, trips: Integers) -> int:
    """Return the place at which the stays of some trips last longest; without a stay, where most of their steps are.

    It is as secret as the trips. Everybody has one, so that having one tells nothing. Two traces that are hardly apart
    may have homes that are far apart, where two places come close in time: a report of the home guarantees something
    for the distance between the homes, not for that between the traces.
    """
    mine = np.isin(stays.owner, trips)
    spent = np.zeros(len(places))
    if mine.any():
        np.add.at(spent, places.nearest(stays.centres[mine])[0], stays.seconds[mine])
    else:
        np.add.at(spent, walks.codes[np.isin(walks.owner, trips)], 1.0)
    return int(spent.argmax())


def cut_out(traces: Traces, centre: ArrayLike, *, radius_km: float) -> Traces:
    """Return the traces without the fixes near a centre, as fitness apps hide a home. It guarantees nothing.

    The reports outside are the true fixes, and where they stop is the border of the zone.
    """
    away = Haversine()(traces.coordinates, as_floats(centre, "centre"))
    return traces.select(away > as_positive(radius_km, "radius_km"))


def trip_ends(traces: Traces) -> Floats:
    """Return the first and the last fix of every trip: where traces begin and end for anyone who sees them."""
    _, first, fixes = np.unique(traces.trip, return_index=True, return_counts=True)
    return np.asarray(traces.coordinates[np.concatenate([first, first + fixes - 1])])


def locate_centre(ends: ArrayLike, *, radius_km: float | None = None) -> Floats:
    """Return the centre of the circle that passes nearest to where traces stop: the attack on zones that are cut out.

    Least squares of |end - centre| - radius, the radius known or found; latitude and longitude.
    """
    from scipy.optimize import least_squares

    places = as_floats(ends, "ends")
    if places.ndim != 2 or places.shape[1] != 2 or len(places) < 3:
        raise InvalidInput(f"`ends` must be three or more (latitude, longitude), got shape {places.shape}.")
    origin = places.mean(axis=0)
    per_degree = KM_PER_DEGREE * np.array([1.0, np.cos(np.radians(origin[0]))])
    plane = (places - origin) * per_degree
    # |p|^2 = 2 p c + (r^2 - |c|^2) is linear: a start, and the answer where the fit is exact.
    linear = np.linalg.lstsq(np.column_stack([2.0 * plane, np.ones(len(plane))]), (plane**2).sum(axis=1), rcond=None)[0]
    radius = float(np.sqrt(max(linear[2] + linear[:2] @ linear[:2], 1e-12)))

    def misses(circle: Floats) -> Floats:
        return np.asarray(np.linalg.norm(plane - circle[:2], axis=1) - (circle[2] if radius_km is None else radius_km))

    start = [*linear[:2], radius] if radius_km is None else linear[:2]
    centre = least_squares(misses, start, method="lm", xtol=1e-12).x[:2]
    return np.asarray(origin + centre / per_degree)


@dataclass(frozen=True)
class Visit:
    """What one report tells about being in a zone; distances are those of the places before they were scaled.

    `border` is the largest log-ratio of a report between a place inside and one outside that are nearest to each other
    across the border, at most epsilon times their distance; `across` the largest between any place inside and any
    outside. `prior` is the probability of being inside before a report, `least` and `most` the smallest and the largest
    after one, `guessed` the probability that the best guess of in or out is right, and `ignorant` what it was without a
    report. `error_inside` and `error_outside` are how far the best guess of the place lies off, inside and outside.
    """

    border: float
    border_distance: float
    across: float
    prior: float
    least: float
    most: float
    guessed: float
    ignorant: float
    error_inside: float
    error_outside: float
    unit: str = ""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"A report is at most {np.exp(self.border):.3g} times likelier on one side of the border than on the other "
            f"({self.border_distance:.3g}{unit} apart), and {np.exp(self.across):.3g} times for any two places in and "
            f"out. Who expects a visit to the zone with {self.prior:.0%} believes in it with {self.least:.0%} to "
            f"{self.most:.0%} after a report and guesses right in {self.guessed:.0%} of cases ({self.ignorant:.0%} "
            "without a report). "
            f"The best guess of the place is {self.error_inside:.3g}{unit} off inside and "
            f"{self.error_outside:.3g}{unit} outside."
        )


@dataclass(frozen=True, eq=False)
class Zones:
    """Places with zones: the shortest path of steps that count `scale` times d within a zone, and d elsewhere.

    `space` is for any builder: `mdp.optimal(mdp.Problem(zones.space, epsilon, loss=places.distances))`. `inside` says
    which places lie in a zone.

    Guarantee: of the mechanism, in that metric: a report tells two places of one zone apart by at most epsilon * scale
    * d, and any two by at most epsilon * d; less where the shortest way leads through a zone. On a road network it
    counts street by street: scaled where both ends of a street lie in the zone.
    """

    places: FiniteSpace
    space: FiniteSpace
    inside: Booleans
    scale: float

    def at_home(self, epsilon: float, visits: int, *, centre_epsilon: float = 0.0) -> float:
        """Return what all visits together leak per unit by which the home moves inside its zone.

        visits * epsilon * scale, and what the report of the home cost that the zone was drawn around, once.
        """
        if not (visits >= 0 and centre_epsilon >= 0):
            raise InvalidInput("`visits` and `centre_epsilon` must be at least 0.")
        return centre_epsilon + visits * as_positive(epsilon, "epsilon") * self.scale

    def visit(self, mechanism: MatrixMechanism, *, prior: ArrayLike | None = None) -> Visit:
        """Return what one report of a mechanism on `space` tells about being in a zone, exactly but for rounding."""
        if mechanism.inputs is not self.space:
            raise InvalidInput("`mechanism` must be made for these zones: a builder on `zones.space`.")
        if self.inside.all() or not self.inside.any():
            raise InvalidInput("every place lies in a zone, or none does: there is no border.")
        distribution, apart = normalised_rows(mechanism), self.places.distances
        count = len(distribution)
        weights = np.full(count, 1.0 / count) if prior is None else as_probabilities(prior, count)
        within, beyond = np.flatnonzero(self.inside), np.flatnonzero(~self.inside)
        if not (weights[within].sum() > 0 and weights[beyond].sum() > 0):
            raise InvalidInput("`prior` must allow for places inside and outside: otherwise a visit is no secret.")
        gaps = _gaps(distribution, within, beyond)
        steps = apart[np.ix_(within, beyond)]
        bordering = (steps <= steps.min(axis=1)[:, None]) & (steps <= steps.min(axis=0))
        at = np.unravel_index(int(np.where(bordering, gaps, -1.0).argmax()), gaps.shape)
        joint = weights[:, None] * distribution
        seen, probability = joint.sum(axis=0), joint[within].sum(axis=0)
        after = probability[seen > 0] / seen[seen > 0]
        guess = (joint.T @ apart).argmin(axis=1)
        errors = (distribution * apart[:, guess]).sum(axis=1)
        inside_before = float(weights[within].sum())
        return Visit(
            border=float(gaps[at]),
            border_distance=float(steps[at]),
            across=float(gaps.max()),
            prior=inside_before,
            least=float(after.min()),
            most=float(after.max()),
            guessed=float(np.maximum(probability, seen - probability).sum()),
            ignorant=max(inside_before, 1.0 - inside_before),
            error_inside=float(np.average(errors[within], weights=weights[within])),
            error_outside=float(np.average(errors[beyond], weights=weights[beyond])),
            unit=self.places.unit,
        )


def zones(places: FiniteSpace, centres: ArrayLike, *, radius: float, scale: float = 0.2) -> Zones:
    """Return the places with zones around public centres, in which distances count `scale` times.

    Everybody may know where the zones are: the mechanism says so. A centre that is the home itself gives it away; take
    a district, or a report of the home, `centre = mechanism.sample([home])`, whose epsilon is spent once.

    Args:
        places: The public places, in any metric.
        centres: The codes of the centres.
        radius: How far a zone reaches, in the distances of the places.
        scale: How much distances count inside, between 0 and 1.
    """
    codes = np.unique(as_codes(centres, len(places), "centres"))
    if not 0 < scale <= 1:
        raise InvalidInput(f"`scale` must lie between 0 and 1, 1 included, got {scale:g}.")
    if len(codes) == 0:
        raise InvalidInput("`centres` must name one place at least.")
    away = places.distances[:, codes]
    inside = np.asarray(away.min(axis=1) <= as_positive(radius, "radius"))
    zone = np.where(inside, away.argmin(axis=1), -1)  # that of the nearest centre
    return Zones(places, _scale_zone(places, zone, float(scale)), inside, float(scale))


def _scale_zone(places: FiniteSpace, zone: Integers, scale: float) -> FiniteSpace:
    """Return the places with the shortest paths of steps that are scaled within a zone."""
    streets = places.network if places.network is not None and len(places) == places.network.nodes else None
    if streets is None:
        first, second = np.triu_indices(len(places), 1)
        lengths = places.distances[first, second]
    else:
        (first, second), lengths = streets.edges.T, streets.lengths
    lengths = np.where((zone[first] == zone[second]) & (zone[first] >= 0), scale * lengths, lengths)
    if streets is None:
        return path_space(places, first, second, lengths, places.unit, "")
    metric = ShortestPath(streets.edges, lengths, streets.nodes, one_way=streets.one_way, unit=streets.unit)
    return FiniteSpace(places.points, metric, coordinates=places.coordinates, ground=places.ground)


def _gaps(distribution: Floats, within: Integers, beyond: Integers) -> Floats:
    """Return the largest |ln p(y | x) - ln p(y | x')| over reports, for x inside and x' outside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs, there = np.log(distribution), distribution > 0
        gaps = [np.abs(logs[x] - logs[beyond]).max(axis=1, initial=0.0, where=there[x] | there[beyond]) for x in within]
    return np.array(gaps)
