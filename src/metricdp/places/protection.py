"""Protection sets: a public partition of places in which every best guess errs by a stated distance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_positive, as_probabilities
from metricdp.errors import Infeasible, InvalidInput
from metricdp.places.elastic import DENSE, path_space
from metricdp.spaces import FiniteSpace
from metricdp.units import DIAMETER

WELL_ORDERED = 600  # places up to which the leaves of the tree are put in the best order
ROUNDING = 1e-10  # the share by which errors are larger than asked for


@dataclass(frozen=True, eq=False)
class ProtectionSets:
    """A partition of places into sets that hide their members, and the metric that counts in their diameters.

    Attributes:
        space: The places; distances count in diameters of protection sets, epsilon is per diameter.
        labels: The set of every place.
        diameters: The largest distance within every set, in the unit of the places.
        errors: What the best guess of somebody who is told the set, and sees no report, errs by on average.
        epsilon: The epsilon that `space` is meant for.
        least: What the best guess of a place of every set errs by after any report at that epsilon, at least: the
            largest error that one of its places asked for.
    """

    space: FiniteSpace
    labels: Integers
    diameters: Floats
    errors: Floats
    epsilon: float
    least: Floats

    def __len__(self) -> int:
        return len(self.diameters)

    def __repr__(self) -> str:
        return (
            f"ProtectionSets({len(self)} sets of {len(self.labels)} places, diameters {self.diameters.min():.4g} to "
            f"{self.diameters.max():.4g}, error at least {self.least.min():.4g}"
            + (f" to {self.least.max():.4g}" if self.least.max() > self.least.min() else "")
            + f" at epsilon {self.epsilon:g} per diameter)"
        )


def protection_sets(
    space: FiniteSpace, epsilon: float, *, error: ArrayLike, prior: ArrayLike | None = None
) -> ProtectionSets:
    """Divide places into protection sets, for a ratio and a bound on the error of every guess at once.

    With E(S) the error of the best guess of a place of S under the prior, sets are such that E(S) >= exp(epsilon)
    error, runs along the leaves of a tree of complete linkage, and of least mean diameter D. `error` is one number, or
    one for every place where some are more sensitive than others: a set then keeps the largest of its places. The
    metric is

        d'(x, x') = the shortest path of steps  d(x, x') min(1 / D(S), 1 / D(S')),    S and S' the sets of x and x'.

    Guarantee: with any mechanism of `epsilon` on `.space`, two places of one set differ by exp(epsilon) at most and
    any two by exp(epsilon d'); and after every report, the best guess of somebody who has this prior, and is even told
    the set, errs by `error` on average at least: given a report, a place of S is at least exp(-epsilon) times as
    likely as before, so that E falls by that factor at most. Guesses are places; anywhere between them half of `error`
    holds. The prior must be public; the bound is for this prior.

    Errors belong to places and are public, like the prior: one that somebody chooses by where they are would tell it.

    PIVE as published chooses a set for each secret instead. Sets then overlap, two members of one set use different
    diameters, and neither half of its guarantee holds.

    References: Yu, Liu and Pu (2017); Zhang, Duan, Chen and Zhong (2021), who found the flaw.
    """
    level, count = as_positive(epsilon, "epsilon"), len(space)
    if not 2 <= count <= DENSE:
        raise InvalidInput(f"protection sets are made of 2 to {DENSE:,} places, got {count:,}.")
    weights = np.full(count, 1.0 / count) if prior is None else as_probabilities(prior, count)
    wanted = _errors(error, count)
    needed = wanted * math.exp(level) * (1.0 + ROUNDING)
    blind = float((weights @ space.distances).min())
    # told the set, nobody errs by more than without: blind >= sum over the sets of p(S) E(S) >= sum_x p(x) needed(x)
    if blind < float(weights @ needed):
        raise Infeasible(
            f"no protection sets: exp({level:g}) times the error {float(weights @ wanted):g} is "
            f"{float(weights @ needed):.6g}, and even without a report the best guess among all places errs by "
            f"{blind:.6g} only. Ask for a smaller `error` or `epsilon`."
        )
    labels = _optimal_sets(space.distances, weights, needed)
    if labels is None and blind < needed.max():
        place = int(needed.argmax())
        raise Infeasible(
            f"no protection sets were found: the place {place} asks for an error of {wanted[place]:g}, exp({level:g}) "
            f"times which is {needed[place]:.6g}, and the best guess among all places errs by {blind:.6g}. Ask for a "
            "smaller `error` there, or a smaller `epsilon`."
        )
    labels = np.zeros(count, dtype=np.int64) if labels is None else labels  # all are one set
    sets = int(labels.max()) + 1
    same = labels[:, None] == labels[None]
    widths = np.where(same, space.distances, 0.0).max(axis=1)
    diameters, errors, least = np.zeros(sets), np.empty(sets), np.zeros(sets)
    np.maximum.at(diameters, labels, widths)
    np.maximum.at(least, labels, wanted)
    for one in range(sets):
        inside = np.where(labels == one, weights, 0.0)
        errors[one] = float((inside @ space.distances).min() / inside.sum())
    first, second = np.triu_indices(count, 1)
    widest = np.maximum(diameters[labels[first]], diameters[labels[second]])
    scaled = path_space(space, first, second, space.distances[first, second] / widest, DIAMETER, "")
    return ProtectionSets(scaled, labels, diameters, errors, level, least)


def _errors(error: ArrayLike, count: int) -> Floats:
    """Return the error that every place asks for."""
    wanted = np.asarray(error, dtype=np.float64)
    if wanted.ndim == 0:
        return np.full(count, as_positive(float(wanted), "error"))
    if wanted.shape != (count,) or not np.all(np.isfinite(wanted)) or np.any(wanted <= 0):
        raise InvalidInput(f"`error` must be one positive number or {count} of them, one a place, got {error!r:.60}.")
    return wanted


def _optimal_sets(distances: Floats, weights: Floats, needed: Floats) -> Integers | None:
    """Return the sets: runs of the leaves of the tree of complete linkage, of least mean diameter, that err by enough.

    From every start runs grow until two sets fit into them: their union would be no better than the two. Then the
    best cut of all places up to each, from the first on.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage

    count = len(distances)
    tree = linkage(distances[np.triu_indices(count, 1)], "complete", optimal_ordering=count <= WELL_ORDERED)
    order = leaves_list(tree)
    apart, mass = distances[order][:, order], weights[order]
    runs = _Runs(apart, mass, needed[order])
    alike = bool(needed.min() == needed.max())
    first = np.full(count, count + 1)
    for start in range(count):
        first[start] = runs.first(start)
        if alike and first[start] > count:  # then no later one is a set either, but for chance
            break
    best, came = np.full(count + 1, np.inf), np.zeros(count + 1, dtype=np.int64)
    best[0] = 0.0
    for start in range(count):
        if not math.isfinite(best[start]) or first[start] > count:
            continue
        second = int(first[first[start]]) if first[start] < count else count
        ends, costs = runs.sets(start, min(second, count))
        better = best[start] + costs < best[ends]
        best[ends[better]], came[ends[better]] = best[start] + costs[better], start
    if not math.isfinite(best[count]):
        return None
    labels, end, sets = np.zeros(count, dtype=np.int64), count, 0
    while end > 0:
        labels[order[came[end] : end]] = sets
        end, sets = int(came[end]), sets + 1
    return labels


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of places in an order: which of them err by enough, and what they cost."""

    apart: Floats
    mass: Floats
    needed: Floats

    def first(self, start: int) -> int:
        """Return the end of the shortest run from a start that is a set; more than there are where none is."""
        width = 8
        while True:
            end = min(start + width, len(self.mass))
            good = np.flatnonzero(self._enough(start, end))
            if len(good):
                return start + int(good[0]) + 1
            if end == len(self.mass):
                return end + 1
            width *= 2

    def sets(self, start: int, end: int) -> tuple[Integers, Floats]:
        """Return the ends up to one at which runs from a start are sets, and mass times diameter of each."""
        good = self._enough(start, end)
        inside = np.tril(self.apart[start:end, start:end]).max(axis=1)
        cost = np.cumsum(self.mass[start:end]) * np.maximum.accumulate(inside)
        return start + 1 + np.flatnonzero(good), np.asarray(cost[good])

    def _enough(self, start: int, end: int) -> Booleans:
        """Tell for every run from a start, up to an end, whether its best guess among all places errs by enough."""
        guesses = np.cumsum(self.mass[start:end, None] * self.apart[start:end], axis=0).min(axis=1)
        total = np.cumsum(self.mass[start:end])
        most = np.maximum.accumulate(self.needed[start:end])
        return np.asarray((total > 0) & (guesses >= most * total))
