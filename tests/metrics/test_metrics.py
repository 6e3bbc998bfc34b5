"""Every metric against the axioms, against a slow reference, and its refusals."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

import metricdp as mdp
from brute import euclid
from metricdp.errors import InvalidInput
from metricdp.metrics import EARTH_RADIUS_KM, pairwise

RNG = np.random.default_rng(5)


def histograms(count, bins, seed):
    raw = np.random.default_rng(seed).integers(0, 5, (count, bins)) + np.eye(bins)[np.arange(count) % bins]
    return raw / raw.sum(axis=1, keepdims=True)


def edges_of(nodes, seed):
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], axis=1)
    extra = rng.integers(0, nodes, (2 * nodes, 2))
    edges = np.concatenate([ring, extra[extra[:, 0] != extra[:, 1]]])
    return edges, rng.uniform(0.1, 3.0, len(edges))


GROUND = np.abs(np.subtract.outer([0.0, 1.0, 2.5, 4.0], [0.0, 1.0, 2.5, 4.0]))
EDGES = edges_of(9, 0)
VECTORS = RNG.normal(size=(4, 3))
EARTH = [(90, 0), (-90, 20), (0, 180), (0, -180), (0, 0), (41.1, -8.6), (-41.1, 171.4), (60.2, 24.9), (-17.8, 179.9)]
CASES = {
    **{f"Lp({p})": (mdp.Lp(p), RNG.normal(size=(9, 3))) for p in (1, 1.5, 2, 5, np.inf)},
    "Haversine": (mdp.Haversine(), np.array([*EARTH, (-17.8, -179.9)], dtype=float)),
    "ShortestPath open": (mdp.ShortestPath(*EDGES), np.arange(9.0)[:, None]),
    "ShortestPath longer": (mdp.ShortestPath(*EDGES, one_way="longer"), np.arange(9.0)[:, None]),
    "Mahalanobis": (mdp.Mahalanobis([[2.0, 0.5], [0.5, 1.0]]), RNG.normal(size=(8, 2))),
    "Angular": (mdp.Angular(), RNG.normal(size=(8, 3))),
    "Hyperbolic": (mdp.Hyperbolic(), RNG.uniform(-0.57, 0.57, size=(8, 3))),
    "Hamming": (mdp.Hamming(), RNG.integers(0, 3, size=(9, 4)).astype(float)),
    "Levenshtein": (mdp.Levenshtein(), np.array(["", "a", "ab", "ba", "kitten", "sitting", "Zoë"])[:, None]),
    "Wasserstein line": (mdp.Wasserstein([0.0, 1.0, 2.5, 4.0]), histograms(7, 4, 1)),
    "Wasserstein": (mdp.Wasserstein(GROUND), histograms(6, 4, 2)),
    "WordMovers": (mdp.WordMovers(VECTORS), histograms(6, 4, 3)),
    "Frechet": (mdp.Frechet(), RNG.normal(size=(7, 8))),
    "Temporal": (mdp.Temporal(), RNG.uniform(0, 100, size=(8, 1))),
    "Temporal period": (mdp.Temporal(24.0), RNG.uniform(-50, 100, size=(8, 1))),
    "Weighted": (
        mdp.Weighted([(mdp.Haversine(), [0, 1], 1.0), (mdp.Temporal(24.0), [2], 0.1)]),
        np.stack([RNG.uniform(-90, 90, 8), RNG.uniform(-180, 180, 8), RNG.uniform(0, 24, 8)], axis=1),
    ),
    "Precomputed": (mdp.Precomputed(GROUND), np.arange(4.0)[:, None]),
}


@pytest.mark.parametrize("name", CASES)
def test_axioms_shapes_and_pairwise(name):
    metric, points = CASES[name]
    metric.check(points)
    full = metric(points[:, None], points[None])
    n = len(points)
    assert full.shape == (n, n)
    assert full.dtype == np.float64
    scale = full.max()
    assert np.all(full >= 0)
    np.testing.assert_allclose(full, full.T, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(np.diag(full), 0, atol=1e-12 * scale)
    detours = full[:, :, None] + full[None, :, :]
    assert np.all(full[:, None, :] <= detours + 1e-9 * scale)
    np.testing.assert_allclose(pairwise(metric, points, points[:3]), full[:, :3], rtol=1e-12, atol=1e-12 * scale)
    assert metric(points, points[::-1]).shape == (n,)
    assert metric(points[0], points[1]).shape == ()
    np.testing.assert_allclose(metric(points, points[::-1]), full[np.arange(n), np.arange(n)[::-1]], atol=1e-12 * scale)
    assert metric(points[0], points).shape == (n,)
    assert isinstance(metric, mdp.metrics.Metric)


vectors = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3).map(np.array)


@given(vectors, vectors, vectors, st.sampled_from([1.0, 1.5, 2.0, 5.0, np.inf]))
def test_lp_axioms_and_value(a, b, c, p):
    d = mdp.Lp(p)
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    expected = max(gaps) if math.isinf(p) else math.fsum((g / 1e6) ** p for g in gaps) ** (1 / p) * 1e6
    assert float(d(a, b)) == pytest.approx(expected, rel=1e-9, abs=1e-50)
    assert d(a, b) == d(b, a)
    assert d(a, c) <= (d(a, b) + d(b, c)) * (1 + 1e-12)
    assert (d(a, b) == 0) == np.array_equal(a, b)


def test_lp_neither_overflows_nor_underflows():
    assert mdp.Lp(2)(np.array([3e200, 0]), np.array([0, 4e200])) == pytest.approx(5e200)
    assert mdp.Lp(5)(np.array([1e-200]), np.array([0.0])) == pytest.approx(1e-200)


degrees = st.tuples(st.floats(-90, 90), st.floats(-360, 360)).map(np.array)


def vector_of(place):
    lat, lon = math.radians(place[0]), math.radians(place[1])
    return np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])


@given(degrees, degrees, degrees)
def test_haversine_is_the_angle_between_unit_vectors(a, b, c):
    d = mdp.Haversine()
    u, v = vector_of(a), vector_of(b)
    angle = math.atan2(float(np.linalg.norm(np.cross(u, v))), float(u @ v))
    assert float(d(a, b)) == pytest.approx(EARTH_RADIUS_KM * angle, rel=1e-6, abs=1e-6)
    assert float(d(a, b)) == pytest.approx(float(d(b, a)), rel=1e-12)
    assert d(a, c) <= d(a, b) + d(b, c) + 1e-6


def test_haversine_at_the_awkward_places():
    d = mdp.Haversine()
    assert d(np.array([90.0, 0]), np.array([90.0, 123])) == 0
    assert d(np.array([-90.0, 10]), np.array([-90.0, -77])) == 0
    assert d(np.array([10.0, 180]), np.array([10.0, -180])) == 0
    assert d(np.array([90.0, 5]), np.array([-90.0, 7])) == pytest.approx(math.pi * EARTH_RADIUS_KM, rel=1e-14)
    assert d(np.array([12.0, 30]), np.array([-12.0, -150])) == pytest.approx(math.pi * EARTH_RADIUS_KM, rel=1e-12)
    near = d(np.array([-17.0, 179.9999]), np.array([-17.0, -179.9999]))
    step = math.radians(2e-4) * EARTH_RADIUS_KM * math.cos(math.radians(17))
    assert near == pytest.approx(step, rel=1e-6)
    assert d(np.array([0.0, 0]), np.array([1e-9, 0])) == pytest.approx(math.radians(1e-9) * EARTH_RADIUS_KM, rel=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("one_way", ["open", "longer"])
def test_shortest_path_against_floyd_warshall(seed, one_way):
    n = 4 + 2 * seed
    edges, lengths = edges_of(n, seed)
    edges, lengths = np.concatenate([edges, edges[:2]]), np.concatenate([lengths, lengths[:2] / 2])  # parallel streets
    best = [[0.0 if i == j else math.inf for j in range(n)] for i in range(n)]
    for (u, v), w in zip(edges.tolist(), lengths.tolist(), strict=True):
        best[u][v] = min(best[u][v], w)
        if one_way == "open":
            best[v][u] = min(best[v][u], w)
    for k, i, j in itertools.product(range(n), repeat=3):
        best[i][j] = min(best[i][j], best[i][k] + best[k][j])
    reference = np.array(best)
    reference = np.maximum(reference, reference.T)
    metric = mdp.ShortestPath(edges, lengths, one_way=one_way)
    nodes = np.arange(float(n))[:, None]
    np.testing.assert_allclose(metric(nodes[:, None], nodes[None]), reference, rtol=1e-12)
    np.testing.assert_allclose(pairwise(metric, nodes, nodes), reference, rtol=1e-12)


def test_shortest_path_across_a_gap_is_infinite_and_no_space():
    metric = mdp.ShortestPath([[0, 1], [2, 3]], [1.0, 1.0])
    assert np.isinf(metric(np.array([0.0]), np.array([3.0])))
    with pytest.raises(InvalidInput, match="connected"):
        _ = mdp.FiniteSpace(np.arange(4.0)[:, None], metric).distances


def test_mahalanobis_formula():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(3, 3))
    covariance = root @ root.T + np.eye(3)
    a, b = rng.normal(size=(2, 5, 3))
    expected = [math.sqrt(g @ np.linalg.inv(covariance) @ g) for g in a - b]
    metric = mdp.Mahalanobis(covariance)
    np.testing.assert_allclose(metric(a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(metric.unwhiten(metric.whiten(a)), a, rtol=1e-12)


def test_angular_and_hyperbolic_formulas():
    a, b = np.array([1.0, 0, 0]), np.array([3.0, 3.0, 0])
    assert mdp.Angular()(a, b) == pytest.approx(math.pi / 4, rel=1e-15)
    assert mdp.Angular()(a, -2 * a) == pytest.approx(math.pi)
    tiny = np.array([1.0, 1e-9, 0])
    assert mdp.Angular()(a, tiny) == pytest.approx(1e-9, rel=1e-9)
    u, v = np.array([0.1, 0.2]), np.array([-0.5, 0.6])
    inside = 1 + 2 * sum((u - v) ** 2) / ((1 - u @ u) * (1 - v @ v))
    assert mdp.Hyperbolic()(u, v) == pytest.approx(math.acosh(inside), rel=1e-12)
    assert mdp.Hyperbolic()(np.zeros(2), np.array([1 - 1e-9, 0])) == pytest.approx(2 * math.atanh(1 - 1e-9), rel=1e-6)


def edit_distance(x, y):
    row = list(range(len(y) + 1))
    for i, a in enumerate(x, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(y, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


words = st.text(alphabet="abcé", max_size=7)


@given(words, words)
def test_levenshtein_against_dynamic_programming(x, y):
    assert mdp.Levenshtein()(np.array([x]), np.array([y])) == edit_distance(x, y)


def test_hamming_counts():
    assert mdp.Hamming()(np.array([1.0, 2, 3]), np.array([1.0, 0, 0])) == 2
    assert mdp.Hamming()(np.array(["a", "b"]), np.array(["a", "c"])) == 1


def moved(x, y, cost):
    """The transport program written out, solved by another method than the library's formulation."""
    k = len(x)
    rows = np.zeros((2 * k, k * k))
    for i, j in itertools.product(range(k), repeat=2):
        rows[i, i * k + j] = rows[k + j, i * k + j] = 1
    return linprog(np.ravel(cost), A_eq=rows, b_eq=np.concatenate([x, y]), method="highs-ds").fun


