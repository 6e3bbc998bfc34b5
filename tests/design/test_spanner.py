"""The spanner mechanism against a spanner and a program written out here."""

import numpy as np
import pytest

import metricdp as mdp
from brute import euclid, leakage, least_loss
from metricdp.errors import InvalidInput


def greedy(distances, stretch):
    """Return the folklore greedy spanner and its graph distances: shortest edges first, paths by Floyd and Warshall."""
    n = len(distances)
    order = sorted((distances[i, j], i, j) for i in range(n) for j in range(i + 1, n))
    kept = []
    paths = np.full((n, n), np.inf)
    np.fill_diagonal(paths, 0.0)
    for length, i, j in order:
        if paths[i, j] > stretch * length:
            kept.append((i, j))
            paths[i, j] = paths[j, i] = length
            for k in range(n):
                paths = np.minimum(paths, paths[:, [k]] + paths[[k]])
    return kept, paths


def cloud(size, seed):
    return np.random.default_rng(seed).uniform(0, 4, (size, 2))


@pytest.mark.parametrize(("objective", "stretch"), [("worst", 3.0), ("worst", 1.4), ("expected", 3.0)])
def test_it_is_the_optimum_over_the_edges_at_epsilon_divided_by_the_measured_stretch(objective, stretch):
    points, epsilon, gap = cloud(9, seed=3), 1.2, 1e-4
    distances = euclid(points)
    kept, paths = greedy(distances, stretch)
    apart = distances > 0
    measured = float((paths[apart] / distances[apart]).max())
    prior = np.full(9, 1 / 9)
    # constraints along the edges bind all pairs at the distances of the graph, and nothing more
    value = least_loss(distances, prior, epsilon / measured * paths, objective)
    made = mdp.spanner(
        mdp.Problem(mdp.FiniteSpace(points, mdp.Lp(2)), epsilon), objective=objective, stretch=stretch, gap=gap
    )
    assert value * (1 - 1e-7) <= made.certificate.loss <= value * (1 + 2 * gap)
    assert made.certificate.objective == objective
    assert leakage(made.matrix, distances)[0] <= epsilon
    assert f"{len(kept)} edges, measured stretch {measured:.4f}" in made.certificate.method
    # its bound is for every mechanism that keeps the promise, with whatever edges
    assert made.certificate.lower_bound <= least_loss(distances, prior, epsilon * distances, objective) * (1 + 1e-7)


def test_the_worst_loss_is_lower_when_it_is_what_is_minimised():
    problem = mdp.Problem(mdp.FiniteSpace(cloud(14, seed=5), mdp.Lp(2)), 1.0)
    worst, expected = (mdp.spanner(problem, objective=name, stretch=3.0) for name in ("worst", "expected"))
    assert mdp.worst_loss(worst) < mdp.worst_loss(expected)
    assert mdp.expected_loss(expected) < mdp.expected_loss(worst)


def test_an_objective_that_does_not_exist_is_refused():
    with pytest.raises(InvalidInput, match="'expected' or 'worst'"):
        mdp.spanner(mdp.Problem(mdp.FiniteSpace(cloud(4, seed=1), mdp.Lp(2)), 1.0), objective="average")
