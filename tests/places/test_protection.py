"""Protection sets: both halves of the promise by loops over sets and reports; PIVE as published fails the audit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import Infeasible, InvalidInput


def best_guess(mass: np.ndarray, apart: np.ndarray) -> float:
    """The error of the best guess among all places, of somebody who holds these masses."""
    return min(math.fsum(mass * apart[:, guess]) for guess in range(len(apart))) / math.fsum(mass)


@settings(max_examples=20)
@given(st.integers(6, 14), st.integers(0, 10**6), st.sampled_from([0.3, 1.0, 2.0]))
def test_ratios_within_a_set_and_the_error_of_every_guess_are_kept(count: int, seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    space = mdp.FiniteSpace(rng.normal(size=(count, 2)), mdp.Lp(2))
    prior, apart = rng.dirichlet(np.ones(count)), space.distances
    error = float(rng.uniform(0.2, 0.9)) * best_guess(prior, apart) * math.exp(-epsilon)
    sets = mdp.protection_sets(space, epsilon, error=error, prior=prior)
    assert sorted(set(sets.labels)) == list(range(len(sets)))
    for one in range(len(sets)):
        inside = np.flatnonzero(sets.labels == one)
        assert sets.diameters[one] == max(apart[i, j] for i in inside for j in inside)
        assert sets.errors[one] == pytest.approx(best_guess(np.where(sets.labels == one, prior, 0.0), apart))
        assert sets.errors[one] >= math.exp(epsilon) * error
        assert sets.space.distances[np.ix_(inside, inside)].max() <= 1.0
    made = mdp.exponential(sets.space, epsilon)
    law = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    for one in range(len(sets)):
        inside = sets.labels == one
        assert np.all(law[inside].max(axis=0) <= math.exp(epsilon) * law[inside].min(axis=0) * (1 + 1e-12))
        for report in range(count):
            assert best_guess(np.where(inside, prior * law[:, report], 0.0), apart) >= error
    assert mdp.adversary_error(made, prior=prior, loss=apart) >= error


def test_distances_are_the_paths_of_the_formula() -> None:
    rng = np.random.default_rng(4)
    space = mdp.FiniteSpace(rng.normal(size=(20, 2)), mdp.Lp(2))
    sets = mdp.protection_sets(space, 1.0, error=0.1)
    assert len(sets) > 2
    width = sets.diameters[sets.labels]
    found = space.distances / np.maximum(width[:, None], width[None])
    for middle in range(20):  # Floyd and Warshall
        found = np.minimum(found, found[:, middle, None] + found[middle])
    np.testing.assert_allclose(sets.space.distances, found, rtol=1e-12)
    assert "20 places" in repr(sets)


def test_the_published_search_gives_members_of_one_set_different_diameters_and_is_refuted() -> None:
    """PIVE on a village and a farm: the farm's set holds a house whose own set is five times smaller."""
    street = np.array([0.0, 0.3, 0.6, 0.9, 1.2, 1.5, 6.5])
    apart, epsilon, error = np.abs(street[:, None] - street[None]), 1.0, 0.1
    diameters, pairs = np.empty(7), []
    for place in range(7):
        runs = [
            (street[b] - street[a], a, b)
            for a in range(place + 1)
            for b in range(place, 7)
            if min(apart[a : b + 1, guess].mean() for guess in range(a, b + 1)) >= math.exp(epsilon) * error
        ]
        diameters[place], a, b = min(runs)
        pairs += [(place, other) for other in range(a, b + 1) if other != place]
    law = np.exp(-epsilon * apart / (2.0 * diameters[:, None]))
    law /= law.sum(axis=1, keepdims=True)
    claim = mdp.ShortestPath(pairs, np.ones(len(pairs)), 7, unit="set")
    report = mdp.audit(law, metric=claim, points=np.arange(7), epsilon=epsilon)
    assert report.verdict == "violated"
    assert report.epsilon == pytest.approx(max(np.log(law[i] / law[j]).max() for i, j in pairs), rel=1e-9)
    assert report.epsilon > 2.7
    sound = mdp.protection_sets(mdp.FiniteSpace(street[:, None], mdp.Lp(1)), epsilon, error=error)
    assert mdp.audit(mdp.exponential(sound.space, epsilon)).verdict == "holds"


def test_what_cannot_be_divided_is_refused_with_a_sentence() -> None:
    space = mdp.grid((3, 3))
    with pytest.raises(Infeasible, match=r"errs by 1\.07298 only"):
        mdp.protection_sets(space, 1.0, error=1.0)
    with pytest.raises(InvalidInput, match="`error`"):
        mdp.protection_sets(space, 1.0, error=0.0)
    with pytest.raises(InvalidInput, match="2 to 4,096 places"):
        mdp.protection_sets(mdp.FiniteSpace([[0.0]], mdp.Lp(2)), 1.0, error=0.1)
    sets = mdp.protection_sets(space, 0.1, error=0.1, prior=[1, 0, 0, 0, 0, 0, 0, 0, 0] * np.array(0.9) + 0.1 / 9)
    assert len(sets) >= 1  # one place holds nearly everything: few sets, none without an error
    assert sets.errors.min() >= math.exp(0.1) * 0.1
