"""The place where `metricdp.mobility.Stream` was: an old name, for one version."""

import warnings
from typing import Any

from metricdp.registry import load_function


def __getattr__(name: str) -> Any:
    if name != "Stream":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("metricdp.tables.streams.Stream is metricdp.mobility.Stream now.", DeprecationWarning, stacklevel=2)
    return load_function("metricdp.mobility:Stream")
