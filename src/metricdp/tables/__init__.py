"""Tables in, protected tables out: data frames in memory, files of any length, and the caller's own engine."""

from metricdp.catalogue import named_in_stub

__getattr__, __all__ = named_in_stub(__name__)
