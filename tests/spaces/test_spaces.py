"""Spaces refuse strangers by row and rule, and show values only when they are asked to."""

import math

import numpy as np
import pytest

import metricdp as mdp
from brute import euclid, grid
from metricdp.errors import InvalidInput, MetricdpError, OutOfDomain
from metricdp.spaces import Unbounded


def test_strangers_are_named_by_row_and_shown_on_request():
    space = mdp.FiniteSpace(grid(3), mdp.Lp(2))
    assert space.encode([[2, 1], [0, 0]]).tolist() == [7, 0]
    with pytest.raises(OutOfDomain) as caught:
        space.encode([[1, 1], [1.9, 1.2], [5, 5]])
    message = str(caught.value)
    assert "row 1" in message
    assert "2 such rows" in message
    for secret in ("1.9", "1.2", "5", "(2, 1)", f"{math.hypot(0.1, 0.2):.6g}"):
        assert secret not in message
    shown = space.why([1.9, 1.2])
    assert "(1.9, 1.2)" in shown
    assert "nearest is (2, 1)" in shown
    assert f"{math.hypot(0.1, 0.2):.6g}" in shown
    assert "snap" in message
    assert caught.value.rows == (1, 2)
    assert isinstance(caught.value, MetricdpError)
    assert isinstance(caught.value, ValueError)


def test_snapping_up_to_the_declared_distance_and_no_farther():
    space = mdp.FiniteSpace(grid(3), mdp.Lp(2))
    assert space.encode([[1.2, 0.1]], snap=0.25).tolist() == [3]
    with pytest.raises(OutOfDomain, match=r"beyond the declared snap of 0\.2\b.*Raise `snap`"):
        space.encode([[1.2, 0.1]], snap=0.2)
    for snap in (-1.0, np.nan, np.inf):
        with pytest.raises(InvalidInput, match="`snap` must be a distance"):
            space.encode([[1.2, 0.1]], snap=snap)
    assert mdp.Guarantee(2.0, mdp.Lp(2)).with_slack(2 * 2.0 * 0.25).bound(3.0) == 7.0


def test_rounding_of_a_written_file_is_no_stranger():
    points = np.random.default_rng(0).uniform(-180, 180, (50, 2))
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    assert np.array_equal(space.encode(np.round(points, 9)), np.arange(50))


def test_decode_undoes_encode_and_refuses_codes():
    space = mdp.FiniteSpace(grid(3), mdp.Lp(1))
    assert np.array_equal(space.decode(space.encode(grid(3))), grid(3))
    for codes in ([9], [-1], [0.5], ["a"], [np.inf]):
        with pytest.raises(InvalidInput, match="codes"):
            space.decode(codes)


