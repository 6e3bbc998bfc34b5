"""Metric differential privacy: design mechanisms, prove what they promise, apply them, see what they cost.

The public names stand in `__init__.pyi` and nowhere else: type checkers read them there, and so does this module, which
imports each when it is first used. Builders and metrics have the names of their declarations, those of plugins too.
"""

import ast
import importlib
from importlib.resources import files as beside  # `files` is a room of ours
from importlib.util import find_spec
from typing import Any

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """Return where each public name lives, from the imports of `__init__.pyi`."""
    stub = ast.parse(beside(__name__).joinpath("__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


_HOMES = _homes()
__all__ = sorted(_HOMES)


def _declared(name: str) -> Any:
    """Return a builder or a metric by the name of its declaration, or None; plugins declare more of them."""
    builders, metrics = _catalogues()
    if name in builders.names:
        return builders.named(name).function
    return metrics.named(name).thing if name in metrics.names else None


def _catalogues() -> tuple[Any, Any]:
    rooms = ("metricdp.design.builders", "metricdp.metrics")
    builders, metrics = (importlib.import_module(room) for room in rooms)
    return builders.BUILDERS, metrics.METRICS


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home == __name__:
        return importlib.import_module(f"{__name__}.{name}")
    if home is not None:
        value = getattr(importlib.import_module(home), name)
    else:  # a room of the house (`from metricdp import wording`) is imported by the import itself
        private = name.startswith("_") or find_spec(f"{__name__}.{name}") is not None
        value = None if private else _declared(name)
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, *(name for catalogue in _catalogues() for name in catalogue.names)})
