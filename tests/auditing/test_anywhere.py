"""The bound for mechanisms that report anywhere, against programs over reports all over the plane."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import metricdp as mdp
from metricdp.auditing import anywhere_lower_bound


def least_loss(apart: np.ndarray, costs: np.ndarray, prior: np.ndarray, epsilon: float) -> float:
    """Return the least loss with given reports, by HiGHS on the program written out."""
    secrets, reports = costs.shape
    pairs = [(i, j) for i in range(secrets) for j in range(secrets) if i != j]
    ratios = np.zeros((len(pairs) * reports, costs.size))
    for at, (i, j) in enumerate(pairs):
        for k in range(reports):
            ratios[at * reports + k, [i * reports + k, j * reports + k]] = 1.0, -math.exp(epsilon * apart[i, j])
    sums = np.kron(np.eye(secrets), np.ones(reports))
    found = linprog(
        (prior[:, None] * costs).ravel(), A_ub=ratios, b_ub=np.zeros(len(ratios)), A_eq=sums, b_eq=np.ones(secrets)
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("epsilon", [0.8, 3.0])
def test_reports_anywhere_do_not_go_below_the_bound(p: float, epsilon: float) -> None:
    rng = np.random.default_rng(int(10 * epsilon))
    points, prior = rng.uniform(0.0, 1.0, (4, 2)), rng.dirichlet(np.ones(4))
    space = mdp.FiniteSpace(points, mdp.Lp(p))
    bound = anywhere_lower_bound(space, epsilon, prior=prior)
    fine = np.stack(np.meshgrid(*[np.linspace(points[:, k].min(), points[:, k].max(), 7) for k in (0, 1)]), axis=-1)
    reports = np.concatenate([points, fine.reshape(-1, 2), rng.uniform(-1.0, 2.0, (12, 2))])
    costs = np.linalg.norm(points[:, None] - reports[None], ord=None if p == 2 else p, axis=2)
    least = least_loss(np.asarray(space.distances), costs, prior, epsilon)
    assert 0.8 * least < bound <= least + 1e-9


def test_the_bound_for_all_reports_lies_below_what_reports_between_the_places_reach() -> None:
    space, epsilon = mdp.grid((6, 6), spacing=0.2), mdp.epsilon_for(2, 0.4)
    assert 0.385 < anywhere_lower_bound(space, epsilon) < 0.41059  # which is reached with 121 reports
    line = mdp.FiniteSpace(np.array([[0.0], [1.0], [3.0]]), mdp.Lp(1))
    assert 0.0 < anywhere_lower_bound(line, 1.0) <= mdp.optimal(mdp.Problem(line, 1.0)).certificate.loss
    flat = mdp.FiniteSpace(np.array([[0.0, 2.0], [1.0, 2.0], [3.0, 2.0]]), mdp.Lp(1))
    assert anywhere_lower_bound(flat, 1.0, cells=400) == pytest.approx(anywhere_lower_bound(line, 1.0), abs=1e-3)
    with pytest.raises(mdp.MetricdpError, match="under Lp"):
        anywhere_lower_bound(mdp.grid((2, 2), origin=(41.0, -8.7), metric=mdp.Haversine()), 1.0)
