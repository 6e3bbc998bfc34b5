"""What a mechanism is and guarantees."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from metricdp import messages
from metricdp.arrays import Booleans, Floats, Integers, set_fields
from metricdp.errors import InvalidInput, NotPure, OutOfDomain
from metricdp.mechanisms.concentrated import ConcentratedGuarantee, MetricGuarantee
from metricdp.metrics import Metric, policy_of, sum_of, terms_of
from metricdp.randomness import Randomness
from metricdp.rendering import card, plain_record, printable
from metricdp.spaces import FiniteSpace, Space

Basis = Literal["theorem", "certificate", "none"]
Objective = Literal["expected", "worst"]
BASES = ("theorem", "certificate", "none")
OBJECTIVES = ("expected", "worst")
Place = tuple[float | str, ...]


@dataclass(frozen=True)
class Guarantee(MetricGuarantee):
    """The guarantee: ln Pr[M(x)=y] - ln Pr[M(x')=y] <= epsilon * d(x, x') + slack, for all x, x', y.

    `basis` says why it holds: "theorem" (a proof covers every secret) or "certificate" (every pair was checked). "none"
    marks a mechanism built for comparison that does not satisfy a guarantee. With a `radius` the guarantee covers, on
    purpose, only secrets this close to each other. A guarantee is made of finite numbers, or it cannot be stated.
    """

    epsilon: float
    metric: Metric
    slack: float = 0.0
    basis: Basis = "theorem"
    radius: float | None = None
    title: ClassVar[str] = "Guarantee"

    def __post_init__(self) -> None:
        set_fields(
            self, epsilon=_number(self.epsilon, "epsilon", above=0.0), slack=_number(self.slack, "slack", least=0.0)
        )
        if self.radius is not None:
            set_fields(self, radius=_number(self.radius, "radius", above=0.0))
        if self.basis not in BASES:
            raise InvalidInput(f"`basis` must be one of {', '.join(BASES)}, got {self.basis!r}.")

    @property
    def in_parts(self) -> bool:
        """Whether it is one within the parts of a policy graph, across which nothing is hidden."""
        return self.radius is not None and policy_of(self.metric) is not None

    @property
    def parts(self) -> tuple[Guarantee, ...]:
        """The guarantees of the parts of a sum of metrics (`Weighted`), each in its own unit; none for one metric.

        Where several parts move, what they cost adds up; the slack is that of all parts together.
        """
        if not sum_of(self.metric) or self.radius is not None:
            return ()
        return tuple(
            Guarantee(float(term.rate * Fraction(self.epsilon)), term.metric, self.slack, self.basis)
            for term in terms_of(self.metric)
        )

    def bound(self, distance: float) -> float:
        """Return the largest log-ratio allowed at a distance."""
        return self.epsilon * distance + self.slack

    def with_slack(self, extra: float) -> Guarantee:
        """Return the same guarantee with more slack, as snapping adds it."""
        return replace(self, slack=self.slack + extra)

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON; `metricdp.schema.json` describes every field."""
        parts = [part.to_dict() for part in self.parts]
        return self._record(kind="pure", epsilon=self.epsilon, slack=self.slack, parts=parts)


AnyGuarantee = Guarantee | ConcentratedGuarantee


PURE_ALTERNATIVE = "Its `guarantee.epsilon_at(distance, delta)` says what it keeps at a distance"


def require_pure(guarantee: AnyGuarantee, what: str, instead: str = PURE_ALTERNATIVE) -> Guarantee:
    """Return a pure guarantee, or refuse a concentrated one: what takes pure ones only, and what to do instead."""
    if isinstance(guarantee, Guarantee):
        return guarantee
    raise NotPure(
        f"{what} takes mechanisms with a pure guarantee, epsilon times the distance for every report. This one "
        f"guarantees {guarantee}. {instead}."
    )


@dataclass(frozen=True)
class Witness:
    """The two secrets and the report at which a mechanism leaks most: p(report | secret) / p(report | other).

    Codes (-1 where a continuous side has none), and the coordinates behind them where the spaces are known. The ratio
    is infinite where `other` never gives that report, and not a number where an audit of samples found the pair: it
    shows that the pair is distinguished, not by how much at this report.
    """

    secret: int
    other: int
    report: int
    ratio: float
    secret_at: Place | None = field(default=None, repr=False)
    other_at: Place | None = field(default=None, repr=False)
    report_at: Place | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the witness as plain values for JSON."""
        return plain_record(vars(self))

    def __iter__(self) -> Iterator[int]:
        return iter((self.secret, self.other, self.report))

    def __str__(self) -> str:
        named = (self.secret, self.other, self.report)
        one, two, seen = (
            str(code) if place is None else place_text(place)  # the number of a row says nothing to a reader
            for code, place in zip(named, (self.secret_at, self.other_at, self.report_at), strict=True)
        )
        ratio = "" if math.isnan(self.ratio) else f", ratio {self.ratio:.6g}"
        return printable(f"secrets {one} and {two}, report {seen}{ratio}")

    def with_places(self, inputs: FiniteSpace, outputs: FiniteSpace) -> Witness:
        """Return the witness with the coordinates of its codes."""
        return replace(
            self,
            secret_at=_place(inputs, self.secret),
            other_at=_place(inputs, self.other),
            report_at=_place(outputs, self.report),
        )


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What was verified: the loss, a proven lower bound on the loss of any mechanism with this guarantee that
    gives the same reports, the worst pair.

    Loss and bound are of the same `objective`: "expected" under the prior, or "worst", that of the unluckiest secret.
    A builder that computes no bound states what no guarantee at all would cost, 0 where the loss is a distance.
    With `at_most` the loss is only an upper bound of what the mechanism costs. `epsilon` is what the audit found,
    infinite only where no guarantee holds. `pairs` counts what was audited one by one; it is 0, and `witness` None,
    where a theorem makes a search unnecessary. `stated` names the figures ("loss", "lower_bound") that a file states
    and nobody verified again.
    """

    loss: float
    lower_bound: float
    method: str
    epsilon: float
    objective: Objective = "expected"
    witness: Witness | None = None
    pairs: int = 0
    seconds: float = 0.0
    note: str = ""
    at_most: bool = False
    stated: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        loss, bound = _number(self.loss, "loss"), _number(self.lower_bound, "lower_bound")
        if bound > loss:
            raise InvalidInput(f"`lower_bound` {bound:.12g} lies above the loss {loss:.12g}: no proof can say that.")
        if self.objective not in OBJECTIVES:
            raise InvalidInput(f"`objective` must be one of {', '.join(OBJECTIVES)}, got {self.objective!r}.")
        _number(self.seconds, "seconds", least=0.0)
        if _number(self.pairs, "pairs", least=0.0) != int(self.pairs):
            raise InvalidInput(f"`pairs` must be a whole number, got {self.pairs!r}.")
        if self.epsilon != math.inf:
            _number(self.epsilon, "epsilon", least=0.0)

    @property
    def gap(self) -> float:
        """(loss - lower_bound) / |loss|: the most that one with the same reports gains; infinite above a loss of 0."""
        if self.loss == self.lower_bound:
            return 0.0
        return (self.loss - self.lower_bound) / abs(self.loss) if self.loss else math.inf

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended the search before it was done; `note` says so, in files too."""
        return messages.INTERRUPTED in self.note

    def to_dict(self, unit: str | None = None) -> dict[str, Any]:
        """Return the certificate as plain values for JSON; `metricdp.schema.json` describes every field.

        `unit` is the unit of distances, per which epsilon is: the guarantee of the mechanism knows it.
        """
        values = {name: value for name, value in vars(self).items() if name not in ("witness", "stated")}
        facts = {"gap": self.gap, "unit": unit, "interrupted": self.interrupted}
        witness = None if self.witness is None else self.witness.to_dict()
        return plain_record(values | facts | {"witness": witness, "not_verified": self.stated})

    @property
    def loss_text(self) -> str:
        """The loss in words."""
        return f"{'at most ' if self.at_most else ''}{self.loss:.6g}"

    def _repr_html_(self) -> str:
        least = f"{self.lower_bound:.6g} (gap {messages.gap(self.gap)}){messages.unverified_note(self, 'lower_bound')}"
        rows = [
            (messages.objective(self.objective), self.loss_text + messages.unverified_note(self, "loss")),
            ("none with these reports below", least),
            ("audited epsilon", f"{self.epsilon:.12g}" if self.epsilon < math.inf else "none: no pure guarantee holds"),
            ("pairs audited", f"{self.pairs:,}"),
        ]
        if self.witness is not None:
            rows.append(("worst pair", str(self.witness)))
        rows += [("method", self.method), ("seconds", f"{self.seconds:.3g}")]
        return card("Certificate", [*rows, ("note", self.note)] if self.note else rows)


def part_certificate(certificate: Certificate, codes: Integers, size: int) -> Certificate:
    """Return the certificate of some rows of a mechanism on `size` secrets: what was audited there holds for them.

    Loss and bound are those of all secrets; what they are for these alone, nobody computed.
    """
    note = (
        f"Loss and lower bound are those of the whole mechanism on {size:,} secrets, of which these are {len(codes):,}."
    )
    return replace(certificate, witness=None, note=f"{certificate.note} {note}".strip(), stated=("loss", "lower_bound"))


@dataclass(frozen=True, eq=False)
class LossBasis:
    """How the loss of a finite mechanism is counted: secrets x reports (None: the distance), and prior (None: uniform).

    `known` is False where neither is given: mechanism files hold neither, since a prior may tell more than any report
    does.
    """

    loss: Floats | None = None
    prior: Floats | None = None
    known: bool = True


def mechanism_card(mechanism: Mechanism) -> str:
    """Return what a mechanism is, guarantees and costs as a small table for notebooks; no arrays."""
    guarantee, certificate = mechanism.guarantee, mechanism.certificate
    rows = [
        ("secrets", repr(mechanism.inputs)),
        ("reports", repr(mechanism.outputs)),
        ("promise", str(guarantee)),
        ("in short", messages.short_sentence(guarantee)),
        (messages.objective(certificate.objective), certificate.loss_text),
        ("none with these reports below", f"{certificate.lower_bound:.6g}"),
        ("method", certificate.method),
    ]
    return card(type(mechanism).__name__, rows)


@runtime_checkable
class Mechanism(Protocol):
    """Something that reports a secret with noise, and says what it guarantees and what was verified."""

    @property
    def inputs(self) -> Space: ...

    @property
    def outputs(self) -> Space: ...

    @property
    def guarantee(self) -> AnyGuarantee: ...

    @property
    def certificate(self) -> Certificate: ...

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Any:
        """Return one report per secret: codes for finite sides, coordinates for continuous ones."""

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the density (continuous) or of the mass (finite, lattice) of each report."""


@runtime_checkable
class LimitedNoise(Protocol):
    """Noise that doubles hold for most secrets of its space: not next to a border, or too far out for its lattice."""

    @property
    def limit(self) -> str:
        """The rule, in words; empty where there is none."""

    def holds(self, rows: Floats, /) -> Booleans:
        """Return which rows of coordinates noise can be added to."""


def refuse_rows(good: Booleans, why: str) -> None:
    """Refuse rows that are not good, naming the first and saying why."""
    bad = np.flatnonzero(~good)
    if bad.size:
        raise OutOfDomain(f"row {int(bad[0])} {why}.", rows=tuple(int(row) for row in bad[:1000]))


def _number(value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf) -> float:
    """Return a finite number within limits, or say what came instead: NaN compares as if it satisfied any guarantee."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not good or not math.isfinite(value) or not value > above or not value >= least:
        limit = f" above {above:g}" if above > -math.inf else f" of at least {least:g}" if least > -math.inf else ""
        raise InvalidInput(f"`{name}` must be a finite number{limit}, got {value!r}.")
    return float(value)


def place_text(place: Place) -> str:
    """Return a place as text: (41.1496, -8.6109), or the word or number itself."""
    said = [str(part) if isinstance(part, str) else f"{part:.9g}" for part in place]
    return said[0] if len(said) == 1 else f"({', '.join(said)})"


def _place(space: FiniteSpace, code: int) -> Place:
    return tuple(space.coordinates[code].ravel().tolist())