@pytest.mark.parametrize("metric", [mdp.Lp(1), mdp.Lp(3), mdp.Lp(np.inf), mdp.Mahalanobis([[2.0, 0.3], [0.3, 0.5]])])
def test_nearest_against_brute_force(metric):
    rng = np.random.default_rng(3)
    points, values = rng.normal(size=(40, 2)), rng.normal(size=(60, 2))
    codes, away = mdp.FiniteSpace(points, metric).nearest(values)
    table = np.array([[float(metric(v, p)) for p in points] for v in values])
    np.testing.assert_allclose(away, table.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(table[np.arange(60), codes], table.min(axis=1), rtol=1e-12)


def test_nearest_on_earth_crosses_the_antimeridian_and_the_pole():
    space = mdp.FiniteSpace([(-17.0, 179.9), (-17.0, 179.0), (89.9, 0.0), (0.0, 0.0)], mdp.Haversine())
    codes, away = space.nearest([(-17.0, -179.9), (89.9, 180.0)])
    assert codes.tolist() == [0, 2]
    assert away[1] == pytest.approx(0.2 * math.radians(1) * 6371.009, rel=1e-9)
    with pytest.raises(OutOfDomain, match="row 0 is not a secret"):
        space.encode([(1.0, 1.0)])
    assert "km away" in space.why((1.0, 1.0))


def test_distances_are_symmetric_and_right():
    points = np.random.default_rng(1).normal(size=(30, 2))
    distances = mdp.FiniteSpace(points, mdp.Lp(2)).distances
    np.testing.assert_allclose(distances, euclid(points), rtol=1e-14)
    assert np.array_equal(distances, distances.T)
    assert not distances.flags.writeable


def test_the_callers_array_stays_his_own():
    points = grid(3)
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    points[0] = 99
    assert space.points[0].tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        space.points[0] = 1


def test_duplicates_are_refused_by_row():
    with pytest.raises(InvalidInput, match=r"distinct, rows 0 and 2 are the same \(1 repeated row"):
        mdp.FiniteSpace([[1, 2], [3, 4], [1, 2]], mdp.Lp(2))
    with pytest.raises(InvalidInput, match="0 and 1 are at distance 0: merge"):
        _ = mdp.FiniteSpace([[10.0, 180], [10.0, -180]], mdp.Haversine()).distances
    with pytest.raises(InvalidInput, match="distance 0"):
        _ = mdp.FiniteSpace([[90.0, 10], [90.0, 20], [0, 0]], mdp.Haversine()).distances


def test_words():
    space = mdp.FiniteSpace(["cat", "cart", "dog"], mdp.Levenshtein())
    assert space.distances.tolist() == [[0, 1, 3], [1, 0, 4], [3, 4, 0]]
    assert space.encode(["dog", "cat"]).tolist() == [2, 0]
    assert space.decode([1])[0, 0] == "cart"
    with pytest.raises(OutOfDomain, match=r"row 1 is not a secret.*3 words of this vocabulary") as caught:
        space.encode(["dog", "cars"])
    assert caught.value.rows == (1,)
    assert not any(word in str(caught.value) for word in ("cars", "cart", "dog"))
    assert "(cars) is not a word" in space.why("cars")
    assert "(cart)" in space.why("cars")
    with pytest.raises(InvalidInput, match="encode"):
        space.nearest(["dog"])


def test_rows_of_text_are_told_apart_by_every_column():
    rows = np.array([["red", "car"], ["red", "bus"], ["blue", "bus"]])
    space = mdp.FiniteSpace(rows, mdp.Hamming())
    assert space.encode(rows[::-1]).tolist() == [2, 1, 0]
    with pytest.raises(OutOfDomain, match="row 0 is not"):
        space.encode([["blue", "car"]])
    assert "(blue, car) is not" in space.why(["blue", "car"])
    assert "(blue, bus) is a word" in space.why(["blue", "bus"])
    with pytest.raises(InvalidInput, match="2 columns"):
        space.encode(["red"])


def test_coordinates_beside_the_points():
    places = np.array([(41.0, -8.0), (41.1, -8.1), (41.2, -8.0)])
    apart = mdp.Precomputed([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    space = mdp.FiniteSpace(np.arange(3.0)[:, None], apart, coordinates=places, ground=mdp.Haversine())
    assert space.encode(places[[2, 0]]).tolist() == [2, 0]
    assert np.array_equal(space.decode([1]), places[1:2])
    with pytest.raises(InvalidInput, match="one row per point, 3, got 2"):
        mdp.FiniteSpace(np.arange(3.0)[:, None], apart, coordinates=places[:2], ground=mdp.Haversine())


def test_box():
    box = mdp.Box([0, 0], [1, 2])
    assert np.array_equal(box.encode([[0.5, 2.0]]), [[0.5, 2.0]])
    with pytest.raises(OutOfDomain, match=r"row 1 is not a secret.*the box from \(0, 0\) to \(1, 2\)") as caught:
        box.encode([[0, 0], [1.5, -1]])
    assert "1.5" not in str(caught.value)
    assert box.why([1.5, -1]).startswith("(1.5, -1) lies outside")
    assert "nearest legal point is (1, 0)" in box.why([1.5, -1])
    assert caught.value.rows == (1,)
    for low, high in (([0, 0], [1, 0]), ([0], [1, 1]), ([[0]], [[1]])):
        with pytest.raises(InvalidInput, match="below `upper`"):
            mdp.Box(low, high)
    with pytest.raises(InvalidInput, match="2 columns"):
        box.encode([[0.1, 0.2, 0.3]])
    with pytest.raises(InvalidInput, match="finite"):
        box.encode([[np.nan, 0.2]])


def test_unbounded_checks_what_the_metric_checks():
    with pytest.raises(InvalidInput, match="latitude"):
        Unbounded(mdp.Haversine(), 2).encode([[100.0, 0.0]])
    with pytest.raises(InvalidInput, match="3 columns"):
        Unbounded(mdp.Lp(2), 3).encode([[1.0, 0.0]])


def test_problem_defaults():
    problem = mdp.Problem(mdp.FiniteSpace(grid(2), mdp.Lp(2)), 2.0, radius=1.1)
    np.testing.assert_allclose(problem.cost, euclid(grid(2)) / 4)
    assert np.isinf(problem.log_ratios[0, 3])
    assert problem.log_ratios[0, 1] == 2.0


def test_a_matrix_that_would_fill_the_memory_is_refused_before_it_is_made():
    space = mdp.FiniteSpace(np.arange(200_000.0), mdp.Lp(1))
    with pytest.raises(InvalidInput, match=r"200,000 secrets and 200,000 reports would take 320 GB; `space.near"):
        _ = space.distances
    few = mdp.FiniteSpace(np.arange(100.0), mdp.Lp(1))
    assert space.distances_to(few).shape == (200_000, 100)
    with pytest.raises(InvalidInput, match="would take 320 GB"):
        space.distances_to(mdp.FiniteSpace(np.arange(200_000.0) + 0.5, mdp.Lp(1)))
