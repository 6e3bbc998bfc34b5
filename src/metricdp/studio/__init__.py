"""Studio: the service with a page in front of it, for people, on their own machine.

    metricdp studio

Five panels, each a journey of the docs: feel what a guarantee means, protect a file, design or audit a mechanism, look
after budgets. Nothing leaves the machine: the page, its map and its libraries come from here, and `StudioAuth` lets
in only the browser that was given the address.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
