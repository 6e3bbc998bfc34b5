"""What a promise about places means for positions that are put on the nearest place first."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import metricdp as mdp
from metricdp.auditing import mean_in_cell, position_factor, position_guarantee


def worst_factor(mechanism: mdp.mechanisms.MatrixMechanism, places: np.ndarray, apart: float, rng: np.random.Generator):
    """Return the largest ratio of two drawn positions `apart`, each put on the nearest place, by brute force."""
    rows = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    low, high = places.min(axis=0) - 0.5, places.max(axis=0) + 0.5
    one = rng.uniform(low, high, size=(4000, 2))
    angle = rng.uniform(0.0, 2.0 * math.pi, size=4000)
    two = one + apart * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inside = np.all((two >= low) & (two <= high), axis=1)
    codes = [np.linalg.norm(x[inside, None, :] - places[None], axis=2).argmin(axis=1) for x in (one, two)]
    return float((rows[codes[0]] / rows[codes[1]]).max())


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_positions_never_differ_by_more_than_their_factor_and_by_more_than_the_promise_of_places(
    epsilon: float,
) -> None:
    places = mdp.grid((4, 4))
    mechanism = mdp.exponential(places, epsilon)
    snap, rng = math.sqrt(0.5), np.random.default_rng(3)
    found = [worst_factor(mechanism, places.points, apart, rng) for apart in (0.01, 0.3, 1.2)]
    for apart, factor in zip((0.01, 0.3, 1.2), found, strict=True):
        assert factor <= position_factor(mechanism.guarantee, places, apart, snap=snap)
    assert found[0] > math.exp(epsilon * 0.01)  # what was printed before: neighbours across a border exceed it
    assert position_factor(mechanism.guarantee, places, 0.3, snap=snap) == pytest.approx(
        math.exp(epsilon * (0.3 + 2 * snap))
    )


def test_positions_below_roads_are_counted_by_the_farthest_crossings_they_can_be_put_on() -> None:
    # a street that runs out and back: its ends are neighbours on the ground and 10 apart by road
    at = np.array([[float(k), 0.0] for k in range(6)] + [[float(5 - k), 0.5] for k in range(6)])
    edges = np.array([[k, k + 1] for k in range(11)])
    lengths = np.r_[np.ones(5), 0.5, np.ones(5)]
    metric = mdp.ShortestPath(edges, lengths)
    space = mdp.FiniteSpace(np.arange(12.0)[:, None], metric, coordinates=at, ground=mdp.Lp(2))
    promise = mdp.Guarantee(0.2, metric, basis="certificate")
    ground = np.linalg.norm(at[:, None] - at[None], axis=2)
    along = np.abs(np.r_[0, np.cumsum(lengths)][:, None] - np.r_[0, np.cumsum(lengths)][None])
    for apart, snap in product((0.0, 0.4, 2.0), (0.1, 0.3)):
        reached = along[ground <= (apart + 2 * snap) * (1 + 1e-9)].max()
        assert position_factor(promise, space, apart, snap=snap) == pytest.approx(math.exp(0.2 * reached))
    with pytest.raises(mdp.MetricdpError, match="position_factor"):
        position_guarantee(promise, space, snap=0.3)


def test_a_radius_shrinks_by_what_snapping_moves() -> None:
    space = mdp.grid((5, 5))
    promise = mdp.Guarantee(1.0, space.metric, basis="certificate", radius=2.0)
    wider = position_guarantee(promise, space, snap=0.5)
    assert (wider.slack, wider.radius) == (1.0, 1.0)
    assert position_factor(promise, space, 1.5, snap=0.5) == math.inf


def test_a_promise_in_other_distances_or_a_concentrated_one_has_no_factor_here() -> None:
    space = mdp.grid((3, 3))
    other = mdp.exponential(mdp.FiniteSpace(space.points, mdp.Lp(1)), 1.0).guarantee
    rough = mdp.gaussian(mdp.Lp(2), 1.0, dimension=2).guarantee
    for use in (lambda given: position_guarantee(given, space, snap=0.1),
                lambda given: position_factor(given, space, 0.1, snap=0.1)):  # fmt: skip
        with pytest.raises(mdp.MetricdpError, match="other distances"):
            use(other)
        with pytest.raises(mdp.MetricdpError, match="pure"):
            use(rough)


@pytest.mark.parametrize("metric", [mdp.Lp(1), mdp.Lp(2), mdp.Lp(np.inf), mdp.Haversine()])
def test_no_position_of_a_cell_is_farther_from_its_middle_than_the_radius(metric: mdp.Metric) -> None:
    space = mdp.grid((4, 3), spacing=0.3, origin=(41.0, -8.7), metric=metric)
    steps = np.array([np.diff(np.unique(space.points[:, k])).max() for k in (0, 1)])
    rng = np.random.default_rng(5)
    inside = space.points[:, None, :] + steps * rng.uniform(-0.5, 0.5, size=(12, 2000, 2))
    away = np.stack([metric(inside[i], np.tile(space.points[i], (2000, 1))) for i in range(12)])
    assert away.max() <= space.cell_radius <= 1.05 * away.max() + 1e-9
    assert away.mean() <= mean_in_cell(space)
    assert mdp.FiniteSpace(rng.random((9, 2)), mdp.Lp(2)).cell_radius is None
