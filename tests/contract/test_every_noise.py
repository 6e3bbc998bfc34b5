"""One list of properties for EVERY builder of noise on points anywhere, judged by distances written down again here."""

import math
from itertools import permutations

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, NotPure

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])
HALF = np.linalg.cholesky(np.linalg.inv(COVARIANCE))
AXES = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 2)))[0].T


def great_circle(a, b):
    """Kilometres along the Earth, by haversines."""
    (p, q), (r, s) = np.radians(a).T, np.radians(b).T
    half = np.sin((r - p) / 2) ** 2 + np.cos(p) * np.cos(r) * np.sin((s - q) / 2) ** 2
    return 2 * 6371.0088 * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def ball(a, b):
    rooms = (1 - np.square(a).sum(axis=1)) * (1 - np.square(b).sum(axis=1))
    return np.arccosh(1 + 2 * np.square(a - b).sum(axis=1) / rooms)


def bags(a, b):
    a, b = a.reshape(len(a), 3, 2), b.reshape(len(b), 3, 2)
    ways = [np.linalg.norm(a - b[:, list(way)], axis=2).sum(axis=1) for way in permutations(range(3))]
    return np.min(ways, axis=0)


def leash(a, b):
    """The discrete Frechet distance of series, by its recursion."""
    found = []
    for x, y in zip(a, b, strict=True):
        away = np.abs(x[:, None] - y[None])
        best = np.full(away.shape, np.inf)
        for i in range(len(x)):
            for j in range(len(y)):
                before = [best[i - 1, j] if i else np.inf, best[i, j - 1] if j else np.inf,
                          best[i - 1, j - 1] if i and j else np.inf]  # fmt: skip
                best[i, j] = max(away[i, j], min(before) if i or j else 0.0)
        found.append(best[-1, -1])
    return np.array(found)


def angle(a, b):
    return np.arccos(np.clip((a * b).sum(axis=1), -1, 1))


def plain(size, scale=1.0):
    return lambda rng, rows: scale * rng.normal(size=(rows, size))


def degrees(rng, rows):
    return np.array([52.5, 13.4]) + 0.05 * rng.normal(size=(rows, 2))


def directions(rng, rows):
    found = rng.normal(size=(rows, 4))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


# name: the noise, how secrets are drawn, and their distance
PURE = {
    "l_1": (mdp.laplace(mdp.Lp(1), 1.5, dimension=3), plain(3), lambda a, b: np.abs(a - b).sum(axis=1)),
    "l_2": (mdp.laplace(mdp.Lp(2), 0.7), plain(2), lambda a, b: np.linalg.norm(a - b, axis=1)),
    "l_inf": (mdp.laplace(mdp.Lp(np.inf), 2.0), plain(2), lambda a, b: np.abs(a - b).max(axis=1)),
    "Mahalanobis": (mdp.laplace(mdp.Mahalanobis(COVARIANCE), 1.2), plain(2),
                    lambda a, b: np.linalg.norm((a - b) @ HALF, axis=1)),
    "Earth": (mdp.laplace(mdp.Haversine(), 3.0), degrees, great_circle),
    "sphere": (mdp.laplace(mdp.Angular(), 9.0, dimension=4), directions, angle),
    "hyperbolic": (mdp.laplace(mdp.Hyperbolic(), 3.0, dimension=2),
                   lambda rng, rows: rng.uniform(-0.6, 0.6, (rows, 2)), ball),
    "bags": (mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 2), 2.0, dimension=6), plain(6), bags),
    "outlines": (mdp.laplace(mdp.Frechet(mdp.Lp(1), 1), 0.8, dimension=5), plain(5), leash),
    "projection": (mdp.laplace(mdp.Lp(2), 1.1, projection=AXES), plain(5), lambda a, b: np.linalg.norm(a - b, axis=1)),
    "von Mises and Fisher": (mdp.von_mises_fisher(mdp.Lp(2), 6.0, dimension=4), directions,
                             lambda a, b: np.linalg.norm(a - b, axis=1)),
}  # fmt: skip
CONCENTRATED = {
    "Gaussian": (mdp.gaussian(mdp.Lp(2), 0.6, dimension=3), plain(3), lambda a, b: np.linalg.norm(a - b, axis=1)),
    "Gaussian, one number": (mdp.gaussian(mdp.Lp(1), 0.2, dimension=1), plain(1), lambda a, b: np.abs(a - b)[:, 0]),
    "Gaussian, Mahalanobis": (mdp.gaussian(mdp.Mahalanobis(COVARIANCE), sigma=0.8), plain(2),
                              lambda a, b: np.linalg.norm((a - b) @ HALF, axis=1)),
    "Gaussian, Earth": (mdp.gaussian(mdp.Haversine(), sigma=1.5), degrees, great_circle),
}  # fmt: skip
NOISE = PURE | CONCENTRATED
LOSSES = {name: one for name, one in NOISE.items() if name not in ("outlines", "projection", "von Mises and Fisher")}


