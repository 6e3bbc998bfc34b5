"""Weights on windows in 16-bit codes: the promise kept exactly, hardly more loss, smaller files."""

from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage
from instances import local_on, some_local
from metricdp.artifacts import dumps, loads
from metricdp.errors import InvalidInput

pytest.importorskip("numba", reason="windows take the extra `fast`")


def streets(side: int) -> mdp.FiniteSpace:
    """Crossings of a city with streets of many lengths, some of them a hundredth of the others."""
    number = np.arange(side * side).reshape(side, side)
    edges = np.concatenate([
        np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
        np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
    ])  # fmt: skip
    rng = np.random.default_rng(7)
    lengths = rng.uniform(0.5, 1.5, len(edges)) * np.where(rng.random(len(edges)) < 0.05, 0.01, 1.0)
    return mdp.FiniteSpace(np.arange(side * side)[:, None], mdp.ShortestPath(edges, lengths))


CITIES = {"streets": lambda: mdp.Problem(streets(12), 1.5), "plane": lambda: mdp.Problem(mdp.grid((11, 11)), 1.5)}


@pytest.fixture(scope="module", params=CITIES)
def laws(request: pytest.FixtureRequest) -> tuple[mdp.Problem, Any, Any]:
    problem = CITIES[request.param]()
    exact = mdp.optimal(problem, window=6.0, gap=0.1, seconds=20)
    return problem, exact, mdp.quantised(exact, bits=16)


def test_the_rounded_law_keeps_the_promise_at_every_pair(laws: tuple[mdp.Problem, Any, Any]) -> None:
    problem, _, rounded = laws
    assert leakage(rounded.matrix, problem.inputs.distances)[0] <= problem.epsilon * (1 + 1e-9)
    assert mdp.audit(rounded).verdict == "holds"


def test_loss_rises_little_and_is_that_of_the_rounded_law(laws: tuple[mdp.Problem, Any, Any]) -> None:
    problem, exact, rounded = laws
    true = float((problem.prior[:, None] * problem.loss * rounded.matrix).sum())
    found = rounded.certificate
    assert true <= found.loss * (1 + 1e-9)
    assert found.loss <= exact.certificate.loss * 1.02
    assert found.lower_bound == exact.certificate.lower_bound
    assert "16 bits" in found.method
    assert "loss is that of the rounded distribution" in found.note


def test_files_are_smaller_and_every_bit_comes_back() -> None:
    ring = np.column_stack([np.arange(500), np.roll(np.arange(500), -1)])
    roads = mdp.ShortestPath(ring, np.random.default_rng(2).uniform(0.02, 0.06, 500))
    made = local_on(mdp.FiniteSpace(np.arange(500)[:, None], roads), 7.0)
    rounded = mdp.quantised(made)
    kinds, count = len(np.unique(rounded.values)), len(made.values)
    assert count > 150_000
    assert kinds <= 65_536 < len(np.unique(made.values))
    data = dumps(rounded)
    assert len(data) < len(dumps(made)) - 2 * count + 4 * kinds + 4_000
    again: Any = loads(data)
    assert np.array_equal(again.values, rounded.values)
    assert np.array_equal(again.background, rounded.background)
    with pytest.raises(InvalidInput, match="round them first"):
        dumps(made, storage="quantised")


def test_a_law_out_of_a_file_is_rounded_again(laws: tuple[mdp.Problem, Any, Any]) -> None:
    problem, _, rounded = laws
    again = mdp.quantised(loads(dumps(rounded)))
    assert leakage(again.matrix, problem.inputs.distances)[0] <= problem.epsilon * (1 + 1e-9)
    assert again.certificate.loss == rounded.certificate.loss


def test_a_law_by_hand_is_rounded_too_and_keeps_the_loss_it_states() -> None:
    made = some_local()
    rounded = mdp.quantised(made)
    assert leakage(rounded.matrix, made.inputs.distances)[0] <= made.guarantee.epsilon * (1 + 1e-9)
    assert rounded.certificate.loss == made.certificate.loss
    assert "before rounding" in rounded.certificate.note


def test_problems_of_another_kind_are_refused(laws: tuple[mdp.Problem, Any, Any]) -> None:
    problem, exact, rounded = laws
    assert mdp.quantised(exact, problem=problem).certificate.loss == rounded.certificate.loss
    n = len(problem.inputs)
    with pytest.raises(InvalidInput, match="made for"):
        mdp.quantised(exact, problem=mdp.Problem(problem.inputs, 1.5, prior=np.arange(1, n + 1) / (n * (n + 1) / 2)))
    with pytest.raises(InvalidInput, match="guarantee of the mechanism"):
        mdp.quantised(exact, problem=mdp.Problem(problem.inputs, 1.0))
    with pytest.raises(InvalidInput, match="must be about"):
        mdp.quantised(exact, problem=mdp.Problem(mdp.grid((2, 2)), 1.5))
