"""Text: words as secrets."""

from metricdp.text.vocabularies import vocabulary

__all__ = ["vocabulary"]
