"""Text: vocabularies from files, texts cut into words, words replaced by reports."""

from .bundled import bundled_vectors as bundled_vectors
from .bundled import sample_reviews as sample_reviews
from .bundled import sample_sentences as sample_sentences
from .mechanism import TextMechanism as TextMechanism
from .numbers import Numeric as Numeric
from .numbers import read_date as read_date
from .numbers import read_number as read_number
from .numbers import read_time as read_time
from .rules import Rules as Rules
from .tokens import KINDS as KINDS
from .tokens import Cutting as Cutting
from .tokens import Token as Token
from .tokens import tokenise as tokenise
from .vectors import Vectors as Vectors
from .vectors import read_vectors as read_vectors
from .vocabularies import vocabulary as vocabulary
