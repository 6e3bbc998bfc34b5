"""What a shuffler adds: reports of many people without their names hide each of them better, approximately."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from metricdp.arrays import Floats, as_positive
from metricdp.errors import InvalidInput

MOST_PEOPLE = 10_000_000
LARGEST_EXPONENT = 700.0  # of e in doubles
TAIL = 1e-3  # the share of delta that is given away for clones in unlikely numbers
ROUNDING = 1e-11  # relative: more than the rounding of a sum of a binomial distribution
MARGIN = 1e-6  # relative: more than the rounding of the logarithms of its terms


def shuffled_epsilon(epsilon: float, people: int, *, distance: float, diameter: float, delta: float) -> float:
    """Return an e such that shuffled reports are (e, delta)-private for a change of one secret by `distance`.

    Everybody draws a report from one mechanism of `epsilon` (per unit of distance), on a space whose secrets lie at
    most `diameter` apart; a shuffler takes the names off and puts the reports into a random order. Then, for a person
    who moves from x to x' at most `distance` away, and whatever the other secrets are, for every set S of what can be
    seen

        Pr[S | x] <= exp(e) Pr[S | x'] + delta.

    This is APPROXIMATE privacy: with a probability of delta the ratio may be anything. It is never a pure guarantee,
    and the result is never above epsilon * distance, which is what the mechanism guarantees without a shuffler, at
    delta 0.

    With p = exp(epsilon distance), the two distributions of the person are mixtures p/(p+1), 1/(p+1) of two
    distributions U and V, and U + V is the sum of the two distributions; so every other person draws from (U + V) / 2
    with a probability of exp(-epsilon diameter) at least, whatever their secret: a clone. Everything else tells nothing
    about the person. What is left is to tell (A + 1, C - A) from (A, C - A + 1), with C ~ Binomial(people - 1,
    exp(-epsilon diameter)) and A ~ Binomial(C, 1/2), flipped with a probability of 1/(p+1): its delta is summed up
    exactly, and e found by bisection.

    References: Feldman, McMillan and Talwar (2021), Theorem 3.2, where distance and diameter are one.
    """
    pure = _check_epsilon(epsilon, people, distance, diameter)
    if not 0.0 < delta < 1.0:
        raise InvalidInput(f"`delta` must lie between 0 and 1, got {delta!r}.")
    distribution = _clones(int(people), math.exp(-epsilon * diameter), delta)
    low, high = 0.0, pure  # at high the mechanism itself keeps it
    while high - low > 1e-6 * pure:
        middle = (low + high) / 2
        low, high = (low, middle) if _delta(distribution, pure, middle) <= delta else (middle, high)
    return high


def shuffled_delta(epsilon: float, people: int, *, distance: float, diameter: float, level: float) -> float:
    """Return a delta at which shuffled reports are (level, delta)-private; see `shuffled_epsilon`."""
    pure = _check_epsilon(epsilon, people, distance, diameter)
    if as_positive(level, "level") >= pure:
        return 0.0
    return min(1.0, _delta(_clones(int(people), math.exp(-epsilon * diameter), 1e-12), pure, level))


def _check_epsilon(epsilon: float, people: int, distance: float, diameter: float) -> float:
    """Return what the mechanism guarantees at the distance, or refuse what cannot be shuffled."""
    pure = as_positive(epsilon, "epsilon") * as_positive(distance, "distance")
    if not distance <= diameter < np.inf:
        raise InvalidInput(
            f"`diameter` must be the largest distance of two secrets, at least `distance` {distance:g}, got "
            f"{diameter!r}."
        )
    if type(people) is bool or not isinstance(people, int | np.integer) or not 1 <= people <= MOST_PEOPLE:
        raise InvalidInput(f"`people` must be a whole number from 1 to {MOST_PEOPLE:,}, got {people!r}.")
    if pure > LARGEST_EXPONENT:
        raise InvalidInput(
            f"`epsilon` times `distance` must be at most {LARGEST_EXPONENT:g}, got {pure:g}: nothing is hidden there."
        )
    return pure


def _clones(people: int, share: float, delta: float) -> tuple[Floats, Floats, float]:
    """Return likely numbers of clones, their probabilities, and an upper bound of the probability of all others."""
    from scipy.special import gammaln, xlog1py, xlogy

    others = people - 1
    wide = math.log(2.0 / (TAIL * delta))
    reach = math.sqrt(3.0 * others * share * wide) + wide  # more than a Chernoff bound asks for
    first, last = max(0, math.floor(others * share - reach)), min(others, math.ceil(others * share + reach))
    counts = np.arange(first, last + 1, dtype=np.float64)
    logs = gammaln(others + 1.0) - gammaln(counts + 1.0) - gammaln(others - counts + 1.0)
    logs += xlogy(counts, share) + xlog1py(others - counts, -share)
    trials = np.float64(others)
    left = 1.0 - float(_above(np.float64(first), trials, share)) + float(_above(np.float64(last + 1), trials, share))
    return counts, np.exp(logs), max(left, 0.0)


def _above(least: Any, trials: Any, share: float) -> Any:
    """Return Pr[Binomial(trials, share) >= least]."""
    from scipy.special import betainc

    inside = (least > 0) & (least <= trials)
    some = betainc(np.where(inside, least, 1.0), np.where(inside, trials - least + 1.0, 1.0), share)
    return np.where(inside, some, np.where(least <= 0, 1.0, 0.0))


def _delta(distribution: tuple[Floats, Floats, float], pure: float, level: float) -> float:
    """Return sup_S Pr[S | x] - e^level Pr[S | x'], summed over the numbers of clones.

    Given C = c clones, the person with U's report and a of the clones too make b = a + 1, else b = a, of c + 1 reports:
    with f(b) = Pr[Binomial(c, 1/2) = b], P(b) = s f(b - 1) + (1 - s) f(b), Q(b) = (1 - s) f(b - 1) + s f(b) and s =
    p / (p + 1). f(b - 1) / f(b) = b / (c + 1 - b) rises with b, so that P - e^level Q is positive from some b on: with
    T(b) = Pr[Binomial(c, 1/2) >= b],  s T(b - 1) + (1 - s) T(b) - e^level ((1 - s) T(b - 1) + s T(b)).
    """
    counts, probabilities, left = distribution
    s, grown = 1.0 / (1.0 + math.exp(-pure)), math.exp(level)
    gain, cost = s - grown * (1.0 - s), grown * s - (1.0 - s)  # P - e^level Q > 0 where gain f(b - 1) > cost f(b)
    if gain <= 0.0:
        return 0.0
    # gain b > cost (c + 1 - b); the best of three neighbours, so that rounding of the border cannot matter
    border = np.ceil(cost * (counts + 1.0) / (gain + cost))
    best, most = np.zeros(len(counts)), np.zeros(len(counts))
    for shift in (-1.0, 0.0, 1.0):
        above, at = (_above(border + shift - less, counts, 0.5) for less in (1.0, 0.0))
        best = np.maximum(best, gain * above - cost * at)
        most = np.maximum(most, gain * above)
    return float((probabilities * (best + ROUNDING * most)).sum()) * (1.0 + MARGIN) + left
