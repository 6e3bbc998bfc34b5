"""Interval arithmetic on single ratios of a distribution: it decides what the float paths of the audits leave open.

Every exact audit ends alike. Floats with a proven error bound leave a few pairs near the maximum; each is evaluated as
(|ln p_ik - ln p_jk| - slack) / d_ij in balls of 128 bits or more, so that "holds" and "violated" are proofs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.mechanisms import Witness

ULP = 2.0**-52
PROOF_BITS = (128, 512, 4096)  # more where a claim lies within the rounding of the first
PROVEN_TIES = 1_000  # pairs equal to rounding that are decided one by one; the rest keep their float bound
PROVEN_REPORTS = 20_000  # reports of such pairs, since a pair of kernels ties at every report behind one of its two

Candidate = tuple[int, int, int, float]  # secret, other, report, and the distance of the two secrets


class ExactWeights(Protocol):
    """Weights of reports, row by row, as exact numbers; the distribution is weight / sum of the row."""

    def weight(self, secret: int, report: int, /) -> float: ...

    def total(self, secret: int, /) -> tuple[int, int]:
        """Return the exact sum of a row as (whole, power): whole * 2**power."""

    def witness(self, secret: int, other: int, report: int, /) -> Witness: ...

    def largest(self, secret: int, other: int, /) -> Iterable[tuple[int, int, int]]:
        """Return (secret, other, report) wherever two rows may differ most: the likelier secret first."""


class Prover:
    """Interval arithmetic on single entries."""

    def __init__(self, distribution: ExactWeights, slack: float) -> None:
        import flint

        self._flint = flint
        self._distribution, self._slack = distribution, slack
        self._sums: dict[int, Any] = {}

    def _sum(self, i: int) -> Any:
        if i not in self._sums:
            total, power = self._distribution.total(i)
            self._sums[i] = self._flint.fmpq(total << max(power, 0), 1 << max(-power, 0))
        return self._flint.arb(self._sums[i])

    def log_ratio(self, i: int, j: int, k: int) -> Any:
        """Return a ball that holds ln(p_ik / p_jk), for a report that is possible for both."""
        arb = self._flint.arb
        one, two = arb(self._distribution.weight(i, k)), arb(self._distribution.weight(j, k))
        return (one * self._sum(j) / (two * self._sum(i))).log()

    def leak(self, candidate: Candidate, claim: float) -> tuple[Any, bool]:
        """Return a ball, or a bound, of what a report shows about a pair per distance, and whether it is above a claim.

        (|ln ratio| - slack) / distance equals a double only where the ratio is 1, so that enough bits part the two.
        """
        arb = self._flint.arb
        i, j, k, apart = candidate
        for bits in PROOF_BITS:
            with self._flint.ctx.workprec(bits):
                value = (abs(self.log_ratio(i, j, k)) - arb(self._slack)) / arb(apart)
                if bool(value > arb(claim)):
                    return value, True
                if bool(value <= arb(claim)):
                    return (value if bits == PROOF_BITS[0] else arb(claim)), False
        return value, False

    def differ_at_most(self, i: int, j: int, reports: Integers) -> bool:
        """Return whether two distributions provably differ by at most the slack at some reports, possible for both."""
        with self._flint.ctx.workprec(PROOF_BITS[-1]):
            limit = self._flint.arb(self._slack)
            return all(bool(abs(self.log_ratio(i, j, k)) <= limit) for k in reports.tolist())

    def settle(
        self, pairs: Integers, apart: Floats, ceilings: Floats, claimed: float | None
    ) -> tuple[float, bool, Witness | None]:
        """Return a proven upper bound of epsilon (tight to the last digits), whether the claim is broken, the witness.

        `ceilings` bounds what each of many pairs shows per distance. Pairs are taken from the highest ceiling down;
        once a ceiling is below what is proven for the worst pair, the rest cannot matter. Where very many pairs tie to
        rounding (tight constraints), the rest of them keep the ceiling as their bound, unless the claim hangs on it.
        """
        arb = self._flint.arb
        claim = np.inf if claimed is None else claimed
        with self._flint.ctx.workprec(PROOF_BITS[0]):
            highest, broken = arb(0), False
            worst: Candidate | None = None
            reached, counted = -np.inf, 0
            for count, at in enumerate(np.argsort(-ceilings, kind="stable").tolist()):
                rest = float(ceilings[at]) + 8 * ULP * abs(float(ceilings[at]))  # no pair from here on can exceed it
                if rest < reached:
                    break
                if (count >= PROVEN_TIES or counted >= PROVEN_REPORTS) and (rest <= claim or broken):
                    highest = highest.max(arb(max(rest, 0.0)))
                    break
                for triple in self._distribution.largest(*pairs[at].tolist()):
                    candidate = (*triple, float(apart[at]))
                    counted += 1
                    value, above = self.leak(candidate, claim)
                    highest, broken = highest.max(value), broken or above
                    floor = float(value.mid()) - 8 * ULP * abs(float(value.mid()))
                    if floor > reached or worst is None:
                        worst, reached = candidate, floor
            witness = None if worst is None else self._distribution.witness(*worst[:3])
            return round_up(highest), broken, witness


def exact_sum(values: Floats) -> tuple[int, int]:
    """Return (total, power) with total * 2**power the exact sum: doubles are whole multiples of powers of two."""
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = int(exponents.min())
    # Halves of 26 and 27 bits: doubles add up 2**26 of them without rounding.
    low = np.bincount(exponents - lowest, weights=whole & (2**26 - 1))
    high = np.bincount(exponents - lowest, weights=whole >> 26)
    places = np.flatnonzero((low != 0) | (high != 0)).tolist()
    return sum((int(high[at]) * 2**26 + int(low[at])) << at for at in places), lowest - 53


def round_up(ball: Any) -> float:
    """Return a double not below any number in the ball: the nearest one or its neighbour, or infinity."""
    upper = ball.upper()
    value = float(upper)
    for candidate in (value, float(np.nextafter(value, np.inf))):
        if bool(type(ball)(candidate) >= upper):
            return candidate
    return float(np.inf)
