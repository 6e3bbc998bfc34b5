"""Reports anywhere: masses of bins against integrals and draws."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

import metricdp as mdp
from metricdp.estimation.bins import build_bins, spacing_of


def test_the_mass_of_a_bin_is_the_integral_of_the_plane_law():
    noise, cells = mdp.laplace(mdp.Lp(2), 1.3), mdp.grid((3, 3))
    bins, distribution = build_bins(noise, cells, within="point")
    np.testing.assert_allclose(distribution.sum(axis=1), 1.0)
    for code in (0, bins.codes(np.array([[1.0, 1.0]]))[0], bins.codes(np.array([[1.0, 2.6]]))[0]):
        row, column = np.unravel_index(code, bins.shape)
        (a, b), (c, d) = bins.edges[0][row : row + 2], bins.edges[1][column : column + 2]
        inside = dblquad(lambda y, x: 1.3**2 / (2 * math.pi) * math.exp(-1.3 * math.hypot(x - 1, y - 1)), a, b, c, d)[0]
        assert distribution[4, code] == pytest.approx(inside, rel=2e-4)


def test_on_the_line_and_anywhere_in_a_cell():
    noise, cells = mdp.laplace(mdp.Lp(1), 2.0, dimension=1), mdp.grid(5)
    bins, distribution = build_bins(noise, cells, within="cell")
    edges = bins.edges[0]
    for cell, code in ((0, 3), (2, 7), (4, 1)):
        mean = quad(
            lambda x, k=code: (
                0.5
                * (
                    math.copysign(1 - math.exp(-2 * abs(edges[k + 1] - x)), edges[k + 1] - x)
                    - math.copysign(1 - math.exp(-2 * abs(edges[k] - x)), edges[k] - x)
                )
            ),
            cell - 0.5,
            cell + 0.5,
            points=[edges[code], edges[code + 1]],
        )[0]
        assert distribution[cell, code] == pytest.approx(mean, rel=0.01, abs=1e-5)


def test_on_the_earth_draws_fall_into_bins_as_the_law_says():
    rng = np.random.default_rng(1)
    noise = mdp.laplace(mdp.Haversine(), 1.0)
    cells = mdp.grid((4, 4), spacing=1.0, origin=(41.9, 12.4), metric=mdp.Haversine())
    bins, distribution = build_bins(noise, cells, within="cell")
    steps, draws = spacing_of(cells.points), 40_000
    places = cells.points[5] + rng.uniform(-0.5, 0.5, (draws, 2)) * steps
    seen = np.bincount(bins.codes(noise.sample(places, rng=rng)), minlength=bins.size)
    often = distribution[5] * draws > 5
    chi = ((seen - distribution[5] * draws)[often] ** 2 / (distribution[5] * draws)[often]).sum()
    assert abs(chi - often.sum()) < 5 * math.sqrt(2 * often.sum())


def test_secrets_anywhere_are_found_again_from_noise_in_the_plane():
    rng = np.random.default_rng(2)
    noise, cells = mdp.laplace(mdp.Lp(2), 2.0), mdp.grid((3, 3))
    shares = np.array([0.3, 0, 0, 0.1, 0.4, 0, 0, 0.15, 0.05])
    where = rng.choice(9, 20_000, p=shares)
    reports = noise.sample(cells.points[where] + rng.uniform(-0.5, 0.5, (20_000, 2)), rng=rng)
    found = mdp.estimate_density(reports, noise, cells=cells, within="cell")
    truth = np.bincount(where, minlength=9) / 20_000
    assert np.all(np.abs(found.masses - truth) < 4 * found.errors)
    assert found.errors.max() < 0.03
    assert any("equal probability" in note for note in found.notes)


def test_a_mechanism_from_a_box_to_finitely_many_reports_is_read_from_its_masses():
    rng = np.random.default_rng(3)
    outputs = mdp.grid((3, 3))
    noise = mdp.interpolated(mdp.Box([0, 0], [2, 2], mdp.Lp(2)), outputs, 2.0, anchors=(2, 2), rule="exact")
    where = rng.choice(9, 5000, p=[0.5, 0.2, 0.1, 0.1, 0.1, 0, 0, 0, 0])
    reports = noise.sample(outputs.points[where], rng=rng)
    found = mdp.estimate_density(reports, noise, cells=outputs, within="point")
    truth = np.bincount(where, minlength=9) / 5000
    assert np.all((found.lower - 2 * found.errors <= truth) & (truth <= found.upper + 2 * found.errors))


def test_noise_needs_cells_of_its_own_kind():
    noise = mdp.laplace(mdp.Lp(2), 2.0)
    with pytest.raises(mdp.MetricdpError, match="give `cells`, a public grid"):
        mdp.estimate_density([[0.0, 1.0]], noise)
    with pytest.raises(mdp.MetricdpError, match="2 coordinates like the secrets"):
        mdp.estimate_density([[0.0, 1.0]], noise, cells=mdp.grid(4))
    with pytest.raises(mdp.MetricdpError, match="rows of 2 finite numbers"):
        mdp.estimate_density([[0.0, math.nan]], noise, cells=mdp.grid((2, 2)))
    with pytest.raises(mdp.MetricdpError, match="on the line, in the plane"):
        mdp.estimate_density(np.zeros((3, 5)), mdp.laplace(mdp.Lp(2), 1.0, dimension=5), cells=mdp.grid((2, 2)))
