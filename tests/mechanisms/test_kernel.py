"""Draws from kernels: exact with respect to the ideal law."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import flint
import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.mechanisms import kernel_rows
from metricdp.mechanisms.kernel_distribution import KernelDistribution
from metricdp.mechanisms.kernel_rows import decide, locate_words
from metricdp.randomness import KeyedSource, row_words
from published import KERNELS, kernel_of


@pytest.fixture(scope="module")
def made() -> Any:
    points = np.random.default_rng(0).normal(size=(40, 3))
    return mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 2.0, form="kernel")


def ideal(mechanism: Any) -> Any:
    apart = np.sqrt(((mechanism.space.points[:, None] - mechanism.space.points[None]) ** 2).sum(axis=-1))
    distribution = np.exp(-mechanism.inner * apart)
    return distribution / distribution.sum(axis=1, keepdims=True)


def test_reports_follow_the_law(made: Any) -> None:
    distribution, draws = ideal(made), 60_000
    for secret in (0, 17):
        counts = np.bincount(made.sample(np.full(draws, secret), rng=np.random.default_rng(secret)), minlength=40)
        expected = draws * distribution[secret]
        assert float(((counts - expected) ** 2 / expected).sum()) < 39 + 5 * np.sqrt(2 * 39)  # chi square, 39 degrees


def test_shapes_and_order_are_those_of_the_secrets(made: Any) -> None:
    secrets = np.random.default_rng(1).integers(0, 40, size=(7, 5))
    one = made.sample(secrets, rng=np.random.default_rng(2))
    assert one.shape == (7, 5)
    assert np.array_equal(one, made.sample(secrets, rng=np.random.default_rng(2)))
    with pytest.raises(InvalidInput, match="secrets"):
        made.sample([40])


def test_log_densities_are_those_of_the_law(made: Any) -> None:
    distribution = np.log(ideal(made))
    codes = np.arange(40)
    np.testing.assert_allclose(made.log_density(codes[:, None], codes[None]), distribution, rtol=1e-11, atol=1e-11)


def test_the_table_of_a_large_vocabulary_is_not_written_out(monkeypatch: Any) -> None:
    monkeypatch.setattr("metricdp.design.kernels.MOST_SECRETS", 400)
    monkeypatch.setattr("metricdp.mechanisms.kinds.kernel.MOST_DENSE", 400**2)
    points = np.random.default_rng(3).normal(size=(420, 2))
    large = mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 1.0)
    assert isinstance(large, mdp.mechanisms.KernelMechanism)
    with pytest.raises(InvalidInput, match="is not written out"):
        _ = large.matrix
    assert mdp.audit(large).verdict == "holds"
    assert large.sample([0, 419]).shape == (2,)


def reference(mechanism: Any, secret: int, word: int, half: int = 1) -> int:
    """The first report whose part holds the middle of a word, or its beginning; the secret's own comes first."""
    points = mechanism.space.points
    with flint.ctx.workprec(300):

        def term(k: int) -> Any:
            gaps = [
                flint.arb(a) - flint.arb(b) for a, b in zip(points[secret].tolist(), points[k].tolist(), strict=True)
            ]
            weight = 0.0 if mechanism.log_weights is None else float(mechanism.log_weights[k])
            away = sum((gap * gap for gap in gaps), start=flint.arb(0)).sqrt() if k != secret else flint.arb(0)
            return (flint.arb(weight) - flint.arb(mechanism.inner) * away.min(flint.arb(mechanism.cap))).exp()

        order = [secret, *(k for k in range(len(points)) if k != secret)]
        terms = [term(k) for k in order]
        target = sum(terms, start=flint.arb(0)) * (2 * word + half) / flint.arb(2) ** 65
        running = flint.arb(0)
        for k, part in zip(order, terms, strict=True):
            running += part
            if bool(target < running):
                return k
    return order[-1]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", ["plain", "weighted", "truncated"])
def test_doubles_agree_with_interval_arithmetic_on_the_same_words(monkeypatch: Any, compiled: bool, kind: str) -> None:
    if compiled:
        pytest.importorskip("numba")
    for module in (
        "metricdp.mechanisms.kernel_distribution",
        "metricdp.mechanisms.kernel_rows",
        "metricdp.metrics.bounded_distances",
    ):
        monkeypatch.setattr(f"{module}.worth_compiling", lambda size: compiled)
    rng = np.random.default_rng(7)
    space = mdp.FiniteSpace(rng.normal(size=(30, 4)), mdp.Lp(2))
    mechanism: Any = {
        "plain": lambda: mdp.exponential(space, 1.5, form="kernel"),
        "weighted": lambda: mdp.weighted_exponential(space, 1.5, weights=rng.uniform(0.1, 9.0, 30), form="kernel"),
        "truncated": lambda: mdp.truncated_exponential(space, 8.0, beta=0.5, form="kernel"),
    }[kind]()
    secrets = rng.integers(0, 30, 200)
    source = KeyedSource(bytes(32), kind)
    words = row_words(KeyedSource(bytes(32), kind), 1).first(0, 0, 200)[:, 0].tolist()
    drawn = mechanism.sample(secrets, rng=source).tolist()
    assert drawn == [reference(mechanism, i, word) for i, word in zip(secrets.tolist(), words, strict=True)]


