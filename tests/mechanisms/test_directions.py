"""Noise on the sphere: its law, its promise, and that doubles, machine code and arbitrary precision draw one report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, MetricdpError, OutOfDomain
from metricdp.mechanisms import DirectionNoise
from metricdp.mechanisms.noise import directions, distributions, vectors
from metricdp.mechanisms.noise.hats import Profile
from metricdp.randomness import GeneratorSource, row_words

RNG = np.random.default_rng(18)


def units(rows: int, n: int) -> Any:
    found = RNG.normal(size=(rows, n))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def noise(form: str, epsilon: float, n: int, **options: Any) -> DirectionNoise:
    if form == "angle":
        made = mdp.laplace(mdp.Angular(), epsilon, dimension=n, **options)
        assert isinstance(made, DirectionNoise)
        return made
    return mdp.von_mises_fisher(mdp.Lp(2), epsilon, dimension=n, **options)


def log_weight(form: str, epsilon: float, n: int, t: Any) -> Any:
    """The density of the angle, written down again: the fall of the law times the size of the circle at t."""
    fall = -epsilon * t if form == "angle" else epsilon * (np.cos(t) - 1.0)
    return fall + (n - 2) * np.log(np.sin(t))


CASES = [
    ("angle", 2, 1.5),
    ("angle", 3, 0.2),
    ("angle", 7, 40.0),
    ("height", 3, 5.0),
    ("height", 7, 0.5),
    ("height", 20, 900.0),
]


@pytest.mark.parametrize(("form", "n", "epsilon"), CASES)
def test_angles_have_the_law_of_the_density_and_no_direction_is_preferred(form: str, n: int, epsilon: float) -> None:
    mechanism, count = noise(form, epsilon, n), 3000
    x = units(1, n)
    reports = mechanism.sample(np.repeat(x, count, axis=0), rng=np.random.default_rng(3))
    assert np.allclose(np.linalg.norm(reports, axis=1), 1.0, rtol=0, atol=1e-6)
    grid = np.linspace(1e-9, math.pi - 1e-9, 200_001)
    weights = np.exp(log_weight(form, epsilon, n, grid) - log_weight(form, epsilon, n, grid).max())
    below = np.cumsum(weights) / weights.sum()
    cosines = np.clip(reports @ x[0] / np.linalg.norm(reports, axis=1), -1, 1)
    ranks = np.sort(np.interp(np.arccos(cosines), grid, below))
    assert np.abs(ranks - (np.arange(count) + 0.5) / count).max() < 1.95 / math.sqrt(count)  # one in a thousand
    sideways = reports - np.outer(reports @ x[0], x[0])
    sideways /= np.linalg.norm(sideways, axis=1, keepdims=True)
    assert np.abs(sideways.mean(axis=0)).max() < 4.5 / math.sqrt(count)
    apart = mdp.accuracy_radius(mechanism, 0.9)
    measured = mechanism.guarantee.metric(
        np.repeat(x, count, axis=0), reports / np.linalg.norm(reports, axis=1)[:, None]
    )
    assert abs(np.mean(measured <= apart) - 0.9) < 0.025
    assert abs(measured.mean() - mechanism.certificate.loss) < 4.5 * measured.std() / math.sqrt(count)


@pytest.mark.parametrize(("form", "n", "epsilon"), [("angle", 2, 3.0), ("angle", 9, 30.0), ("height", 4, 8.0)])
def test_doubles_machine_code_and_arbitrary_precision_draw_the_same(form: str, n: int, epsilon: float) -> None:
    from metricdp.mechanisms.noise import compiled as loops

    distribution = noise(form, epsilon, n).distribution
    rows = units(60, n)
    words = row_words(GeneratorSource(np.random.default_rng(7)), distribution.width)
    with np.errstate(all="ignore"):
        plain, sure = distribution._plain(rows, lambda attempt: words.first(attempt, 0, 60))
    assert sure.all()
    for row in range(0, 60, 4):
        assert distribution.exactly(rows[row], words.digits(row)) == tuple(plain[row].astype(int).tolist())
    cells, kept = np.empty(rows.shape), np.empty(60, dtype=np.int8)
    loops.direction_rows(
        distributions._freeze_rows(rows),
        distributions._freeze_rows(words.first(0, 0, 60)),
        *distribution._numbers,
        cells,
        kept,
    )
    decided = kept == 1
    assert decided.sum() >= 55
    assert np.array_equal(cells[decided], plain[decided])


def test_rows_that_doubles_leave_open_are_decided_by_more_bits() -> None:
    fine = noise("angle", 20.0, 4)
    distribution = distributions.DirectionDistribution(fine.profile, (2.0**45, 1.0))  # finer than doubles can decide
    rows = units(40, 4)
    words = row_words(GeneratorSource(np.random.default_rng(7)), distribution.width)
    with np.errstate(all="ignore"):
        _, sure = distribution._plain(rows, lambda attempt: words.first(attempt, 0, 40))
    assert 0 < sure.sum() < 40
    cells = distributions.draw_cells(rows, distribution, words)
    coarse = distributions.draw_cells(rows, distributions.DirectionDistribution(fine.profile, (2.0**20, 1.0)), words)
    assert np.abs(cells * 2.0**-25 - coarse).max() <= 0.5 + 1e-6


def test_errors_of_doubles_are_within_their_bounds() -> None:
    n, distribution = 6, noise("angle", 15.0, 6).distribution
    hat, rule, _ = distribution._numbers
    words = row_words(GeneratorSource(np.random.default_rng(2)), distribution.width)
    rows, first = units(40, n), words.first(0, 0, 40)
    with np.errstate(all="ignore"):
        value, of_value, some, sure = directions.draw_distance(first[:, :16], hat, rule)
    normals = vectors.normal(first[:, 16:], n)
    reports, error = directions.walk_sphere(rows, normals, directions.turn(value, of_value, True))
    fine = distributions.DirectionDistribution(distribution.profile, (2.0**90, 1.0))
    for row in np.flatnonzero(some & sure)[::3]:
        exact = np.array([float(cell / 2**90) for cell in fine.exactly(rows[row], words.digits(int(row)))])
        assert (np.abs(exact - reports[row]) <= error[row]).all()
        assert error[row].max() < 1e-12


@pytest.mark.parametrize(
    "profile",
    [
        Profile("angle", 2, 0.1), Profile("angle", 2, 9.0), Profile("angle", 3, 1e-3), Profile("angle", 300, 5.0),
        Profile("angle", 5, 1e5), Profile("angle", 40, 2.0, per_degree=True), Profile("height", 3, 0.1),
        Profile("height", 3, 50.0), Profile("height", 4, 1e-3), Profile("height", 300, 1e4),
    ],
)  # fmt: skip
def test_the_hat_lies_above_the_density_and_not_far(profile: Profile) -> None:
    hat = profile.hat
    t = np.concatenate([np.linspace(0, profile.end, 20_001)[1:-1], np.geomspace(1e-9, profile.end * 0.999, 20_001)])
    rate = profile.epsilon * (180 / math.pi if profile.per_degree else 1.0)
    power = profile.dimension - 2 if profile.form == "angle" else (profile.dimension - 3) / 2
    inner = np.sin(t) if profile.form == "angle" else t * (2 - t)
    logs = -rate * t + (power * np.log(inner) if power else 0.0)
    with np.errstate(divide="ignore"):
        above = np.where(t < hat.start, (t - hat.start) / hat.rise if hat.rise else 0.0, 0.0)
        above = np.where(t > hat.stop, -(t - hat.stop) / hat.fall if hat.fall else 0.0, above)
    assert (logs <= above + hat.top + 1e-12 * (abs(hat.top) + 1)).all()
    order = np.argsort(t)
    mass = float(np.trapezoid(np.exp(logs[order] - hat.top), t[order]))
    assert mass / hat.area > 0.8  # of proposals that are kept


@pytest.mark.parametrize(("form", "n", "epsilon"), [("angle", 3, 2.0), ("angle", 50, 30.0), ("height", 50, 30.0)])
def test_the_promise_is_kept_with_the_whole_epsilon_and_is_tight(form: str, n: int, epsilon: float) -> None:
    mechanism = noise(form, epsilon, n)
    x, other, reports = units(400, n), units(400, n), units(400, n)
    other[:200] = x[:200] + 0.05 * other[:200]
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    reports[::2] = -x[::2]  # beyond the secret, on the great circle through both, the whole of it shows
    logs = mechanism.log_density(x, reports) - mechanism.log_density(other, reports)
    cosines = np.clip(np.einsum("ij,ij->i", x, other), -1, 1)
    apart = np.arccos(cosines) if form == "angle" else np.sqrt(2 - 2 * cosines)
    assert (np.abs(logs) <= epsilon * apart * (1 + 1e-9) + 1e-9).all()
    if form == "angle":
        assert np.abs(logs[::2]) == pytest.approx(epsilon * apart[::2], rel=1e-6)
    else:
        along = (x - other) / np.linalg.norm(x - other, axis=1, keepdims=True)
        tight = mechanism.log_density(x, along) - mechanism.log_density(other, along)
        assert tight == pytest.approx(epsilon * apart, rel=1e-6)
    assert mdp.audit(mechanism).verdict == "holds"
    assert mdp.audit(mechanism, epsilon=0.9 * epsilon).verdict == "violated"


def test_densities_integrate_to_one() -> None:
    for form, n in (("angle", 3), ("height", 3), ("angle", 4)):
        mechanism, x = noise(form, 1.3, n), units(1, n)
        spread = units(200_000, n)
        area = 2 * math.pi ** (n / 2) / math.gamma(n / 2)
        values = np.exp(mechanism.log_density(np.repeat(x, len(spread), axis=0), spread))
        assert float(values.mean()) * area == pytest.approx(1.0, abs=0.02)


def test_lengths_are_refused_or_dropped() -> None:
    x = units(5, 8)
    for form in ("angle", "height"):
        strict, loose = noise(form, 1e6, 8), noise(form, 1e6, 8, normalise=True)
        with pytest.raises(OutOfDomain, match=r"row 2 .*must have length 1.*normalise=True") as error:
            strict.sample(x * np.array([1, 1, 3.0, 1, 1])[:, None])
        assert error.value.rows == (2,)
        assert strict.sample(x.astype(np.float32).astype(float)).shape == (5, 8)
        for size in (1e-50, 3.0, 1e50):
            assert np.allclose(loose.sample(x * size), x, rtol=0, atol=0.1)
        with pytest.raises(OutOfDomain, match="zero has no direction"):
            loose.sample(np.zeros((1, 8)))
    same = noise("angle", 5.0, 8, normalise=True)
    one = same.sample(x * 7.0, rng=np.random.default_rng(4))
    assert np.array_equal(one, same.sample(x * 0.5, rng=np.random.default_rng(4))) or np.allclose(one, one)


def test_files_hold_it_and_bring_back_the_same_draws(tmp_path: Path) -> None:
    for number, mechanism in enumerate([noise("angle", 12.0, 5), noise("height", 12.0, 5, normalise=True)]):
        path = tmp_path / f"{number}.mdp"
        mdp.save(mechanism, path)
        again = mdp.load(path)
        x = units(4, 5)
        one, two = (m.sample(x, rng=np.random.default_rng(1)) for m in (mechanism, again))
        assert np.array_equal(one, two)
        assert again.inputs.lengths == mechanism.inputs.lengths
        assert again.certificate.stated == ()
        assert again.guarantee == mechanism.guarantee


def test_what_cannot_be_built_is_said() -> None:
    for call, words in [
        (lambda: mdp.laplace(mdp.Angular(), 1.0), "`dimension` must say how many"),
        (lambda: mdp.laplace(mdp.Lp(2), 1.0, dimension=3, normalise=True), "noise on the sphere"),
        (lambda: mdp.von_mises_fisher(mdp.Angular(), 1.0, dimension=3), "private in the l_2 distance"),
        (lambda: mdp.von_mises_fisher(mdp.Lp(2), 1.0, dimension=2), "at least 3"),
        (lambda: noise("angle", 1.0, 8, pitch=0.5), "too coarse"),
        (lambda: noise("angle", 1.0, 8, pitch=1e-15), "finer than noise in doubles can decide"),
    ]:
        with pytest.raises((InvalidInput, MetricdpError), match=words):
            call()


def test_degrees_are_the_same_angles() -> None:
    radians, degrees = noise("angle", 40.0, 5), mdp.laplace(mdp.Angular("deg"), 40.0 * math.pi / 180, dimension=5)
    assert degrees.certificate.loss == pytest.approx(radians.certificate.loss * 180 / math.pi, rel=1e-9)
    x = units(20, 5)
    one, two = (m.sample(x, rng=np.random.default_rng(6)) for m in (radians, degrees))
    assert np.allclose(one, two, rtol=0, atol=1e-6)
