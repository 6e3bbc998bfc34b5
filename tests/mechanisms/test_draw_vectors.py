"""Published draws (words in, reports out): Python, JavaScript and rational arithmetic agree on them."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from browsers import in_node

DATA = Path(__file__).parents[1] / "data"
FILES = json.loads((DATA / "draws.json").read_text(encoding="utf-8"))["files"]


class Listed:
    """The words of one draw, in order; asking for more than are published is an error."""

    def __init__(self, words: list[str]) -> None:
        self._words = [int(word, 16) for word in words]

    def words(self, count: int, /) -> np.ndarray[Any, Any]:
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("name", FILES)
def test_equal_words_give_equal_reports_in_python(name: str) -> None:
    mechanism = mdp.load(DATA / name)
    for draw in FILES[name]:
        assert int(np.ravel(mechanism.sample([draw["secret"]], rng=Listed(draw["words"])))[0]) == draw["report"]


def test_equal_words_give_equal_reports_in_javascript() -> None:
    script = """const found = {};
        for (const [name, draws] of Object.entries(given.files)) {
          const m = await open(`${given.folder}/${name}`);
          found[name] = draws.map(({ secret, words }) => {
            const listed = { at: 0, next() {
              const word = words[this.at++];
              [this.high, this.low] = [parseInt(word.slice(0, 8), 16), parseInt(word.slice(8), 16)];
            } };
            return [m.sample(secret, { words: listed }).code, listed.at];
          });
        }
        answer = found;"""
    found = in_node(script, files=FILES, folder=str(DATA))
    assert found == {name: [[draw["report"], len(draw["words"])] for draw in draws] for name, draws in FILES.items()}


@pytest.mark.parametrize("name", ["v1-matrix.mdp", "v2-sparse.mdp", "v2-quantised.mdp"])
def test_the_report_is_the_first_whose_running_share_is_above_the_binary_fraction(name: str) -> None:
    """The sentence of docs/format.md, in rational numbers, with the words that were taken as the whole fraction."""
    mechanism = mdp.load(DATA / name)
    for draw in FILES[name]:
        weights = [Fraction(float(value)) for value in mechanism.matrix[draw["secret"]]]
        low = sum((Fraction(int(word, 16), 2 ** (64 * (k + 1))) for k, word in enumerate(draw["words"])), Fraction(0))
        high = low + Fraction(1, 2 ** (64 * len(draw["words"])))
        ends = np.cumsum(np.array(weights, dtype=object)) / sum(weights)
        first, last = (
            next(k for k, end in enumerate(ends) if level < end) for level in (low, high - Fraction(1, 2**1100))
        )
        assert draw["report"] == first == last


def test_the_published_draws_need_further_words_somewhere() -> None:
    assert sum(len(draw["words"]) > 1 for draw in FILES["v1-matrix.mdp"]) >= 5
    assert all(len(draws) == 40 for draws in FILES.values())
