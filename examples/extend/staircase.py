"""A mechanism of one's own: the staircase mechanism for whole multiples of a step, such as ages, counts or minutes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

import metricdp as mdp
from metricdp.arrays import as_positive
from metricdp.design import BUILDERS, Builder
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    MECHANISMS,
    RATE,
    BinDensity,
    Certificate,
    Distribution,
    Kind,
    Lattice,
    LossFigures,
    RadiusBound,
    Theorem,
    refuse_rows,
)
from metricdp.metrics import Lp
from metricdp.randomness import source_of
from metricdp.registry import Part, Whole
from metricdp.spaces import Unbounded

CELLS = 100  # points of the lattice of reports in a step


@dataclass(frozen=True, eq=False)
class Staircase:
    """Report x + z pitch with Pr[z] proportional to exp(-epsilon step level(z)), level(z) = (|z| + n - k) // n.

    A step is n = `cells` points of the lattice, and the first stair is k = `inner` of them wide. Secrets are whole
    multiples of the step: two that are m steps apart differ by at most m levels at any report.

    Guarantee: epsilon * d, exactly: whole numbers are drawn, by coins that are exact.

    Reference: Geng and Viswanath (2014), the optimal mechanism in differential privacy.
    """

    inputs: Unbounded
    epsilon: float
    step: float
    cells: int
    inner: int
    guarantee: mdp.Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        if not isinstance(self.inputs.metric, Lp) or self.inputs.dimension != 1:
            raise InvalidInput("the staircase mechanism adds noise to one number, under mdp.Lp.")
        if not 1 <= self.inner <= self.cells:
            raise InvalidInput(f"`inner` must be from 1 to {self.cells}, got {self.inner}.")
        as_positive(self.epsilon, "epsilon")
        as_positive(self.step, "step")

    @property
    def outputs(self) -> Unbounded:
        return self.inputs

    @property
    def lattice(self) -> Lattice:
        return Lattice(self.step / self.cells)

    @property
    def fall(self) -> float:
        """What a level is less likely than the one before."""
        return math.exp(-self.epsilon * self.step)

    @property
    def total(self) -> float:
        """The sum of exp(-epsilon step level(z)) over all z."""
        return 2 * self.inner - 1 + 2 * self.cells * self.fall / (1.0 - self.fall)

    @property
    def limit(self) -> str:
        return f"secrets are whole multiples of {self.step:g}"

    def holds(self, rows: np.ndarray) -> np.ndarray:
        """Tell which secrets are whole multiples of the step."""
        steps = np.rint(rows[:, 0] / self.step)
        return (np.abs(steps) <= 2.0**40) & (steps * self.step == rows[:, 0])

    def sample(self, secrets, /, *, rng=None):
        """Return one report on the lattice for every secret."""
        rows = self.inputs.encode(secrets)
        refuse_rows(self.holds(rows), f"has no noise: {self.limit}")
        coins = _Coins(source_of(rng))
        steps = np.rint(rows[:, 0] / self.step).astype(int).tolist()
        return self.lattice.values(np.array([[at * self.cells + self._noise(coins)] for at in steps], dtype=float))

    def _noise(self, coins: _Coins) -> int:
        """Return z: a level is drawn, then a place on it; the first level is narrower and is drawn again that often."""
        slope = Fraction(self.epsilon) * Fraction(self.step)
        while True:
            level, place = coins.runs(slope), coins.below(2 * self.cells)
            if level:  # n places on either side
                away = self.inner + (level - 1) * self.cells + place % self.cells
                return away if place < self.cells else -away
            if place < 2 * self.inner - 1:
                return place - self.inner + 1

    def log_density(self, secrets, reports, /):
        """Return the log of the probability of each report, a point of the lattice."""
        away = np.rint(np.abs(self.inputs.encode(reports) - self.inputs.encode(secrets))[:, 0] / self.lattice.pitch)
        return -self.epsilon * self.step * self._level(away) - math.log(self.total)

    def _level(self, away: np.ndarray) -> np.ndarray:
        return (away + self.cells - self.inner) // self.cells


class _Coins:
    """Exact coins from cryptographic words: whole numbers below a limit, and runs of exp(-x) for a rational x."""

    def __init__(self, source) -> None:
        self._source, self._words = source, []

    def below(self, limit: int) -> int:
        """Return a uniform whole number below a limit of any size."""
        count = -(-limit.bit_length() // 64)
        while True:
            value = sum(self._word() << (64 * place) for place in range(count))
            if value < (1 << (64 * count)) // limit * limit:
                return value % limit

    def runs(self, x: Fraction) -> int:
        """Return how often in a row a coin of probability exp(-x) shows heads."""
        count = 0
        while self._falls(x):
            count += 1
        return count

    def _falls(self, x: Fraction) -> bool:
        """Toss a coin of probability exp(-x), one unit of x after the other (Canonne, Kamath and Steinke 2020)."""
        whole, rest = divmod(x, 1)
        return all(self._small(Fraction(1)) for _ in range(whole)) and self._small(rest)

    def _small(self, x: Fraction) -> bool:
        tosses = 1
        while self.below(x.denominator * tosses) < x.numerator:
            tosses += 1
        return tosses % 2 == 1

    def _word(self) -> int:
        if not self._words:
            self._words = self._source.words(1024).tolist()
        return self._words.pop()


def staircase(metric: Lp, epsilon: float, *, dimension: int | None = None, step: float = 1.0) -> Staircase:
    """Build the staircase mechanism: the least mean error of all noise on one number, but for its lattice."""
    rate, cells = as_positive(epsilon, "epsilon"), CELLS
    inner = max(1, round(cells / (1.0 + math.exp(0.5 * rate * step))))
    space, guarantee = Unbounded(metric, 1 if dimension is None else dimension), mdp.Guarantee(rate, metric)
    proof = Certificate(loss=0.0, lower_bound=0.0, method="staircase (theorem)", epsilon=rate)
    made = Staircase(space, rate, step, cells, inner, guarantee, proof)
    return replace(made, certificate=replace(proof, loss=loss(made).loss))


def theorem(mechanism: Staircase) -> Theorem:
    """Return the rate that the noise keeps: levels fall by epsilon a step, so less than that is broken."""
    shape = f"levels that fall by {mechanism.epsilon:.6g} d, of equal width but for the first; whole numbers drawn"
    return Theorem(mechanism.epsilon, shape)


def loss(mechanism: Staircase, spend=None) -> LossFigures:
    """Return the mean of |z| pitch, summed level by level."""
    n, k, b = mechanism.cells, mechanism.inner, mechanism.fall
    levels = 2 * n * (k + (n - 1) / 2) * b / (1 - b) + 2 * n * n * (b / (1 - b)) ** 2
    return LossFigures((k * (k - 1) + levels) / mechanism.total * mechanism.lattice.pitch)


def accuracy(mechanism: Staircase, levels: np.ndarray) -> RadiusBound:
    """Return the end of the first level beyond which less than the rest lies."""
    n, b = mechanism.cells, mechanism.fall
    beyond = np.log((1.0 - levels) * mechanism.total * (1.0 - b) / (2 * n)) / math.log(b) - 1.0
    stairs = np.maximum(0.0, np.ceil(beyond))
    return RadiusBound((mechanism.inner + stairs * n) * mechanism.lattice.pitch, mechanism.inputs.metric, False)


def distribution(mechanism: Staircase) -> Distribution:
    """Return the formula with its constants."""
    words = {
        "formula": "Pr[y | x] = constant * exp(-epsilon * step * floor((|y - x| / pitch + cells - inner) / cells))",
        "constant": 1.0 / mechanism.total,
        "per": "point of the lattice",
        "step": mechanism.step,
        "cells": mechanism.cells,
        "inner": mechanism.inner,
    }
    return Distribution(words, {"pitch": mechanism.lattice.pitch, "unit": mechanism.inputs.unit, "moves_at_most": 0.0})


def bins(mechanism: Staircase) -> BinDensity:
    """Return the density: a probability over the width of its cell."""
    pitch, slope = mechanism.lattice.pitch, mechanism.epsilon * mechanism.step

    def density(places: np.ndarray, points: np.ndarray) -> np.ndarray:
        away = np.rint(np.abs(places[:, None, 0] - points[None, :, 0]) / pitch)
        return np.exp(-slope * mechanism._level(away)) / (mechanism.total * pitch)

    return BinDensity(density, mechanism.epsilon)


def rescale(mechanism: Staircase):
    """Return what makes it at another epsilon, on the same secrets."""
    metric, step = mechanism.inputs.metric, mechanism.step
    return lambda epsilon: replace(staircase(metric, epsilon, step=step), inputs=mechanism.inputs)


MECHANISMS.declare(
    Kind(
        Staircase,
        "staircase",
        "noise in steps, for whole multiples of a step",
        {
            "inputs": Part("space", ("unbounded",)),
            "epsilon": RATE,
            "step": RATE,
            "cells": Whole(1, 2**20),
            "inner": Whole(1, 2**20),
        },
        since=2,
        theorem=theorem,
        accuracy=accuracy,
        distribution=distribution,
        rescale=rescale,
        loss=loss,
        bins=bins,
    )
)
BUILDERS.declare(
    Builder(
        "staircase",
        staircase,
        "the staircase mechanism, for whole multiples of a step",
        "metric",
        ("dimension",),
        own={"step": float},
    )
)

if __name__ == "__main__":
    ages = staircase(Lp(1), 0.5)
    print(ages.sample([[41.0], [67.0]]).shape, f"{ages.certificate.loss:.3f} against {1 / ages.epsilon:.3f} of Laplace")
