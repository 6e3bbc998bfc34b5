"""Draws from flat rows by proposals: the same law, decided exactly."""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
import pytest

import metricdp as mdp
from metricdp.mechanisms import kernel_rows
from metricdp.mechanisms.kernel_rows import ACCEPTED, AT_ONCE, NONE, Proposals
from metricdp.randomness import KeyedSource


@pytest.fixture(scope="module")
def made() -> Any:
    points = np.random.default_rng(3).normal(size=(30, 5))
    return mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 1.0, form="kernel")


@pytest.fixture
def proposals(made: Any, monkeypatch: Any) -> Proposals:
    monkeypatch.setattr(kernel_rows, "FEWEST", 1)
    found = Proposals(made.distribution, made.log_normalisers, made.nearest)
    assert found.flat.all()
    return found


def chance(made: Any, secret: int, report: int) -> Any:
    """exp(-a (d - r)), in 300 bits."""
    one, two = (made.space.points[code].tolist() for code in (secret, report))
    away = sum(((flint.arb(a) - flint.arb(b)) ** 2 for a, b in zip(one, two, strict=True)), start=flint.arb(0)).sqrt()
    return (flint.arb(made.inner) * (flint.arb(float(made.nearest[secret])) - away)).exp()


def as_drawn(row: list[int]) -> Any:
    return np.frombuffer(np.array([row], dtype=np.uint64).tobytes(), dtype=np.uint64).reshape(1, -1)


def reference(made: Any, secret: int, words: list[int]) -> int:
    """The first proposal that is kept, -1 where none is, in 300 bits."""
    with flint.ctx.workprec(300):
        for word, other in zip(words[::2], words[1::2], strict=True):
            report = word * len(made.space) >> 64
            if report != secret and bool(flint.arb(2 * other + 1) / flint.arb(2) ** 65 < chance(made, secret, report)):
                return report
    return -1


def test_a_flat_row_is_drawn_by_its_law(made: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(kernel_rows, "FEWEST", 1)
    fresh = mdp.mechanisms.KernelMechanism(
        made.space, made.inner, None, made.cap, made.log_normalisers, made.guarantee, made.certificate,
        nearest=made.nearest,
    )  # fmt: skip
    apart = np.sqrt(((made.space.points[:, None] - made.space.points[None]) ** 2).sum(axis=-1))
    distribution = np.exp(-made.inner * apart)
    distribution /= distribution.sum(axis=1, keepdims=True)
    for secret in (0, 11):
        counts = np.bincount(fresh.sample(np.full(60_000, secret), rng=np.random.default_rng(secret)), minlength=30)
        expected = 60_000 * distribution[secret]
        assert float(((counts - expected) ** 2 / expected).sum()) < 29 + 5 * np.sqrt(2 * 29)  # chi square


@pytest.mark.parametrize("compiled", [False, True])
def test_proposals_in_doubles_are_those_of_interval_arithmetic(
    made: Any, proposals: Proposals, monkeypatch: Any, compiled: bool
) -> None:
    if compiled:
        pytest.importorskip("numba")
    monkeypatch.setattr(kernel_rows, "worth_compiling", lambda size: compiled)
    secrets = np.random.default_rng(4).integers(0, 30, 150)
    words = KeyedSource(bytes(32), "proposals").words(150 * 2 * AT_ONCE).reshape(150, -1)
    found, state = proposals.try_rows(secrets, words)
    assert set(state.tolist()) == {ACCEPTED, NONE}
    assert found.tolist() == [reference(made, i, row.tolist()) for i, row in zip(secrets.tolist(), words, strict=True)]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_chance_at_the_border_is_left_to_interval_arithmetic(
    made: Any, proposals: Proposals, monkeypatch: Any, compiled: bool
) -> None:
    monkeypatch.setattr(kernel_rows, "worth_compiling", lambda size: compiled)
    secret, report = 7, 19
    with flint.ctx.workprec(300):
        border = int((chance(made, secret, report) * flint.arb(2) ** 64).floor().unique_fmpz())
    aimed = (report << 64) // 30 + (1 << 40)
    refused = (1 << 64) - 1
    for other, wanted in ((border - 2, report), (border + 2, -1), (border, None)):
        row = [aimed, other] + [aimed, refused] * (AT_ONCE - 1)
        _, state = proposals.try_rows(np.array([secret]), as_drawn(row))
        assert state.tolist() == [0]
        for further in (0, (1 << 64) - 1):

            def digits(attempt: int, uniform: int, count: int, row: Any = row, further: int = further) -> int:
                value = row[uniform]
                for _ in range(count - 1):
                    value = (value << 64) | further
                return int(value)

            answer = (report if further == 0 else -1) if wanted is None else wanted
            assert proposals.decide(secret, digits, 0, 0) == answer
    torn = (report << 64) // 30  # its part belongs to two words
    _, state = proposals.try_rows(np.array([secret]), as_drawn([torn, 0] * AT_ONCE))
    assert state.tolist() == [0]


def test_a_distance_that_is_too_long_is_found(made: Any) -> None:
    from dataclasses import replace

    forged = replace(made, nearest=made.nearest * 1.01)
    assert mdp.audit(forged).verdict == "cannot judge"
    assert mdp.audit(made).verdict == "holds"
