"""Metric differential privacy: design mechanisms, prove what they promise, apply them, see what they cost.

The public names stand in `__init__.pyi` and nowhere else: type checkers read them there, and so does this module, which
imports each when it is first used. Builders and metrics have the names of their declarations, those of plugins too.
"""

import importlib
from importlib.util import find_spec
from typing import Any

from lazy_loader import attach_stub

from metricdp.deprecation import warn_renamed

__version__ = "0.1.0"
RENAMED = {"pictures": "plots", "policies": "policy_graphs"}  # old public names, for one version
_public, _, __all__ = attach_stub(__name__, __file__)


def _catalogues() -> tuple[Any, Any]:
    rooms = ("metricdp.design.builders", "metricdp.metrics")
    builders, metrics = (importlib.import_module(room) for room in rooms)
    return builders.BUILDERS, metrics.METRICS


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _public(name)
    if name in RENAMED:
        warn_renamed(f"mdp.{name}", f"mdp.{RENAMED[name]}")
        return _public(RENAMED[name])
    # a room of the house (`from metricdp import messages`) is imported by the import itself
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        builders, metrics = _catalogues()  # plugins declare more of them
        if name in builders.names:
            return builders.named(name).function
        if name in metrics.names:
            return metrics.named(name).thing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for catalogue in _catalogues() for name in catalogue.names)})
