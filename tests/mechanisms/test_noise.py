"""Exact noise: bounds of the functions, doubles against arbitrary precision, words at borders, one set of reports."""

from fractions import Fraction
from functools import partial

import flint
import numpy as np
import pytest
from scipy import stats

import metricdp as mdp
from metricdp.errors import MetricdpError
from metricdp.mechanisms.noise import distributions, functions, kernels
from metricdp.randomness import RowWords
from published import NOISE, noise_of, report_of

UNIT = 2.0**-53
RNG = np.random.default_rng(2026)


def spread(low, high, count=300):
    """Numbers of all sizes between 10^low and 10^high."""
    return 10.0 ** RNG.uniform(low, high, count)


POSITIVE = np.concatenate(
    [spread(-300, 0), 1 - spread(-16, 0), np.sqrt(0.5) * (1 + spread(-16, -6)), RNG.uniform(0, 1, 300)]
)
SHARES = np.concatenate(
    [spread(-16, 0), RNG.uniform(0, 1, 400), (RNG.integers(0, 8, 200) / 8 + spread(-16, -8, 200)) % 1]
)
SMALL, LARGE = spread(-20, np.log10(np.pi / 4)), RNG.uniform(0, 3.2, 400)
DEGREES = np.concatenate([RNG.uniform(-90, 90, 300), 90 - spread(-13, 1), spread(-300, 1), [0.0, 45.0, 90.0, -90.0]])
HEIGHTS, WIDTHS = (
    np.concatenate([RNG.normal(size=300), -spread(-100, 3)]),
    np.concatenate([RNG.normal(size=300), spread(-9, 3)]),
)
POWERS = np.concatenate([RNG.uniform(-700, 700, 300), spread(-18, 0), -spread(-18, 0)])


