"""Stay points, home zones, cut-out zones and cloaked times, against brute force and against attacks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mobility import Traces, cloak_traces, cut_out, locate_centre, stay_points, trip_ends, zones

HOME = np.array([41.15, -8.61])
KM = np.array([1 / 111.195, 1 / (111.195 * math.cos(math.radians(41.15)))])  # degrees of a kilometre at home


def traces_of(*trips, step=60.0):
    """Trips given in kilometres north and east of home."""
    owner = np.concatenate([np.full(len(trip), number) for number, trip in enumerate(trips)])
    seconds = np.concatenate([step * np.arange(len(trip)) for trip in trips])
    return Traces(owner, seconds, HOME + np.concatenate(trips) * KM, owner)


def test_stays_are_found_by_hand():
    still = np.zeros((12, 2)) + [0.05, 0.0] * (np.arange(12) % 2)[:, None]
    trip = np.concatenate([[[5.0, 0], [4.0, 0], [2.0, 0]], still, [[1.0, 1], [2.0, 2]], np.full((4, 2), 3.0)])
    found = stay_points(traces_of(trip, trip[:3]), radius_km=0.2, least_seconds=600)
    assert len(found) == 1
    assert found.fixes.tolist() == [12]
    assert found.seconds.tolist() == [660]
    assert np.allclose(found.centres, HOME + [0.025, 0.0] * KM, atol=1e-6)
    assert len(stay_points(traces_of(trip), radius_km=0.2, least_seconds=120)) == 2
    assert len(stay_points(traces_of(trip[:3]))) == 0


def test_noise_on_the_centres_of_stays_does_not_hide_how_many_there_are():
    stay, pause = np.zeros((11, 2)), np.zeros((10, 2))
    longer, shorter = (
        traces_of(np.concatenate([stay, [[3.0, 0]]])),
        traces_of(np.concatenate([pause, [[3.0, 0], [3.0, 0]]])),
    )
    assert (len(stay_points(longer)), len(stay_points(shorter))) == (1, 0)  # one fix moved: a report less, for certain


# --- zones ------------------------------------------------------------------------------------------------------------

GRID = mdp.FiniteSpace(np.array(list(itertools.product(range(5), range(5))), float), mdp.Lp(2, unit="km"))
ZONE = zones(GRID, [12], radius=1.1, scale=0.25)


def test_the_metric_of_zones_is_the_shortest_path_by_hand():
    points = [tuple(point) for point in GRID.points]
    inside = [math.dist(point, points[12]) <= 1.1 for point in points]
    assert ZONE.inside.tolist() == inside
    both = [[inside[i] and inside[j] for j in range(25)] for i in range(25)]
    apart = np.array(
        [[math.dist(points[i], points[j]) * (0.25 if both[i][j] else 1) for j in range(25)] for i in range(25)]
    )
    for k in range(25):  # Floyd and Warshall
        apart = np.minimum(apart, apart[:, [k]] + apart[[k], :])
    assert np.allclose(ZONE.space.distances, apart)
    two = zones(GRID, [0, 24], radius=1.1, scale=0.25)  # steps from one zone to another are not scaled
    assert two.space.distances[1, 23] == pytest.approx(math.dist(points[1], points[23]))
    assert two.space.distances[0, 1] == pytest.approx(0.25)


def test_what_a_visit_reveals_is_that_of_three_loops():
    mechanism = mdp.exponential(ZONE.space, 2.0)
    prior = np.arange(1.0, 26) / np.arange(1.0, 26).sum()
    distribution = [[value / math.fsum(row) for value in row] for row in mechanism.matrix.tolist()]
    visit = ZONE.visit(mechanism, prior=prior)
    inside = ZONE.inside.tolist()
    across, border = 0.0, 0.0
    for i, j in itertools.product(range(25), repeat=2):
        if inside[i] and not inside[j]:
            gap = max(abs(math.log(distribution[i][k] / distribution[j][k])) for k in range(25))
            across = max(across, gap)
            if math.dist(GRID.points[i], GRID.points[j]) <= 1.0:
                border = max(border, gap)
    assert visit.across == pytest.approx(across)
    assert visit.border == pytest.approx(border)  # neighbours across the border are 1 km apart
    assert visit.border_distance == 1.0
    assert visit.border <= 2.0 * visit.border_distance
    after = []
    for k in range(25):
        seen = sum(prior[i] * distribution[i][k] for i in range(25))
        after.append(sum(prior[i] * distribution[i][k] for i in range(25) if inside[i]) / seen)
    assert (visit.least, visit.most) == (pytest.approx(min(after)), pytest.approx(max(after)))
    guessed = sum(
        max(sum(prior[i] * distribution[i][k] for i in range(25) if inside[i] is side) for side in (True, False))
        for k in range(25)
    )
    assert visit.guessed == pytest.approx(guessed)
    assert visit.ignorant <= visit.guessed + 1e-12
    assert "without a report" in str(visit)


def test_a_zone_is_coarse_inside_and_precise_elsewhere_at_the_same_epsilon():
    mechanism, plain = mdp.exponential(ZONE.space, 6.0), mdp.exponential(GRID, 6.0)
    errors, flat = ((one.matrix * GRID.distances).sum(axis=1) for one in (mechanism, plain))
    assert errors[ZONE.inside].mean() > 2.0 * flat[ZONE.inside].mean()
    assert errors[ZONE.inside].mean() > 10 * errors[~ZONE.inside].mean()
    assert ZONE.at_home(3.0, 10, centre_epsilon=1.0) == pytest.approx(1.0 + 10 * 3.0 * 0.25)
    # Two places in the zone, ten visits: the true leak of the reports is within what `at_home` says.
    logs = np.log(mechanism.matrix)
    assert 10 * np.abs(logs[12] - logs[13]).max() <= ZONE.at_home(6.0, 10) * GRID.distances[12, 13]


# --- the naive way ----------------------------------------------------------------------------------------------------


def test_a_home_that_is_cut_out_is_found_from_where_the_traces_stop():
    rng = np.random.default_rng(4)
    trips = []
    for angle in rng.uniform(0, 2 * math.pi, 12):
        way = np.linspace(0.0, 4.0, 160)[:, None] * [math.cos(angle), math.sin(angle)]  # 25 m a fix
        trips.append(way + rng.normal(scale=0.005, size=way.shape))
    shown = cut_out(traces_of(*trips), HOME, radius_km=0.5)
    ends = trip_ends(shown)[: len(trips)]  # where trips begin
    for radius in (0.5, None):
        found = locate_centre(ends, radius_km=radius)
        assert math.dist((found - HOME) / KM, (0, 0)) < 0.03  # 30 m, where the zone promised half a kilometre
    cells = np.array(list(itertools.product(np.arange(-2, 3), repeat=2))) * 0.4
    hidden = np.linalg.norm(cells, axis=1) <= 0.5
    matrix = np.column_stack([np.where(hidden[:, None], 0.0, np.eye(25)), hidden.astype(float)])  # the last: nothing
    report = mdp.audit(matrix, metric=mdp.Lp(2), points=cells, epsilon=1000.0)
    assert report.verdict == "violated"
    assert math.isinf(report.epsilon)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: zones(GRID, [12], radius=1.0, scale=2.0), "between 0 and 1"),
        (lambda: zones(GRID, [], radius=1.0), "one place at least"),
        (lambda: zones(GRID, [99], radius=1.0), "codes from 0 to 24"),
        (lambda: ZONE.visit(mdp.exponential(GRID, 1.0)), "made for these zones"),
        (lambda: zones(GRID, [12], radius=99.0).visit(mdp.exponential(GRID, 1.0)), "made for these zones"),
        (lambda: ZONE.at_home(1.0, -1), "at least 0"),
        (lambda: locate_centre([[0.0, 0.0]]), "three or more"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        call()


# --- times ------------------------------------------------------------------------------------------------------------

CLOCK = mdp.FiniteSpace(np.arange(24.0)[:, None], mdp.Temporal(24.0, "h"))


def test_places_and_times_are_released_on_their_own_scales_and_sorted_by_what_is_reported():
    traces = traces_of(np.zeros((40, 2)), np.ones((30, 2)))
    done = cloak_traces(
        traces, place=mdp.laplace(mdp.Haversine(), 4.0), time=mdp.laplace(mdp.Lp(1, unit="min"), 0.2, dimension=1),
        seconds_per_unit=60.0, rng=np.random.default_rng(1),
    )  # fmt: skip
    for trip in (0, 1):
        times = done.traces.seconds[done.traces.trip == trip]
        assert np.all(np.diff(times) >= 0)
    assert (done.place.epsilon, done.time.epsilon) == (4.0, 0.2)
    assert done.both.bound(1.0) == 1.0  # epsilon 1 in the metric 4 d + 0.2 t
    assert float(done.both.metric(np.array([0.0, 0, 0]), np.array([0.0, 0, 5]))) == pytest.approx(1.0)
    away = np.linalg.norm((done.traces.coordinates - HOME) / KM, axis=1)[done.traces.trip == 0]
    assert 0.2 < away.mean() < 0.9  # 2 / epsilon = 0.5 km


def test_the_hour_of_the_day_is_hidden_around_the_clock_and_the_day_stays():
    seconds = np.array([0.5, 23.4, 24.2, 71.9]) * 3600.0
    traces = Traces(np.zeros(4, int), seconds, np.tile(HOME, (4, 1)), np.zeros(4, int))
    hour = mdp.exponential(CLOCK, 3.0)
    done = cloak_traces(
        traces, place=mdp.laplace(mdp.Haversine(), 4.0), time=hour, seconds_per_unit=3600.0, snap=(0.0, 0.5),
        rng=np.random.default_rng(0),
    )  # fmt: skip
    days = np.floor(done.traces.seconds / 86400)
    assert days.tolist() == [0, 0, 1, 2]
    assert np.all(done.traces.seconds % 3600 == 0)
    assert done.time.slack == pytest.approx(3.0 * 2 * 0.5)
    with pytest.raises(OutOfDomain, match="declare"):
        cloak_traces(traces, place=mdp.laplace(mdp.Haversine(), 4.0), time=hour, seconds_per_unit=3600.0)


def test_rows_in_their_old_order_would_tell_which_fix_came_first():
    # Two places, two times; one trip is at place 0 and then at 1, the other at 1 and then at 0.
    one, other = [(0, 0), (1, 1)], [(1, 0), (0, 1)]
    place = mdp.exponential(mdp.FiniteSpace([[0.0], [9.0]], mdp.Lp(1)), 2.0).matrix  # hardly any noise on places
    time = mdp.exponential(mdp.FiniteSpace([[0.0], [1.0]], mdp.Temporal()), 0.1).matrix

    def distribution(trip, *, by_time):
        chances = {}
        for reports in itertools.product(itertools.product(range(2), repeat=2), repeat=2):
            chance = math.prod(place[x, y] * time[t, s] for (x, t), (y, s) in zip(trip, reports, strict=True))
            key = tuple(sorted(reports, key=lambda report: (report[1], report[0])) if by_time else reports)
            chances[key] = chances.get(key, 0.0) + chance
        return chances

    def leak(*, by_time):
        first, second = distribution(one, by_time=by_time), distribution(other, by_time=by_time)
        return max(math.log(first[key] / second[key]) for key in first)

    assert leak(by_time=True) <= 0.1 * 2 + 1e-9  # two fixes, each an hour later or earlier
    assert leak(by_time=False) > 10  # the rows say which place came first


def test_fixes_of_one_reported_time_come_in_an_order_that_tells_nothing():
    place = mdp.exponential(mdp.FiniteSpace([[0.0, 0.0], [0.0, 1.0]], mdp.Haversine()), 5.0)  # e^-550: no noise here
    time = mdp.exponential(mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1)), 1e-3)
    for order in ([0, 1], [1, 0]):  # the same two places, one first and the other first
        trip = Traces(np.zeros(2, int), np.arange(2.0), np.array([[0.0, 0.0], [0.0, 1.0]])[order], np.zeros(2, int))
        runs = [
            cloak_traces(trip, place=place, time=time, rng=np.random.default_rng(seed)).traces for seed in range(12)
        ]
        tied = [run.coordinates[:, 1].tolist() for run in runs if run.seconds[0] == run.seconds[1]]
        assert tied
        assert all(longitudes == [0.0, 1.0] for longitudes in tied)


def test_a_visit_that_is_no_secret_is_refused():
    places = mdp.grid((3, 3))
    made = zones(places, [4], radius=0.5)
    with pytest.raises(InvalidInput, match="inside and outside"):
        made.visit(mdp.exponential(made.space, 1.0), prior=np.eye(9)[0])
    with pytest.raises(InvalidInput, match="at least 0"):
        made.at_home(1.0, math.nan)
