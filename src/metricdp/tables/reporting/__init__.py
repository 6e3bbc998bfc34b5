"""From what was done to a table to the page that people read and the record that programs read."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