@pytest.mark.parametrize("name", PURE)
def test_pure_noise_keeps_epsilon_times_the_distance_at_every_report(name):
    noise, secrets, distance = PURE[name]
    rng = np.random.default_rng(3)
    x, other, far = (secrets(rng, 60) for _ in range(3))
    for reports in (noise.sample(x, rng=rng), noise.sample(far, rng=rng)):
        logs = np.abs(noise.log_density(x, reports) - noise.log_density(other, reports))
        assert (logs <= noise.guarantee.epsilon * distance(x, other) * (1 + 1e-6) + 1e-6).all()
    assert mdp.audit(noise).verdict == "holds"
    assert mdp.audit(noise, epsilon=0.97 * noise.guarantee.epsilon).verdict == "violated"
    with pytest.raises(InvalidInput, match=r"mdp\.auditing\.concentrated_guarantee\(mechanism\)"):
        mdp.auditing.audit_concentrated(noise)
    worth = mdp.auditing.concentrated_guarantee(noise)
    assert worth.rho >= noise.guarantee.epsilon**2 / 2
    assert worth.rho == pytest.approx(noise.guarantee.epsilon**2 / 2)


@pytest.mark.parametrize("name", CONCENTRATED)
def test_gaussian_noise_keeps_its_divergences_and_no_factor_at_every_report(name):
    """Of N(x, s^2) and N(x', s^2) the mean of (p / q)^(a - 1) under p is exp((a - 1) a d^2 / (2 s^2)): by draws."""
    noise, secrets, distance = CONCENTRATED[name]
    rng = np.random.default_rng(4)
    x = np.repeat(secrets(rng, 1), 4000, axis=0)
    other = x + 0.3 * (secrets(rng, 1) - x[:1])
    apart = float(distance(x[:1], other[:1])[0])
    reports = noise.sample(x, rng=rng)
    logs = noise.log_density(x, reports) - noise.log_density(other, reports)
    for order in (1.5, 2.0):
        terms = np.exp((order - 1) * logs)
        wide = 5.0 * terms.std() / math.sqrt(len(terms))
        most = math.exp((order - 1) * order * noise.guarantee.rho * apart**2)
        assert most * (1 - 0.02) - wide <= terms.mean() <= most + wide  # kept, and used up but for the lattice
    with pytest.raises(NotPure, match=r"mdp\.auditing\.audit_concentrated"):
        mdp.audit(noise)
    for epsilon in (0.1, 10.0, 1000.0):
        assert mdp.audit(noise, epsilon=epsilon).verdict == "violated"
    assert mdp.auditing.audit_concentrated(noise).verdict == "holds"
    assert mdp.auditing.audit_concentrated(noise, rho=0.97 * noise.guarantee.rho).verdict == "violated"
    with pytest.raises(NotPure, match="sum of distances"):
        mdp.product(noise, PURE["l_2"][0])


