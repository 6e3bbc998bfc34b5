"""Serialised errors: they go from a worker to its driver as plain values, without secrets.

An error of ours names rows and columns: its sentence is kept. Any other error may quote data: only its kind is kept,
and of a system error its reason.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import metricdp.errors
from metricdp.errors import MetricdpError, OutputProblem

TRACED = re.compile(r"metricdp\.errors\.(\w+): (.*)")
PackedError = dict[str, Any]  # kind, message, rows: what JSON and every engine can carry


def pack_error(error: BaseException) -> PackedError:
    """Return an error as plain values."""
    if isinstance(error, MetricdpError):
        return {"kind": type(error).__name__, "message": str(error), "rows": list(getattr(error, "rows", ()))}
    reason = error.strerror if isinstance(error, OSError) else None
    return {"kind": "", "message": reason or f"of an error of the kind {type(error).__name__}", "rows": []}


def is_ours(packed: PackedError) -> bool:
    """Tell whether the error is one of ours, which another try would meet again."""
    return bool(packed["kind"])


def unpack_error(packed: PackedError) -> MetricdpError:
    """Return the error that was packed; one that is not ours says what became of the worker."""
    kind = getattr(metricdp.errors, packed["kind"], None) if packed["kind"] else None
    if not (isinstance(kind, type) and issubclass(kind, MetricdpError)):
        return OutputProblem(f"a worker failed because {packed['message']}.")
    error = kind(packed["message"])
    if packed["rows"] and hasattr(error, "rows"):
        error.rows = tuple(packed["rows"])
    return error


def error_in(text: str) -> MetricdpError | None:
    """Return the error of ours that an engine put into a text of its own, as the last line of a traceback."""
    found = TRACED.search(text)
    return None if found is None else unpack_error({"kind": found[1], "message": found[2], "rows": []})


def bare_error(error: Exception) -> MetricdpError:
    """Return an error that may be raised in a worker: a log of it shows no error that it came from."""
    return unpack_error(pack_error(error))


def reword_error(error: MetricdpError, message: str) -> MetricdpError:
    """Return the same error with another message."""
    other = copy.copy(error)
    other.args = (message,)
    return other
