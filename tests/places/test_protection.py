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
    sets = mdp.places.protection_sets(space, epsilon, error=error, prior=prior)
    assert sorted(set(sets.labels)) == list(range(len(sets)))
    for one in range(len(sets)):
        inside = np.flatnonzero(sets.labels == one)
        assert sets.diameters[one] == max(apart[i, j] for i in inside for j in inside)
        assert sets.errors[one] == pytest.approx(best_guess(np.where(sets.labels == one, prior, 0.0), apart))
        assert sets.errors[one] >= math.exp(epsilon) * error
        assert sets.space.distances[np.ix_(inside, inside)].max() <= 1.0
    made = mdp.exponential(sets.space, epsilon)
    distribution = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    for one in range(len(sets)):
        inside = sets.labels == one
        assert np.all(
            distribution[inside].max(axis=0) <= math.exp(epsilon) * distribution[inside].min(axis=0) * (1 + 1e-12)
        )
        for report in range(count):
            assert best_guess(np.where(inside, prior * distribution[:, report], 0.0), apart) >= error
    assert mdp.adversary_error(made, prior=prior, loss=apart) >= error


def test_distances_are_the_paths_of_the_formula() -> None:
    rng = np.random.default_rng(4)
    space = mdp.FiniteSpace(rng.normal(size=(20, 2)), mdp.Lp(2))
    sets = mdp.places.protection_sets(space, 1.0, error=0.1)
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
    distribution = np.exp(-epsilon * apart / (2.0 * diameters[:, None]))
    distribution /= distribution.sum(axis=1, keepdims=True)
    claim = mdp.ShortestPath(pairs, np.ones(len(pairs)), 7, unit="set")
    report = mdp.audit(distribution, metric=claim, points=np.arange(7), epsilon=epsilon)
    assert report.verdict == "violated"
    assert report.epsilon == pytest.approx(
        max(np.log(distribution[i] / distribution[j]).max() for i, j in pairs), rel=1e-9
    )
    assert report.epsilon > 2.7
    sound = mdp.places.protection_sets(mdp.FiniteSpace(street[:, None], mdp.Lp(1)), epsilon, error=error)
    assert mdp.audit(mdp.exponential(sound.space, epsilon)).verdict == "holds"


def test_what_cannot_be_divided_is_refused_with_a_sentence() -> None:
    space = mdp.grid((3, 3))
    with pytest.raises(Infeasible, match=r"errs by 1\.07298 only"):
        mdp.places.protection_sets(space, 1.0, error=1.0)
    with pytest.raises(InvalidInput, match="`error`"):
        mdp.places.protection_sets(space, 1.0, error=0.0)
    with pytest.raises(InvalidInput, match="2 to 4,096 places"):
        mdp.places.protection_sets(mdp.FiniteSpace([[0.0]], mdp.Lp(2)), 1.0, error=0.1)
    sets = mdp.places.protection_sets(
        space, 0.1, error=0.1, prior=[1, 0, 0, 0, 0, 0, 0, 0, 0] * np.array(0.9) + 0.1 / 9
    )
    assert len(sets) >= 1  # one place holds nearly everything: few sets, none without an error
    assert sets.errors.min() >= math.exp(0.1) * 0.1


@settings(max_examples=12)
@given(st.integers(6, 12), st.integers(0, 10**6), st.sampled_from([0.3, 1.0]))
def test_places_that_ask_for_more_error_get_it_in_every_set(count: int, seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    space = mdp.FiniteSpace(rng.normal(size=(count, 2)), mdp.Lp(2))
    prior, apart = rng.dirichlet(np.ones(count)), space.distances
    blind = best_guess(prior, apart)
    error = rng.choice([0.2, 0.5, 0.9], count) * blind * math.exp(-epsilon)
    sets = mdp.places.protection_sets(space, epsilon, error=error, prior=prior)
    distribution = mdp.exponential(sets.space, epsilon).matrix
    distribution = distribution / distribution.sum(axis=1, keepdims=True)
    for one in range(len(sets)):
        inside = sets.labels == one
        assert sets.least[one] == error[inside].max()
        for report in range(count):
            assert best_guess(np.where(inside, prior * distribution[:, report], 0.0), apart) >= error[inside].max()


def test_personal_errors_as_published_break_both_halves_and_the_sound_ones_keep_them() -> None:
    """PIVE with an error bound of one's own at a clinic, and a street where a report names the house."""
    street = np.arange(8.0)
    errors = np.where(street == 3, 0.35, 0.1)  # the clinic asks for more
    distribution, sets = published(street, 1.0, errors)
    pairs = [(x, other) for x, run in enumerate(sets) for other in run if other != x]
    claim = mdp.ShortestPath(pairs, np.ones(len(pairs)), 8, unit="set")
    assert mdp.audit(distribution, metric=claim, points=np.arange(8), epsilon=1.0).verdict == "violated"
    even, other = published(street, 1.0, np.full(8, 0.1))  # the same bound for all: members share their diameter
    pairs = [(x, one) for x, run in enumerate(other) for one in run if one != x]
    claim = mdp.ShortestPath(pairs, np.ones(len(pairs)), 8, unit="set")
    assert mdp.audit(even, metric=claim, points=np.arange(8), epsilon=1.0).verdict == "holds"
    sound = mdp.places.protection_sets(mdp.FiniteSpace(street[:, None], mdp.Lp(1)), 1.0, error=errors)
    assert sound.least[sound.labels[3]] == 0.35
    assert "0.1 to 0.35" in repr(sound)
    # a report from afar tells the third house from the second for certain, where an error of 0.015 was promised
    houses = np.array([0.0, 0.1, 0.7, 5.0])
    distribution, sets = published(houses, 1.0, np.full(4, 0.015))
    assert list(sets[2]) == [1, 2]
    apart = np.abs(houses[:, None] - houses[None])
    seen = np.where(np.isin(np.arange(4), sets[2]), distribution[:, 3], 0.0)
    assert best_guess(seen, apart) < 1e-6 * 0.015


def published(street: np.ndarray, epsilon: float, errors: np.ndarray) -> tuple[np.ndarray, list[range]]:
    """PIVE along a street, all houses alike: the law, and the set of every house."""
    apart, sets = np.abs(street[:, None] - street[None]), []
    for place in range(len(street)):
        runs = [range(a, b) for a in range(place + 1) for b in range(place + 1, len(street) + 1)]
        wide = [
            run for run in runs if min(apart[run, g].mean() for g in run) >= math.exp(epsilon) * errors[place] - 1e-12
        ]
        sets.append(min(wide, key=lambda run: street[run[-1]] - street[run[0]]))
    diameters = np.array([street[run[-1]] - street[run[0]] for run in sets])
    distribution = np.exp(-epsilon * apart / (2 * diameters[:, None]))
    return distribution / distribution.sum(axis=1, keepdims=True), sets


def test_errors_that_cannot_be_kept_are_refused_with_the_place() -> None:
    space = mdp.grid((3, 3))
    with pytest.raises(InvalidInput, match="one positive number or 9 of them"):
        mdp.places.protection_sets(space, 1.0, error=[0.1, 0.2])
    with pytest.raises(InvalidInput, match="one positive number or 9 of them"):
        mdp.places.protection_sets(space, 1.0, error=np.zeros(9))
    with pytest.raises(Infeasible, match="the place 4 asks for an error of 2"):
        mdp.places.protection_sets(space, 1.0, error=np.where(np.arange(9) == 4, 2.0, 1e-3))
