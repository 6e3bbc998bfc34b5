"""What all spaces of real coordinates share: a row is its own code, and no secret is nearest to a stranger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from metricdp.arrays import Booleans, Floats, as_points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.spaces.base import (
    format_value,
    is_checked,
    missing_number_text,
    number_rows,
    refuse,
    refuse_snap,
    space_card,
)


class Coordinates(ABC):
    """A space whose secrets are rows of numbers.

    It says which ones (`_are_inside`, `rule`) and what to do about others.
    """

    metric: Metric

    columns: ClassVar[tuple[str, ...]] = ()
    size: ClassVar[int | None] = None
    is_text: ClassVar[bool] = False
    finite: ClassVar[None] = None
    network: ClassVar[None] = None
    same_ground: ClassVar[bool] = True
    advice: ClassVar[str] = "Repair or drop the row."

    if TYPE_CHECKING:  # a field where it is stored: a property of the same name would be taken for its default

        @property
        def dimension(self) -> int: ...

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of columns."""

    @abstractmethod
    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""

    @abstractmethod
    def _are_inside(self, values: Floats) -> Booleans:
        """Tell which rows of numbers are secrets; NaN and infinity stand for no number."""

    @abstractmethod
    def _outside_text(self, value: Floats) -> str:
        """Say of a row of finite numbers why it is no secret."""

    def _hint(self, bad: Floats) -> str:
        """Return what may explain bad rows, to be said after the rule."""
        return ""

    @property
    def limits(self) -> tuple[Floats, Floats] | None:
        return None

    @property
    def ground(self) -> Metric:
        return self.metric

    @property
    def unit(self) -> str:
        return self.metric.unit

    _repr_html_ = space_card

    def charge(self, snap: float) -> float:
        """Return 0; snapping is refused, since no secret is nearest."""
        return refuse_snap(snap)

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Floats]:
        """Return which rows are secrets, and the rows."""
        refuse_snap(snap)
        values = number_rows(rows, self.width)
        return self._are_inside(values), values

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows are secrets."""
        return self.admit(rows)[0]

    def why(self, row: Any, /) -> str:
        """Say whether a row is a secret; this shows the value."""
        value = number_rows(np.atleast_2d(row), self.width)[0]
        if not np.isfinite(value).all():
            return f"{missing_number_text(value)}."
        return (
            f"{format_value(value)} is a secret of this space."
            if self.legal(value[None])[0]
            else self._outside_text(value)
        )

    def encode(self, values: Any, /) -> Floats:
        """Return the values as checked coordinates."""
        if is_checked(values, self):
            return np.asarray(values)
        rows = as_points(values, "values")
        if rows.dtype.kind == "U" or rows.shape[1:] != (self.width,):
            raise InvalidInput(f"values must have {self.width} columns of numbers, got shape {rows.shape}.")
        good, found = self.admit(rows)
        if not good.all():
            refuse(good, self.rule() + self._hint(found[~good]), self.advice)
        return found

    def decode(self, secrets: Any, /) -> Floats:
        """Return coordinates as they are."""
        return np.asarray(secrets)
