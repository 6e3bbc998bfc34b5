"""Kernels of whole vocabularies: the largest certified budget, judged exactly without a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput

WORDS = ["cat", "cart", "car", "bar", "bard", "board", "boat", "coat", "goat", "gate", "late", "lane", "line", "lion"]
METRICS: dict[str, Any] = {
    "l2": mdp.Lp(2),
    "l1": mdp.Lp(1),
    "linf": mdp.Lp(np.inf),
    "l3": mdp.Lp(3),
    "angular": mdp.Angular(),
    "mahalanobis": mdp.Mahalanobis(np.diag([1.0, 2.0, 0.5, 1.0]) + 0.1),
    "hyperbolic": mdp.Hyperbolic(),
    "haversine": mdp.Haversine(),
    "levenshtein": mdp.Levenshtein(),
}


def space_of(name: str, size: int, seed: int) -> mdp.FiniteSpace:
    rng = np.random.default_rng(seed)
    points: Any = rng.normal(size=(size, 4)) * rng.choice([0.2, 1.0, 3.0], size=(size, 1))
    if name == "hyperbolic":
        points = points / (1.05 * (1.0 + np.linalg.norm(points, axis=1, keepdims=True)))
    if name == "haversine":
        points = np.column_stack([rng.uniform(40.0, 41.0, size), rng.uniform(11.0, 13.0, size)])
    if name == "levenshtein":
        points = np.array(WORDS)
    return mdp.FiniteSpace(points, METRICS[name])


def brute_law(mechanism: mdp.mechanisms.KernelMechanism) -> Any:
    """z_ik = w_k exp(-a min(d_ik, cap)) / N_i, term by term."""
    n, points, metric = len(mechanism.space), mechanism.space.points, mechanism.space.metric
    distribution = np.empty((n, n))
    for i in range(n):
        for k in range(n):
            away = 0.0 if i == k else float(metric(points[i], points[k]))
            weight = 0.0 if mechanism.log_weights is None else mechanism.log_weights[k]
            distribution[i, k] = np.exp(weight - mechanism.inner * min(away, mechanism.cap))
    return distribution / distribution.sum(axis=1, keepdims=True)


def brute_epsilon(distribution: Any, space: mdp.FiniteSpace) -> float:
    logs, worst = np.log(distribution), 0.0
    for i in range(len(distribution)):
        for j in range(i):
            away = float(space.metric(space.points[i], space.points[j]))
            worst = max(worst, float(np.abs(logs[i] - logs[j]).max()) / away)
    return worst


@pytest.mark.parametrize("name", METRICS)
def test_the_audit_of_a_kernel_is_that_of_its_table(name: str) -> None:
    for epsilon in (0.5, 4.0):
        made = mdp.exponential(space_of(name, 14, 1), epsilon, form="kernel")
        assert isinstance(made, mdp.mechanisms.KernelMechanism)
        distribution, report = brute_law(made), mdp.audit(made)
        assert (report.verdict, report.basis) == ("holds", "proof")
        assert report.epsilon == pytest.approx(brute_epsilon(distribution, made.space), rel=1e-9)
        assert report.epsilon <= epsilon
        np.testing.assert_allclose(made.rows(np.arange(14)), distribution, rtol=1e-10)
        expected = sum(
            distribution[i, k] * float(made.space.metric(made.space.points[i], made.space.points[k]))
            for i in range(14)
            for k in range(14)
            if i != k
        )
        assert made.certificate.loss == pytest.approx(expected / 14, rel=1e-9)


def test_the_budget_found_is_the_largest() -> None:
    for seed in range(6):
        space = space_of("l2", 30, seed)
        for epsilon in (0.3, 1.0, 3.0):
            made = mdp.exponential(space, epsilon, form="kernel")
            table = mdp.exponential(space, epsilon)
            assert made.inner >= epsilon / 2 * (1 - 1e-9)
            assert mdp.audit(made).epsilon <= epsilon
            if made.inner < epsilon * (1 - 1e-9):  # the promise is used up
                assert mdp.audit(made).epsilon == pytest.approx(epsilon, rel=1e-6)
            assert made.certificate.loss == pytest.approx(table.certificate.loss, rel=1e-4)


def test_weights_cancel_from_what_a_kernel_leaks() -> None:
    space = space_of("l2", 25, 3)
    weights = np.random.default_rng(4).uniform(0.1, 5.0, 25)
    made = mdp.weighted_exponential(space, 1.0, weights=weights, form="kernel")
    distribution = brute_law(made)
    np.testing.assert_allclose(made.matrix, distribution, rtol=1e-10)
    assert mdp.audit(made).epsilon == pytest.approx(brute_epsilon(distribution, space), rel=1e-9)


def test_a_truncated_kernel_promises_in_the_capped_metric() -> None:
    space = space_of("l2", 25, 5)
    made = mdp.truncated_exponential(space, 2.0, form="kernel")
    distribution, logs = brute_law(made), np.log(brute_law(made))
    for i in range(25):
        for j in range(i):
            away = min(float(space.metric(space.points[i], space.points[j])), made.cap)
            assert np.abs(logs[i] - logs[j]).max() <= 2.0 * away * (1 + 1e-12)
    assert mdp.audit(made).epsilon == pytest.approx(brute_epsilon(distribution, space), rel=1e-9)


def test_half_of_the_budget_is_as_published() -> None:
    made = mdp.exponential(space_of("l2", 20, 6), 1.0, budget="half", form="kernel")
    assert made.inner == pytest.approx(0.5, rel=1e-9)
    assert mdp.audit(made).verdict == "holds"


def test_a_stolen_budget_is_found() -> None:
    from dataclasses import replace

    made = mdp.exponential(space_of("l2", 20, 7), 1.0, form="kernel")
    steeper = replace(made, inner=made.inner * 1.2)
    assert mdp.audit(steeper).verdict == "cannot judge"  # its normalisers are those of another law
    honest = replace(steeper, log_normalisers=np.log(_terms(steeper).sum(axis=1)))
    assert mdp.audit(honest).verdict == "violated"


def _terms(mechanism: mdp.mechanisms.KernelMechanism) -> Any:
    apart = mechanism.space.distances
    return np.exp(-mechanism.inner * np.minimum(apart, mechanism.cap))


def test_one_word_and_two_words() -> None:
    one = mdp.exponential(mdp.vocabulary(["a"], [[1.0, 2.0]]), 1.0, form="kernel")
    assert one.sample([0, 0]).tolist() == [0, 0]
    two = mdp.exponential(mdp.vocabulary(["a", "b"], [[0.0], [2.0]]), 1.0, form="kernel")
    assert two.inner == pytest.approx(1.0, rel=1e-9)  # symmetric: the normalisers are equal
    assert mdp.audit(two).verdict == "holds"


def test_what_a_kernel_cannot_be_is_said() -> None:
    space = space_of("l2", 10, 8)
    with pytest.raises(InvalidInput, match="`form` must be"):
        mdp.exponential(space, 1.0, form="sparse")  # type: ignore[arg-type]
    others = space_of("l2", 5, 9)
    with pytest.raises(InvalidInput, match="reports its own secrets"):
        mdp.exponential(space, 1.0, form="kernel", outputs=others)
    precomputed = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Precomputed(np.ones((3, 3)) - np.eye(3)))
    with pytest.raises(InvalidInput, match="true distance is known"):
        mdp.exponential(precomputed, 1.0, form="kernel")
    with pytest.raises(InvalidInput, match="factor of e"):
        mdp.weighted_exponential(space, 1.0, weights=[1e-60, *[1.0] * 9], form="kernel")


def random_space(rng: np.random.Generator, number: int) -> mdp.FiniteSpace:
    name = list(METRICS)[number % len(METRICS)]
    size = int(rng.integers(2, 14)) if name != "levenshtein" else 14
    return space_of(name, size, int(rng.integers(1 << 30)))


def test_no_random_vocabulary_leaks_more_than_its_promise() -> None:
    rng = np.random.default_rng(12)
    for number in range(40):
        space = random_space(rng, number)
        epsilon = float(10.0 ** rng.uniform(-1.0, 1.0))
        weights = rng.uniform(0.1, 10.0, len(space))
        made = (
            mdp.exponential(space, epsilon, form="kernel"),
            mdp.weighted_exponential(space, epsilon, weights=weights, form="kernel"),
            mdp.truncated_exponential(space, epsilon, beta=0.2, form="kernel"),
        )[number % 3]
        leak = brute_epsilon(brute_law(made), space)
        assert leak <= epsilon * (1 + 1e-12)
        assert mdp.audit(made).epsilon == pytest.approx(leak, rel=1e-9)


@pytest.mark.parametrize("gap", [1e-6, 1e-12])
def test_words_that_are_nearly_one_do_not_cost_the_budget(gap: float) -> None:
    points = np.random.default_rng(13).normal(size=(20, 3))
    apart = mdp.exponential(mdp.FiniteSpace(np.concatenate([points, points[:1] + 1e-4]), mdp.Lp(2)), 2.0, form="kernel")
    near = mdp.exponential(mdp.FiniteSpace(np.concatenate([points, points[:1] + gap]), mdp.Lp(2)), 2.0, form="kernel")
    assert near.inner == pytest.approx(apart.inner, rel=1e-3)
    assert mdp.audit(near).verdict == "holds"


def test_extremes_have_an_answer() -> None:
    points = np.random.default_rng(14).normal(size=(12, 3))
    cases: list[tuple[Any, Any, float]] = [
        (np.array([[0.0], [5e-324], [1.0]]), mdp.Lp(2), 2.0),  # a distance that is no ordinary double
        (np.array([[1.0, 3.0], [0.5, 1.5], [1.0, 0.0]]), mdp.Angular(), 1.0),  # two on one ray: one law
        (np.array([[1.0, 1e-300], [1.0, 2e-300], [0.0, 1.0]]), mdp.Angular(), 1.0),
        (np.array([[10.0, 180.0], [10.0, -180.0], [11.0, 0.0]]), mdp.Haversine(), 1.0),
        (1e-160 * points, mdp.Lp(2), 2e160),
        (1e250 * points, mdp.Lp(2), 2e-250),
        (points, mdp.Lp(2), 1e-90),
        (points, mdp.Lp(2), 1e9),
        (points + 1e8, mdp.Lp(2), 1.0),
        (np.arange(12.0)[:, None], mdp.Lp(2), 1.0),
    ]
    for some, metric, epsilon in cases:
        made = mdp.exponential(mdp.FiniteSpace(some, metric), epsilon, form="kernel")
        assert epsilon / 2 * (1 - 1e-9) <= made.inner <= epsilon
        report = mdp.audit(made)
        assert report.verdict == "holds"
        assert report.epsilon <= epsilon
        assert made.sample(np.arange(len(some))).shape == (len(some),)


def test_two_places_at_distance_zero_have_one_law() -> None:
    made = mdp.exponential(
        mdp.FiniteSpace(np.array([[1.0, 3.0], [0.5, 1.5], [1.0, 0.0]]), mdp.Angular()), 1.0, form="kernel"
    )
    np.testing.assert_allclose(made.rows([0])[0][[0, 1, 2]], made.rows([1])[0][[1, 0, 2]], rtol=1e-12)


def test_the_certificate_counts_the_loss_and_the_prior_it_was_made_for() -> None:
    rng = np.random.default_rng(15)
    space, prior, loss = space_of("l2", 15, 16), rng.dirichlet(np.ones(15)), rng.uniform(size=(15, 15))
    for options in ({"prior": prior}, {"loss": loss}, {"prior": prior, "loss": loss}):
        made: Any = mdp.exponential(space, 1.0, form="kernel", **options)
        costs = options.get("loss", space.distances)
        weights = options.get("prior", np.full(15, 1 / 15))
        assert made.certificate.loss == pytest.approx(float(weights @ (brute_law(made) * costs).sum(axis=1)), rel=1e-9)
        least = float(weights @ costs.min(axis=1))
        assert made.certificate.lower_bound == pytest.approx(least, rel=1e-9, abs=1e-300)


def test_machine_code_certifies_what_arrays_do(monkeypatch: Any) -> None:
    pytest.importorskip("numba")
    found = []
    for compiled in (False, True):
        for module in ("auditing.kernels", "mechanisms.kernel_distribution", "metrics.bounded_distances"):
            monkeypatch.setattr(f"metricdp.{module}.worth_compiling", lambda size, compiled=compiled: compiled)
        for build in (mdp.exponential, mdp.truncated_exponential):
            made: Any = build(space_of("l2", 60, 17), 1.5, form="kernel")
            found.append((made.inner, made.certificate.loss, made.certificate.epsilon, *made.certificate.witness))
    np.testing.assert_allclose(found[:2], found[2:], rtol=1e-9)


def test_a_promise_with_slack_or_a_radius_is_judged() -> None:
    from dataclasses import replace

    made = mdp.exponential(space_of("l2", 15, 18), 1.0, form="kernel")
    logs, apart = np.log(brute_law(made)), made.space.distances
    shown = np.abs(logs[:, None] - logs[None]).max(axis=2)
    pairs = apart > 0
    for slack, radius in ((0.2, None), (0.0, 1.5), (0.1, 1.0)):
        counted = pairs if radius is None else pairs & (apart <= radius)
        wanted = float(((shown - slack) / np.where(pairs, apart, 1.0))[counted].max())
        changed = replace(made, guarantee=replace(made.guarantee, slack=slack, radius=radius))
        assert mdp.audit(changed).epsilon == pytest.approx(max(wanted, 0.0), rel=1e-9)
