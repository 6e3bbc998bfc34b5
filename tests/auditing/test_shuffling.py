"""Shuffled reports: the stated numbers against all multisets of small crowds, counted one by one."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput


def seen(distribution, secrets):
    """The law of the shuffled reports: a multiset with its probability, by all draws of all people."""
    found = Counter()
    for reports in itertools.product(range(distribution.shape[1]), repeat=len(secrets)):
        found[tuple(sorted(reports))] += math.prod(
            distribution[who, what] for who, what in zip(secrets, reports, strict=True)
        )
    return found


def hockey_stick(one, other, level):
    return math.fsum(max(chance - math.exp(level) * other[what], 0.0) for what, chance in one.items())


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_no_crowd_of_a_mechanism_shows_more_than_is_stated(epsilon):
    space = mdp.FiniteSpace(np.array([[0.0], [0.5], [1.0]]), mdp.Lp(1))
    made = mdp.exponential(space, epsilon).matrix
    distribution = made / made.sum(axis=1, keepdims=True)
    for people in (2, 4):
        for rest in itertools.combinations_with_replacement(range(3), people - 1):
            crowds = [seen(distribution, (one, *rest)) for one in range(3)]
            for one, other in ((0, 1), (1, 0), (0, 2), (2, 0)):
                distance = abs(one - other) / 2
                for level in (0.2 * epsilon * distance, 0.8 * epsilon * distance):
                    stated = mdp.auditing.shuffled_delta(epsilon, people, distance=distance, diameter=1.0, level=level)
                    assert hockey_stick(crowds[one], crowds[other], level) <= stated


@pytest.mark.parametrize("people", [2, 7, 30])
def test_the_delta_is_that_of_the_two_laws_of_the_theorem(people):
    """Randomised response on two values reaches the clones: the pair of laws, summed up by hand."""
    pure, level = 1.2, 0.5
    p, clone = math.exp(pure), math.exp(-pure)
    one, other = Counter(), Counter()
    for c in range(people):
        chance = math.comb(people - 1, c) * clone**c * (1 - clone) ** (people - 1 - c)
        for a in range(c + 1):
            share = chance * math.comb(c, a) / 2**c
            for extra, weight in ((1, p / (p + 1)), (0, 1 / (p + 1))):
                one[c, a + extra] += share * weight
                other[c, a + 1 - extra] += share * weight
    stated = mdp.auditing.shuffled_delta(1.2, people, distance=1.0, diameter=1.0, level=level)
    assert stated == pytest.approx(hockey_stick(one, other, level), rel=1e-5)
    assert stated >= hockey_stick(one, other, level)


def test_a_crowd_hides_more_than_the_mechanism_does_and_never_less():
    asked = {"distance": 0.2, "diameter": 1.0, "delta": 1e-6}
    levels = [mdp.auditing.shuffled_epsilon(2.0, people, **asked) for people in (1, 100, 10_000, 300_000)]
    assert levels[0] == pytest.approx(0.4, rel=1e-4)  # alone, what the mechanism promises
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] < 0.02
    # the closed form of the paper, at distance = diameter, is a weaker statement
    people, delta, local = 10_000, 1e-6, 1.0
    growth = math.exp(local)
    published = math.log1p(
        (growth - 1) / (growth + 1) * (8 * math.sqrt(growth * math.log(4 / delta) / people) + 8 * growth / people)
    )
    assert mdp.auditing.shuffled_epsilon(1.0, people, distance=1.0, diameter=1.0, delta=delta) <= published
    found = mdp.auditing.shuffled_epsilon(1.0, people, distance=0.3, diameter=1.0, delta=delta)
    assert mdp.auditing.shuffled_delta(1.0, people, distance=0.3, diameter=1.0, level=found) <= delta * (1 + 1e-3)
    assert found < 0.4 * mdp.auditing.shuffled_epsilon(1.0, people, distance=1.0, diameter=1.0, delta=delta)


def test_what_cannot_be_shuffled_is_refused():
    with pytest.raises(InvalidInput, match="`diameter` must be the largest distance"):
        mdp.auditing.shuffled_epsilon(1.0, 10, distance=2.0, diameter=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="`people` must be a whole number from 1"):
        mdp.auditing.shuffled_epsilon(1.0, 0, distance=1.0, diameter=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="at most 700, got 800: nothing is hidden"):
        mdp.auditing.shuffled_delta(800.0, 10, distance=1.0, diameter=1.0, level=750.0)
    with pytest.raises(InvalidInput, match="`delta` must lie between 0 and 1"):
        mdp.auditing.shuffled_epsilon(1.0, 10, distance=1.0, diameter=1.0, delta=0.0)
