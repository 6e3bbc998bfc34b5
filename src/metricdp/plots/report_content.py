"""The content of figures and of the report: finished results."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from metricdp.arrays import Floats
from metricdp.auditing import AuditReport
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, Guarantee
from metricdp.messages import Objective

ROUNDING = 1e-9


@dataclass(frozen=True)
class Contender:
    """One mechanism of a comparison and its loss.

    `bounded` is False for what keeps another guarantee than the rest (a slack, or none proven): the bound of the
    comparison says nothing about it.
    """

    name: str
    loss: float
    note: str = ""
    best: bool = False
    bounded: bool = True
    certified: float | None = None  # the audited epsilon
    seconds: float = 0.0
    low: float | None = None  # the ends of an interval, where the loss was measured on draws
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Mechanisms under one guarantee and one objective, with the loss below which none that reports the same can go.

    A bound belongs to an objective (with its prior and loss) and to a guarantee. One that lies above the loss of a
    mechanism that it covers belongs to something else. It is refused here, before it is drawn.
    """

    contenders: tuple[Contender, ...]
    lower_bound: float
    unit: str = "km"
    objective: Objective = "expected"
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if self.objective not in ("expected", "worst"):
            raise InvalidInput(f"`objective` must be 'expected' or 'worst', got {self.objective!r}.")
        if not self.contenders:
            raise InvalidInput("a comparison needs at least one contender.")
        if not math.isfinite(self.lower_bound) or not all(math.isfinite(entry.loss) for entry in self.contenders):
            raise InvalidInput("the losses of a comparison and its `lower_bound` must be finite numbers.")
        for entry in self.contenders:
            # A loss is a sum of doubles: the last digits of two ways to add it up may differ. One that was measured
            # lies outside its interval once in a while.
            most = entry.loss if entry.high is None else 2.0 * entry.high - entry.loss  # well outside its interval
            if entry.bounded and self.lower_bound > most + ROUNDING * abs(entry.loss):
                raise InvalidInput(
                    f"the lower bound {self.lower_bound:.6g} lies above the loss {entry.loss:.6g} of {entry.name}: it "
                    "belongs to another objective, prior, loss or guarantee."
                )

    def bound_of(self, entry: Contender) -> float | None:
        """Return the bound that holds for a contender, never above its loss; None where none speaks about it."""
        return min(self.lower_bound, entry.loss) if entry.bounded else None

    def gap_of(self, entry: Contender) -> float | None:
        """Return (loss - bound) / loss: the most that any with this guarantee and these reports could save."""
        bound = self.bound_of(entry)
        if bound is None:
            return None
        return 0.0 if entry.loss == bound else (entry.loss - bound) / abs(entry.loss) if entry.loss else math.inf


@dataclass(frozen=True, eq=False)
class Map:
    """True points, the reports drawn for them, and the streets around; all (latitude, longitude)."""

    true: Floats
    reported: Floats
    streets: tuple[Floats, ...] = ()
    worst_pair: Floats | None = None  # the two secrets that leak most
    caption: str = ""


@dataclass(frozen=True, eq=False)
class ReportContent:
    """The whole content of a report."""

    title: str
    place: str
    mechanism: str
    guarantee: Guarantee
    certificate: Certificate
    audit: AuditReport
    map: Map
    comparison: Comparison
    rows: int
    rows_per_person: int
    person: str  # what one person's rows are called: trip, user
    kept_columns: tuple[str, ...]
    worst_distance: float
    simulated: str = ""  # says so where data or randomness is simulated
    secret: str = ""  # what the secret is, where it is not simply the position in the table
    repeat: tuple[str, ...] = ()
    attribution: str = ""
    files: tuple[tuple[str, str], ...] = field(default=())  # name, what it is

    def __post_init__(self) -> None:
        if self.certificate.objective != self.comparison.objective:
            raise InvalidInput(
                f"the certificate counts the {self.certificate.objective} loss and the comparison the "
                f"{self.comparison.objective} one: a report tells one of the two."
            )
