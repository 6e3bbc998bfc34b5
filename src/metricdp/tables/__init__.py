"""Tables in, protected tables out: data frames in memory, files of any length, and the caller's own engine."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
