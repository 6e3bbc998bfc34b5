"""What every space can be asked. A space owns membership: which values are secrets, and what to say of the others.

Errors name rows and the rule they break, never a value, the nearest legal value or a distance to it: errors end in
logs. `space.why(row)` shows the value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar, runtime_checkable

import numpy as np

from metricdp.arrays import Booleans, Floats, Points
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import (
    METRICS,
    Metric,
    ShortestPath,
    earth_of,
    exponent_of,
    look_exchanged,
    measurable_rows,
    norm_of,
    points_are,
)
from metricdp.rendering import card

ROWS_KEPT = 1000  # row numbers an error carries


@runtime_checkable
class Space(Protocol):
    """Where secrets live. A table row of `width` columns is a secret or it is not."""

    @property
    def metric(self) -> Metric:
        """How far two secrets are apart."""

    @property
    def ground(self) -> Metric:
        """The metric of what tables hold, where that differs (latitude and longitude of a road crossing)."""

    @property
    def unit(self) -> str:
        """The unit of the metric."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names the columns have in tables, empty where any will do."""

    @property
    def width(self) -> int:
        """How many columns of a table one value takes."""

    @property
    def dimension(self) -> int:
        """How many numbers the metric measures a secret by."""

    @property
    def size(self) -> int | None:
        """How many secrets there are: they are coded 0, 1, 2, ...; None where they are coordinates."""

    @property
    def is_text(self) -> bool:
        """Whether tables hold words; such a space is finite."""

    @property
    def finite(self) -> Space | None:
        """The secrets as a `FiniteSpace`, which is what programs are written over; None where they cannot be listed."""

    @property
    def limits(self) -> tuple[Floats, Floats] | None:
        """The least and the largest value of every coordinate; None where secrets are codes or have no limits."""

    @property
    def network(self) -> ShortestPath | None:
        """The road network on which the secrets lie; None where they lie on none."""

    @property
    def same_ground(self) -> bool:
        """Whether values are put on secrets by the very distances that the metric measures."""

    def charge(self, snap: float) -> float:
        """Return the distance that snapping can add between two secrets, refusing it where no secret is nearest."""

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Any]:
        """Return which rows are secrets, and codes or coordinates of all rows (a placeholder where they are not).

        With `snap` a row up to that distance (in `ground`) from a secret becomes it, where there is a nearest one.
        """

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows of a table are secrets."""

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets, without a value."""

    def why(self, row: Any, /) -> str:
        """Say of one row whether it is a secret, and if not what the nearest is. This shows the value."""

    def encode(self, values: Any, /) -> Any:
        """Return codes or coordinates of rows, refusing those that are no secrets."""

    def decode(self, secrets: Any, /) -> Points:
        """Return the rows a table holds for codes or coordinates."""


S = TypeVar("S")
Under = tuple[str, Callable[[Metric], object]]  # what metrics are called, and what tells them
ON_EARTH: Under = ("Haversine", earth_of)
UNDER_LP: Under = ("Lp", exponent_of)
UNDER_NORMS: Under = ("Lp or Mahalanobis", norm_of)


def require_space(value: object, kind: type[S], name: str, *, under: Under | None = None, advice: str = "") -> S:
    """Return an argument that must be one kind of space, measured by one of some metrics; refuse any other."""
    metric: Any = getattr(value, "metric", None)
    if isinstance(value, kind) and (under is None or under[1](metric) not in (None, False)):
        return value
    metrics = "" if under is None else f" under {under[0]}"
    other = f"one under {type(metric).__name__}" if isinstance(value, kind) else None
    raise InvalidInput(
        f"`{name}` must be {'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}{metrics}, "
        f"got {other or type(value).__name__}.{advice and f' {advice}'}"
    )


class CheckedRows(np.ndarray[Any, np.dtype[np.float64]]):
    """Coordinates that a space has found legal: its `encode` takes them as they are, so a batch is checked once."""

    space: Space | None = None  # slices and sums of checked rows are not checked: they do not inherit it


def mark_checked(rows: Floats, space: Space) -> CheckedRows:
    """Mark rows as legal in a space."""
    marked = rows.view(CheckedRows)
    marked.space = space
    return marked


def is_checked(values: Any, space: Space) -> bool:
    """Tell whether the space itself found these values legal."""
    return isinstance(values, CheckedRows) and values.space is space


