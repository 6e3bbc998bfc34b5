"""Renyi divergences of a finite law at all pairs and all orders at once, bounded between the orders that are looked at.

Of two rows p and q let l = ln(p / q) and K(s) = ln sum_k p_k exp(s l_k). The divergence of order a = 1 + s is K(s) / s,
so the least rho of a pair at distance d is the largest of

    f(s) = K(s) / (s (1 + s))  over s > 0,     divided by d^2;        f(0) = KL(p || q).

K vanishes at s = 0 and at s = -1 (rows sum to one), so f is its second divided difference at -1, 0 and s, and
f'' = K'''' / 12 somewhere. K'''' is the fourth cumulant of l under a tilted law: with l in a range of length R it is at
most R^4 / 8 in size, since the fourth moment is at least the square of the variance, which is at most R^2 / 4, and at
most R^2 times the variance. So between two orders f exceeds the larger of its values there by at most h^2 R^4 / 768;
beyond s it is at most max(l) / (1 + s); and everywhere it is at most R^2 / 8. Intervals that may hold more than what
was found are halved until none may.

Roundings: a logarithm is within 4 u of itself, a sum of m terms within m u; together f is off by at most `_rounding`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers

UNIT = 2.0**-53
CLOSE = 1e-7  # relative: how far what is proven may lie above what is reached
CELLS = 2_000_000  # terms of sums held at once
MOST_ROUNDS = 60
MOST_INTERVALS = 4_000_000  # left open at once: beyond, what bounds them is what is proven


@dataclass(frozen=True)
class LargestRho:
    """The largest rho of any pair: `reached` by this pair at this order, and `proven` for all pairs and orders."""

    proven: float
    reached: float
    secret: int = -1
    other: int = -1
    order: float = 1.0


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Ordered pairs of rows with what bounds them."""

    one: Integers
    two: Integers
    square: Floats  # of the distance
    spread: Floats  # R
    top: Floats  # max(l)
    start: Floats  # f(0)

    def select(self, which: Integers) -> _Pairs:
        one, two = self.one[which], self.two[which]
        return _Pairs(one, two, self.square[which], self.spread[which], self.top[which], self.start[which])


def largest_rho(distribution: Floats, apart: Floats) -> LargestRho:
    """Return the least rho with D_a(row i || row j) <= a rho apart_ij^2 for all orders a > 1, with its proof.

    `law` has rows that sum to one up to rounding; pairs at an infinite distance are left out.
    """
    distribution = distribution[:, (distribution > 0.0).any(axis=0)]
    logs = np.log(distribution, out=np.zeros_like(distribution), where=distribution > 0.0)
    singular = _singular(distribution, apart)
    if singular is not None:
        return LargestRho(np.inf, np.inf, *singular, 1.0)
    pairs = _bound_pairs(distribution, logs, apart)
    if pairs.one.size == 0:
        return LargestRho(0.0, 0.0)
    error = _rounding(distribution, logs, pairs.spread) / pairs.square
    found = pairs.start / pairs.square - error
    at = int(np.argmax(found))
    best = LargestRho(0.0, max(0.0, float(found[at])), int(pairs.one[at]), int(pairs.two[at]), 1.0)
    return _search_orders(distribution, logs, pairs, best)


def _singular(distribution: Floats, apart: Floats) -> tuple[int, int] | None:
    """Return two rows of which one gives a report that the other never gives, or that differ at distance zero."""
    possible = distribution > 0.0
    for i in range(len(distribution)):
        counted = np.isfinite(apart[i]) & (np.arange(len(distribution)) != i)
        other = (possible[i] & ~possible).any(axis=1) | (
            (apart[i] == 0.0) & (distribution != distribution[i]).any(axis=1)
        )
        bad = np.flatnonzero(counted & other)
        if bad.size:
            return i, int(bad[0])
    return None


def _bound_pairs(distribution: Floats, logs: Floats, apart: Floats) -> _Pairs:
    n = len(distribution)
    parts = []
    for i in range(n):
        others = np.flatnonzero(np.isfinite(apart[i]) & (apart[i] > 0.0) & (np.arange(n) != i))
        if others.size == 0:
            continue
        gap = logs[i] - logs[others]
        # sum p l = sum p (l + e^-l - 1), whose terms are not below 0
        start = (distribution[i] * (gap + np.expm1(-gap))).sum(axis=1)
        top, bottom = gap.max(axis=1), gap.min(axis=1)
        parts.append((np.full(others.size, i), others, apart[i, others] ** 2, top - bottom, top, start))
    if not parts:
        nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0)
        return _Pairs(nothing, nothing, none, none, none, none)
    return _Pairs(*(np.concatenate([part[k] for part in parts]) for k in range(6)))


