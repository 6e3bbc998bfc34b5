"""The promise of a text, by brute force; and nothing of a secret in what is said."""

import itertools
import json
import logging
import traceback
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.text import Numeric, Rules, TextMechanism

WORDS = ["red", "green", "blue"]
POINTS = np.array([[0.0], [1.0], [2.5]])


class Scripted:
    """A mechanism whose reports are given, so that what is written for them can be listed."""

    def __init__(self, true):
        self._true, self.reports = true, []
        self.inputs, self.outputs = true.inputs, true.outputs
        self.guarantee, self.certificate = true.guarantee, true.certificate

    def sample(self, secrets, /, *, rng=None):
        return np.array(self.reports[: len(secrets)])

    def log_density(self, secrets, reports, /):
        return self._true.log_density(secrets, reports)


@pytest.fixture(scope="module")
def words():
    return mdp.exponential(mdp.vocabulary(WORDS, POINTS), 1.3)


@pytest.mark.parametrize("rules", [Rules(), Rules("drop", keep=["and"]), Rules("mask"), Rules("mask", case="lower")])
def test_two_texts_of_equal_structure_are_told_apart_by_the_sum_of_distances_at_most(words, rules):
    """Every text of the form, every report: the law of the output, listed, against exp(epsilon * sum of distances)."""
    form = "{}, {} and {}?" if rules.keep or rules.unknown == "mask" else "{}, {}; {}?"
    scripted = Scripted(words)
    mechanism = TextMechanism(scripted, rules)
    table, laws = words.matrix, {}
    for secret in itertools.product(range(3), repeat=3):
        text = form.format(WORDS[secret[0]].title(), *(WORDS[code] for code in secret[1:]))
        distribution = laws.setdefault(secret, {})
        for reports in itertools.product(range(3), repeat=3):
            scripted.reports = list(reports)
            written = mechanism.protect([text])[0]
            chance = np.prod([table[code, report] for code, report in zip(secret, reports, strict=True)])
            distribution[written] = distribution.get(written, 0.0) + chance
    for one, other in itertools.permutations(laws, 2):
        bound = 1.3 * sum(abs(POINTS[a, 0] - POINTS[b, 0]) for a, b in zip(one, other, strict=True))
        assert set(laws[one]) == set(laws[other])
        worst = max(np.log(laws[one][text] / laws[other][text]) for text in laws[one])
        assert worst <= bound + 1e-9
        if rules.case != "lower":
            assert worst > 0.3 * bound  # and not for nothing


def test_what_is_said_is_complete(words):
    rules = Rules(
        "spelling", keep=["the"], numbers=Numeric(1.0, 10.0), dates=Numeric(0.5, 30.0), units=True, budget=20.0
    )
    said = " ".join(TextMechanism(words, rules).promise())
    for part in (
        "epsilon 1.3",
        "the words with the nearest spelling",
        "epsilon 1 for every 10",
        "0.5 for every 30 days of difference",
        "exp(20)",
        "Not hidden",
        "order",
    ):
        assert part in said
    listed = " ".join(rules.sentences())
    for part in (
        "the nearest spelling",
        "one word of the list",
        "Several words that are one entry",
        "ever passed",
        "a text is 20",
    ):
        assert part in listed
    assert "case" in " ".join(TextMechanism(words).promise())
    assert "case" not in TextMechanism(words, Rules(case="lower")).promise()[-1]


def test_a_promise_that_is_none_or_ends_somewhere_is_said_so(words):
    scripted = Scripted(words)
    scripted.guarantee = replace(words.guarantee, basis="none")
    assert "gives no guarantee" in TextMechanism(scripted).promise()[0]
    scripted.guarantee = replace(words.guarantee, radius=2.0, slack=0.1)
    said = " ".join(TextMechanism(scripted).promise())
    assert "at most 2. There is no guarantee beyond" in said
    assert "and 0.1 a word" in said


SECRETS = ["zorpwick", "7.318264", "bob.zorp@mail.example", "@zorpian", "quillfeather", "2031-07-19"]


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        Rules("mask", budget=1.0),
        Rules("drop", budget=0.1, numbers=Numeric(1.0)),
        Rules("spelling", budget=0.1),
        Rules(numbers=Numeric(1e-3, pitch=1e-3), units=True),
    ],
)
def test_no_secret_reaches_an_error_a_log_or_a_repr(words, rules, caplog):
    caplog.set_level(logging.DEBUG)
    mechanism = TextMechanism(words, rules)
    texts = [f"red green blue blue {secret} blue {secret}" for secret in SECRETS]
    with pytest.raises(mdp.MetricdpError) as caught:
        mechanism.protect(texts)
    told = (
        "".join(traceback.format_exception(caught.value))
        + caplog.text
        + repr(mechanism)
        + json.dumps(caught.value.rows)
    )
    told += repr(caught.value.__cause__) + repr(caught.value.__context__)
    for secret in [*SECRETS, "zorp", "318264"]:
        assert secret not in told


TOLD = [
    "red",
    "Red ",
    "GREEN",
    "https://zorp.com",
    "@zorp",
    "a@b.com",
    "12",
    "-1,234.5",
    "2024-05-17",
    "14:30",
    "👍🏽",
    "don't",
]
SEVEN = Numeric(1.0, pitch=1.0, least=7, most=7)
ABLE = [Rules(unknown, mask="_", units=True, **more)
        for unknown in ("mask", "drop", "spelling")
        for more in ({}, {"numbers": SEVEN, "budget": 3.0, "beyond": "mask"})]  # fmt: skip


class Always(Scripted):
    """Whatever the word, the report is x."""

    def __init__(self):
        super().__init__(
            mdp.exponential(mdp.vocabulary(["x", "red", "new_york", "don't"], [[0.0], [1.0], [2.0], [3.0]]), 1.0)
        )

    def sample(self, secrets, /, *, rng=None):
        return np.zeros(len(secrets), dtype=np.int64)


ALWAYS = Always()


def is_open(character):
    """Whether a character tells a word: a letter, a digit, a mark, a picture or something unseen, by Unicode itself."""
    kind = unicodedata.category(character)
    return kind[0] in "LNM" or (kind[0] == "C" and not character.isspace()) or (kind == "So" and ord(character) > 0xFF)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.one_of(st.text(st.characters(exclude_categories=()), max_size=12), st.sampled_from(TOLD)), max_size=8)
)
def test_nothing_but_spaces_and_punctuation_is_passed_through(parts):
    """Every report is x and every mask _: whatever else tells a word in the output came through."""
    for rules in ABLE:
        mechanism = TextMechanism(ALWAYS, rules)
        found = mechanism.protect(["".join(parts)])[0]
        written = "07" if rules.numbers else ""  # the report, and the zeros that how a number is written asks for
        digits = [one for one in found if one.isdecimal()]
        assert {str(unicodedata.decimal(one)) for one in digits} <= set(written)
        assert not [one for one in found if is_open(one) and one not in "xX" and one not in digits]
