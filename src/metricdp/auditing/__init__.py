"""Auditing: what a mechanism really leaks and really costs."""

from lazy_loader import attach_stub

from metricdp.auditing import accuracy, concentrated_audit, dispatch, leakage, loss  # noqa: F401 - they register facets

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
