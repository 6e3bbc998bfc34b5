"""Trajectories in one call: the same problem as by hand, a release that is drawn from the certified law."""

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.mobility import (
    clean,
    estimate,
    histories_of,
    load_traces,
    public_model,
    reachable_steps,
    resample,
    snap,
    trajectory_problem,
)
from metricdp.places import bundled_roads, bundled_trips, spread_places


@pytest.fixture(scope="module")
def places():
    return spread_places(bundled_roads(), 8)


@pytest.fixture(scope="module")
def trips():
    return bundled_trips(trips=40)


@pytest.fixture(scope="module")
def stated(places, trips):
    return trajectory_problem(trips, places, 1.0)


def test_one_call_states_the_problem_that_the_steps_state_by_hand(places, trips, stated):
    model = estimate(stated.walks, stated.model.allowed, order=1, smoothing=2.0)
    made = trajectory_problem(trips, places, 0.7, weights=[0.4], most_km=1.2, most_kmh=50.0, model=model)

    allowed = reachable_steps(places.distances, step_seconds=60.0, most_kmh=50.0, slack_km=2.4)
    traces = resample(clean(load_traces(trips), most_kmh=50.0), step_seconds=60.0)
    walks = snap(traces, places, most_km=1.2, allowed=allowed)
    histories = histories_of(allowed, 1)
    np.testing.assert_array_equal(made.walks.codes, walks.codes)
    np.testing.assert_array_equal(made.augmented.histories, histories)
    now, before = histories[:, 0], histories[:, 1]
    apart = places.distances
    by_hand = apart[now][:, now] + 0.4 * apart[before][:, before]
    np.testing.assert_allclose(made.problem.inputs.distances, by_hand, atol=1e-12)
    np.testing.assert_allclose(made.problem.loss, model.next(histories) @ apart)


def test_without_a_model_nothing_is_learnt_from_the_traces(places, trips):
    some = trajectory_problem(bundled_trips(trips=15, seed=5), places, 1.0).problem
    other = trajectory_problem(trips, places, 1.0).problem
    np.testing.assert_array_equal(some.loss, other.loss)
    np.testing.assert_array_equal(some.prior, other.prior)
    steps = np.array([[True, True, False], [True, True, True], [False, True, True]])
    by_hand = steps / steps.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(public_model(steps).transitions, by_hand)


def test_every_step_of_every_trip_gets_one_report_of_the_certified_law(stated):
    mechanism = mdp.contextual(stated.problem, gap=0.05)
    draws = np.stack([stated.release(mechanism, rng=np.random.default_rng(seed)) for seed in range(400)])
    assert draws.shape == (400, len(stated.walks))
    rows = {tuple(row): code for code, row in enumerate(stated.augmented.histories)}
    first = np.flatnonzero(np.r_[True, np.diff(stated.walks.trip) != 0])
    for step in (int(first[0]), int(first[0]) + 1):
        before = stated.walks.codes[step if step in first else step - 1]
        distribution = mechanism.matrix[rows[(stated.walks.codes[step], before)]]
        seen = np.bincount(draws[:, step], minlength=len(distribution)) / 400
        assert np.abs(seen - distribution).max() < 0.12  # five standard deviations of a share of 400


def test_the_promise_for_fixes_charges_what_putting_them_on_places_moves(places, trips):
    made = trajectory_problem(trips, places, 0.5, weights=[0.5, 0.25], most_km=0.9, most_kmh=20.0)
    assert made.guarantee.slack == pytest.approx(2 * 0.5 * 0.9 * 1.75)
    assert made.epsilon_per_place == pytest.approx(0.5 * (1 + 2 * 0.5 + 3 * 0.25))


def test_along_roads_a_fix_can_be_put_on_places_that_are_far_apart(places, trips):
    ring = [[k, (k + 1) % 8] for k in range(7)]  # a road of eight crossings, 5 km each, on a map of a few kilometres
    roads = mdp.FiniteSpace(
        np.arange(8), mdp.ShortestPath(ring, np.full(7, 5.0)), coordinates=places.coordinates, ground=mdp.Haversine()
    )
    made = trajectory_problem(trips, roads, 0.5, most_km=0.9, weights=[0.5], allowed=np.ones((8, 8), bool))
    apart = mdp.Haversine()(places.coordinates[:, None], places.coordinates[None]) <= 1.8
    farthest = max(5.0 * abs(i - j) for i in range(8) for j in range(8) if apart[i, j])
    assert farthest > 5.0
    assert made.guarantee.slack == pytest.approx(0.5 * farthest * 1.5)


def test_too_many_histories_are_refused_before_any_work(trips):
    with pytest.raises(InvalidInput, match="histories, more than"):
        trajectory_problem(trips, spread_places(bundled_roads(), 60), 1.0, weights=[0.5, 0.5])


def test_a_mechanism_for_another_problem_is_refused(places, trips, stated):
    other = trajectory_problem(trips, places, 1.0)
    with pytest.raises(MetricdpError, match="for this problem"):
        stated.release(mdp.contextual(other.problem, gap=0.5))


def test_spread_places_cover_the_map_within_twice_the_best(places):
    roads = bundled_roads()
    apart = mdp.Haversine()(places.coordinates[:, None], places.coordinates[None])
    reach = mdp.Haversine()(roads.coordinates[:, None], places.coordinates[None]).min(axis=1).max()
    assert reach <= np.where(np.eye(len(places), dtype=bool), np.inf, apart).min()
    with pytest.raises(InvalidInput, match="`count` must be a whole number"):
        spread_places(roads, 1)
