"""Specs: one place that turns names into metrics, spaces, builders and mechanisms, for the command and for programs."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
