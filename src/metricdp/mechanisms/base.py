"""What a mechanism is and promises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

from metricdp import wording
from metricdp.arrays import Floats
from metricdp.metrics import Metric
from metricdp.randomness import Randomness
from metricdp.spaces import Space


@dataclass(frozen=True)
class Guarantee:
    """The promise: ln Pr[M(x)=y] - ln Pr[M(x')=y] <= epsilon * d(x, x') + slack, for all x, x', y.

    `basis` says why it holds: "theorem" (a proof covers every secret) or "certificate" (every pair was checked).
    "none" marks a mechanism built for comparison that does not keep a promise. With a `radius` the promise covers, on
    purpose, only secrets this close to each other.
    """

    epsilon: float
    metric: Metric
    unit: str
    slack: float = 0.0
    basis: Literal["theorem", "certificate", "none"] = "theorem"
    radius: float | None = None

    def bound(self, distance: float) -> float:
        """Return the largest log-ratio allowed at a distance."""
        return self.epsilon * distance + self.slack

    def with_slack(self, extra: float) -> Guarantee:
        """Return the same promise with more slack, as snapping adds it."""
        return replace(self, slack=self.slack + extra)

    def __str__(self) -> str:
        return wording.promised(self)


@dataclass(frozen=True)
class Certificate:
    """What was verified: the loss, a proven lower bound on any mechanism's loss under this promise, the worst pair.

    `worst_pair` is (secret, other secret, report); it is empty where a theorem makes a search unnecessary.
    """

    loss: float
    lower_bound: float
    worst_pair: tuple[int, ...]
    verified_pairs: int
    method: str
    seconds: float
    epsilon: float
    note: str = ""

    @property
    def gap(self) -> float:
        """(loss - lower_bound) / loss: how much any better mechanism could gain."""
        return (self.loss - self.lower_bound) / self.loss if self.loss > 0 else 0.0


@runtime_checkable
class Mechanism(Protocol):
    """Something that reports a secret with noise, and says what it promises."""

    @property
    def inputs(self) -> Space: ...

    @property
    def outputs(self) -> Space: ...

    @property
    def guarantee(self) -> Guarantee: ...

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Any:
        """Return one report per secret: codes for finite sides, coordinates for continuous ones."""

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the density (continuous) or of the mass (finite, lattice) of each report."""
