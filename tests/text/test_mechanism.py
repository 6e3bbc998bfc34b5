"""Texts in, texts out: what is replaced, kept, masked, dropped and refused."""

import re

import numpy as np
import pyarrow as pa
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.text import Numeric, Rules, TextMechanism

WORDS = ["the", "beer", "wine", "juice", "nurse", "doctor", "ran", "sat"]


@pytest.fixture(scope="module")
def words():
    vectors = np.array([[0.0], [10.0], [10.5], [11.0], [20.0], [20.5], [30.0], [30.5]])
    return mdp.exponential(mdp.vocabulary(WORDS, vectors), 2.0)


@pytest.fixture(scope="module")
def certain():
    """A mechanism that all but surely reports the truth."""
    return mdp.exponential(mdp.vocabulary(WORDS, 100.0 * np.arange(8.0)[:, None]), 5.0)


def test_a_text_comes_back_where_every_report_is_the_truth(certain):
    texts = ["The nurse, the doctor -- and  BEER!".replace("and  ", ""), "", "  wine\tjuice\n", "Ran (sat)."]
    assert TextMechanism(certain).protect(texts) == texts


def test_every_word_is_replaced_for_itself_and_case_is_restored(words):
    texts = ["Beer, WINE and juice", "beer wine"]
    found = TextMechanism(words, Rules("mask")).protect(pa.array(texts * 200), rng=np.random.default_rng(0))
    assert len(found) == 400
    assert all(re.fullmatch(r"[A-Z][a-z]+, [A-Z]+ \[MASK\] [a-z]+", text) for text in found[::2])
    assert len(set(found[::2])) > 10
    assert {word for text in found for word in re.findall(r"[a-z]+", text.replace("[MASK]", "").lower())} <= set(WORDS)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules("mask", mask="_"), "The _, _ nurse _ ran"),
        (Rules("drop"), "The, nurse ran"),
        (Rules("spelling"), "The Beer, the nurse beer ran"),
        (Rules("mask", keep=["Qua"]), "The [MASK], qua nurse [MASK] ran"),
        (Rules("mask", case="lower"), "the [MASK], [MASK] nurse [MASK] ran"),
    ],
)
def test_words_outside_the_vocabulary_follow_the_rule(certain, rules, expected):
    secret = "The Bier, qua nurse beeer ran"
    assert TextMechanism(certain, rules).protect([secret]) == [expected]


def test_a_text_with_a_word_outside_the_vocabulary_is_refused_by_its_row_only(certain):
    with pytest.raises(OutOfDomain, match=r"2 of 4 texts .* \(rows 1, 3\)") as caught:
        TextMechanism(certain).protect(["beer", "the quizzaciously", "wine", "https://beer.example.com/zorp"])
    assert caught.value.rows == (1, 3)
    assert "quizz" not in str(caught.value)
    assert "zorp" not in str(caught.value)


@pytest.mark.parametrize("rules", [Rules(), Rules("drop", units=True, amounts=Numeric(1.0), budget=1.0, beyond="drop")])
def test_nothing_in_nothing_out(certain, rules):
    mechanism = TextMechanism(certain, rules)
    assert mechanism.protect([]) == []
    assert mechanism.protect(["", " ", "\u200b", "..."]) == ["", " ", "", "..."]


def test_bad_input(certain):
    with pytest.raises(OutOfDomain, match="row 1 has no text"):
        TextMechanism(certain).protect(["beer", None])
    with pytest.raises(InvalidInput, match="Put it in a list"):
        TextMechanism(certain).protect("beer")
    with pytest.raises(InvalidInput, match="on words"):
        TextMechanism(mdp.exponential(mdp.FiniteSpace([[0.0], [1.0]], mdp.Lp(1)), 1.0))
    with pytest.raises(InvalidInput, match="got str"):
        TextMechanism("beer")
    with pytest.raises(InvalidInput, match="refuse, drop, mask, spelling"):
        Rules(unknown="pass")


def test_a_and_i_are_words_although_files_of_vectors_lack_them():
    words = mdp.vocabulary(["an", "me", "not", "house", "tree"], np.eye(5) * 50)
    texts = TextMechanism(mdp.exponential(words, 3.0), Rules(unknown="refuse"))
    assert texts.protect(["A house", "I do"[:1], "isn't"[2:]]) == ["An house", "Me", "not"]
    with_both = mdp.vocabulary(["a", "an", "i", "me"], np.eye(4) * 50)
    own = TextMechanism(mdp.exponential(with_both, 3.0), Rules(unknown="refuse"))
    assert own.protect(["a me i an"]) == ["a me i an"]


def test_what_spelling_shows_is_said():
    words = mdp.vocabulary(["silver", "gold"], np.eye(2) * 50)
    texts = TextMechanism(mdp.exponential(words, 3.0), Rules(unknown="spelling"))
    assert texts.protect(["Silva"]) == ["Silver"]
    assert any("Not hidden" in line and "spelled" in line for line in texts.promise())
