"""Distances along roads, pair by pair, by the narrowest search that finds them."""

import itertools
import math

import numpy as np
import pytest

import metricdp as mdp
from metricdp.metrics import compiled, networks


def all_ways(edges, lengths, nodes):
    """Floyd and Warshall along directed streets, written out."""
    apart = [[0.0 if i == j else math.inf for j in range(nodes)] for i in range(nodes)]
    for (u, v), length in zip(edges.tolist(), lengths.tolist(), strict=True):
        apart[u][v] = min(apart[u][v], length)
    for k, i, j in itertools.product(range(nodes), repeat=3):
        apart[i][j] = min(apart[i][j], apart[i][k] + apart[k][j])
    return np.array(apart)


@pytest.mark.parametrize("compiling", [True, False])
@pytest.mark.parametrize("one_way", ["open", "longer"])
def test_pairs_against_all_ways(one_way, compiling, monkeypatch):
    monkeypatch.setattr(networks, "worth_compiling", lambda sources: compiling)
    assert compiled.__doc__  # imported: the extra `fast` is part of the check
    rng = np.random.default_rng(7)
    nodes = 30
    part = rng.integers(0, 2, nodes)
    edges = rng.integers(0, nodes, (80, 2))
    edges = edges[(part[edges[:, 0]] == part[edges[:, 1]]) & (edges[:, 0] != edges[:, 1])]
    lengths = np.where(rng.random(len(edges)) < 0.2, 1e-6, rng.uniform(0.1, 9.0, len(edges)))
    used = (edges, lengths)
    if one_way == "open":
        used = np.concatenate([edges, edges[:, ::-1]]), np.concatenate([lengths, lengths])
    there = all_ways(*used, nodes)
    truth = np.maximum(there, there.T)
    metric = mdp.ShortestPath(edges, lengths, nodes, one_way=one_way)
    left, right = rng.integers(0, nodes, (2, 4, 50))
    found = metric(left[..., None], right[..., None])
    assert found.shape == (4, 50)
    np.testing.assert_allclose(found, truth[left, right], rtol=1e-12)
    assert np.all(found <= truth[left, right])
    np.testing.assert_array_equal(found, metric.from_nodes(np.arange(nodes))[left, right])
    everything = np.arange(nodes)
    np.testing.assert_allclose(metric(everything[:, None, None], everything[None, :, None]), truth, rtol=1e-12)
    assert metric(np.zeros((0, 1)), np.zeros((0, 1))).shape == (0,)