@pytest.mark.parametrize("seed", range(8))
def test_wasserstein_line_and_general_agree_with_the_program(seed):
    rng = np.random.default_rng(seed)
    places = np.sort(rng.uniform(0, 10, 5))
    cost = np.abs(places[:, None] - places[None])
    x, y = rng.dirichlet(np.ones(5), size=2)
    expected = moved(x, y, cost)
    assert mdp.Wasserstein(places)(x, y) == pytest.approx(expected, rel=1e-9)
    assert mdp.Wasserstein(cost)(x, y) == pytest.approx(expected, rel=1e-9)
    plane = rng.uniform(0, 10, (5, 2))
    cost = np.array([[math.dist(a, b) for b in plane] for a in plane])
    assert mdp.Wasserstein(cost)(x, y) == pytest.approx(moved(x, y, cost), rel=1e-9)
    assert mdp.WordMovers(plane)(x, y) == pytest.approx(moved(x, y, cost), rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_wasserstein_of_equal_lumps_is_an_assignment(seed):
    rng = np.random.default_rng(seed)
    plane = rng.uniform(0, 1, (12, 2))
    cost = np.array([[math.dist(a, b) for b in plane] for a in plane])
    x, y = np.zeros((2, 12))
    x[:6], y[6:] = 1 / 6, 1 / 6
    i, j = linear_sum_assignment(cost[:6, 6:])
    assert mdp.Wasserstein(cost)(x, y) == pytest.approx(cost[:6, 6:][i, j].sum() / 6, rel=1e-9)


def test_wasserstein_of_nearly_equal_histograms_is_small_and_not_zero():
    x = np.full(4, 0.25)
    move = np.array([1.0, 1.0, -1.0, -1.0])
    metric = mdp.Wasserstein(GROUND)
    one = metric(x, x + 0.1 * move)
    assert metric(x, x + 1e-9 * move) == pytest.approx(one * 1e-8, rel=1e-6)


def leash(p, q, distance):
    @functools.cache
    def walk(i, j):
        here = distance(p[i], q[j])
        if i == 0 and j == 0:
            return here
        ways = [(i - 1, j), (i, j - 1), (i - 1, j - 1)]
        return max(here, min(walk(*w) for w in ways if min(w) >= 0))

    return walk(len(p) - 1, len(q) - 1)


@pytest.mark.parametrize("seed", range(6))
def test_frechet_against_recursion(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=(5, 2)), rng.normal(size=(3 + seed % 3, 2))
    assert mdp.Frechet()(p.ravel(), q.ravel()) == pytest.approx(leash(p, q, math.dist), rel=1e-12)
    assert mdp.Frechet(mdp.Lp(1), dimension=1)(p[:, 0], q[:, 0]) == pytest.approx(
        leash(p[:, :1], q[:, :1], math.dist), rel=1e-12
    )


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_temporal_around_the_clock(a, b):
    clock = mdp.Temporal(24.0)
    expected = min(abs(a - b + 24 * k) for k in range(-100, 101))
    assert clock(np.array([a]), np.array([b])) == pytest.approx(expected, abs=1e-9)
    assert clock(np.array([23.5]), np.array([0.5])) == 1.0


def test_weighted_is_the_sum():
    metric = mdp.Weighted([(mdp.Lp(1), [0, 2], 2.0), (mdp.Temporal(), [1], 0.5)])
    assert metric(np.array([0.0, 10, 0]), np.array([1.0, 4, 3])) == 2 * 4 + 0.5 * 6


REFUSALS = [
    (lambda: mdp.Lp(0.5), "`p` must be from 1"),
    (lambda: mdp.Lp(np.nan), "`p` must be from 1"),
    (lambda: mdp.Lp(2).check(np.array([["a"]])), "measures numbers"),
    (lambda: mdp.Haversine().check(np.array([[91.0, 0]])), "latitude must lie in"),
    (lambda: mdp.Haversine().check(np.array([[103.8, 1.3]])), "exchanged"),
    (lambda: mdp.Haversine().check(np.zeros((3, 3))), "two columns"),
    (lambda: mdp.ShortestPath([[0, 1]], [0.0]), "merge them"),
    (lambda: mdp.ShortestPath([[0, 1]], [-1.0]), "non-negative"),
    (lambda: mdp.ShortestPath([[0, 1]], [1.0], one_way="no"), "'open' or 'longer'"),
    (lambda: mdp.ShortestPath([0, 1], [1.0]), "pairs of node numbers"),
    (lambda: mdp.ShortestPath([[0, 1]], [1.0])(np.array([0.0]), np.array([7.0])), "codes from 0 to 1"),
    (lambda: mdp.Mahalanobis([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
    (lambda: mdp.Mahalanobis([[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
    (lambda: mdp.Mahalanobis(np.eye(2)).check(np.zeros((4, 3))), "2 coordinates"),
    (lambda: mdp.Angular().check(np.zeros((1, 2))), "zero vector"),
    (lambda: mdp.Hyperbolic().check(np.array([[1.0, 0.0]])), "unit ball"),
    (lambda: mdp.Levenshtein().check(np.zeros((2, 1))), "one column of text"),
    (lambda: mdp.Wasserstein([0.0, 0.0]), "increase"),
    (lambda: mdp.Wasserstein([0.0, np.nan]), "finite"),
    (lambda: mdp.Wasserstein(GROUND).check(np.array([[0.5, 0.5, 0.5, 0]])), "sum to 1"),
    (lambda: mdp.Wasserstein(GROUND).check(np.array([[0.5, 0.5]])), "4 bins"),
    (lambda: mdp.Frechet().check(np.zeros((2, 5))), "multiple of 2"),
    (lambda: mdp.Temporal(0), "period"),
    (lambda: mdp.Temporal().check(np.zeros((2, 2))), "one column of times"),
    (lambda: mdp.Weighted([]), "at least one"),
    (lambda: mdp.Weighted([(mdp.Lp(2), [0], 0.0)]), "positive"),
    (lambda: mdp.Weighted([(mdp.Lp(2), [0], 1.0)]).check(np.zeros((2, 2))), "cover the columns"),
    (lambda: mdp.Precomputed([[0, 1], [2, 0]]), "symmetric"),
    (lambda: mdp.Precomputed([[0, -1], [-1, 0]]), "negative"),
    (lambda: mdp.Precomputed([[1, 1], [1, 0]]), "diagonal"),
    (lambda: mdp.Precomputed([[0, 1, 5], [1, 0, 1], [5, 1, 0]]), "triangle inequality: 0 to 2 is 5 but 2 by way of 1"),
    (lambda: mdp.Precomputed(np.zeros((2, 3))), "square"),
    (lambda: mdp.Precomputed([[0, np.nan], [np.nan, 0]]), "finite"),
    (lambda: mdp.Precomputed(GROUND)(np.array([4.0]), np.array([0.0])), "codes from 0 to 3"),
    (lambda: mdp.Precomputed(GROUND)(np.array([0.5]), np.array([0.0])), "whole numbers"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS, ids=[m for _, m in REFUSALS])
def test_refusals(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


@pytest.mark.parametrize("n", [3, 7, 160])  # 160 rows take the compiled path
def test_every_broken_triangle_is_found(n):
    rng = np.random.default_rng(n)
    good = euclid(rng.normal(size=(n, 3)))
    mdp.Precomputed(good)
    for _ in range(20):
        i, j = rng.choice(n, 2, replace=False)
        bad = good.copy()
        bad[i, j] = bad[j, i] = min(good[i, m] + good[m, j] for m in range(n) if m not in (i, j)) + 1e-6
        with pytest.raises(InvalidInput, match="triangle"):
            mdp.Precomputed(bad)


def test_a_unit_scales_distances_and_an_unknown_one_is_refused():
    a, b = np.array([41.0, -8.0]), np.array([41.5, -7.0])
    kilometres = float(mdp.Haversine()(a, b))
    for unit, length in (("m", 0.001), ("mi", 1.609344), ("ft", 0.0003048)):
        assert float(mdp.Haversine(unit=unit)(a, b)) == pytest.approx(kilometres / length, rel=1e-13)
    for make in (lambda: mdp.Haversine(unit="leagues"), lambda: mdp.Haversine(unit=""), lambda: mdp.Angular(unit="km")):
        with pytest.raises(InvalidInput, match="unit"):
            make()


@pytest.mark.parametrize("unit", ["m", "mi"])
def test_snapping_and_searching_on_the_earth_know_their_unit(unit):
    rng = np.random.default_rng(0)
    places = rng.uniform([41.0, -8.7], [41.2, -8.5], (40, 2))
    metric = mdp.Haversine(unit=unit)
    ours, theirs = mdp.FiniteSpace(places, mdp.Haversine()), mdp.FiniteSpace(places, metric)
    rows = rng.uniform([41.0, -8.7], [41.2, -8.5], (6000, 2))
    for limit in (0.2, 1.0):
        for one, two in zip(
            ours.admit(rows, snap=limit), theirs.admit(rows, snap=limit * metric.per_kilometre), strict=True
        ):
            assert np.array_equal(one, two)
    assert theirs.tolerance() == pytest.approx(ours.tolerance() * metric.per_kilometre)


def test_a_grid_on_the_earth_is_spaced_in_the_unit_of_its_metric():
    ours = mdp.grid((3, 4), spacing=0.5, origin=(41.0, -8.0), metric=mdp.Haversine())
    theirs = mdp.grid((3, 4), spacing=500.0, origin=(41.0, -8.0), metric=mdp.Haversine(unit="m"))
    np.testing.assert_allclose(ours.points, theirs.points, rtol=1e-12)


def test_curves_and_bags_of_words_are_in_the_unit_of_their_ground():
    assert mdp.Frechet(mdp.Haversine(unit="m")).unit == "m"
    assert mdp.WordMovers([[1.0, 0.0], [0.0, 1.0]], mdp.Angular()).unit == "rad"
