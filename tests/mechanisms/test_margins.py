"""The margins that every proof rests on: as wide as the doubles may be wrong, and rounded to the safe side."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

import metricdp as mdp
from metricdp.mechanisms import LocalMechanism, kernel_rows
from metricdp.mechanisms.kernel_rows import ACCEPTED, AT_ONCE, NONE, Proposals, locate_words

UNIT = 2.0**-53


def kernel() -> Any:
    points = np.random.default_rng(5).normal(size=(30, 3))
    return mdp.exponential(mdp.FiniteSpace(points, mdp.Lp(2)), 2.0, form="kernel")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_terms_may_be_as_wrong_as_their_stated_error(
    sign: float, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What doubles decide is what interval arithmetic says, with all terms up to a report too large or too small."""
    if compiled:
        pytest.importorskip("numba")
    monkeypatch.setattr("metricdp.mechanisms.kernel_rows.worth_compiling", lambda size: compiled)
    made = kernel()
    distribution, secret, border = made.distribution, 0, 12
    terms = distribution.terms(np.array([secret]))
    with flint.ctx.workprec(300):
        balls = distribution.balls(secret, bits=300)
        ends = [sum(balls[: k + 1], start=flint.arb(0)) / sum(balls, start=flint.arb(0)) for k in range(30)]
        edge = int((ends[border] * flint.arb(2) ** 64).floor().unique_fmpz())
    wrong = terms.copy()
    wrong[:, 1 : border + 1] *= 1.0 + 0.9 * sign * distribution.error
    wrong[:, border + 1 :] *= 1.0 - 0.9 * sign * distribution.error
    monkeypatch.setattr(type(distribution), "terms", lambda self, codes: wrong.copy())
    steps = [int(distribution.error * 2.0**64 * share) for share in np.linspace(0.01, 0.5, 30)]
    words = np.array([edge + way * step for step in steps for way in (-1, 1)], dtype=np.uint64)
    found, sure = locate_words(distribution, np.array([secret]), np.array([0, len(words)]), words)
    true = np.array([border if int(word) <= edge else border + 1 for word in words])
    assert np.array_equal(found[sure], true[sure])


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_distance_of_a_proposal_may_be_wrong_by_its_roundings(sign: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_rows, "FEWEST", 1)
    monkeypatch.setattr(kernel_rows, "worth_compiling", lambda size: False)
    made = kernel()
    proposals = Proposals(made.distribution, made.log_normalisers, made.nearest)
    off = sign * made.inner * made.distribution.reach * 4 * UNIT  # a square, a sum, a root, a product
    plain = kernel_rows.exp
    monkeypatch.setattr(kernel_rows, "exp", lambda power: plain(power) * (1.0 + off))
    secret, report = 3, 17
    with flint.ctx.workprec(300):
        one, two = (made.space.points[code].tolist() for code in (secret, report))
        gaps = [flint.arb(a) - flint.arb(b) for a, b in zip(one, two, strict=True)]
        away = sum((gap * gap for gap in gaps), start=flint.arb(0)).sqrt()
        chance = (flint.arb(made.inner) * (flint.arb(float(made.nearest[secret])) - away)).exp()
        edge = int((chance * flint.arb(2) ** 64).floor().unique_fmpz())
    aimed, refused = (report << 64) // 30 + (1 << 40), (1 << 64) - 1
    for share in np.linspace(0.02, 0.98, 25):
        for way in (-1, 1):
            word = edge + way * int(share * abs(off) * edge)
            row = np.array([[aimed, word] + [aimed, refused] * (AT_ONCE - 1)], dtype=np.uint64)
            _, state = proposals.try_rows(np.array([secret]), row)
            assert state[0] in ((0, ACCEPTED) if way < 0 else (0, NONE))


def test_a_pair_exactly_at_the_radius_is_protected() -> None:
    space = mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1))
    leaky = np.array([[1.0, 0.0], [0.0, 1.0]])
    made = replace(mdp.exponential(space, 1.0), matrix=leaky)
    made = replace(made, guarantee=replace(made.guarantee, radius=1.0))
    assert mdp.audit(made).verdict == "violated"
    problem = mdp.Problem(space, 1.0, radius=1.0)
    assert np.isfinite(problem.log_ratios[0, 1])


def test_a_street_exactly_as_long_as_the_radius_is_judged() -> None:
    road = mdp.ShortestPath([[0, 1], [1, 2]], [1.0, 1.0], 3)
    space = mdp.FiniteSpace(np.arange(3)[:, None], road)
    values = np.array([1.0, 0.1, 0.1, 1.0, 0.1, 0.1, 1.0], dtype=np.float32)
    promise = replace(mdp.exponential(space, 1.0).guarantee, radius=1.0)
    paper = mdp.exponential(space, 1.0).certificate
    columns, background = np.array([0, 1, 0, 1, 2, 1, 2]), np.full(3, 0.01)
    made = LocalMechanism(space, space, np.array([0, 2, 5, 7]), columns, values, background, promise, paper)
    report = mdp.audit(made)
    assert report.pairs == 2
    assert report.verdict == "violated"


def test_scaled_distances_are_never_longer_than_the_product() -> None:
    from metricdp.places import scaled

    rng = np.random.default_rng(11)
    lengths = rng.uniform(0.1, 9.0, 300)
    road = mdp.ShortestPath([[k, k + 1] for k in range(300)], lengths, 301)
    scale = rng.uniform(0.05, 1.0, 301)
    metric: Any = scaled(mdp.FiniteSpace(np.arange(301)[:, None], road), scale).metric
    for (a, b), length, before in zip(metric.edges, metric.lengths.tolist(), lengths.tolist(), strict=True):
        assert Fraction(length) <= Fraction(float(min(scale[a], scale[b]))) * Fraction(before)
