"""Text: vocabularies from files, texts cut into words, words replaced by reports."""

from metricdp.catalogue import named_in_stub

__getattr__, __all__ = named_in_stub(__name__)
