"""Bounds that hold whatever the secrets are: against an independent optimiser, and with secrets in the worst places."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import metricdp as mdp
from metricdp.estimation import report_models_of
from metricdp.estimation.bins import build_bins
from metricdp.estimation.decoders import Evidence, decoder_for
from metricdp.estimation.enclosures import EnclosingWeights
from metricdp.estimation.nodes import nodes_of


@pytest.mark.parametrize("seed", range(3))
def test_weights_enclose_at_every_place_and_bound_nearly_as_high_as_any_do(seed):
    rng = np.random.default_rng(seed)
    operator, masses, total = rng.dirichlet(np.full(6, 0.5), size=9), rng.dirichlet(np.ones(9)), 2000.0
    sums = np.stack([np.arange(9) < 3, np.arange(9) == 4], axis=1).astype(float)
    weights = EnclosingWeights(operator, masses, total).below(sums, 1.96)
    assert np.all(operator @ weights <= sums + 1e-9)
    reports = masses @ operator

    def bound(w):
        mean = reports @ w
        return mean - 1.96 * math.sqrt(max(reports @ w**2 - mean**2, 1e-12) / total)

    for column, g in enumerate(sums.T):
        best = minimize(
            lambda w: -bound(w), np.zeros(6), method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
            constraints={"type": "ineq", "fun": lambda w, g=g: g - operator @ w},
        )  # fmt: skip
        assert bound(weights[:, column]) <= -best.fun + 1e-6
        assert bound(weights[:, column]) >= -best.fun - 0.01


def test_bounds_are_on_the_right_side_on_average_though_the_reports_choose_their_weights():
    """Weights that knew the reports they are applied to are .04 too low from above; the error of 40 tables is .01."""
    rng = np.random.default_rng(5)
    masses, noise = np.random.default_rng(3).dirichlet(np.full(16, 0.4)), mdp.exponential(mdp.grid((4, 4)), 1.5)
    codes, source = np.random.default_rng(4).choice(16, 200, p=masses), report_models_of([noise])[0]
    truth = np.bincount(codes, minlength=16) / 200
    below, above = np.zeros(16), np.zeros(16)
    for _ in range(40):
        evidence = Evidence(
            source.operator, source.count_reports(noise.sample(codes, rng=rng)), truth, truth @ noise.matrix, "table"
        )
        found = decoder_for(evidence, "bounded").measure(None, 1.96)
        below, above = below + found.below.values / 40, above + found.above.values / 40
    assert np.all(below <= truth + 0.02)
    assert np.all(above >= truth - 0.02)


def test_places_all_over_cells_know_which_cells_they_touch():
    cells = mdp.grid((2, 3))
    nodes = nodes_of(cells.points, np.ones(2), np.array([1.5, 6.0]))
    for place, touching in zip(nodes.places, nodes.touching, strict=True):
        wanted = [bool(np.all(np.abs(place - centre) <= 0.5 + 1e-9)) for centre in cells.points]
        assert touching.tolist() == wanted
    assert np.diff(np.unique(nodes.places[:, 0])).max() * 1.5 <= 0.5 + 1e-9
    everything = np.ones((6, 1))
    assert nodes.inner_nodes(everything).all()
    pair = nodes.inner_nodes(np.array([[1.0], [1], [0], [0], [0], [0]]))  # the border between the two is inside
    inside = (nodes.places[:, 0] < 0.5 - 1e-9) & (nodes.places[:, 1] < 1.5 - 1e-9)
    assert pair[:, 0].astype(bool).tolist() == inside.tolist()
    np.testing.assert_allclose(nodes.cell_masses(np.ones(len(nodes.places))).sum(), len(nodes.places))


def test_where_everybody_is_in_a_corner_of_the_cell_nothing_assumed_holds_and_equal_chances_miss():
    rng = np.random.default_rng(5)
    cells, noise = mdp.grid((3, 3)), mdp.laplace(mdp.Lp(2), 2.0)
    where = rng.choice(9, 20_000, p=[0.2, 0, 0.1, 0, 0.4, 0, 0.05, 0, 0.25])
    corner = np.where(np.arange(9)[:, None] % 2 == 0, 0.45, -0.45) * np.ones(2)
    reports = noise.sample(cells.points[where] + corner[where], rng=rng)
    truth = np.bincount(where, minlength=9) / 20_000
    found = mdp.estimate_density(reports, noise, cells=cells)
    assert found.method == "bounded"
    assert np.all((found.lower <= truth) & (truth <= found.upper))
    assert np.all((found.lower <= found.masses) & (found.masses <= found.upper))
    # Bounds say something even here, where borders hide the most. They are wider than before (0.4): nobody need be in
    # the grid, and half of the reports chooses weights for the other.
    assert np.mean(found.upper - found.lower) < 0.45
    left = found.region([0, 1, 2])
    assert left.lower <= truth[:3].sum() <= left.upper
    assert any("nothing is assumed" in note for note in found.notes)
    wrong = mdp.estimate_density(reports, noise, cells=cells, within="cell")
    assert not np.all((wrong.lower <= truth) & (truth <= wrong.upper))
    with pytest.raises(mdp.MetricdpError, match="say within='cell' or within='point'"):
        mdp.estimate_density(reports, noise, cells=cells, within="anywhere", method="linear")


def test_bins_of_gaussian_noise_are_those_of_the_normal_law():
    noise, cells = mdp.gaussian(mdp.Lp(2), sigma=0.7), mdp.grid((3, 3))
    bins, operator = build_bins(noise, cells, within="point")
    np.testing.assert_allclose(operator.sum(axis=1), 1.0)
    sides = [norm.cdf(bins.edges[axis], loc=1.0, scale=0.7) for axis in (0, 1)]
    wanted = np.outer(np.diff(sides[0]), np.diff(sides[1])).ravel()
    np.testing.assert_allclose(operator[4, :-1], wanted, atol=2e-4)


def test_gaussian_noise_on_the_earth_falls_into_bins_as_the_law_says():
    rng = np.random.default_rng(6)
    noise = mdp.gaussian(mdp.Haversine(), sigma=0.8)
    cells = mdp.grid((4, 4), spacing=1.0, origin=(41.9, 12.4), metric=mdp.Haversine())
    bins, operator = build_bins(noise, cells, within="point")
    seen = np.bincount(
        bins.codes(noise.sample(np.repeat(cells.points[5:6], 20_000, axis=0), rng=rng)), minlength=bins.size
    )
    often = operator[5] * 20_000 > 5
    chi = ((seen - operator[5] * 20_000)[often] ** 2 / (operator[5] * 20_000)[often]).sum()
    assert abs(chi - often.sum()) < 5 * math.sqrt(2 * often.sum())
