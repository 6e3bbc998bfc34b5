"""A metric of one's own, from a plain function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, Points
from metricdp.errors import InvalidInput
from metricdp.metrics.accounts import OWN, fingerprint
from metricdp.metrics.base import measure_blocks
from metricdp.metrics.discrete import check_distances
from metricdp.metrics.rounding import shrink_factor
from metricdp.metrics.vectors import refuse_rows

TRIED_POINTS = 40  # a set of points is tried for the axioms on that many of them; a space of secrets on all
LARGEST_ERROR = 0.1
NAMELESS = "the function"  # what messages call a function that says nothing about itself


@dataclass(frozen=True, eq=False)
class FunctionMetric:
    """A distance given by a function; made by `mdp.metric`."""

    function: Callable[[Any, Any], Any]
    name: str
    unit: str = ""
    rule: Callable[[Any], Any] | None = None
    error: float | None = None
    vectorised: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInput(f"`function` must be a function of two points, got {self.function!r}.")
        if self.rule is not None and not callable(self.rule):
            raise InvalidInput(f"`check` must be a function of one point, got {self.rule!r}.")
        if self.error is not None and not 0.0 <= float(self.error) < LARGEST_ERROR:
            raise InvalidInput(f"`error` must be a relative error from 0 to {LARGEST_ERROR:g}, got {self.error!r}.")

    def __repr__(self) -> str:
        return f"metric({self.name})"

    @property
    def proven(self) -> bool:
        """Whether the rounding error was stated, so that distances are rounded down by it."""
        return self.error is not None

    @property
    def account(self) -> str:
        """The account of a ledger that a guarantee in it is charged in: by its name and unit."""
        unit = self.unit.strip()
        lacks = "no name" if self.name == NAMELESS else "" if unit else "no unit"
        lacks = lacks or ("values of its own, which its name does not say" if _holds_values(self.function) else "")
        if lacks:
            raise InvalidInput(
                "a ledger charges a metric of your own by its name and its unit, which say what a distance of 1 is, "
                f"and this one has {lacks}: write a function with `def`, outside of any other and without default "
                "values, and mdp.metric(its_name, unit='steps')."
            )
        return f"{OWN}.{fingerprint(OWN, self.name, unit)}"

    def __call__(self, a: Points, b: Points, /) -> Floats:
        a, b = np.asarray(a), np.asarray(b)
        if self.vectorised:
            found = np.asarray(self.function(a, b))
            shape = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
            if found.shape != shape:
                raise InvalidInput(
                    f"{self.name} must return one number per pair of points, shape {shape}, got {found.shape}; "
                    "drop `vectorised` where it takes two single points."
                )
        else:
            a, b = np.broadcast_arrays(a, b)
            pairs = zip(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1]), strict=True)
            found = np.asarray([self.function(x, y) for x, y in pairs]).reshape(a.shape[:-1])
        try:
            apart = found.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{self.name} must return a number for two points, got {found.dtype}.") from error
        return apart if self.error is None else np.asarray(apart * ((1.0 - self.error) * shrink_factor(2)))

    def pairwise(self, a: Points, b: Points, /) -> Floats:
        """Return all distances; those within one set of points are checked to be a metric's."""
        apart = measure_blocks(self, a, b)
        if a is b or np.array_equal(a, b):
            self._refuse(apart)
        return apart

    def _refuse(self, apart: Floats) -> None:
        if not np.all(np.isfinite(apart)):
            i, j = (int(x) for x in np.argwhere(~np.isfinite(apart))[0])
            raise InvalidInput(f"{self.name} must return finite numbers, it does not between the points {i} and {j}.")
        try:
            check_distances(apart)
        except InvalidInput as error:
            raise InvalidInput(f"{self.name} is no metric on these points: {error}") from error

    def check(self, points: Points, /) -> None:
        refuse_rows(self.legal(points), f"points must be what {self.name} can measure, by its own `check`")
        some = points[np.unique(np.linspace(0, len(points) - 1, min(TRIED_POINTS, len(points))).astype(int))]
        self.pairwise(some, some)

    def legal(self, points: Points, /) -> Booleans:
        if self.rule is None:
            return np.ones(points.shape[:-1], dtype=bool)
        return np.fromiter((_allows(self.rule, point) for point in points), dtype=bool, count=len(points))


def _holds_values(function: Any) -> bool:
    """Return whether something that is called may be another function under the same name, by values that it holds.

    Objects hold attributes, wrappers such as `numpy.vectorize` another function, functions closures and defaults.
    """
    if inspect.isbuiltin(function):
        return not inspect.ismodule(function.__self__)
    if not inspect.isfunction(function):
        return True
    return bool(function.__closure__ or function.__defaults__ or function.__kwdefaults__)


def _allows(rule: Callable[[Any], Any], point: Points) -> bool:
    """Ask a rule about one point: an `InvalidInput` or anything false but None means no."""
    try:
        answer = rule(point)
    except InvalidInput:
        return False
    return answer is None or bool(answer)


def metric(
    function: Callable[[Any, Any], Any],
    /,
    *,
    unit: str = "",
    check: Callable[[Any], Any] | None = None,
    error: float | None = None,
    vectorised: bool = False,
) -> FunctionMetric:
    """Make a metric of a function of two points, such as `lambda a, b: abs(a[0] - b[0])`.

    A point is an array of its coordinates. With `vectorised=True` the function takes arrays of points, coordinates on
    the last axis, and broadcasts: much quicker for many points. `unit` names the unit of the distances. `check` is a
    function of one point that is false, or raises `InvalidInput`, where the point cannot be measured.

    The axioms are checked on the secrets of a space: never negative, zero between a point and itself, symmetric, and
    no detour shorter (to 1e-9). `error` is a bound of the relative rounding error of the function, such as 1e-15;
    distances are then rounded down by it, and proofs hold for the true ones. Without it, certificates say that they
    hold for the distances as the function computes them.

    A mechanism file cannot hold a function: it stores the distances between the secrets instead.
    """
    name = getattr(function, "__name__", type(function).__name__)
    name = NAMELESS if name == "<lambda>" or isinstance(function, partial) else name
    return FunctionMetric(function, name, unit, check, error, vectorised)


def listed_metric(points: Points, apart: Floats, *, unit: str = "") -> FunctionMetric:
    """Return a metric on listed points that looks their distances up; what is not listed cannot be measured."""
    places = {tuple(row): number for number, row in enumerate(points.tolist())}

    def codes(rows: Points) -> Points:
        flat = [places.get(tuple(row), 0) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
        return np.array(flat, dtype=np.int64).reshape(rows.shape[:-1])

    def distance(a: Points, b: Points) -> Floats:
        return np.asarray(apart[codes(np.asarray(a)), codes(np.asarray(b))])

    return metric(distance, unit=unit, vectorised=True, check=lambda row: tuple(row.tolist()) in places)
