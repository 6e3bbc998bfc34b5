"""Condensed local differential privacy: Ordinal-CLDP by its formula, and what its alpha is worth as a plain epsilon."""

import math

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage, least_loss


def published(distances, alpha):
    """Ordinal-CLDP: exp(-alpha d / 2), normalised, value by value."""
    rows = []
    for row in distances:
        kernel = [math.exp(-alpha * d / 2) for d in row]
        rows.append([one / math.fsum(kernel) for one in kernel])
    return np.array(rows)


@pytest.mark.parametrize("alpha", [0.05, 0.7, 3.0])
def test_ordinal_cldp_is_the_exponential_mechanism_with_half_the_budget(alpha):
    space = mdp.FiniteSpace(np.arange(12.0)[:, None], mdp.Lp(1))
    made = mdp.exponential(space, alpha, budget="half")
    np.testing.assert_allclose(made.matrix, published(space.distances, alpha), rtol=1e-6)
    assert leakage(made.matrix, space.distances)[0] <= alpha
    assert mdp.audit(made).verdict == "holds"
    best = least_loss(space.distances, np.full(12, 1 / 12), alpha * space.distances)
    certified = mdp.exponential(space, alpha)
    assert best * (1 - 1e-7) <= certified.certificate.loss <= made.certificate.loss * (1 + 1e-9)


def test_items_without_an_order_have_distances_that_must_be_a_metric():
    far = [[0, 1, 3], [1, 0, 3], [3, 3, 0]]
    made = mdp.exponential(mdp.FiniteSpace(np.arange(3), mdp.Precomputed(far)), 2.0, budget="half")
    np.testing.assert_allclose(made.matrix, published(far, 2.0), rtol=1e-6)
    with pytest.raises(mdp.MetricdpError, match="triangle"):
        mdp.Precomputed([[0, 1, 3], [1, 0, 1], [3, 1, 0]])


def test_an_alpha_that_matches_an_epsilon_by_confidence_is_not_that_epsilon():
    """A conversion in use, by the largest posterior under a uniform prior, on 100 ordered values."""
    n, epsilon = 100, 1.0
    distances = np.abs(np.arange(n)[:, None] - np.arange(n)).astype(float)
    goal = math.exp(epsilon) / (math.exp(epsilon) + n - 1)  # of randomised response
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        distribution = published(distances, middle)
        low, high = (middle, high) if (distribution / distribution.sum(axis=0)).max() <= goal else (low, middle)
    distribution = published(distances, low)
    plain = max(
        math.log(distribution[x, y] / distribution[z, y])
        for x in (0, n - 1)
        for z in (0, n - 1)
        for y in (0, n // 2, n - 1)
    )
    assert plain == pytest.approx(low / 2 * (n - 1), rel=1e-9)
    assert plain > 1.7 * epsilon
    report = mdp.audit(distribution, metric=mdp.Precomputed(1.0 - np.eye(n)), points=np.arange(n), epsilon=epsilon)
    assert report.verdict == "violated"
    assert report.epsilon == pytest.approx(plain, rel=1e-6)
    assert plain <= low * (n - 1)  # what alpha does promise: alpha times the diameter
