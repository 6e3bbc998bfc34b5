"""Interpolated mechanisms beyond three coordinates: the promise at every point, the loss, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import metricdp as mdp


def instance(n, p, reports=4, count=120):
    rng = np.random.default_rng(n)
    box = mdp.Box(np.zeros(n), np.linspace(3.0, 1.5, n), mdp.Lp(p))
    places = rng.random((reports, n)) * box.upper
    points = rng.random((count, n)) * box.upper
    losses = np.abs(points[:, None] - places[None]).sum(axis=2)
    return box, mdp.FiniteSpace(places, mdp.Lp(p)), (points, losses)


@pytest.mark.parametrize(
    ("n", "p", "rule"),
    [(4, 2.0, "exact"), (4, np.inf, "log"), (4, 2.0, "direction"), (5, 1.0, "exact"), (6, 2.0, "log")],
)
def test_the_promise_holds_in_many_dimensions(n, p, rule):
    box, reports, loss = instance(n, p)
    cells = 2 if rule == "log" and n == 4 else 1
    made = mdp.interpolated(box, reports, 0.8, loss=loss, anchors=cells, rule=rule, split="even", gap=1e-2, bound=False)
    rng = np.random.default_rng(1)
    left = rng.random((2_000, n)) * box.upper
    step = rng.normal(size=left.shape) * 10 ** rng.uniform(-3, 0, (2_000, 1))
    step[:1_000] = np.sign(step[:1_000]) * np.abs(step[:1_000]).max(axis=1, keepdims=True)  # along diagonals
    right = np.clip(left + step, 0, box.upper)
    apart = np.linalg.norm(left - right, ord=p, axis=1)
    laws = [made.probabilities(part) for part in (left, right)]
    assert np.allclose(laws[0].sum(axis=1), 1.0, atol=1e-12)
    worst = (np.abs(np.log(laws[0]) - np.log(laws[1])).max(axis=1) / apart).max()
    assert worst <= mdp.audit(made).epsilon * (1 + 1e-9) <= 0.8 * (1 + 1e-9)
    points, losses = loss
    assert made.certificate.loss == pytest.approx(
        float((made.probabilities(points) * losses).sum() / len(points)), rel=1e-12
    )


def test_too_many_dimensions_are_refused_with_the_way_out():
    nine = mdp.Box(np.zeros(9), np.ones(9), mdp.Lp(2))
    with pytest.raises(mdp.MetricdpError, match="at most 8"):
        mdp.interpolated(nine, mdp.FiniteSpace(np.eye(9), mdp.Lp(2)), 1.0, anchors=1)
    box, reports, loss = instance(5, 2.0)
    with pytest.raises(mdp.MetricdpError, match="rule='exact'"):
        mdp.interpolated(box, reports, 1.0, loss=loss, anchors=1, rule="direction")
    with pytest.raises(mdp.MetricdpError, match="a sample of the domain"):
        mdp.interpolated(box, reports, 1.0, anchors=6)
