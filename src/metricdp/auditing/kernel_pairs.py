"""What single pairs of a kernel show, in interval arithmetic: what doubles leave near the maximum is decided here."""

from __future__ import annotations

from typing import Any

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.interval_proofs import PROOF_BITS, ULP, round_up
from metricdp.auditing.report import Claim
from metricdp.mechanisms.kernel_distribution import KernelDistribution
from metricdp.metrics.balls import same_place, true_distance

MOST_TERMS = 600_000  # terms computed in interval arithmetic, a few seconds; a row is one a report
MOST_PAIRS = 2_000
TIED = 1e-10  # relative: a ceiling this close to what a pair provably shows needs no more digits


class KernelProver:
    """(a m_ij + |ln N_i - ln N_j| - slack) / d_ij of single pairs, in balls; with `capped` per m_ij."""

    def __init__(self, distribution: KernelDistribution, claim: Claim, *, capped: bool = False) -> None:
        self.distribution, self.claim, self.capped = distribution, claim, capped
        self._logs: dict[tuple[int, int], Any] = {}
        # Rows of a small distribution are all is_affordable; of a large one, a few.
        self.left = max(4, MOST_TERMS // len(distribution))

    def settle(
        self, pairs: Integers, ceilings: Floats, bounds: tuple[float, float]
    ) -> tuple[float, bool, tuple[int, int] | None]:
        """Return a proven upper bound of epsilon, whether the claim is broken for certain, and the worst pair.

        Pairs are taken from the highest ceiling down; once a ceiling is below what is proven for the worst pair, the
        others cannot matter. Where the rows that are left would take too long, or all digits that matter are known,
        ceilings stand. `bounds` are a ceiling of all pairs that are not listed, and what some pair provably shows.
        """
        import flint

        rest, shown = bounds
        highest, broken, found, reached = (rest if rest >= shown else 0.0), False, None, -np.inf
        with flint.ctx.workprec(PROOF_BITS[0]):
            for count, ((i, j), ceiling) in enumerate(zip(pairs.tolist(), ceilings.tolist(), strict=True)):
                if ceiling < reached:
                    break
                settled = ceiling <= min(self.claim.epsilon, max(shown, reached) * (1.0 + TIED))
                if settled or count >= MOST_PAIRS or not self.is_affordable(i, j):
                    highest, found = max(highest, ceiling), (i, j) if found is None else found
                    break
                value = self.shown(i, j)
                if value is None:
                    continue
                highest = max(highest, min(round_up(value), ceiling))
                broken = broken or bool(value > self.claim.epsilon)
                floor = float(value.mid()) - 8 * ULP * abs(float(value.mid()))
                if floor > reached:
                    found, reached = (i, j), floor
        return highest, broken, found

    def is_affordable(self, i: int, j: int) -> bool:
        """Return whether the rows of a pair may still be computed."""
        return sum((row, PROOF_BITS[0]) not in self._logs for row in (i, j)) <= self.left

    def shown(self, i: int, j: int) -> Any:
        """Return a ball of what a pair shows per distance; None where it shows nothing or is too far to count."""
        import flint

        space, arb = self.distribution.space, flint.arb
        one, other = space.points[i], space.points[j]
        if same_place(space.metric, one, other):
            return None  # at distance 0 all distances to others are equal, and so are the distributions
        away = true_distance(space.metric, one, other)
        if self.claim.radius is not None and bool(away > self.claim.radius):
            return None
        counted = away.min(arb(self.distribution.cap)) if np.isfinite(self.distribution.cap) else away
        most = arb(self.distribution.inner) * counted  # all that the kernel, and all that a normaliser can show
        if not bool(most > 0):  # too near for that many bits; at most twice the inner budget
            return arb(0).union(2 * arb(self.distribution.inner))
        # Normalisers differ by at most that: that many bits of their logarithms are needed to distinguish them.
        lost = -int(float(most.log()) * 1.5)
        bits = PROOF_BITS[0] if lost < PROOF_BITS[0] // 2 else 64 * (lost // 64 + 3)
        change = abs(self._log_normaliser(i, bits) - self._log_normaliser(j, bits)).min(most)
        return (most + change - arb(self.claim.slack)) / (counted if self.capped else away)

    def _log_normaliser(self, row: int, bits: int) -> Any:
        import flint

        if (row, bits) not in self._logs:
            self.left -= 1
            with flint.ctx.workprec(bits):
                self._logs[row, bits] = sum(self.distribution.balls(row, bits=bits), start=flint.arb(0)).log()
        return self._logs[row, bits]
