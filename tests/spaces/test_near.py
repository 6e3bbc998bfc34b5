"""Near pairs are those of the whole matrix of distances, found without it."""

import heapq
import math

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.metrics import compiled, limited_paths, neighbours
from metricdp.spaces import near as module
from spaces_drawn import SPACES


def written_out(near, columns):
    """Return the rows as a matrix, infinite where a pair is not listed, after holding them to their shape."""
    assert near.starts.dtype == np.int64
    assert near.codes.dtype == np.int32
    assert near.distances.dtype == np.float64
    assert near.starts[0] == 0
    assert near.starts[-1] == len(near.codes) == len(near.distances)
    table = np.full((len(near.starts) - 1, columns), np.inf)
    for i in range(len(table)):
        row = slice(near.starts[i], near.starts[i + 1])
        assert np.all(np.diff(near.codes[row]) > 0)
        table[i, near.codes[row]] = near.distances[row]
    return table


def hold(table, apart, radius):
    """Hold rows to all distances: the same pairs, those at the radius itself aside, the same numbers but a last digit.

    For roads, the Earth and the powers 1, 2 and infinity both are computed alike and the rows are exactly those.
    """
    clear = np.abs(apart - radius) > 1e-12 * radius
    expected = np.where(apart <= radius, apart, np.inf)
    np.testing.assert_array_equal(np.isfinite(table)[clear], np.isfinite(expected)[clear])
    both = np.isfinite(table) & np.isfinite(expected)
    np.testing.assert_allclose(table[both], expected[both], rtol=1e-15)


def searched(edges, lengths, nodes, source):
    """Dijkstra along directed edges, written out."""
    away, waiting = {}, [(0.0, source)]
    while waiting:
        length, node = heapq.heappop(waiting)
        if node in away:
            continue
        away[node] = length
        for (u, v), street in zip(edges, lengths, strict=True):
            if u == node:
                heapq.heappush(waiting, (length + street, v))
    return [away.get(node, math.inf) for node in range(nodes)]


def streets(rng, nodes=40, parts=2):
    """Return random streets in parts that do not meet, some of a millimetre, some in parallel."""
    part = rng.integers(0, parts, nodes)
    edges = rng.integers(0, nodes, (4 * nodes, 2))
    edges = edges[(part[edges[:, 0]] == part[edges[:, 1]]) & (edges[:, 0] != edges[:, 1])]
    return edges, np.where(rng.random(len(edges)) < 0.1, 1e-6, rng.uniform(0.2, 3.0, len(edges)))


@pytest.mark.parametrize("kind", SPACES)
def test_near_pairs_are_those_of_all_distances(kind):
    space = SPACES[kind](24, np.random.default_rng(5))
    for share in (0.05, 0.3, 0.7, 1.0):
        radius = float(np.quantile(space.distances[space.distances > 0], share))
        near = space.near(radius)
        table = written_out(near, len(space))
        hold(table, space.distances, radius)
        if kind in ("l1", "l2", "linf", "earth", "road", "words", "given"):
            np.testing.assert_array_equal(table, np.where(space.distances <= radius, space.distances, np.inf))
        np.testing.assert_array_equal(table, table.T)
        assert near.radius == radius


@pytest.mark.parametrize("kind", ["l1", "l2", "l3", "linf", "earth", "ellipse", "hyperbolic"])
def test_near_reports_may_be_another_list(kind):
    rng = np.random.default_rng(8)
    space = SPACES[kind](30, rng)
    reports = mdp.FiniteSpace(SPACES[kind](17, rng).points, space.metric)
    apart = space.distances_to(reports)
    for share in (0.0, 0.1, 0.6):
        radius = float(np.quantile(apart, share))
        table = written_out(space.near(radius, reports), 17)
        hold(table, apart, radius)


