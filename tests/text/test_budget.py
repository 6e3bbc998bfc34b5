"""A budget for each text: levels that pay for all of it, and what happens to words beyond."""

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.text import Numeric, Rules, TextMechanism

WORDS = ["red", "green", "blue"]


def words(epsilon):
    return mdp.exponential(mdp.vocabulary(WORDS, 1e4 * np.arange(3.0)[:, None]), epsilon)


class Recorded:
    """A mechanism that notes which words it was asked for, and reports them as they are."""

    def __init__(self, epsilon):
        self._true, self.asked = words(epsilon), []
        self.inputs, self.outputs = self._true.inputs, self._true.outputs
        self.guarantee, self.certificate = self._true.guarantee, self._true.certificate

    def sample(self, secrets, /, *, rng=None):
        self.asked += np.asarray(secrets).tolist()
        return np.asarray(secrets)

    def log_density(self, secrets, reports, /):
        return self._true.log_density(secrets, reports)


@pytest.mark.parametrize(("beyond", "expected"), [("mask", "red blue, [MASK] [MASK]!"), ("drop", "red blue,!")])
def test_words_that_the_budget_does_not_pay_for_are_masked_or_dropped(beyond, expected):
    mechanism = TextMechanism(words(2.0), Rules(budget=5.0, beyond=beyond))
    assert mechanism.protect(["red blue, green red!", "green"]) == [expected, "green"]


def test_a_text_that_costs_more_is_refused_by_its_row():
    with pytest.raises(OutOfDomain, match=r"1 of 2 texts costs more .* pays for 2 words \(row 1\)") as caught:
        TextMechanism(words(2.0), Rules(budget=5.0)).protect(["red", "red green blue"])
    assert "green" not in str(caught.value)


def test_each_text_gets_the_first_epsilon_that_pays_for_all_of_it():
    """Brute force: the largest epsilon with count * epsilon <= budget, else the smallest on as many as it pays for."""
    levels = [Recorded(epsilon) for epsilon in (2.0, 1.0, 0.25)]
    mechanism = TextMechanism(levels[0], Rules(budget=4.0, beyond="mask"), lower=levels[1:])
    texts = [" ".join(["red", "green", "blue"][(n + i) % 3] for i in range(n)) for n in (1, 2, 3, 4, 5, 16, 17, 20, 0)]
    found = mechanism.protect(texts)
    expected = {2.0: 0, 1.0: 0, 0.25: 0}
    for text, report in zip(texts, found, strict=True):
        count = len(text.split())
        rate = next((rate for rate in expected if count * rate <= 4.0), 0.25)
        drawn = min(count, int(4.0 / rate))
        expected[rate] += drawn
        assert report.split() == text.split()[:drawn] + ["[MASK]"] * (count - drawn)
    assert [len(level.asked) for level in levels] == list(expected.values())


def test_numbers_are_paid_for_too():
    rules = Rules(budget=4.0, beyond="mask", numbers=Numeric(1.5, pitch=1.0, least=7, most=7))
    found = TextMechanism(words(2.0), rules).protect(["red 7 blue", "7 7 7", "7 blue"])
    assert found == ["red 7 [MASK]", "7 7 [MASK]", "7 blue"]


def test_ten_times_a_tenth_is_one():
    assert TextMechanism(words(0.1), Rules(budget=1.0)).protect(["red " * 10])


def test_mechanisms_for_long_texts_must_fit():
    with pytest.raises(InvalidInput, match="budget"):
        TextMechanism(words(2.0), lower=[words(1.0)])
    with pytest.raises(InvalidInput, match="falling"):
        TextMechanism(words(2.0), Rules(budget=1.0), lower=[words(3.0)])
    other = mdp.exponential(mdp.vocabulary(["red", "blue"], [[0.0], [1.0]]), 1.0)
    with pytest.raises(InvalidInput, match="the words of `words`"):
        TextMechanism(words(2.0), Rules(budget=1.0), lower=[other])
