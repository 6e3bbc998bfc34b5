"""What is judged: the numbers of a promise, apart from the mechanism that makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metricdp.mechanisms import Guarantee


@dataclass(frozen=True)
class Claim:
    """A promise to be judged: log-ratios of at most epsilon * d + slack, between secrets up to `radius` apart."""

    epsilon: float
    slack: float = 0.0
    radius: float | None = None
    progress: Callable[[float], None] | None = None

    @classmethod
    def of(cls, guarantee: Guarantee, epsilon: float | None, progress: Callable[[float], None] | None = None) -> Claim:
        """Return what a promise claims, with another epsilon where one is given."""
        return cls(guarantee.epsilon if epsilon is None else epsilon, guarantee.slack, guarantee.radius, progress)
