"""What doubles compute lies within the bounds they state, whatever bits follow the first word of a uniform."""

import math
from fractions import Fraction

import flint
import numpy as np
import pytest

import metricdp as mdp
from metricdp.mechanisms.noise import distributions, kernels, vectors

RNG = np.random.default_rng(99)
ROWS = 150
UNIT = 2.0**-53


@pytest.fixture(autouse=True)
def precise():
    with flint.ctx.workprec(500):
        yield


def rational(value):
    fraction = Fraction(value)
    return flint.arb(flint.fmpq(fraction.numerator, fraction.denominator))


def ends(words):
    """The uniforms of a row if all further bits are 0, and if they are 1."""
    for tail in (0, 2**192 - 1):
        yield [rational(Fraction((int(word) << 192) | tail, 2**256)) for word in words]


def random_words(width):
    words = RNG.integers(0, 2**64, (ROWS, width), dtype=np.uint64)
    words[:20, 0] >>= np.uint64(25)  # near 0
    words[20:40, 1 % width] |= np.uint64(2**64 - 2**28)  # near 1
    words[40:60, width - 1] = RNG.integers(0, 8, 20).astype(np.uint64) << np.uint64(61)  # whole eighths
    return words


@pytest.mark.parametrize("epsilon", [10.0, 1e-3, 1e-5])
def test_on_the_earth(epsilon, monkeypatch):
    distribution, seen, place_cell = mdp.laplace(mdp.Haversine(), epsilon).distribution, [], kernels.place_cell

    def noticed(whole, rest, moved, error):
        seen.append((whole, rest, moved, error))
        return place_cell(whole, rest, moved, error)

    monkeypatch.setattr(kernels, "place_cell", noticed)
    monkeypatch.setattr(distributions, "compiled", lambda: None)
    rows = np.stack([RNG.uniform(-90, 90, ROWS), RNG.uniform(-180, 180, ROWS)], axis=1)
    rows[60:120, 0] = np.concatenate([90 - 10.0 ** RNG.uniform(-10, 0.5, 50), [90.0] * 5, [-90.0] * 5])
    words = random_words(4)
    with np.errstate(all="ignore"):
        cells, kept = distribution._propose(rows, words)
    assert np.sum(kept == kernels.DECIDED) > ROWS / 5
    scale, turn = 2 * distribution.quarter / flint.arb.pi(), 4 * distribution.quarter
    for at in np.flatnonzero(kept == kernels.DECIDED):
        for first, second, _, bearing in ends(words[at]):
            away = (
                -(first * second).log() / rational(distribution.rate)
                if distribution.rate > 1
                else (1 - 2 * first).acos()
            )
            latitude, longitude = (rational(x) / 180 for x in rows[at].tolist())
            north, east = away.sin() * (2 * bearing).cos_pi(), away.sin() * (2 * bearing).sin_pi()
            up = latitude.sin_pi() * away.cos() + latitude.cos_pi() * north
            out = latitude.cos_pi() * away.cos() - latitude.sin_pi() * north
            height = flint.arb.atan2(up, (out * out + east * east).sqrt()) * scale
            around = longitude * (2 * distribution.quarter) + flint.arb.atan2(east, out) * scale
            for true, (whole, rest, moved, error) in zip((height, around), seen, strict=True):
                if true is around and abs(cells[at, 0]) == distribution.quarter:
                    continue
                gap = true - sum(rational(part[at]) for part in (whole, rest, moved))
                gap -= turn * round(float(gap) / turn)
                assert abs(gap) <= float(error[at]) + 4 * UNIT * (1 + abs(float(moved[at])))


def brute_force(p, dimension, uniforms):
    """l_p noise of rate one, as docs/format.md says it, for p in 1, 2 and infinity."""
    if p == 1.0:
        doubled = [2 * u for u in uniforms]
        return [d.log() if u < 0.5 else -(d - 1).log() for u, d in zip(uniforms, doubled, strict=True)]
    count = dimension + 1 if math.isinf(p) else dimension
    radius = -sum(u.log() for u in uniforms[:count])
    if math.isinf(p):
        return [radius * (2 * u - 1) for u in uniforms[count:]]
    if dimension == 2:
        return [radius * (2 * uniforms[2]).cos_pi(), radius * (2 * uniforms[2]).sin_pi()]
    pairs = [
        ((-2 * u.log()).sqrt(), 2 * v)
        for u, v in zip(uniforms[dimension::2], uniforms[dimension + 1 :: 2], strict=True)
    ]
    normals = [size * part for size, turn in pairs for part in (turn.cos_pi(), turn.sin_pi())][:dimension]
    length = sum(x * x for x in normals).sqrt()
    return [radius * x / length for x in normals]


@pytest.mark.parametrize(("p", "dimension"), [(1.0, 2), (2.0, 2), (2.0, 3), (2.0, 8), (math.inf, 3)])
def test_vectors(p, dimension):
    words = random_words(vectors.width_of(p, dimension))
    with np.errstate(all="ignore"):
        noise, error = vectors.unit_noise(p, dimension, lambda attempt: words)
    sure = np.isfinite(error).all(axis=1)
    assert sure.mean() > 0.6
    for at in np.flatnonzero(sure):
        for uniforms in ends(words[at]):
            for true, value, bound in zip(brute_force(p, dimension, uniforms), noise[at], error[at], strict=True):
                size = -true if p == 1.0 else true  # the first bit set means below zero
                assert abs(size - rational(float(value))) <= float(bound)
