"""Noise on places anywhere: bounds hold wherever people are, in the worst place of a cell and outside the map."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

import metricdp as mdp
from metricdp.estimation import report_models_of
from metricdp.estimation.bins import boxes_of
from metricdp.estimation.decoders import WindowDecoder

NOISE = mdp.laplace(mdp.Lp(2), 10.0)
CELLS = mdp.grid((3, 3), spacing=2.0)  # each 20 units of noise wide
CODES = np.repeat([4, 5, 0], [2000, 800, 200])


@cache
def source():
    return report_models_of([NOISE], CELLS)[0]


def people(depth, rng):
    """Return a crowd that far inside the middle cell, another as far across its border, and some in a corner."""
    places = CELLS.points[CODES].copy()
    places[:2000, 1] += 1.0 - depth
    places[2000:2800, 1] += -1.0 + depth
    return places + rng.uniform(-0.01, 0.01, places.shape)


def test_a_crowd_at_the_worst_place_of_a_wide_cell_is_in_its_interval():
    rng, told = np.random.default_rng(1), source()
    truth, held, chance = np.bincount(CODES, minlength=9) / len(CODES), 0, 0.025
    for depth in (0.02, 0.2, 0.4, 0.5, 0.6, 0.8):
        counts = told.count_reports(NOISE.sample(people(depth, rng), rng=rng))
        found = WindowDecoder([told.windows], [counts], boxes_of(CELLS)).measure(None, 1.96)
        lower, upper = found.interval(chance)
        assert np.all(lower <= upper)
        held += int(np.sum((lower <= truth) & (truth <= upper)))
    assert held >= 48  # of 54: fewer by chance once in 500, were it 95 %, and the rarer the more they cover


def test_weights_are_on_average_below_or_above_the_cell_at_every_place():
    """The mean over the noise is integrated here, by midpoints, at places on both sides of the borders."""
    told, rng = source(), np.random.default_rng(2)
    windows, box = told.windows, boxes_of(CELLS)[4]
    radii = (np.arange(400) + 0.5) * 0.005  # up to 20 units
    angles = (np.arange(120) + 0.5) * 2 * np.pi / 120
    shares = (100.0 * np.exp(-10.0 * radii) * radii * 0.005)[:, None] / 120 * np.ones(120)
    offsets = radii[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    places = box[0] + rng.uniform(-0.3, 1.3, (10, 2)) * (box[1] - box[0])
    places[::2, 0] = np.where(rng.random(5) < 0.5, box[0, 0] - 1e-6, box[1, 0] + 1e-6)
    for side in (1, -1):
        for weights in windows.enclosing_weights(box[None], side):
            for place in places:
                codes = told.codes((place + offsets).reshape(-1, 2))
                row, column = np.divmod(codes, windows.shape[1])
                at = [(row - weights.start[0]) // weights.factor, (column - weights.start[1]) // weights.factor]
                inside = np.all([(a >= 0) & (a < n) for a, n in zip(at, weights.values.shape, strict=True)], axis=0)
                inside &= codes < told.size - 1
                values = np.where(inside, weights.values[tuple(np.where(inside, a, 0) for a in at)], weights.rest)
                mean = float((values * shares.ravel()).sum())
                really = float(np.all((place >= box[0]) & (place <= box[1])))
                assert side * (mean - really) <= 2e-3


def test_weights_hold_between_the_places_they_were_made_for():
    """In the middle between four places, where the mean peaks and its curvature at the places shows too little."""
    noise = mdp.gaussian(mdp.Lp(2), sigma=0.1)
    for side in (0.1, 0.2):
        cells = mdp.grid((3, 3), spacing=side)
        windows, box = report_models_of([noise], cells)[0].windows, boxes_of(cells)[4]
        for weights in windows.enclosing_weights(box[None], -1):
            masses = []
            for edges, first, count, middle in zip(
                windows.bins.edges, weights.start, weights.values.shape, box.mean(axis=0), strict=True
            ):
                step = np.diff(edges).mean()
                ends = edges[0] + step * (first + weights.factor * np.arange(count + 1.0))
                masses.append(np.diff(norm.cdf(ends, loc=middle, scale=0.1)))
            values = weights.values - weights.rest
            assert masses[0] @ values @ masses[1] + weights.rest >= 1.0 - 1e-5


def test_people_outside_the_map_are_counted_elsewhere_and_not_in_its_corner():
    rng = np.random.default_rng(3)
    outside = np.array([-30.0, -20.0]) + rng.uniform(-1, 1, (1000, 2))
    reports = NOISE.sample(np.concatenate([people(0.6, rng), outside]), rng=rng)
    found = mdp.estimate_density(reports, NOISE, cells=CELLS)
    assert found.elsewhere.lower <= 0.25 <= found.elsewhere.upper
    assert found.elsewhere.upper - found.elsewhere.lower < 0.1
    assert found.lower[0] <= 0.05 <= found.upper[0] < 0.15
    assert abs(found.masses.sum() + found.elsewhere.mass - 1.0) < 0.05
    assert any("--grid=-3" in note for note in found.notes)
    for within in ("cell", "point"):
        with pytest.raises(mdp.MetricdpError, match=r"25\.0\d% of the reports .* --grid=-3"):
            mdp.estimate_density(reports, NOISE, cells=CELLS, within=within)


def test_people_just_outside_the_map_do_not_make_its_border_cells_too_large():
    rng = np.random.default_rng(4)
    beside = np.array([-1.1, 0.0]) + rng.uniform(-0.05, 0.05, (3000, 2))  # a unit of noise from the border
    found = mdp.estimate_density(NOISE.sample(beside, rng=rng), NOISE, cells=CELLS)
    assert np.all(found.lower <= 0.0)
    assert found.elsewhere.upper >= 1.0 - 1e-3


@pytest.mark.parametrize("spacing", [8.0, 20.0])
def test_on_the_line_wide_cells_have_intervals_that_hold_and_say_something(spacing):
    rng, noise, line = np.random.default_rng(5), mdp.laplace(mdp.Lp(1), 2.0, dimension=1), mdp.grid(3, spacing=spacing)
    codes = np.repeat([0, 1, 2], [1000, 600, 400])
    truth, held = np.bincount(codes) / len(codes), 0
    for depth in (0.0, 0.3, 0.49):
        places = line.points[codes] + depth * spacing
        found = mdp.estimate_density(noise.sample(places, rng=rng), noise, cells=line)
        if depth < 0.4:  # nearer to a border nobody can tell on which side they are
            assert np.all(found.upper - found.lower < 0.25)
            assert found.elsewhere.upper < 0.25
        assert found.elsewhere.lower <= 0.0
        held += int(np.sum((found.lower <= truth) & (truth <= found.upper)))
    assert held >= 8  # of 9: fewer by chance once in 100, were it 95 %, and the rarer the more they cover
