"""Mobility: traces, trips and streams, how they are released, and what releasing them over time costs.

`release_trips` releases the trips of a table. What tables need is loaded when it is first used.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
