"""Secrets of several parts, such as a place, an hour and a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metricdp.metrics import Weighted


@dataclass(frozen=True, eq=False)
class ProductSpace:
    """Secrets of several parts; a value is a sequence with one array per part.

    The metric is the sum of the parts' metrics, each times the epsilon of its mechanism: its distances are in nats.
    """

    parts: tuple[Any, ...]
    metric: Weighted

    @property
    def unit(self) -> str:
        return self.metric.unit

    def __repr__(self) -> str:
        return f"ProductSpace({', '.join(repr(part) for part in self.parts)})"