def _search_orders(distribution: Floats, logs: Floats, pairs: _Pairs, best: LargestRho) -> LargestRho:
    """Halve intervals of orders until none may hold more than what was found, up to CLOSE."""
    error = _rounding(distribution, logs, pairs.spread)
    limit = best.reached * (1.0 + CLOSE)
    ceiling = np.minimum(pairs.spread**2 / 8.0, pairs.top) + error
    proven = max(limit, best.reached)
    keep = np.flatnonzero(ceiling / pairs.square > limit)
    pairs, error = pairs.select(keep), error[keep]
    low = np.zeros(len(keep))
    with np.errstate(divide="ignore"):
        high = np.maximum(pairs.top / np.maximum(limit * pairs.square, 1e-300), 1.0)  # beyond, f <= max(l) / (1 + s)
    high = np.minimum(high, 1e9)
    proven = max(proven, float((pairs.top / (1.0 + high) / pairs.square).max(initial=0.0)))
    at_low, at_high = pairs.start, _values(distribution, logs, pairs, high)
    for _ in range(MOST_ROUNDS):
        if low.size > MOST_INTERVALS:
            break
        if low.size == 0:
            return LargestRho(proven, best.reached, best.secret, best.other, best.order)
        middle = 0.5 * (low + high)
        at_middle = _values(distribution, logs, pairs, middle)
        found = (at_middle - error) / pairs.square
        at = int(np.argmax(found))
        if found[at] > best.reached:
            best = LargestRho(0.0, float(found[at]), int(pairs.one[at]), int(pairs.two[at]), 1.0 + float(middle[at]))
        limit = best.reached * (1.0 + CLOSE)
        halves = [(low, middle, at_low, at_middle), (middle, high, at_middle, at_high)]
        selected: list[tuple[Integers, tuple[Floats, ...]]] = []
        for half in halves:
            bound = _upper_bound(half, pairs, error) / pairs.square
            closed = bound <= limit + 3.0 * error / pairs.square  # doubles tell no more
            open_ = np.flatnonzero(~closed)
            proven = max(proven, float(bound[closed].max(initial=0.0)))
            selected.append((open_, tuple(part[open_] for part in half)))
        which = np.concatenate([selected[0][0], selected[1][0]])
        low, high, at_low, at_high = (np.concatenate([selected[0][1][k], selected[1][1][k]]) for k in range(4))
        pairs, error = pairs.select(which), error[which]
    left = _upper_bound((low, high, at_low, at_high), pairs, error) / pairs.square
    return LargestRho(max(proven, float(left.max())), best.reached, best.secret, best.other, best.order)


def _upper_bound(half: tuple[Floats, Floats, Floats, Floats], pairs: _Pairs, error: Floats) -> Floats:
    """Return a bound of f between two orders: by its curvature, by the end of the range, and by the variance."""
    low, high, at_low, at_high = half
    curved = np.maximum(at_low, at_high) + (high - low) ** 2 * pairs.spread**4 / 768.0
    return np.asarray(np.minimum(np.minimum(curved, pairs.top / (1.0 + low)), pairs.spread**2 / 8.0) + error)


def _values(distribution: Floats, logs: Floats, pairs: _Pairs, orders: Floats) -> Floats:
    """Return f(s) of every pair at its own s > 0."""
    found = np.empty(len(orders))
    step = max(1, CELLS // distribution.shape[1])
    for start in range(0, len(orders), step):
        part = slice(start, start + step)
        s = orders[part, None]
        x = s * (logs[pairs.one[part]] - logs[pairs.two[part]])
        p, largest = distribution[pairs.one[part]], x.max(axis=1, keepdims=True)
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.log1p((p * np.expm1(np.minimum(x, 2.0))).sum(axis=1))
        far = largest[:, 0] + np.log((p * np.exp(x - largest)).sum(axis=1))
        small = np.abs(x).max(axis=1) <= 1.0
        found[part] = np.where(small, near, far) / (s[:, 0] * (1.0 + s[:, 0]))
    return found


def _rounding(distribution: Floats, logs: Floats, spread: Floats) -> Floats:
    """Return by how much f in doubles may be off."""
    size, m = float(np.abs(logs).max()), distribution.shape[1]
    return np.asarray(3.0 * UNIT * (8.0 * size + (m + 8.0) * (spread + 2.0)))
