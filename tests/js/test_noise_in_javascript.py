"""Exact noise in JavaScript: equal words give the reports of Python, to the last bit, whichever path decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import browsers
import metricdp as mdp
from metricdp.artifacts import save
from metricdp.mechanisms.noise.hats import Profile
from metricdp.randomness import RowWords
from published import NOISE, noise_of

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def node() -> Iterator[browsers.Engine]:
    if browsers.node() is None:
        pytest.skip("node is not installed (Debian: apt install nodejs)")
    with browsers.running("node") as running:
        yield running


@pytest.mark.parametrize("distribution", NOISE, ids=lambda distribution: distribution["name"])
def test_shared_vectors_give_their_reports(distribution: dict[str, Any], node: browsers.Engine, tmp_path: Path) -> None:
    path = save(noise_of(distribution), tmp_path / "noise.mdp")
    drawn = node.ask("uniforms", file=node.offer(path), draws=distribution["draws"])
    assert drawn == [draw["report"] for draw in distribution["draws"]]


class Key:
    """A source that gives a known key, so that the words of every row are known."""

    def __init__(self) -> None:
        self.key = RNG.bytes(32)

    def words(self, count: int) -> Any:
        return np.frombuffer(self.key, dtype=np.uint64)[:count]


def secrets_of(distribution: dict[str, Any], count: int) -> np.ndarray[Any, Any]:
    rows = RNG.uniform(-90, 90, (count, distribution["dimension"]))
    if distribution["metric"] != "hyperbolic":
        return rows
    vectors = rows.reshape(count, -1, distribution.get("of", distribution["dimension"]))
    away = 1.0 - 2.0 ** -RNG.uniform(0.5, 20.0, (count, vectors.shape[1], 1))
    return (vectors / np.linalg.norm(vectors, axis=2, keepdims=True) * away).reshape(count, -1)


@pytest.mark.parametrize("distribution", NOISE, ids=lambda distribution: distribution["name"])
def test_random_words_give_the_reports_of_python(
    distribution: dict[str, Any], node: browsers.Engine, tmp_path: Path
) -> None:
    made, count, source = noise_of(distribution), 30, Key()
    bag = distribution.get("rows") == "bags"
    stream = RowWords(source.key, (made.part if "rows" in distribution else made).distribution.width)
    attempts = (
        3
        if distribution["metric"] in ("angular", "fisher")
        else 24
        if distribution["metric"] in ("haversine", "l1.5", "l20")
        else 1
    )
    rows, numbers = secrets_of(distribution, count), 24 if distribution["metric"] == "hyperbolic" else 1

    def words(at: int) -> list[Any]:
        digits = stream.digits(at)
        return [[_words(digits(a, k, numbers), numbers) for k in range(stream.width)] for a in range(attempts)]

    draws = [
        {
            "secret": row.tolist(),
            "words": [words(at * made.count + k) for k in range(made.count)] if bag else words(at),
        }
        for at, row in enumerate(rows)
    ]
    theirs = node.ask("uniforms", file=node.offer(save(made, tmp_path / "noise.mdp")), draws=draws)
    assert theirs == made.sample(rows, rng=source).tolist()


def _words(value: int, numbers: int) -> list[str]:
    digits = f"{value:0{16 * numbers}x}"
    return [digits[at : at + 16] for at in range(0, len(digits), 16)]


def test_hats_of_the_sphere_are_the_same_doubles() -> None:
    """A proposal compares with numbers of the hat: one that differed in its last bit would draw another report."""
    rates = np.exp(RNG.uniform(-8.0, 14.0, 120)).tolist()
    asked = [("angle", int(n), rate, int(n) % 2 == 0) for n, rate in zip(RNG.integers(2, 800, 120), rates, strict=True)]
    asked += [("height", int(n), rate, False) for n, rate in zip(RNG.integers(3, 800, 120), rates, strict=True)]
    asked += [(form, 5, rate, False) for form in ("angle", "height") for rate in (1e-100, 1.0, 1e16, 1e100)]
    place = (browsers.PROJECT / "js" / "src" / "hats.js").as_uri()
    script = f"""const {{ Profile }} = await import("{place}");
        const numbers = ({{ start, stop, rise, fall, top, area }}) => [start, stop, rise, fall, top, area];
        answer = given.asked.map((law) => numbers(new Profile(...law).hat));"""
    assert browsers.in_node(script, asked=asked) == [
        list(Profile(*distribution).hat.numbers()) for distribution in asked
    ]


def drawn_in_javascript(mechanism: Any, secret: list[float], folder: Path, count: int = 4000) -> np.ndarray[Any, Any]:
    path = save(mechanism, folder / "noise.mdp")
    script = """const m = await open(given.path);
        answer = Array.from({ length: given.count }, () => m.sample(given.secret).point);"""
    return np.array(browsers.in_node(script, path=str(path), secret=secret, count=count))


def test_normal_noise_has_its_law(tmp_path: Path) -> None:
    """(d / sigma)^2 is chi-squared, in a plane, under a covariance, and on the Earth along the ground."""
    covariance = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, 0.2], [0.0, 0.2, 0.5]])
    away = drawn_in_javascript(mdp.gaussian(mdp.Mahalanobis(covariance), sigma=2.0), [5.0, -3.0, 1.0], tmp_path)
    away = away - [5.0, -3.0, 1.0]
    size = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away) / 4.0
    assert stats.kstest(size, stats.chi2(3).cdf).pvalue > 1e-6
    earth = drawn_in_javascript(mdp.gaussian(mdp.Haversine(), sigma=0.5), [60.0, 10.0], tmp_path)
    north, east = np.radians(earth[:, 0] - 60.0) * 6371.009, np.radians(earth[:, 1] - 10.0) * 6371.009 * 0.5
    for along in (north, east):
        assert stats.kstest(along / 0.5, stats.norm.cdf).pvalue > 1e-6


def test_hyperbolic_noise_has_its_law(tmp_path: Path) -> None:
    """exp(-2 r) has the law Beta((epsilon - n + 1) / 2, n), wherever the secret lies; and directions are even."""
    secret = np.array([0.5, -0.6])
    reports = drawn_in_javascript(mdp.laplace(mdp.Hyperbolic(), 6.0, dimension=2), secret.tolist(), tmp_path)
    room = (1 - (secret**2).sum()) * (1 - (reports**2).sum(axis=1))
    away = np.arccosh(1 + 2 * ((reports - secret) ** 2).sum(axis=1) / room)
    assert stats.kstest(np.exp(-2 * away), stats.beta(2.5, 2).cdf).statistic < 0.04  # the lattice moves it a little
    x, y = complex(*secret), reports[:, 0] + 1j * reports[:, 1]
    turned = np.angle((y - x) / (1 - np.conj(x) * y))  # the isometry of the disc that takes the secret to the centre
    assert stats.kstest((turned / (2 * np.pi)) % 1, stats.uniform.cdf).statistic < 0.04


def test_bags_and_outlines_have_their_laws(tmp_path: Path) -> None:
    """Two far vectors keep their own noise, whichever comes first; the largest gap of an outline is Gamma."""
    bags = drawn_in_javascript(
        mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 2), 2.0, dimension=4), [90.0, 0.0, -90.0, 5.0], tmp_path
    )
    assert np.all(bags[:, 0] < bags[:, 2])
    for away in (bags[:, :2] - [-90.0, 5.0], bags[:, 2:] - [90.0, 0.0]):
        assert stats.kstest(np.linalg.norm(away, axis=1), stats.gamma(2, scale=0.5).cdf).pvalue > 1e-6
    curve = mdp.laplace(mdp.Frechet(mdp.Lp(2), 1), 3.0, dimension=4)
    gaps = np.abs(drawn_in_javascript(curve, [1.0, 9.0, -4.0, 2.0], tmp_path) - [1.0, 2.0, -4.0, 9.0]).max(axis=1)
    assert stats.kstest(gaps, stats.gamma(4, scale=1 / 3).cdf).pvalue > 1e-6


def test_words_in_the_ball_are_reported_as_in_python(tmp_path: Path) -> None:
    points = np.array([[0.0, 0.0], [0.5, 0.0], [-0.4, 0.3], [0.7, 0.2], [0.7, -0.2]])
    words = mdp.madlib(mdp.FiniteSpace(points, mdp.Hyperbolic()), 3.0)
    script = """const m = await open(given.path);
        const counts = new Array(5).fill(0);
        for (let k = 0; k < 4000; k++) counts[m.sample(3).code] += 1;
        answer = counts;"""
    theirs = browsers.in_node(script, path=str(save(words, tmp_path / "words.mdp")))
    ours = np.bincount(words.sample(np.full(20_000, 3), rng=RNG), minlength=5)
    assert stats.chi2_contingency([theirs, ours]).pvalue > 1e-6


def test_what_is_no_secret_is_refused_in_both_languages(tmp_path: Path) -> None:
    ball = mdp.laplace(mdp.Hyperbolic(), 3.0, dimension=2)
    cases = [
        (ball, [1.0, 0.2], "unit ball"),
        (ball, [1.0 - 2.0**-22, 0.0], "border"),
        (mdp.laplace(mdp.metrics.Bags(mdp.Haversine(), 2), 3.0, dimension=4), [1.0, 2.0, 91.0, 0.0], "latitude"),
        (mdp.laplace(mdp.metrics.Bags(mdp.Lp(2), 2), 3.0, dimension=4), [1.0, 2.0, 3.0], "as many coordinates"),
        (mdp.gaussian(mdp.Lp(2), 5.0), [1e300, 0.0], "lattice"),
    ]
    given = []
    for number, (mechanism, secret, _) in enumerate(cases):
        with pytest.raises(mdp.MetricdpError):
            mechanism.sample([secret])
        given.append([str(save(mechanism, tmp_path / f"{number}.mdp")), secret])
    script = """answer = [];
        for (const [path, secret] of given.cases) {
          const m = await open(path);
          try { answer.push(m.sample(secret)); } catch (error) { answer.push([error.name, error.message]); }
        }"""
    for (kind, said), (_, _, words) in zip(browsers.in_node(script, cases=given), cases, strict=True):
        assert kind in ("OutOfDomain", "InvalidInput")
        assert words in said
