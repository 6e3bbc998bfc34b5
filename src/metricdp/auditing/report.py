"""What an audit found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from metricdp.deprecation import warn_renamed
from metricdp.mechanisms import FiniteMechanism, Guarantee, Witness
from metricdp.metrics import Metric, precision_note
from metricdp.rendering import card, plain_record, plural, printable
from metricdp.spaces import FiniteSpace

Basis = Literal["proof", "theorem", "samples"]
ROUNDING = 1.0 + 1e-12  # an excess below this comes from rounding, not from a mistake in the mechanism
Verdict = Literal["holds", "violated", "not refuted", "cannot judge"]


@dataclass(frozen=True)
class Finding:
    """Something seen beside the numbers; `convicts` says that the verdict rests on it."""

    kind: str
    sentence: str
    convicts: bool = False

    def __str__(self) -> str:
        return printable(self.sentence)


class BaseReport:
    """What the reports of all audits have in common: the verdict, and why there is none."""

    basis: Basis
    obstacle: str

    @property
    def refuted(self) -> bool:
        """Whether more than what was claimed is shown to leak."""
        raise NotImplementedError

    @property
    def _doubt(self) -> str:
        """Why nothing is shown, although nothing stands in the way of it, as a sentence."""
        raise NotImplementedError

    @property
    def verdict(self) -> Verdict:
        """Return the verdict: "holds" takes a finite proof over at least one pair that is at most a finite claim."""
        if self.refuted:
            return "violated"
        if self.reason:
            return "cannot judge"
        return "not refuted" if self.basis == "samples" else "holds"

    @property
    def reason(self) -> str:
        """Why there is no verdict, as a sentence; empty where there is one."""
        return "" if self.refuted else self.obstacle or self._doubt

    @property
    def holds(self) -> bool:
        """Whether the guarantee holds for certain."""
        return self.verdict == "holds"

    @property
    def kept(self) -> bool:
        """The old name of `holds`."""
        warn_renamed("kept", "holds")
        return self.holds


@dataclass(frozen=True, kw_only=True)
class AuditReport(BaseReport):
    """The outcome of an audit.

    `basis` says what it rests on: "proof" (every pair, or every cell of the domain, in directed rounding), "theorem"
    (a formula whose conditions were checked) or "samples", which can only refute. `epsilon` is the smallest epsilon for
    which the guarantee holds: for a proof or a theorem an upper bound (an exact audit's is tight to the last digits),
    for samples a lower bound at the stated confidence (`is_lower_bound`): much more may leak. `refuted` says that more
    than what was claimed is shown to leak.
    `pairs` counts the pairs, or the cells, that were audited one by one.

    Audits of samples also say how many reports were bet on (`draws`), a leak that those would have found (`power`) and
    what else was seen (`findings`). They name a witness only where they refute.

    `obstacle` is a sentence on what stands in the way of a verdict, and `vacuous` marks a guarantee about a single
    secret, which no mechanism can break: there is nothing to distinguish.
    """

    claimed: float | None
    epsilon: float
    basis: Basis
    method: str
    refuted: bool = False
    confidence: float = 1.0
    witness: Witness | None = None
    slack: float = 0.0
    pairs: int = 0
    obstacle: str = ""
    vacuous: bool = False
    draws: int = 0
    power: str = ""
    findings: tuple[Finding, ...] = ()

    @property
    def _doubt(self) -> str:
        if self.claimed is None:
            return "No guarantee was named: give `epsilon` to audit one."
        if not math.isfinite(self.claimed) or math.isnan(self.epsilon):
            return "The claim or the proof is not a number."
        if self.pairs == 0 and self.basis != "theorem":
            return "There was nothing to audit: no two secrets that the guarantee covers."
        if self.epsilon > self.claimed and self.basis != "samples":
            return f"Only epsilon {self.epsilon:.12g} is proven, which is more than was claimed; nothing shows a leak."
        return ""

    @property
    def is_lower_bound(self) -> bool:
        """Whether `epsilon` is a lower bound of what leaks, as samples give it."""
        return self.basis == "samples"

    @property
    def rounding(self) -> str:
        """The note for an exact audit that exceeds the claim by rounding only, as a sentence."""
        if not self.refuted or self.claimed is None or self.is_lower_bound or self.epsilon > ROUNDING * self.claimed:
            return ""
        return (
            f"The excess of {self.epsilon - self.claimed:.1g} is what rounding of the probabilities does: claim "
            f"{self.epsilon!r}, or build with a slightly smaller epsilon."
        )

    @property
    def holds(self) -> bool:
        """Whether the guarantee holds for certain: it holds, or it is about a single secret."""
        return super().holds or (self.vacuous and not self.refuted)

    @property
    def margin(self) -> float:
        """claimed - epsilon: how much of the guarantee is unused (negative when it is broken)."""
        return float("nan") if self.claimed is None else self.claimed - self.epsilon

    def to_dict(self, unit: str | None = None) -> dict[str, Any]:
        """Return the report as plain values for JSON; `metricdp.schema.json` describes every field.

        `unit` is the unit of distances, per which epsilon is.
        """
        values = asdict(self) | {"witness": None if self.witness is None else self.witness.to_dict()}
        return plain_record(
            {
                "kind": "pure",
                "verdict": self.verdict,
                **values,
                "unit": unit,
                "reason": self.reason or self.rounding,
                "rounding": self.rounding,
                "margin": self.margin,
                "epsilon_is": "lower bound" if self.is_lower_bound else "upper bound",
            }
        )

    def __str__(self) -> str:
        claim = "" if self.claimed is None else f" (claimed {self.claimed:.12g})"
        text = f"{self.verdict}: {self._found}{claim}, by {self.basis}, {self.method}"
        if self.pairs:
            text += f", {plural(self.pairs, 'pair')}"
        if self.witness is not None:
            text += f"; {'seen at' if self.is_lower_bound else 'worst at'} {self.witness}"
        said = [self.reason, self.rounding, self.power, *(str(finding) for finding in self.findings)]
        return printable(". ".join([text, " ".join(part for part in said if part)]) if any(said) else text)

    @property
    def _found(self) -> str:
        if not self.is_lower_bound:
            return f"epsilon {self.epsilon:.12g}"
        return f"leaks at least epsilon {self.epsilon:.12g} ({100.0 * self.confidence:.6g} %)"

    def _repr_html_(self) -> str:
        rows = [
            ("claimed", "nothing" if self.claimed is None else f"{self.claimed:.12g}"),
            ("found", self._found + (f", slack {self.slack:.6g}" if self.slack else "")),
            ("by", f"{self.basis}: {self.method}"),
            ("pairs audited", f"{self.pairs:,}"),
            ("seen at" if self.is_lower_bound else "worst at", "" if self.witness is None else str(self.witness)),
            ("why", self.reason or self.rounding),
            ("power", self.power),
            *((finding.kind, str(finding)) for finding in self.findings),
        ]
        return card(self.verdict, [(name, value) for name, value in rows if value])


def add_metric_notes(report: AuditReport, metric: Metric | None) -> AuditReport:
    """Return the report with a note about the distances it rests on."""
    note = "" if metric is None else precision_note(metric)
    return replace(report, method=f"{report.method}, {note}") if note else report


def locate_witness(report: AuditReport, mechanism: FiniteMechanism) -> AuditReport:
    """Return the report with the places of its witness, if it has one."""
    if report.witness is None:
        return report
    return replace(report, witness=report.witness.with_places(mechanism.inputs, mechanism.outputs))


def locate_secrets(report: AuditReport, secrets: FiniteSpace) -> AuditReport:
    """Return the report with the places of the secrets of its witness; of the reports nothing but numbers is known."""
    if report.witness is None:
        return report
    located = report.witness.with_places(secrets, secrets)
    return replace(report, witness=replace(located, report_at=report.witness.report_at))


def obstacle_of(secrets: int, skipped: int, count: int | None = None) -> str:
    """Say what stands in the way of auditing every pair of secrets, where something does."""
    if secrets == 1:
        return "There is only one secret: no two can be distinguished, and a guarantee about it says nothing."
    if not skipped:
        return ""
    counted = "" if count is None else f"; only {count} could be audited"
    return (
        f"The distance of {skipped} {'pair' if skipped == 1 else 'pairs'} of secrets is infinite, by overflow or "
        f"because nothing connects them{counted}."
    )


# What is audited: the numbers of a guarantee, apart from the mechanism that makes it.


@dataclass(frozen=True)
class Claim:
    """A guarantee to be audited: log-ratios of at most epsilon * d + slack, between secrets up to `radius` apart."""

    epsilon: float
    slack: float = 0.0
    radius: float | None = None
    progress: Callable[[float], None] | None = None

    def report(self, basis: Basis, method: str, epsilon: float, **found: Any) -> AuditReport:
        """Return what an audit of this claim found."""
        return AuditReport(claimed=self.epsilon, slack=self.slack, basis=basis, method=method, epsilon=epsilon, **found)

    @classmethod
    def of(cls, guarantee: Guarantee, epsilon: float | None, progress: Callable[[float], None] | None = None) -> Claim:
        """Return what a guarantee claims, with another epsilon where one is given."""
        return cls(guarantee.epsilon if epsilon is None else epsilon, guarantee.slack, guarantee.radius, progress)
