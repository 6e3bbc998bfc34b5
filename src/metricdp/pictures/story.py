"""Finished results that pictures and the report are drawn from."""

from __future__ import annotations

from dataclasses import dataclass, field

from metricdp.arrays import Floats
from metricdp.auditing import AuditReport
from metricdp.mechanisms import Certificate, Guarantee


@dataclass(frozen=True)
class Contender:
    """One mechanism of a comparison: its expected loss at the common epsilon."""

    name: str
    loss: float
    note: str = ""
    best: bool = False


@dataclass(frozen=True)
class Comparison:
    """Mechanisms at equal epsilon, with the loss that no mechanism can beat."""

    contenders: tuple[Contender, ...]
    lower_bound: float
    unit: str = "km"


@dataclass(frozen=True, eq=False)
class Map:
    """True points, the reports drawn for them, and the streets around; all (latitude, longitude)."""

    true: Floats
    reported: Floats
    streets: tuple[Floats, ...] = ()
    worst_pair: Floats | None = None  # the two secrets that leak most
    caption: str = ""


@dataclass(frozen=True, eq=False)
class Story:
    """All that a report tells."""

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
    repeat: tuple[str, ...] = ()
    attribution: str = ""
    files: tuple[tuple[str, str], ...] = field(default=())  # name, what it is
