"""Text: vocabularies from files, texts cut into words, words replaced by reports."""

from metricdp.text.bundled import bundled_vectors as bundled_vectors
from metricdp.text.mechanism import TextMechanism as TextMechanism
from metricdp.text.numbers import Numeric as Numeric
from metricdp.text.rules import Rules as Rules
from metricdp.text.tokens import Cutting as Cutting
from metricdp.text.tokens import Token as Token
from metricdp.text.tokens import tokenise as tokenise
from metricdp.text.vectors import Vectors as Vectors
from metricdp.text.vectors import read_vectors as read_vectors
from metricdp.text.vocabularies import vocabulary as vocabulary
