"""The nearest spelling, against the textbook's table; and how words are looked up and written."""

import numpy as np
import pytest

import metricdp as mdp
from metricdp.text import Rules, TextMechanism
from metricdp.text.decisions import LOWER, SPELLED, TITLE, UPPER, apply_case, case_of, nearest_spellings


def edits(one, other):
    """Wagner and Fischer's table."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        row, above = [i], row
        for j, against in enumerate(other, start=1):
            row.append(min(row[-1] + 1, above[j] + 1, above[j - 1] + (letter != against)))
    return row[-1]


def test_the_nearest_spelling_is_the_first_of_the_nearest():
    rng = np.random.default_rng(0)

    def words(count):
        return list(dict.fromkeys("".join(rng.choice(list("abcé東"), size=rng.integers(1, 7))) for _ in range(count)))

    vocabulary, asked = words(60), [*words(300), "ABC", "x" * 64]
    found = nearest_spellings(asked, vocabulary)
    for word, code in zip(asked, found.tolist(), strict=True):
        distances = [edits(word.lower(), known) for known in vocabulary]
        assert code == distances.index(min(distances))
    assert nearest_spellings([], vocabulary).tolist() == []


@pytest.mark.parametrize(
    ("word", "case", "written"),
    [
        ("tea", LOWER, "black tea"),
        ("Tea", TITLE, "Black Tea"),
        ("TEA", UPPER, "BLACK TEA"),
        ("I", TITLE, "Black Tea"),
        ("iPhone", LOWER, "black tea"),
        ("McDonald", LOWER, "black tea"),
        ("Ärger", TITLE, "Black Tea"),
        ("東京", LOWER, "black tea"),
        ("New York", TITLE, "Black Tea"),
        ("'S", UPPER, "BLACK TEA"),
    ],
)
def test_a_report_is_written_in_the_case_of_the_word(word, case, written):
    assert case_of(word) == case
    assert apply_case("black tea", case) == written
    assert apply_case("McDonald", SPELLED) == "McDonald"


VOCABULARY = ["London", "paris", "NASA", "don't", "café", "straße", "co-op", "👍", "naive", "i", "東京"]


@pytest.fixture(scope="module")
def certain():
    return mdp.exponential(mdp.vocabulary(VOCABULARY, 100.0 * np.arange(len(VOCABULARY))[:, None]), 5.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("London", "London"),
        ("london", "London"),
        ("LONDON", "LONDON"),
        ("Paris PARIS", "Paris PARIS"),
        ("NASA nasa", "NASA NASA"),
        ("Don’t", "Don't"),
        ("cafe\u0301 CAFÉ", "café CAFÉ"),
        ("co\u2011op", "co-op"),
        ("na\u00adive", "naive"),
        ("👍\ufe0f", "👍"),
        ("I", "I"),
        ("東京東京", "東京東京"),
        ("東", "[MASK]"),
        ("paris-nasa", "paris-NASA"),
        ("👍🏽", "[MASK]"),
    ],
)
def test_words_are_looked_up_by_public_rules_that_people_expect(certain, text, expected):
    assert TextMechanism(certain, Rules("mask")).protect([text]) == [expected]


def test_lower_case_hides_the_case_of_everything(certain):
    rules = Rules("mask", case="lower", keep=["Berlin"])
    assert TextMechanism(certain, rules).protect(["LONDON Berlin Nasa"]) == ["london berlin nasa"]


def test_clitics_stay_with_their_word_and_words_stay_apart():
    space = mdp.vocabulary(["do", "n't", "it", "'s", "tea"], 100.0 * np.arange(5.0)[:, None])
    mechanism = TextMechanism(mdp.exponential(space, 5.0))
    assert mechanism.protect(["Don't, it's tea"]) == ["Don't, it's tea"]

    class Shifted:
        inputs = outputs = space
        guarantee, certificate = mechanism.words.guarantee, mechanism.words.certificate

        def sample(self, secrets, /, *, rng=None):
            return (np.asarray(secrets) + 3) % 5

        def log_density(self, secrets, reports, /):
            return np.zeros(len(secrets))

    assert TextMechanism(Shifted()).protect(["don't it's"]) == ["'s tea don't"]
