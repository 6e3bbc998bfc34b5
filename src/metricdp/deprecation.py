"""Old names: they work for one version and warn with the new name."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def warn_renamed(old: str, new: str, *, stacklevel: int = 3) -> None:
    """Warn that a name has a new one."""
    warnings.warn(f"{old} is called {new} now.", DeprecationWarning, stacklevel=stacklevel)


def renamed_module(old: str, new: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that has a new name.

    __getattr__ = renamed_module(__name__, "metricdp.estimation")
    """

    def attribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        warn_renamed(old, new)
        return getattr(importlib.import_module(new), name)

    return attribute
