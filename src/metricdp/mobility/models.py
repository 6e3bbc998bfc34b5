"""Priors and transition probabilities from walks: any order, smoothed, on request under differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_codes, as_floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.mobility.traces import Walks
from metricdp.randomness import Randomness, open_uniform, source_of

MOST_CELLS = 20_000_000  # counts are kept dense, so that private noise covers the zeros as well


@dataclass(frozen=True)
class ModelCost:
    """What estimating a model cost: ordinary differential privacy of whole trips, on top of every report's epsilon."""

    epsilon: float
    protects: str
    mechanism: str


@dataclass(frozen=True, eq=False)
class Mobility:
    """How places follow each other. `counts[h_k, ..., h_1, x]` counts windows, the oldest place first.

    The probability of the next place backs off to shorter histories:

        P_j(x | h_1..h_j) = (n(h_1..h_j, x) + a P_{j-1}(x | h_1..h_{j-1})) / (n(h_1..h_j) + a),   P_{-1} uniform,

    and is confined to the steps in `allowed`, which is public (a map and a speed limit).
    """

    counts: Floats
    allowed: Booleans
    smoothing: float
    spent: ModelCost | None = None

    @property
    def order(self) -> int:
        """How many places back the next place may depend on."""
        return self.counts.ndim - 1

    @property
    def size(self) -> int:
        return len(self.allowed)

    @cached_property
    def prior(self) -> Floats:
        """How often each place is visited, smoothed."""
        visits = self._lower_order(0) + self.smoothing / self.size
        return np.asarray(visits / visits.sum())

    def _lower_order(self, order: int) -> Floats:
        """Counts of windows of `order` + 1 places: the older places are summed away."""
        return np.asarray(self.counts.sum(axis=tuple(range(self.order - order))))

    def next(self, histories: ArrayLike) -> Floats:
        """Return P(next place | history), one row per history; the current place comes first in a history."""
        rows = np.atleast_2d(as_codes(histories, self.size, "histories"))
        allowed = self.allowed[rows[:, 0]]
        uniform = np.where(allowed, 1.0 / self.size, 0.0)
        result = uniform / uniform.sum(axis=1, keepdims=True)
        for order in range(min(self.order, rows.shape[1]) + 1):
            index = tuple(rows[:, lag] for lag in range(order - 1, -1, -1))
            counts = np.where(allowed, self._lower_order(order)[index], 0.0)
            result = (counts + self.smoothing * result) / (counts.sum(axis=1, keepdims=True) + self.smoothing)
        return np.asarray(result)

    @cached_property
    def transitions(self) -> Floats:
        """The matrix of first-order transition probabilities."""
        return self.next(np.arange(self.size)[:, None])

    def history_prior(self, histories: ArrayLike) -> Floats:
        """Return the probability of each history (current place first), normalised over the ones given."""
        rows = np.atleast_2d(as_codes(histories, self.size, "histories"))
        probability = self.prior[rows[:, -1]].copy()
        for lag in range(rows.shape[1] - 2, -1, -1):
            probability *= self.next(rows[:, lag + 1 :])[np.arange(len(rows)), rows[:, lag]]
        return np.asarray(probability / probability.sum())


def reachable_steps(distances: ArrayLike, *, step_seconds: float, most_kmh: float, slack_km: float = 0.0) -> Booleans:
    """Return which steps are possible: two places no farther apart than the speed limit allows, plus the snapping."""
    apart = as_floats(distances, "distances")
    return np.asarray(apart <= most_kmh * step_seconds / 3600.0 + slack_km)


def histories_of(allowed: ArrayLike, lags: int) -> Integers:
    """Return every history of possible steps, the current place first: the public domain of augmented secrets."""
    steps = np.asarray(allowed, dtype=bool)
    rows = np.arange(len(steps))[:, None]
    for _ in range(lags):
        before = [np.flatnonzero(steps[:, oldest]) for oldest in rows[:, -1]]
        repeats = np.array([len(found) for found in before])
        rows = np.column_stack([np.repeat(rows, repeats, axis=0), np.concatenate(before)])
    return rows.astype(np.int64)


def estimate(
    walks: Walks,
    allowed: ArrayLike,
    *,
    order: int = 1,
    smoothing: float = 1.0,
    private_epsilon: float | None = None,
    most_per_trip: int = 20,
    rng: Randomness = None,
) -> Mobility:
    """Count windows of `order` + 1 places and return the model.

    With `private_epsilon` the counts are released under that budget for whole trips: a trip gives at most
    `most_per_trip` windows (evenly chosen), so one trip changes the counts by at most that much in total, and every
    count of a possible window gets two-sided geometric noise with ratio exp(-epsilon / most_per_trip), zeros
    included. Negative counts are then set to zero, which is post-processing. The budget is in `spent`.
    """
    steps = np.asarray(allowed, dtype=bool)
    size = len(steps)
    if steps.shape != (size, size) or order < 0 or size ** (order + 1) > MOST_CELLS:
        raise InvalidInput(
            f"`order` {order} over {size} places needs {float(size) ** (order + 1):.3g} counts, "
            f"at most {MOST_CELLS:.0g}; use fewer places or a lower order."
        )
    if len(walks) and int(walks.codes.max()) >= size:
        raise InvalidInput(f"the walks go to place {int(walks.codes.max())}, but `allowed` has only {size} places.")
    rows, ends = walks.windows(order + 1)
    if len(rows) == 0:
        raise InvalidInput(f"no trip has {order + 1} steps in a row, which order {order} counts; take a lower order.")
    keep = steps[rows[:, 1:], rows[:, :-1]].all(axis=1)
    rows, ends = rows[keep], ends[keep]
    if private_epsilon is not None:
        rows = rows[_limit_positions(walks.owner[ends], most_per_trip)]
    shape = (size,) * (order + 1)
    index = np.ravel_multi_index(tuple(rows[:, ::-1].T), shape)
    counts = np.bincount(index, minlength=size ** (order + 1)).astype(np.float64).reshape(shape)
    spent = None
    if private_epsilon is not None:
        rate = as_positive(private_epsilon, "private_epsilon") / most_per_trip
        possible = histories_of(steps, order)
        at = tuple(possible[:, lag] for lag in range(order, -1, -1))
        noise = _geometric(len(possible), rate, rng) - _geometric(len(possible), rate, rng)
        counts[at] = np.maximum(counts[at] + noise, 0.0)
        spent = ModelCost(
            private_epsilon, "one whole trip", f"geometric noise on counts, {most_per_trip} windows a trip"
        )
    return Mobility(counts, steps, as_positive(smoothing, "smoothing"), spent)


def _limit_positions(trips: Integers, most: int) -> Integers:
    """Return at most `most` positions per trip, evenly spread."""
    edges = pairwise([0, *(np.flatnonzero(np.diff(trips)) + 1).tolist(), len(trips)])
    spread = [np.linspace(start, end - 1, min(most, end - start)) for start, end in edges]
    return np.unique(np.concatenate(spread).astype(np.int64))


def _geometric(count: int, rate: float, rng: Randomness) -> Floats:
    """Return whole numbers g >= 0 with Pr[g] proportional to exp(-rate g)."""
    return np.floor(-np.log(open_uniform(count, source_of(rng))) / rate)
