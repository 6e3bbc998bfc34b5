"""The distribution of an estimate under every mass it may stand for, and the ends of the interval that follows.

An estimate is a mean of N weights, one a report. Under a mass m it is m on average, with a variance V(m) / N and a
third moment K(m) / N^2, both taken along the straight line on which the estimates of V and K move with that of m:

    V(m) = V + s (m - T),     K(m) = K + b (m - T),     s = cov(V, T) / var(T),  b = cov(K, T) / var(T)

V and K are unbiased (from the reports as they are, never from masses that were made non-negative: those are too large
where nobody is). The interval holds every m that the estimate T does not refuse (Wilson's, which of plain shares is
this one): tails are those of Pearson's third distribution, the gamma distribution of these three moments, so that far
tails are right too where few reports speak about a cell. Normal ones fail there: the error is small just when the
estimate is.

References: Wilson, "Probable inference, the distribution of succession, and statistical inference", 1927; Rao, "Large
sample tests of statistical hypotheses concerning several parameters", 1948.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Booleans, Floats

LEAST = 0.05  # of the variance under smoothed masses: none that is estimated is taken to be smaller
MOST_SKEWED = 6.0
NORMAL = 1e-3  # skewness below which a tail is a normal one
HALVINGS = 30


@dataclass(frozen=True, eq=False)
class Statistic:
    """Estimates with N times their variance, N^2 times their third moment, and how both move with the mass.

    `freedom` are the degrees of freedom of the variances, where those are themselves sampled.
    """

    values: Floats
    variance: Floats
    third: Floats
    slope: Floats
    bend: Floats
    floor: Floats
    total: float
    freedom: float = np.inf

    @property
    def errors(self) -> Floats:
        return np.asarray(np.sqrt(np.maximum(self.variance, self.floor) / self.total))

    def below_zero(self, probability: float) -> int:
        """Return how many estimates lie below 0 by more than chance allows, where errors are not too small."""
        from scipy.special import ndtri

        generous = np.sqrt(np.maximum(self.variance, self.floor / LEAST) / self.total)
        return int((self.values < float(ndtri(probability)) * generous).sum())

    @property
    def skewness(self) -> Floats:
        return self._moments_under(self.values)[1]

    def lower(self, probability: float) -> Floats:
        """Return the least masses under which an estimate as large as this one has at least that probability."""
        return self._end(probability, -1.0)

    def upper(self, probability: float) -> Floats:
        """Return the largest masses under which an estimate as small as this one has at least that probability."""
        return self._end(probability, 1.0)

    def _end(self, probability: float, side: float) -> Floats:
        from scipy.special import ndtri, stdtrit

        if not np.isinf(self.freedom):
            return np.asarray(self.values + side * self.errors * float(-stdtrit(self.freedom, probability)))
        reach = -float(ndtri(probability))
        far = 2.0 * reach * self.errors + 4.0 * reach**2 * np.abs(self.slope) / self.total
        for _ in range(60):
            inside: Booleans = self._tail_probability(self.values + side * far, side) >= probability
            if not (inside & (far > 0)).any():
                break
            far = np.where(inside, 2.0 * far, far)
        near = np.zeros_like(far)
        for _ in range(HALVINGS):
            middle = 0.5 * (near + far)
            inside = self._tail_probability(self.values + side * middle, side) >= probability
            near, far = np.where(inside, middle, near), np.where(inside, far, middle)
        return np.asarray(self.values + side * far)

    def _tail_probability(self, masses: Floats, side: float) -> Floats:
        """Return how likely under masses an estimate is that lies at least as far on this side as the one there is."""
        error, skewness = self._moments_under(masses)
        away = np.divide(self.values - masses, error, out=np.full_like(error, -side * 1e12), where=error > 0)
        return tail(-side * away, -side * skewness)

    def _moments_under(self, masses: Floats) -> tuple[Floats, Floats]:
        moved = masses - self.values
        variance = np.maximum(np.maximum(self.variance, self.floor) + self.slope * moved, self.floor)
        third = self.third + self.bend * moved
        scale = variance**1.5 * np.sqrt(self.total)
        skewness = np.divide(third, scale, out=np.zeros_like(third), where=scale > 0)
        return np.sqrt(variance / self.total), np.clip(skewness, -MOST_SKEWED, MOST_SKEWED)


def tail(away: Floats, skewness: Floats) -> Floats:
    """Return Pr[X >= away] for Pearson's third distribution with mean 0, variance 1 and a skewness."""
    from scipy.special import gammainc, gammaincc, ndtr

    flat: Booleans = np.abs(skewness) < NORMAL
    shape = 4.0 / np.where(flat, 1.0, skewness) ** 2
    at = np.maximum(shape + np.sign(skewness) * away * np.sqrt(shape), 0.0)
    bent = np.where(skewness > 0, gammaincc(shape, at), gammainc(shape, at))
    return np.asarray(np.where(flat, ndtr(-away), bent))