BOUNDS = {  # computed, the truth of one argument, units of 2^-53, of itself or of one
    "log": (functions.log, (POSITIVE,), lambda x: x.log(), 8, True),
    "exp": (functions.exp, (POWERS,), lambda x: x.exp(), 4, True),
    "sine": (lambda x: functions.circle(x)[0], (SHARES,), lambda x: (2 * x).sin_pi(), 6, True),
    "cosine": (lambda x: functions.circle(x)[1], (SHARES,), lambda x: (2 * x).cos_pi(), 6, True),
    "small sine": (lambda x: functions.sine_and_cosine(x)[0], (SMALL,), lambda x: x.sin(), 6, True),
    "large sine": (lambda x: functions.sine_and_cosine(x)[0], (LARGE,), lambda x: x.sin(), 6, False),
    "large cosine": (lambda x: functions.sine_and_cosine(x)[1], (LARGE,), lambda x: x.cos(), 6, False),
    "up": (lambda x: functions.latitude(x)[0], (DEGREES,), lambda x: (x / 180).sin_pi(), 6, True),
    "out": (lambda x: functions.latitude(x)[1], (DEGREES,), lambda x: (x / 180).cos_pi(), 6, True),
    "arctangent": (functions.arctangent, (HEIGHTS, WIDTHS), lambda y, x: flint.arb.atan2(y, x), 12, True),
    "arcs": (functions.arc, (np.arange(9.0),), lambda k: (k / 8).atan(), 1, True),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_functions_stay_within_their_bounds(name):
    computed, arguments, true, units, relative = BOUNDS[name]
    with flint.ctx.workprec(300):
        for value, *numbers in zip(computed(*arguments).tolist(), *(x.tolist() for x in arguments), strict=True):
            exact = true(*map(flint.arb, numbers))
            assert abs(flint.arb(value) - exact) <= units * UNIT * (abs(exact) if relative else 1)


def test_products_and_centres_lose_nothing():
    values = RNG.uniform(-1e6, 1e6, 200)
    for numerator, denominator in ((200_000.0, 1.0), (1.0, 0.3), (300.0, 90.0), (1.0, 3e-7)):
        whole, rest = functions.centre(values, numerator, denominator)
        for value, cell, part in zip(values.tolist(), whole.tolist(), rest.tolist(), strict=True):
            true = Fraction(value) * Fraction(numerator) / Fraction(denominator)
            assert abs(Fraction(cell) + Fraction(part) - true) <= 4 * Fraction(UNIT)


LAWS = {
    "line": mdp.laplace(mdp.Lp(1), 0.7, dimension=1),
    "diamond": mdp.laplace(mdp.Lp(1), 2.0, dimension=3),
    "plane": mdp.laplace(mdp.Lp(2), 2.0),
    "odd pitch": mdp.laplace(mdp.Lp(2), 2.0, pitch=0.3),
    "space": mdp.laplace(mdp.Lp(2), 2.0, dimension=5),
    "cube": mdp.laplace(mdp.Lp(np.inf), 2.0, dimension=3),
    "power": mdp.laplace(mdp.Lp(1.5), 2.0, dimension=3),
    "steep": mdp.laplace(mdp.Lp(1000.0), 2.0, dimension=2),
    "ellipse": mdp.laplace(mdp.Mahalanobis([[2.0, 0.6], [0.6, 1.0]]), 2.0),
    "earth": mdp.laplace(mdp.Haversine(), 10.0),
    "far": mdp.laplace(mdp.Haversine(), 1e-3),
    "wide": mdp.laplace(mdp.Haversine(), 1e-5),
    "normal line": mdp.gaussian(mdp.Lp(2), sigma=0.7, dimension=1),
    "normal plane": mdp.gaussian(mdp.Lp(2), sigma=3.0),
    "normal space": mdp.gaussian(mdp.Lp(2), sigma=1.0, dimension=5),
    "normal ellipse": mdp.gaussian(mdp.Mahalanobis([[2.0, 0.6], [0.6, 1.0]]), sigma=0.5),
    "normal earth": mdp.gaussian(mdp.Haversine(), sigma=0.4),
    "normal far": mdp.gaussian(mdp.Haversine("mi"), sigma=900.0),
    "normal wide": mdp.gaussian(mdp.Haversine(), sigma=20_000.0),
}


def secrets_for(mechanism, count):
    if isinstance(mechanism.inputs.metric, mdp.Haversine):
        rows = np.stack([np.degrees(np.arcsin(RNG.uniform(-1, 1, count))), RNG.uniform(-180, 180, count)], axis=1)
        rows[: count // 4, 0] = np.tile([90.0, -90.0, 90 - 1e-9, 90 - 1e-4, 0.0], count)[: count // 4]
        rows[count // 4 : count // 3, 1] = np.tile([180.0, -180.0, 179.9999999, 360.0], count)[
            : count // 3 - count // 4
        ]
        return rows
    return RNG.normal(size=(count, mechanism.inputs.dimension)) * 1000


@pytest.mark.parametrize("name", LAWS)
def test_the_slow_path_forced_on_every_draw_gives_the_reports_of_the_fast_one(name):
    mechanism = LAWS[name]
    distribution, rows = mechanism.distribution, secrets_for(mechanism, 60)
    words = RowWords(RNG.bytes(32), distribution.width)
    with np.errstate(all="ignore"):
        cells, sure = distribution.doubles(rows, partial(words.first, start=0, stop=len(rows)))
    assert sure.mean() > 0.95
    for at in np.flatnonzero(sure):
        assert distribution.exactly(rows[at], words.digits(int(at))) == tuple(cells[at].astype(int))
    assert np.array_equal(distributions.draw_cells(rows, distribution, words)[sure], cells[sure])


def planted(mechanism, count):
    """Secrets whose noise, for the words of their rows, puts them on the border of a cell as closely as doubles can."""
    rows, words = secrets_for(mechanism, count), RowWords(RNG.bytes(32), mechanism.distribution.width)
    cells = distributions.draw_cells(rows, mechanism.distribution, words)
    low, high = rows[:, 0].copy(), rows[:, 0] + 1.5 * mechanism.lattice.pitch
    for _ in range(70):  # bisection for the secret at which the first coordinate changes its cell
        middle = (low + high) / 2
        rows[:, 0] = middle
        same = distributions.draw_cells(rows, mechanism.distribution, words)[:, 0] == cells[:, 0]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return rows, low, high, words


@pytest.mark.parametrize("name", ["line", "plane", "odd pitch", "cube", "ellipse"])
def test_words_at_the_borders_of_cells_are_decided_exactly(name):
    mechanism = LAWS[name]
    distribution = mechanism.distribution
    rows, low, high, words = planted(mechanism, 12)
    assert np.all(high == np.nextafter(low, np.inf))  # two neighbouring doubles, and the border between them
    for edge in (low, high):
        rows[:, 0] = edge
        for at in range(len(rows)):
            with flint.ctx.workprec(4000):  # the truth from 40 words of every uniform
                noise = distribution.exact_noise(words.digits(at), 40)[0]
                per_unit = Fraction(distribution.lattice[0]) / Fraction(distribution.lattice[1])
                scale, place = distribution.scale, Fraction(float(edge[at])) * per_unit
                total = flint.arb(flint.fmpq(scale.numerator, scale.denominator)) * noise
                total += flint.arb(flint.fmpq(place.numerator, place.denominator))
                true = int((total + flint.arb(0.5)).floor().unique_fmpz())
            assert distributions.draw_cells(rows[at : at + 1], distribution, _Row(words, at))[0, 0] == true


class _Row(RowWords):
    """One row of other words, as if it were the first."""

    def __init__(self, words, row):
        self.words, self.row, self.width = words, row, words.width

    def first(self, attempt, start, stop):
        return self.words.first(attempt, self.row + start, self.row + stop)

    def digits(self, row):
        return self.words.digits(self.row + row)


class Chosen:
    """Words of one row that somebody chose; the bits after them are those of a third, which end on no border."""

    def __init__(self, *words):
        self.chosen, self.width = words, len(words)

    def first(self, attempt, start, stop):
        return np.array([self.chosen], dtype=np.uint64)

    def digits(self, row):
        def number(attempt, uniform, count):
            tail = int("5" * 16 * (count - 1) or "0", 16)
            return (int(self.chosen[uniform]) << (64 * (count - 1))) | tail

        return number


def test_uniforms_that_doubles_know_nothing_about_are_decided():
    for word in (0, 1, 2**11, 2**64 - 1, 2**63, 2**63 - 1):
        cells = distributions.draw_cells(np.array([[0.25]]), LAWS["line"].distribution, Chosen(word))
        share = Fraction(int(Chosen(word).digits(0)(0, 0, 30)) % 2 ** (64 * 30 - 1), 2 ** (64 * 30 - 1))
        with flint.ctx.workprec(3000):
            size = -flint.arb(flint.fmpq(share.numerator, share.denominator)).log()
            top, bottom = LAWS["line"].lattice.ratio
            scale = Fraction(top) / Fraction(bottom)
            moved = size / flint.arb(0.7) * (-1 if word >> 63 else 1) + flint.arb(0.25)
            true = (moved * flint.arb(flint.fmpq(scale.numerator, scale.denominator)) + flint.arb(0.5)).floor()
        assert cells[0, 0] == int(true.unique_fmpz())
    with pytest.raises(MetricdpError, match="repeats itself"):  # not a loop without end
        LAWS["line"].distribution.exactly(np.array([0.25]), lambda attempt, uniform, count: 0)


def brute_force_on_the_sphere(place, digits, rate, quarter):
    """The report by vectors in space, in 600 bits: another way than the one taken."""
    with flint.ctx.workprec(600):
        for attempt in range(100):
            u = [flint.arb(digits(attempt, k, 8)) / flint.arb(2) ** 512 for k in range(4)]
            rational = flint.arb(flint.fmpq(rate.numerator, rate.denominator))
            if rate > 1:
                angle = -(u[0].log() + u[1].log()) / rational
                kept = bool(angle < flint.arb.pi()) and bool(u[2] < angle.sin() / angle)
            else:
                angle = (1 - 2 * u[0]).acos()
                kept = bool(u[2] < (-rational * angle).exp())
            if kept:
                break
        radians = [flint.arb(x) * flint.arb.pi() / 180 for x in place]
        (s, c), (t, d) = ((x.sin(), x.cos()) for x in radians)
        bearing = 2 * flint.arb.pi() * u[3]
        centre, north, east = (c * d, c * t, s), (-s * d, -s * t, c), (-t, d, flint.arb(0))
        end = [
            angle.cos() * a + angle.sin() * (bearing.cos() * b + bearing.sin() * e)
            for a, b, e in zip(centre, north, east, strict=True)
        ]
        scale = 2 * quarter / flint.arb.pi()
        row = int((end[2].asin() * scale + flint.arb(0.5)).floor().unique_fmpz())
        column = int((flint.arb.atan2(end[1], end[0]) * scale + flint.arb(0.5)).floor().unique_fmpz())
    return row, 0 if abs(row) == quarter else (column + 2 * quarter) % (4 * quarter) - 2 * quarter


@pytest.mark.parametrize("name", ["earth", "far", "wide"])
def test_reports_on_the_earth_are_those_of_vectors_in_space(name):
    distribution, rows = LAWS[name].distribution, secrets_for(LAWS[name], 80)
    words = RowWords(RNG.bytes(32), distribution.width)
    cells = distributions.draw_cells(rows, distribution, words)
    for at, place in enumerate(rows.tolist()):
        assert tuple(cells[at].astype(int)) == brute_force_on_the_sphere(
            place, words.digits(at), distribution.rate, distribution.quarter
        )


def test_a_place_on_a_border_of_the_earth_lattice_is_decided_as_by_vectors():
    mechanism = LAWS["earth"]
    distribution = mechanism.distribution
    rows, low, high, words = planted(mechanism, 24)
    rows, low, high = rows[8:], low[8:], high[8:]  # away from the poles, where latitudes end
    for edge in (low, high):
        for at, (place, latitude) in enumerate(zip(rows.tolist(), edge.tolist(), strict=True)):
            place[0] = latitude
            draw_cells = distributions.draw_cells(np.array([place]), distribution, _Row(words, at + 8))[0]
            true = brute_force_on_the_sphere(place, words.digits(at + 8), distribution.rate, distribution.quarter)
            assert tuple(draw_cells.astype(int)) == true


def test_compiled_loops_have_the_bits_of_the_arrays(monkeypatch):
    pytest.importorskip("numba")
    distributions.compiled(load=True)
    words = RNG.integers(0, 2**64, (3000, 4), dtype=np.uint64)
    words[:50] >>= np.uint64(55)
    for name in ("earth", "far", "wide", "plane"):
        distribution, rows = LAWS[name].distribution, secrets_for(LAWS[name], 3000)
        draw = distribution._plane if name == "plane" else distribution._propose
        cells, became = draw(rows, words)
        with monkeypatch.context() as patch, np.errstate(all="ignore"):
            patch.setattr(distributions, "compiled", lambda: None)
            by_arrays, too = draw(rows, words)
        assert np.array_equal(became, too)
        decided = became == kernels.DECIDED  # for the plane: True
        assert np.array_equal(cells[decided], by_arrays[decided])


def test_few_draws_are_left_to_arbitrary_precision():
    distribution = LAWS["earth"].distribution
    words = RNG.integers(0, 2**64, (200_000, 4), dtype=np.uint64)
    with np.errstate(all="ignore"):
        _, kept = distribution._propose(np.tile([[60.17, 24.94]], (200_000, 1)), words)
    assert np.sum(kept == kernels.UNDECIDED) <= 1


@pytest.mark.parametrize("name", ["line", "plane", "earth"])
def test_the_set_of_reports_does_not_depend_on_the_secret(name):
    coarse = {
        "line": mdp.laplace(mdp.Lp(1), 1.0, dimension=1, pitch=0.5),
        "plane": mdp.laplace(mdp.Lp(2), 1.0, pitch=0.5),
        "earth": mdp.laplace(mdp.Haversine(), 0.02, pitch=0.5),
    }[name]
    secrets = {
        "line": [[0.0], [1 / 3], [0.1 + 2**-50]],
        "plane": [[0.0, 0.0], [1 / 3, 1e-300], [0.25, 0.25]],
        "earth": [[0.1, 179.9], [0.0, 180.0], [1e-17, -179.8]],
    }[name]
    seen = []
    for secret in secrets:
        reports = coarse.sample(np.tile(secret, (20_000, 1)), rng=np.random.default_rng(1))
        values, counts = np.unique(reports, axis=0, return_counts=True)
        seen.append({tuple(v) for v, c in zip(values.tolist(), counts.tolist(), strict=True) if c > 30})
        near = {tuple(v) for v in values.tolist()}
        assert all(each <= near for each in seen)
    for value in seen[0]:  # multiples of the pitch as decimals round, never sums of secret and noise
        assert all(2 * x == int(2 * x) for x in value)


@pytest.mark.parametrize("name", ["line", "plane", "cube", "earth"])
def test_a_report_of_zero_has_no_sign(name):
    """A zero with a sign would tell on which side of zero the secret lies."""
    mechanism = LAWS[name]
    width = mechanism.inputs.dimension
    for secret in (-0.3 * mechanism.lattice.pitch, -1e-300, -0.0):
        reports = mechanism.sample(np.full((20_000, width), secret), rng=np.random.default_rng(0))
        assert np.any(reports == 0.0)
        assert not np.any(np.signbit(reports[reports == 0.0]))


@pytest.mark.parametrize(("p", "dimension"), [(1.0, 2), (2.0, 3), (3.0, 2), (np.inf, 2)])
def test_cells_have_the_masses_of_the_density(p, dimension):
    """Chi-square of the first coordinate's cells against its marginal, integrated from the density in the test."""
    mechanism = mdp.laplace(mdp.Lp(p), 1.0, dimension=dimension, pitch=0.5)
    secret = np.array([0.2, -0.3, 0.4])[:dimension]
    count = 20_000
    cells = mechanism.sample(np.tile(secret, (count, 1)), rng=np.random.default_rng(3))[:, 0] / 0.5
    other = RNG.exponential(size=(400_000, dimension)) * RNG.choice(
        [-1, 1], size=(400_000, dimension)
    )  # product Laplace
    size = np.abs(other).max(axis=1) if np.isinf(p) else (np.abs(other) ** p).sum(axis=1) ** (1 / p)
    weights = np.exp(np.abs(other).sum(axis=1) - size)  # importance weights of the density sought
    edges = np.arange(-8, 9)
    expected = np.histogram(np.rint((secret[0] + other[:, 0]) / 0.5), np.append(edges - 0.5, 8.5), weights=weights)[0]
    squares = np.histogram(np.rint((secret[0] + other[:, 0]) / 0.5), np.append(edges - 0.5, 8.5), weights=weights**2)[0]
    observed = np.histogram(cells, np.append(edges - 0.5, 8.5))[0]
    share = expected / weights.sum()
    variance = share * (1 - share) / count + squares / weights.sum() ** 2
    assert np.all(np.abs(observed / count - share) <= 5.5 * np.sqrt(variance))


@pytest.mark.parametrize("entry", NOISE, ids=lambda entry: entry["name"])
def test_shared_vectors_give_their_reports_on_both_paths(entry):
    made = noise_of(entry)
    for draw in entry["draws"]:
        for exactly in (False, True):
            assert report_of(made, draw["secret"], draw["words"], exactly=exactly) == draw["report"]


def test_the_stretched_law_is_that_of_the_exact_factor():
    covariance = np.array([[4.0, 1.0, 0.0], [1.0, 0.5, 0.2], [0.0, 0.2, 3.0]])
    mechanism = mdp.laplace(mdp.Mahalanobis(covariance), 1.0)
    noise = mechanism.sample(np.zeros((20_000, 3)), rng=np.random.default_rng(1))
    size = np.sqrt(np.einsum("ni,ij,nj->n", noise, np.linalg.inv(covariance), noise))
    assert stats.kstest(size, stats.gamma(3).cdf).statistic < 0.02