@pytest.mark.parametrize("name", LOSSES)
def test_certificates_say_how_far_reports_go(name):
    noise, secrets, distance = LOSSES[name]
    x = secrets(np.random.default_rng(6), 3000)
    reports = noise.sample(x, rng=np.random.default_rng(7))
    if name == "sphere":
        reports = reports / np.linalg.norm(reports, axis=1, keepdims=True)
    away = distance(x, reports)
    wide = 4.5 * away.std() / math.sqrt(len(away)) + 0.02 * away.mean()
    assert away.mean() <= noise.certificate.loss + wide
    if name != "bags":  # whose loss is at most so much: the best pairing may be nearer than the drawn one
        assert away.mean() >= noise.certificate.loss - wide
    assert abs(np.mean(away <= mdp.accuracy_radius(noise, 0.9)) - 0.9) < 0.03 or name == "bags"


@pytest.mark.parametrize("name", NOISE)
def test_what_is_no_row_of_numbers_is_refused(name):
    noise, secrets, _ = NOISE[name]
    width = secrets(np.random.default_rng(8), 1).shape[1]
    for bad, words in (
        ([[math.nan] * width], "finite"),
        ([["a"] * width], "numbers"),
        ([[0.1] * (width + 1)], f"{width} columns"),
    ):
        with pytest.raises(InvalidInput, match=words):
            noise.sample(bad)


def test_no_noise_with_the_same_promise_goes_less_far():
    """Densities whose logarithms fall by at most epsilon a step, drawn at random: none is nearer than the bound."""
    rng, epsilon = np.random.default_rng(9), 1.4
    r = (np.arange(60_000) + 0.5) * 60.0 / 60_000
    for n, curved in ((1, False), (2, False), (5, False), (1, True), (2, True)):
        volume = np.sinh(np.minimum(r, 300.0)) ** (n - 1) if curved else r ** (n - 1)
        least = sum(1 / (epsilon + 2 * j) for j in range(n)) if curved else n / epsilon
        for _ in range(6):
            slopes = np.repeat(rng.uniform(-epsilon, 0.2 * epsilon, 600), 100)
            slopes[2000:] = -epsilon
            mass = np.exp(np.cumsum(slopes) * (r[1] - r[0])) * volume
            assert (mass * r).sum() / mass.sum() >= least * (1 - 1e-3)
        mass = np.exp(-epsilon * r) * volume
        assert (mass * r).sum() / mass.sum() == pytest.approx(least, rel=1e-3) or curved


def test_no_noise_with_a_concentrated_promise_has_a_smaller_squared_error():
    """The variance of noise on the line is at least 1 / (2 rho), rho the largest D_2 / (2 h^2) of its shifts by h."""
    y = np.linspace(-40, 40, 16_001)
    step = y[1] - y[0]
    rng = np.random.default_rng(10)
    shapes = [np.exp(-(y**2) / 2), np.exp(-np.abs(y)), 1 / np.cosh(y), np.exp(-np.sqrt(1 + y**2))]
    shapes += [sum(w * np.exp(-((y - m) ** 2) / 2) for w, m in zip(rng.random(3), rng.normal(size=3), strict=True))]
    for shape in shapes:
        p = shape / shape.sum()
        worst = 0.0
        for cells in (4, 40, 200, 400):
            q = p[cells:-cells] ** 2 / np.maximum(np.roll(p, cells)[cells:-cells], 1e-300)
            worst = max(worst, math.log(q.sum()) / (2 * (cells * step) ** 2))
        variance = float((p * y**2).sum() - (p * y).sum() ** 2)
        assert variance >= 1 / (2 * worst) * (1 - 1e-3)
    assert np.exp(-(y**2) / 2).sum() * step == pytest.approx(math.sqrt(2 * math.pi))