def planted(mechanism: Any, secret: int, border: int) -> int:
    """The word that holds the end of a report's part, found by bisection in interval arithmetic."""
    low, high = 0, 1 << 64
    order = [secret, *(k for k in range(len(mechanism.space)) if k != secret)]
    place = {k: at for at, k in enumerate(order)}
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if place[reference(mechanism, secret, middle, 0)] > border else (middle, high)
    return low


@pytest.mark.parametrize("compiled", [False, True])
def test_words_at_a_border_are_left_to_interval_arithmetic(made: Any, monkeypatch: Any, compiled: bool) -> None:
    for module in (
        "metricdp.mechanisms.kernel_distribution",
        "metricdp.mechanisms.kernel_rows",
        "metricdp.metrics.bounded_distances",
    ):
        monkeypatch.setattr(f"{module}.worth_compiling", lambda size: compiled)
    distribution: KernelDistribution = made.distribution
    for secret, border in ((3, 0), (3, 20), (39, 1)):
        word = planted(made, secret, border)
        near = np.array([word - 3, word, word + 3], dtype=np.uint64)
        _, sure = locate_words(distribution, np.array([secret]), np.array([0, 3]), near)
        assert not sure.any()
        far = np.array([word - (1 << 45), word + (1 << 45)], dtype=np.uint64)
        found, sure = locate_words(distribution, np.array([secret]), np.array([0, 2]), far)
        assert sure.all()
        assert found.tolist() == [reference(made, secret, int(w)) for w in far.tolist()]
        for step in (-3, 3):  # one word decides; the word itself needs more of them
            given = word + step
            drawn = decide(
                distribution, secret, lambda attempt, uniform, count, given=given: (given << 64 * count) >> 64
            )
            assert drawn == reference(made, secret, given)
        order = [secret, *(k for k in range(40) if k != secret)]
        ends = {0: order[border], (1 << 64) - 1: order[border + 1]}
        for further, wanted in ends.items():

            def digits(attempt: int, uniform: int, count: int, word: int = word, further: int = further) -> int:
                value = word
                for _ in range(count - 1):
                    value = (value << 64) | further
                return value

            assert decide(distribution, secret, digits) == wanted


def test_exponents_that_doubles_do_not_hold_are_refused(made: Any) -> None:
    steep = replace(made, inner=1e6, cap=np.inf)
    with pytest.raises(InvalidInput, match="give `cap`"):
        steep.sample([0])
    with pytest.raises(InvalidInput, match="give `cap`"):
        mdp.audit(steep)


def test_what_is_asked_is_not_remembered(made: Any) -> None:
    made.sample([0])
    before = set(vars(made)), set(vars(made._sampler)), set(vars(made.distribution))
    made.sample(np.arange(40))
    assert before == (set(vars(made)), set(vars(made._sampler)), set(vars(made.distribution)))


def test_batches_do_not_matter(made: Any, monkeypatch: Any) -> None:
    secrets = np.random.default_rng(9).integers(0, 40, 300)
    whole = made.sample(secrets, rng=KeyedSource(bytes(32), "a"))
    monkeypatch.setattr(kernel_rows, "BATCH_CELLS", 100)
    assert np.array_equal(whole, made.sample(secrets, rng=KeyedSource(bytes(32), "a")))


@pytest.mark.parametrize("entry", KERNELS, ids=lambda entry: entry["name"])
def test_published_words_give_their_reports_on_both_paths(entry: Any) -> None:
    kernel = kernel_of(entry)
    for draw in entry["draws"]:
        words, secret = draw["words"], draw["secret"]
        report, sure = locate_words(
            kernel.distribution, np.array([secret]), np.array([0, 1]), np.array([int(words[0], 16)], dtype=np.uint64)
        )
        assert not sure[0] or report[0] == draw["report"]
        exactly = decide(kernel.distribution, secret, lambda attempt, k, count, w=words: int("".join(w[:count]), 16))
        assert exactly == draw["report"]
    assert mdp.audit(kernel).verdict == "holds"
