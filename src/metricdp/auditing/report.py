"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from metricdp.mechanisms import Witness

Verdict = Literal["holds", "violated", "not refuted"]


@dataclass(frozen=True)
class AuditReport:
    """The outcome of an audit.

    `epsilon` is the smallest epsilon for which the mechanism keeps its promise: for an exact audit a proven upper
    bound, tight to the last digits; for a sampled one a lower bound at the stated confidence.
    """

    claimed: float | None
    epsilon: float
    method: str
    confidence: float
    witness: Witness
    slack: float = 0.0
    pairs: int = 0

    @property
    def verdict(self) -> Verdict:
        """Tell: "holds" and "violated" are proofs for exact audits; samples can only refute."""
        if self.claimed is not None and self.epsilon > self.claimed:
            return "violated"
        return "not refuted" if self.method == "sampled" else "holds"

    @property
    def margin(self) -> float:
        """claimed - epsilon: how much of the promise is unused (negative when it is broken)."""
        return float("nan") if self.claimed is None else self.claimed - self.epsilon

    def __str__(self) -> str:
        secret, other, report = self.witness.secret, self.witness.other, self.witness.report
        claim = "" if self.claimed is None else f" (claimed {self.claimed:.12g})"
        return (
            f"{self.verdict}: epsilon {self.epsilon:.12g}{claim}, {self.method}, {self.pairs} pairs; "
            f"worst at secrets {secret} and {other}, report {report}, ratio {self.witness.ratio:.6g}"
        )
