"""Which columns of a table hold the secret, and what is done with them."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Guarantee, Mechanism
from metricdp.metrics import Haversine, Metric
from metricdp.spaces import FiniteSpace, Space

OnError = Literal["fail", "drop", "null"]
LATITUDES = ("lat", "latitude")
LONGITUDES = ("lon", "lng", "long", "longitude")
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Task:
    """What is done to every batch: which mechanism, on which columns, and what becomes of bad rows."""

    mechanism: Mechanism
    columns: tuple[str, ...]
    snap: float
    on_error: OnError

    @property
    def guarantee(self) -> Guarantee:
        """The promise for the rows of a table: snapping adds 2 * epsilon * snap to the slack."""
        promise = self.mechanism.guarantee
        return promise.with_slack(2.0 * promise.epsilon * self.snap) if self.snap else promise


def task_for(
    names: Sequence[str],
    mechanism: Mechanism,
    *,
    columns: Sequence[str] | str | None = None,
    snap: float = 0.0,
    on_error: OnError = "fail",
) -> Task:
    """Check what was asked for against the columns there are."""
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(f"`mechanism` must be a mechanism such as mdp.laplace(...), got {type(mechanism).__name__}.")
    if mechanism.guarantee.basis == "none":
        raise NotPrivate("this mechanism was built for comparison and keeps no promise: it must not protect a table.")
    if on_error not in ("fail", "drop", "null"):
        raise InvalidInput(f"`on_error` must be 'fail', 'drop' or 'null', got {on_error!r}.")
    if not (math.isfinite(snap) and snap >= 0):
        raise InvalidInput(f"`snap` must be a distance of at least 0, got {snap:g}.")
    if snap and (not isinstance(mechanism.inputs, FiniteSpace) or holds_text(mechanism.inputs)):
        raise InvalidInput("`snap` is for mechanisms on finitely many points; this one takes every value as it is.")
    size = width(mechanism.inputs)
    if width(mechanism.outputs) != size or holds_text(mechanism.outputs) != holds_text(mechanism.inputs):
        raise InvalidInput("the reports of this mechanism do not fit the columns of its secrets: use mechanism.sample.")
    if columns is None:
        chosen = _default_columns(names, mechanism.inputs)
    else:
        chosen = (columns,) if isinstance(columns, str) else tuple(columns)
        _check_present(names, chosen)
    if len(chosen) != size:
        raise InvalidInput(
            f"this mechanism needs {size} column{'s' if size > 1 else ''}, got {len(chosen)}: {', '.join(chosen)}."
        )
    if len(set(chosen)) < len(chosen):
        raise InvalidInput(f"`columns` must name different columns, got {', '.join(chosen)}.")
    repeated = [name for name, count in Counter(names).items() if count > 1 and name in chosen]
    if repeated:
        raise InvalidInput(f"the table has more than one column {repeated[0]!r}: rename one of them.")
    return Task(mechanism, chosen, float(snap), on_error)


def width(space: Space) -> int:
    """Return the number of table columns one value of the space takes."""
    return int(space.coordinates.shape[1]) if isinstance(space, FiniteSpace) else int(space.dimension)


def holds_text(space: Space) -> bool:
    """Tell whether the values of the space are words."""
    return isinstance(space, FiniteSpace) and space.coordinates.dtype.kind == "U"


def table_metric(space: Space) -> Metric:
    """Return the metric in which values of tables are compared with the space."""
    return space.ground if isinstance(space, FiniteSpace) else space.metric


def is_geographic(space: Space) -> bool:
    """Tell whether tables hold (latitude, longitude) for this space."""
    return isinstance(table_metric(space), Haversine)


def _default_columns(names: Sequence[str], space: Space) -> tuple[str, ...]:
    size = width(space)
    if not names:
        raise InvalidInput("the table has no columns.")
    if isinstance(space, FiniteSpace) and space.columns and set(space.columns) <= set(names):
        return space.columns
    if is_geographic(space):
        return _one_of(names, LATITUDES, "latitude"), _one_of(names, LONGITUDES, "longitude")
    if set(AXES[:size]) <= set(names) and size <= len(AXES):
        return AXES[:size]
    if len(names) == size:
        return tuple(names)
    what = "the word" if holds_text(space) else f"the {size} coordinates" if size > 1 else "the secret"
    raise InvalidInput(
        f"say which column{'s hold' if size > 1 else ' holds'} {what}: columns={list(names[:size])!r} for instance "
        f"(--columns {','.join(names[:size])} on the command line). {_there_are(names)}"
    )


def _one_of(names: Sequence[str], wanted: Sequence[str], what: str) -> str:
    found = [name for name in names if name.lower() in wanted]
    if not found:
        raise InvalidInput(
            f"no {what} column: expected one named {' or '.join(wanted)}. {_there_are(names)} "
            "Name the two with columns=[latitude, longitude] (--columns on the command line)."
        )
    if len(found) > 1:
        raise InvalidInput(
            f"more than one {what} column: {', '.join(found)}. Choose with columns=[latitude, longitude] "
            "(--columns on the command line)."
        )
    return found[0]


def _check_present(names: Sequence[str], chosen: Sequence[str]) -> None:
    for name in chosen:
        if name not in names:
            close = difflib.get_close_matches(str(name), list(names), n=1)
            raise InvalidInput(
                f"no column {name!r}. {_there_are(names)}" + (f" Did you mean {close[0]!r}?" if close else "")
            )


def _there_are(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:30])
    return f"The columns are {shown}{' and more' if len(names) > 30 else ''}." if names else "There are no columns."
