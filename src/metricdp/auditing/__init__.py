"""Auditing: what a mechanism really leaks and really costs."""

from typing import Any

from lazy_loader import attach_stub

from metricdp.auditing import accuracy, concentrated_audit, dispatch, leakage, loss  # noqa: F401 - they register facets
from metricdp.deprecation import warn_renamed

_public, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "concentrated":
        warn_renamed("mdp.auditing.concentrated", "mdp.auditing.concentrated_guarantee")
        name = "concentrated_guarantee"
    return _public(name)