@pytest.mark.parametrize("compiling", [True, False])
@pytest.mark.parametrize("one_way", ["open", "longer"])
@pytest.mark.parametrize("seed", range(3))
def test_roads_are_searched_up_to_the_radius(one_way, compiling, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    edges, lengths = streets(rng)
    if not compiling:
        monkeypatch.setattr(limited_paths, "_search_compiled", limited_paths._search_clusters)
        monkeypatch.setattr(limited_paths, "CLUSTER", 7)
    monkeypatch.setattr(module, "WORTH_COMPILING", 0 if compiling else math.inf)
    both = np.concatenate([edges, edges[:, ::-1]]), np.concatenate([lengths, lengths])
    used = both if one_way == "open" else (edges, lengths)
    there = np.array([searched(used[0].tolist(), used[1].tolist(), 40, node) for node in range(40)])
    apart = np.maximum(there, there.T)
    metric = mdp.ShortestPath(edges, lengths, 40, one_way=one_way)
    nodes, others = rng.permutation(40)[:29], rng.permutation(40)[:33]
    space, reports = mdp.FiniteSpace(nodes, metric), mdp.FiniteSpace(others, metric)
    for radius in (1e-6, 0.9, 2.5, 1e6):
        own = written_out(space.near(radius), 29)
        truth = apart[np.ix_(nodes, nodes)]
        np.testing.assert_allclose(own, np.where(truth <= radius, truth, np.inf), rtol=1e-12)
        np.testing.assert_array_equal(own, own.T)
        assert np.all(own[np.isfinite(own)] <= truth[np.isfinite(own)])
        truth = apart[np.ix_(nodes, others)]
        found = written_out(space.near(radius, reports), 33)
        np.testing.assert_allclose(found, np.where(truth <= radius, truth, np.inf), rtol=1e-12)
        dense = metric.pairwise(space.points, reports.points)
        np.testing.assert_array_equal(found, np.where(dense <= radius, dense, np.inf))


def test_a_pair_that_is_near_only_from_one_end_is_near_from_both(monkeypatch):
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last digit.
    space = mdp.FiniteSpace(np.arange(4), mdp.ShortestPath([[0, 1], [1, 2], [2, 3]], [0.1, 0.2, 0.3]))
    radius = float(space.distances[0, 3])
    for worth in (0, math.inf):
        monkeypatch.setattr(module, "WORTH_COMPILING", worth)
        table = written_out(space.near(radius), 4)
        np.testing.assert_array_equal(table, space.distances)
        assert np.all(np.isinf(written_out(space.near(math.nextafter(radius, 0)), 4)[[0, 3], [3, 0]]))


def test_far_points_and_tiny_and_huge_distances_are_kept_apart():
    points = np.array([[0.0, 0.0], [1e-9, 0.0], [1.0, 1.0], [1e9, -1e9], [1e9, -1e9 + 1.0]])
    for p in (1, 1.5, 2, 7, 60, np.inf):
        for scale in (1e-120, 1.0, 1e120):
            space = mdp.FiniteSpace(points * scale, mdp.Lp(p))
            for radius in (1e-9, 1.0, 2.0, 1e10):
                table = written_out(space.near(radius * scale), 5)
                hold(table, space.distances, radius * scale)


def test_the_earth_is_round_at_any_radius():
    rng = np.random.default_rng(2)
    points = np.column_stack([rng.uniform(-90, 90, 60), rng.uniform(-180, 180, 60)])
    points[:4] = [[90.0, 0.0], [-90.0, 3.0], [0.0, 180.0], [0.0, -179.9999]]
    space = mdp.FiniteSpace(points, mdp.Haversine("m"))
    for radius in (50.0, 2e6, 1.9e7, 2.1e7):
        table = written_out(space.near(radius), 60)
        np.testing.assert_array_equal(table, np.where(space.distances <= radius, space.distances, np.inf))


def test_blocks_and_their_borders_change_nothing(monkeypatch):
    space = mdp.FiniteSpace(np.random.default_rng(4).uniform(0, 1, (300, 2)), mdp.Lp(2))
    whole = written_out(space.near(0.2), 300)
    monkeypatch.setattr(neighbours, "BLOCK_PAIRS", 100)
    monkeypatch.setattr(neighbours, "BLOCK_VALUES", 700)
    monkeypatch.setattr(neighbours, "SLAB", 1000)
    np.testing.assert_array_equal(written_out(space.near(0.2), 300), whole)
    wide = mdp.FiniteSpace(np.random.default_rng(4).uniform(0, 1, (50, 20)), mdp.Lp(2))
    radius = float(np.median(wide.distances))
    table = written_out(wide.near(radius), 50)
    np.testing.assert_array_equal(table, np.where(wide.distances <= radius, wide.distances, np.inf))


def test_both_ways_to_the_smaller_distance_agree():
    rng = np.random.default_rng(6)
    table = rng.uniform(1.0, 2.0, (30, 30))
    table[rng.random((30, 30)) < 0.6] = np.inf
    np.fill_diagonal(table, 0.0)
    expected = np.where(np.isfinite(table) & np.isfinite(table.T), np.minimum(table, table.T), np.inf)
    listed = np.isfinite(table)
    starts = np.concatenate([[0], np.cumsum(listed.sum(axis=1))]).astype(np.int64)
    codes = np.nonzero(listed)[1].astype(np.int32)
    for way in (
        lambda *rows: compiled.take_smaller(*rows, 0, 99),
        lambda *rows: module._take_smaller(neighbours.NeighbourRows(*rows)),
    ):
        distances = table[listed]
        way(starts, codes, distances)
        np.testing.assert_array_equal(distances, expected[listed])


def test_what_cannot_be_listed_is_refused_in_a_sentence(monkeypatch):
    space = mdp.FiniteSpace(np.arange(50.0), mdp.Lp(1))
    for radius in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidInput, match="`radius` must be a positive"):
            space.near(radius)
    with pytest.raises(InvalidInput, match="coordinates like the inputs"):
        space.near(1.0, mdp.FiniteSpace(np.zeros((1, 2)), mdp.Lp(1)))
    monkeypatch.setattr(module, "WORTH_A_SAMPLE", 100)
    monkeypatch.setattr(module, "MOST_PAIRS", 1000)
    assert len(space.near(3.0).codes) == 50 * 7 - 12
    with pytest.raises(InvalidInput, match="Take a smaller radius"):
        space.near(40.0)


def test_secrets_at_one_place_are_named():
    space = mdp.FiniteSpace([0.0, 1.0, 1.0 + 1e-16 + 2e-16], mdp.metric(lambda a, b: np.floor(np.abs(a - b)[..., 0])))
    with pytest.raises(InvalidInput, match="secrets 1 and 2 are at distance 0"):
        space.near(0.5)