def space_card(space: Space) -> str:
    """Return what a space is as a small table for notebooks: how many secrets, and how they are measured."""
    rows = [
        ("secrets", repr(space)),
        ("metric", type(space.metric).__name__ + (f", in {space.unit}" if space.unit else "")),
    ]
    if space.ground is not space.metric:
        rows.append(("in tables", f"measured by {type(space.ground).__name__}"))
    if space.columns:
        rows.append(("columns", ", ".join(space.columns)))
    return card(type(space).__name__, rows)


class UnsnappedSpace(ABC):
    """What spaces share that take every value as it is: no secret is nearest to another value."""

    same_ground: ClassVar[bool] = True
    advice: ClassVar[str] = "Repair or drop the row."

    if TYPE_CHECKING:  # fields where they are stored: a property of the same name would be taken for a default

        @property
        def metric(self) -> Metric: ...

        @property
        def dimension(self) -> int: ...

        @property
        def finite(self) -> Space | None: ...

        @property
        def limits(self) -> tuple[Floats, Floats] | None: ...

        @property
        def network(self) -> ShortestPath | None: ...
    else:
        finite = limits = network = None

    @property
    def ground(self) -> Metric:
        return self.metric

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def width(self) -> int:
        return self.dimension

    _repr_html_ = space_card

    def charge(self, snap: float) -> float:
        """Return 0, or refuse to snap: no secret is nearest."""
        return refuse_snap(snap)

    @abstractmethod
    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Any]:
        """Return which rows are secrets, and the secrets."""

    @abstractmethod
    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""

    def encode(self, values: Any, /) -> Any:
        """Return the secrets of rows, refusing rows that are none."""
        good, found = self.admit(values)
        if not good.all():
            refuse(good, self.rule() + self.hint(found, ~good), self.advice)
        return found

    def hint(self, found: Any, bad: Booleans) -> str:
        """Return what may explain bad rows, to be said after the rule."""
        return ""

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows are secrets."""
        return self.admit(rows)[0]


def number_rows(values: Any, width: int) -> Floats:
    """Return table rows as numbers, NaN where there is none."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.ndim != 2 or array.shape[1] != width:
        raise InvalidInput(f"rows must have {width} columns of numbers, got {array.dtype} of shape {array.shape}.")
    return np.asarray(array, dtype=np.float64)


def are_measurable(metric: Metric, rows: Floats) -> Booleans:
    """Tell which rows are finite numbers that the metric can measure."""
    if points_are(metric, "degrees"):
        return measurable_rows(metric, rows)  # its limits leave out what is not finite
    # A sum is finite only where every term is; a sum that overflows is looked at again.
    finite: Booleans = np.asarray(np.isfinite(rows @ np.ones(rows.shape[1])))
    if finite.all():
        return measurable_rows(metric, rows)
    finite = np.asarray(np.isfinite(rows).all(axis=1))
    if finite.any():
        finite[finite] = measurable_rows(metric, rows[finite])
    return finite


def metric_rule(metric: Metric) -> str:
    """Say which rows of numbers a metric can measure."""
    return METRICS.find_facet("point_rule", metric) or f"{type(metric).__name__} must be able to measure the row"


def exchange_hint(metric: Metric, bad: Points) -> str:
    """Return the question that helps where the first bad row is a longitude and a latitude."""
    swapped = points_are(metric, "degrees") and len(bad) > 0 and look_exchanged(np.asarray(bad[:1], dtype=float))
    return ". Are latitude and longitude exchanged?" if swapped else ""


def refuse(legal: Booleans, rule: str, advice: str) -> NoReturn:
    """Raise `OutOfDomain` with row numbers and the rule."""
    bad = np.flatnonzero(~legal)
    raise OutOfDomain(
        f"row {bad[0]} is not a secret of this space{f' ({bad.size} such rows)' if bad.size > 1 else ''}: {rule}"
        f"{'' if rule.endswith('?') else '.'} {advice} (`space.why(row)` shows the value and what would be legal.)",
        rows=tuple(int(row) for row in bad[:ROWS_KEPT]),
    )


def refuse_snap(snap: float) -> float:
    """Refuse snapping where no secret is nearest; what it costs not to snap is nothing."""
    if snap:
        raise InvalidInput("`snap` is for spaces of finitely many points; this one takes every value as it is.")
    return 0.0


def format_value(value: Points) -> str:
    """Return a value as people read it."""
    items = [str(v) if isinstance(v, str) else f"{v:.9g}" for v in np.asarray(value).ravel()[:6].tolist()]
    return "(" + ", ".join(items) + (", ..." if value.size > 6 else "") + ")"


def missing_number_text(row: Floats) -> str:
    """Say that a row lacks a number."""
    return f"{format_value(row)} has no number in every column"
