"""Text: vocabularies from files, texts cut into words, words replaced by reports."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
