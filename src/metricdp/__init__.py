"""Metric differential privacy: design mechanisms, prove what they promise, apply them, see what they cost.

The public names stand in `__init__.pyi` and nowhere else: type checkers read them there, and so does this module, which
imports each when it is first used. Builders that are declared elsewhere (`design.builders`, plugins) are found as well.
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


def _builders() -> Any:
    return importlib.import_module("metricdp.design.builders").BUILDERS


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home == __name__:
        return importlib.import_module(f"{__name__}.{name}")
    if home is not None:
        value = getattr(importlib.import_module(home), name)
    elif not name.startswith("_") and find_spec(f"{__name__}.{name}") is None and name in _builders().names:
        value = _builders().named(name).function
    else:  # a room of the house (`from metricdp import wording`) is imported by the import itself
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, *_builders().names})
