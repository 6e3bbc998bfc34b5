"""Text: vocabularies from files, texts cut into words, words replaced by reports."""

from .bundled import bundled_vectors as bundled_vectors
from .mechanism import TextMechanism as TextMechanism
from .numbers import Numeric as Numeric
from .rules import Rules as Rules
from .tokens import Cutting as Cutting
from .tokens import Token as Token
from .tokens import tokenise as tokenise
from .vectors import Vectors as Vectors
from .vectors import read_vectors as read_vectors
from .vocabularies import vocabulary as vocabulary