@dataclass(frozen=True, eq=False)
class MomentSums:
    """Sums over reports and secrets under masses q and p: of q w^r (r = 1 to 4), p g^2, p g^3, p g A w^2, p g A w^3."""

    powers: Sequence[Floats]
    squares: Floats
    cubes: Floats
    own: Floats
    own_third: Floats


Cumulants = Floats | Sequence[Floats]  # the second, third and fourth


def cumulants_of(powers: Floats | Sequence[Floats]) -> Cumulants:
    """Return cumulants from the means of w, w^2, w^3 and w^4."""
    m1, m2, m3, m4 = powers
    second = m2 - m1**2
    fourth = m4 - 4.0 * m1 * m3 + 6.0 * m1**2 * m2 - 3.0 * m1**4
    return second, m3 - 3.0 * m1 * m2 + 2.0 * m1**3, fourth - 3.0 * second**2


def population_statistic(
    values: Floats, seen: Cumulants, smooth: Cumulants, total: float, least: float = LEAST
) -> Statistic:
    """Return the statistic of secrets that were drawn; `smooth` are cumulants under masses of which none is zero."""
    slope, bend = _quotient(smooth[1], smooth[0]), _quotient(smooth[2], smooth[0])
    return Statistic(values, seen[0], seen[1], slope, bend, least * smooth[0], total)


def table_statistic(
    seen: MomentSums, smooth: MomentSums, apart: Floats, total: float, least: float = LEAST
) -> Statistic:
    """Return the statistic of secrets as they are: the noise alone. `apart` is the spread of means between parts."""
    variance = seen.powers[1] - seen.squares - apart
    third = seen.powers[2] - 3.0 * seen.own + 2.0 * seen.cubes
    second = np.maximum(smooth.powers[1] - smooth.squares - apart, 0.0)
    # cov(w^2 - w, w) and cov(w^3 - (3 v - 2) w, w) given secrets, with v the mean of w^2 over the cells that are summed
    skew = smooth.powers[2] - 3.0 * smooth.own + 2.0 * smooth.cubes
    slope = skew + 2.0 * (smooth.own - smooth.cubes) - second
    level = _quotient(smooth.own, smooth.squares)
    bend = smooth.powers[3] - smooth.own_third - (3.0 * level - 2.0) * second
    slope, bend = _quotient(slope, second), _quotient(bend, second)
    return Statistic(seen.powers[0], variance, third, slope, bend, least * second, total)


def combine_statistics(parts: Sequence[Statistic], shares: Sequence[float]) -> Statistic:
    """Return the statistic of a table from those of its parts, which have these shares of the reports."""

    def mean(name: str) -> Floats:
        return np.asarray(sum(share * getattr(part, name) for part, share in zip(parts, shares, strict=True)))

    total = sum(part.total for part in parts)
    return Statistic(mean("values"), mean("variance"), mean("third"), mean("slope"), mean("bend"), mean("floor"), total)


def part_cumulants(shares: Floats, weights: Floats, parts: tuple[slice, ...]) -> Cumulants:
    """Return the cumulants of weights over reports, of which every part of the table was drawn apart."""
    found = np.zeros((3, weights.shape[1]))
    for part in parts:
        share = float(shares[part].sum())
        if share <= 0:
            continue
        probabilities, values = shares[part] / share, weights[part]
        centred = values - probabilities @ values
        second, third, fourth = (probabilities @ centred**power for power in (2, 3, 4))
        found += share * np.stack([second, third, fourth - 3.0 * second**2])
    return found


def _quotient(above: Floats, below: Floats) -> Floats:
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 1e-12))
