"""The place where `metricdp.mobility.Stream` was: an old name, for one version."""

import warnings
from typing import Any

from metricdp.registry import loaded


def __getattr__(name: str) -> Any:
    if name != "Stream":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("metricdp.tables.streams.Stream is metricdp.mobility.Stream now.", DeprecationWarning, stacklevel=2)
    return loaded("metricdp.mobility:Stream")
