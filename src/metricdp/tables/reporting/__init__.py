"""From what was done to a table to the page that people read and the record that programs read."""

from metricdp.catalogue import named_in_stub

__getattr__, __all__ = named_in_stub(__name__)
