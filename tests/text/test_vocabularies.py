"""Vocabularies: words in, words out, measured by their vectors."""

import pytest

from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import Levenshtein
from metricdp.text import vocabulary


def test_words_in_words_out():
    space = vocabulary(["tea", "coffee", "rain"], [[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]])
    assert space.distances[0, 1] == 5.0
    assert space.encode(["rain", "tea"]).tolist() == [2, 0]
    assert space.decode([1]).ravel().tolist() == ["coffee"]
    with pytest.raises(OutOfDomain, match="3 words of this vocabulary"):
        space.encode(["cofee"])
    assert "coffee" in space.why("cofee")


def test_words_may_be_measured_by_their_spelling():
    space = vocabulary(["tea", "sea", "coffee"], metric=Levenshtein())
    assert space.distances[0].tolist() == [0.0, 1.0, 5.0]
    assert space.encode(["coffee"]).tolist() == [2]


def test_bad_input():
    with pytest.raises(InvalidInput, match="one vector a word"):
        vocabulary(["tea", "rain"])
    with pytest.raises(InvalidInput, match="'tea' and 'rain' have the same"):
        vocabulary(["tea", "rain"], [[1.0], [1.0]])
    with pytest.raises(InvalidInput, match="rows 0 and 1"):
        vocabulary(["tea", "tea"], [[0.0], [1.0]])
    with pytest.raises(InvalidInput, match="vectors"):
        vocabulary(["tea", "rain"], [[0.0]])
