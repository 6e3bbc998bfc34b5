"""The radius that holds the truth: checked against sums over every secret and report, and against draws."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from scipy import integrate, stats

import metricdp as mdp
from metricdp.auditing import describe_distribution, radii_of
from metricdp.errors import InvalidInput

EARTH = 6371.009


def worst_quantile(distribution: np.ndarray, away: np.ndarray, level: float) -> float:
    """The least r with Pr[d <= r] >= level for every row, one report at a time."""
    worst = 0.0
    for row, distances in zip(distribution, away, strict=True):
        for radius in np.unique(distances):
            if row[distances <= radius].sum() >= level - 1e-12:
                worst = max(worst, radius)
                break
    return worst


def great_circle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.radians(a), np.radians(b)
    half = np.sin((a[..., 0] - b[..., 0]) / 2) ** 2
    half += np.cos(a[..., 0]) * np.cos(b[..., 0]) * np.sin((a[..., 1] - b[..., 1]) / 2) ** 2
    return 2 * EARTH * np.arcsin(np.sqrt(half))


@pytest.mark.parametrize("epsilon", [0.0001, 0.01, 10.0, 3000.0])
@pytest.mark.parametrize("level", [0.05, 0.5, 0.95, 0.9999])
def test_on_the_earth_the_radius_is_the_quantile_of_the_distance(epsilon: float, level: float) -> None:
    noise = mdp.laplace(mdp.Haversine(), epsilon)
    radius, pitch = mdp.accuracy_radius(noise, level), noise.lattice.pitch
    rate = epsilon * EARTH

    def below(angle: float) -> float:
        pieces = np.linspace(0, angle, 50)
        return sum(
            integrate.quad(lambda t: np.exp(-rate * t) * np.sin(t), a, b)[0] for a, b in itertools.pairwise(pieces)
        )

    far = min(np.pi, 200 / rate)
    share = below(min(far, radius / EARTH)) / below(far)
    assert share >= level - 1e-9
    half = np.radians(pitch) * EARTH * np.sqrt(0.5)  # the lattice
    assert below(max(0.0, radius - 1.001 * half) / EARTH) / below(far) <= level + 1e-6


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_draws_lie_within_the_radius_as_often_as_it_says(size: int, p: float) -> None:
    noise = mdp.laplace(mdp.Lp(p), 0.7, dimension=size)
    radius = mdp.accuracy_radius(noise, 0.9)
    reports = noise.sample(np.zeros((40_000, size)), rng=np.random.default_rng(3))
    inside = int((np.linalg.norm(reports, ord=p, axis=1) <= radius).sum())
    assert stats.binomtest(inside, 40_000, 0.9, alternative="less").pvalue > 1e-4
    assert inside / 40_000 < 0.92


def test_on_a_stretched_plane_the_radius_is_in_its_own_distance() -> None:
    covariance = np.array([[4.0, 1.0], [1.0, 2.0]])
    noise = mdp.laplace(mdp.Mahalanobis(covariance), 2.0)
    reports = noise.sample(np.zeros((20_000, 2)), rng=np.random.default_rng(4))
    away = np.sqrt(np.einsum("ij,jk,ik->i", reports, np.linalg.inv(covariance), reports))
    inside = int((away <= mdp.accuracy_radius(noise)).sum())
    assert stats.binomtest(inside, 20_000, 0.95, alternative="less").pvalue > 1e-4
    assert inside / 20_000 < 0.96


@pytest.mark.parametrize("level", [0.3, 0.95, 0.999])
def test_of_a_matrix_it_is_the_largest_quantile_of_any_secret(level: float) -> None:
    points = np.random.default_rng(1).uniform(0, 3, size=(25, 2))
    mechanism = mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 2.0)
    distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    away = np.linalg.norm(points[:, None] - points[None], axis=2)
    assert mdp.accuracy_radius(mechanism, level) == pytest.approx(worst_quantile(distribution, away, level))


def test_reports_that_are_never_given_do_not_count() -> None:
    space = mdp.FiniteSpace([[0.0], [1.0], [50.0]], mdp.Lp(2))
    distribution = np.array([[0.5, 0.5, 0.0], [0.4, 0.6, 0.0], [0.45, 0.55, 0.0]])
    mechanism = mdp.from_matrix(space, distribution, epsilon=1.0)
    assert mdp.accuracy_radius(mechanism, 0.9999999) == pytest.approx(50.0)
    assert radii_of(mechanism, [0.54])[0].value == pytest.approx(49.0)


def test_on_roads_it_is_measured_as_the_crow_flies() -> None:
    from metricdp.places import bundled_roads

    roads = bundled_roads(nodes=60)
    mechanism = mdp.exponential(roads, 8.0)
    distribution = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
    away = great_circle(roads.coordinates[:, None], roads.coordinates[None])
    radius = radii_of(mechanism, [0.95])[0]
    assert radius.value == pytest.approx(worst_quantile(distribution, away, 0.95), rel=1e-6)
    assert radius.unit == "km"
    assert type(radius.metric).__name__ == "Haversine"
    assert mdp.accuracy_radius(mechanism, snap=0.015) == pytest.approx(radius.value + 0.015)


def test_of_a_city_in_windows_it_is_never_too_small() -> None:
    from metricdp.places import bundled_roads

    roads = bundled_roads(nodes=80)
    apart = roads.distances
    near = [np.flatnonzero(row <= 0.5) for row in apart]
    mechanism = mdp.mechanisms.LocalMechanism(
        roads,
        roads,
        np.append(0, np.cumsum([len(row) for row in near])),
        np.concatenate(near),
        np.concatenate([np.exp(-9 * row[some]) for row, some in zip(apart, near, strict=True)]),
        np.full(80, 1e-4),
        mdp.Guarantee(20.0, roads.metric, basis="none"),
        mdp.Certificate(loss=1.0, lower_bound=0.0, method="by hand", epsilon=np.inf),
    )
    distribution, away = mechanism.matrix, great_circle(roads.coordinates[:, None], roads.coordinates[None])
    for level in (0.5, 0.95, 0.99999):  # the last one needs the background
        truly = worst_quantile(distribution, away, level)
        assert truly * (1 - 1e-6) <= mdp.accuracy_radius(mechanism, level) <= 1.05 * truly


@pytest.mark.parametrize("rule", ["exact", "log"])
def test_within_a_box_it_holds_at_every_point(rule: str) -> None:
    axis = np.linspace(0, 4, 5)
    outputs = mdp.FiniteSpace([[x, y] for x in axis for y in axis], mdp.Lp(2))
    box = mdp.Box([0, 0], [4, 4], mdp.Lp(2))
    mechanism = mdp.interpolated(box, outputs, 1.5, anchors=(2, 2), rule=rule, bound=False)
    places = np.random.default_rng(2).uniform(0, 4, size=(300, 2))
    away = np.linalg.norm(places[:, None] - outputs.points[None], axis=2)
    radius = mdp.accuracy_radius(mechanism)
    truly = worst_quantile(mechanism.probabilities(places), away, 0.95)
    assert truly <= radius <= 1.35 * truly


def test_along_streets_it_holds_at_every_place() -> None:
    from metricdp.places import bundled_roads

    roads = bundled_roads(nodes=12)
    mechanism = mdp.interpolated(roads, roads, 8.0, anchors=1, bound=False, gap=0.05)
    generator = np.random.default_rng(2)
    lengths = mechanism.inputs.network.lengths
    street = generator.integers(len(lengths), size=200)
    places = np.stack([street, generator.uniform(0, lengths[street])], axis=1)
    ends = mechanism.inputs.at_crossings(roads.points[:, 0])
    away = mechanism.inputs.metric(places[:, None], ends[None])
    truly = worst_quantile(mechanism.probabilities(places), away, 0.95)
    assert truly <= mdp.accuracy_radius(mechanism) <= 1.3 * truly


def test_the_nearest_word_lies_within_twice_the_noise() -> None:
    vectors = np.random.default_rng(5).normal(size=(60, 3))
    words = mdp.vocabulary([f"w{i}" for i in range(60)], vectors)
    mechanism = mdp.madlib(words, 4.0)
    codes = np.repeat(np.arange(60), 200)
    found = mechanism.sample(codes, rng=np.random.default_rng(6))
    away = np.linalg.norm(vectors[codes] - vectors[found], axis=1)
    assert (away <= mdp.accuracy_radius(mechanism)).mean() >= 0.95
    assert mdp.accuracy_radius(mdp.madlib(words, 1e-3)) <= 2 * np.linalg.norm(vectors, axis=1).max() + 2


def test_of_a_history_the_current_place_counts() -> None:
    space = mdp.FiniteSpace([[0.0], [1.0], [2.0]], mdp.Lp(2))
    secrets = mdp.spaces.Augmented(space, [[0, 0], [0, 1], [1, 1], [2, 1]], [0.5])
    distribution = np.array([[0.5, 0.3, 0.2], [0.48, 0.32, 0.2], [0.4, 0.35, 0.25], [0.3, 0.3, 0.4]])
    away = np.abs(np.array([0.0, 0.0, 1.0, 2.0])[:, None] - np.arange(3)[None])
    mechanism = mdp.from_matrix(secrets.space, distribution, epsilon=2.0, outputs=space, loss=away)
    assert mdp.accuracy_radius(mechanism, 0.75) == pytest.approx(worst_quantile(distribution, away, 0.75))


def test_levels_outside_and_products_are_refused_with_a_sentence() -> None:
    noise = mdp.laplace(mdp.Lp(2), 1.0)
    for level in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(InvalidInput, match="between 0 and 1"):
            mdp.accuracy_radius(noise, level)
    with pytest.raises(InvalidInput, match="every part"):
        mdp.accuracy_radius(mdp.product(noise, mdp.laplace(mdp.Lp(2), 1.0, dimension=1)))


def test_the_law_is_plain_json_and_its_density_integrates_to_one() -> None:
    distribution = json.loads(json.dumps(describe_distribution(mdp.laplace(mdp.Haversine(), 10.0)), allow_nan=False))
    assert (distribution["format"], distribution["version"], distribution["kind"]) == (
        "metricdp.law",
        1,
        "spherical_laplace",
    )
    assert distribution["metric"] == {"name": "Haversine", "unit": "km"}
    constant = distribution["density"]["constant"]

    def ring(r: float) -> float:
        return constant * np.exp(-10 * r) * 2 * np.pi * EARTH * np.sin(r / EARTH)

    assert integrate.quad(ring, 0, 8)[0] == pytest.approx(1.0, abs=1e-9)
    radii = {one["level"]: one for one in distribution["radii"]}
    assert integrate.quad(ring, 0, radii[0.95]["radius"])[0] >= 0.95
    assert radii[0.95]["metres"] == pytest.approx(1000 * radii[0.95]["radius"])
    plane = describe_distribution(mdp.laplace(mdp.Lp(1), 3.0, dimension=2))
    total = integrate.dblquad(
        lambda y, x: plane["density"]["constant"] * np.exp(-3 * (abs(x) + abs(y))), -9, 9, -9, 9, epsabs=1e-6
    )[0]
    assert total == pytest.approx(1.0, abs=1e-4)
    both = describe_distribution(mdp.product(mdp.laplace(mdp.Lp(2), 1.0), mdp.laplace(mdp.Lp(2), 2.0, dimension=1)))
    assert [part["epsilon"] for part in both["parts"]] == [1.0, 2.0]


@pytest.mark.parametrize(("epsilon", "weighted"), [(0.5, True), (3.0, False)])
def test_of_a_kernel_it_is_the_largest_quantile_of_any_secret(epsilon: float, weighted: bool) -> None:
    """Rows that change nothing are not sorted, and the answer is that of sorting them all."""
    rng = np.random.default_rng(9)
    points = np.cumsum(rng.normal(size=(160, 3)), axis=0) * 0.3  # later ones lie farther out: a trend
    space = mdp.vocabulary([f"w{i}" for i in range(160)], points)
    weights = np.linspace(1.0, 5.0, 160) if weighted else np.ones(160)
    kernel = mdp.weighted_exponential(space, epsilon, weights=weights, form="kernel")
    away = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    distribution = weights * np.exp(-kernel.inner * away)
    distribution /= distribution.sum(axis=1, keepdims=True)
    order = np.argsort(away, axis=1)
    running = np.cumsum(np.take_along_axis(distribution, order, axis=1), axis=1)
    for level in (0.1, 0.5, 0.95, 0.999):
        first = order[np.arange(len(distribution)), np.argmax(running >= level - 1e-12, axis=1)]
        worst = away[np.arange(len(distribution)), first].max()
        assert mdp.accuracy_radius(kernel, level) == pytest.approx(worst, rel=1e-8)
