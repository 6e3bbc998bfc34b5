"""Text: vocabularies from files, texts cut into words, words replaced by reports."""

from typing import TYPE_CHECKING

from metricdp.declarations import named_later
from metricdp.text.mechanism import TextMechanism
from metricdp.text.numbers import Numeric
from metricdp.text.rules import Rules
from metricdp.text.tokens import Cutting, Token, tokenise
from metricdp.text.vectors import Vectors, read_vectors
from metricdp.text.vocabularies import vocabulary

if TYPE_CHECKING:
    from metricdp.text.bundled import bundled_vectors

__all__ = [
    "Cutting",
    "Numeric",
    "Rules",
    "TextMechanism",
    "Token",
    "Vectors",
    "bundled_vectors",
    "read_vectors",
    "tokenise",
    "vocabulary",
]

__getattr__ = named_later(
    __name__,
    {
        "bundled": ["bundled_vectors"],
    },
)
