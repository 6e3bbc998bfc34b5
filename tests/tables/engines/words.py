"""What the engines' tests of texts share: words, texts, and what they become where every word stays."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

import metricdp as mdp
from metricdp.text import Rules, TextMechanism

WORDS = ["good", "fine", "bad", "poor", "room", "house", "was", "is", "the", "a", "monday", "friday"]
MASK = "[MASK]"


def mechanism(epsilon: float, unknown: str = "mask", **rules) -> TextMechanism:
    """Return a mechanism on twelve words in pairs."""
    rng = np.random.default_rng(3)
    vectors = np.repeat(3.0 * rng.normal(size=(6, 4)), 2, axis=0) + 0.3 * rng.normal(size=(12, 4))
    return TextMechanism(mdp.exponential(mdp.vocabulary(WORDS, vectors), epsilon), Rules(unknown, **rules))


KERNEL = mdp.exponential(mechanism(1.0).words.inputs, 2000.0, form="kernel")  # every word stays
STAYING = mechanism(2000.0)  # every word stays: what is left of a text does not depend on draws
DRAWN = mechanism(1.0)
REFUSING = TextMechanism(DRAWN.words)
WHOLE = pa.table(
    {
        "id": [1, 2, 3, 4, 5],
        "text": ["The room was GOOD, was it?", None, "", "a house, Zebra", "Friday; monday"],
        "note": ["n", "o", "t", "e", "s"],
    }
)
BAD = pa.table({"id": [1, 2], "text": ["the room", "the quagga"], "note": ["x", "y"]})


def masked(text: str | None, most: int = 1000) -> str | None:
    """Return a text without the words that are not among `WORDS`, nor those after so many."""
    seen = 0

    def kept(match: re.Match) -> str:
        nonlocal seen
        seen += match[0].lower() in WORDS
        return match[0] if match[0].lower() in WORDS and seen <= most else MASK

    return None if text is None else re.sub(r"\w+", kept, text)


def expected(table: pa.Table = WHOLE, most: int = 1000) -> list[str | None]:
    """Return what the texts of a table become where every word stays."""
    return [masked(text, most) for text in table["text"].to_pylist()]
