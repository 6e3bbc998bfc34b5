"""Secrets of several parts, such as a place, an hour and a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Points
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric
from metricdp.spaces.base import Space, UnsnappedSpace, refuse_snap


@dataclass(frozen=True, eq=False)
class ProductSpace(UnsnappedSpace):
    """Secrets of several parts; a secret is a sequence with one array per part, a row their columns side by side.

    The metric is the sum of the parts' metrics, each times the epsilon of its mechanism: its distances are in nats.
    """

    parts: tuple[Space, ...]
    metric: Metric

    @property
    def columns(self) -> tuple[str, ...]:
        names = [part.columns for part in self.parts]
        return tuple(name for part in names for name in part) if all(names) else ()

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    @property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    @property
    def size(self) -> None:
        return None

    @property
    def is_text(self) -> bool:
        return all(part.is_text for part in self.parts)

    def __repr__(self) -> str:
        return f"ProductSpace({', '.join(repr(part) for part in self.parts)})"

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, tuple[Any, ...]]:
        """Return which rows are secrets in every part, and the secrets part by part."""
        refuse_snap(snap)
        found = [part.admit(own) for part, own in zip(self.parts, self._split(rows), strict=True)]
        return np.asarray(np.logical_and.reduce([good for good, _ in found])), tuple(values for _, values in found)

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        return "; ".join(f"part {number}: {part.rule()}" for number, part in enumerate(self.parts))

    def why(self, row: Any, /) -> str:
        """Say of every part whether the row is a secret of it; this shows the value."""
        parts = zip(self.parts, self._split([row]), strict=True)
        return " ".join(f"Part {number}: {part.why(own[0])}" for number, (part, own) in enumerate(parts))

    def decode(self, secrets: Sequence[Any], /) -> Points:
        """Return the rows behind secrets given part by part; words and numbers side by side are objects."""
        rows = [part.decode(own) for part, own in zip(self.parts, secrets, strict=True)]
        mixed = len({part.dtype.kind == "U" for part in rows}) > 1
        return np.concatenate([part.astype(object) if mixed else part for part in rows], axis=1)

    def _split(self, rows: Any) -> list[Any]:
        """Return the columns of every part: words as they are, numbers as doubles (NaN where there is none)."""
        table = [list(row) for row in rows]
        if any(len(row) != self.width for row in table):
            raise InvalidInput(f"rows must have {self.width} columns, those of the parts one after the other.")
        parts, start = [], 0
        for part in self.parts:
            own = [row[start : start + part.width] for row in table]
            parts.append(own if part.is_text else np.array([[_number(cell) for cell in row] for row in own]))
            start += part.width
        return parts


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
