"""Multiword units: the longest first, from left to right."""

import numpy as np
import pytest

import metricdp as mdp
from metricdp.text import Cutting, Rules, TextMechanism
from metricdp.text.columns import column_of, join_units, units_of


def joined(text, units):
    """Brute force on words apart by one space."""
    words, found, at = text.split(" "), [], 0
    while at < len(words):
        size = next((n for n in range(len(words) - at, 0, -1) if " ".join(words[at : at + n]).lower() in units), 1)
        found.append(" ".join(words[at : at + size]))
        at += size
    return found


def test_units_are_joined_as_brute_force_joins_them():
    rng = np.random.default_rng(0)
    units = {"a b", "a b c", "b c", "c a", "d d d d", "d d"}
    vocabulary = [*(unit.replace(" ", "_") for unit in units), "a", "b_", "_x"]
    for _ in range(60):
        texts = [" ".join(rng.choice(list("abcdAD"), size=rng.integers(1, 12))) for _ in range(5)]
        column = join_units(column_of(texts, Cutting()), units_of(vocabulary))
        for row, text in enumerate(texts):
            ids = column.ids[column.starts[row] : column.starts[row + 1]]
            assert [column.tokens[i].text for i in ids if column.tokens[i].kind == "word"] == joined(text, units)


@pytest.mark.parametrize("name", ["new_york", "new york"])
def test_a_unit_is_one_secret_and_one_report(name):
    space = mdp.vocabulary([name, "paris", "in"], 100.0 * np.arange(3.0)[:, None])
    mechanism = TextMechanism(mdp.exponential(space, 5.0), Rules(units=True))
    assert mechanism.protect(["In New  York, in PARIS"]) == ["In New York, in PARIS"]
    with pytest.raises(mdp.MetricdpError):
        mechanism.protect(["in new paris"])
    with pytest.raises(mdp.MetricdpError):
        TextMechanism(mechanism.words).protect(["in new york"])
