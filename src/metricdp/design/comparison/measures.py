"""What a comparison counts, and how it is found: exactly from a table, otherwise by draws with an interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats, Integers, as_matrix, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.messages import Objective
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

CONFIDENCE = 0.95
LEAST_DRAWS = 8  # a secret, or there is no spread to see
Draw = Callable[[Integers, np.random.Generator], Integers]  # codes of secrets in, codes of reports out


@dataclass(frozen=True, eq=False)
class Measure:
    """One loss to compare by: what a report costs (None: the distance), on average over the prior or at worst.

    `loss` is a matrix of all places, a function of two rows of points, or None.
    """

    name: str = "distance"
    objective: Objective = "expected"
    loss: Any = None
    unit: str = ""
    about: str = "the distance from the truth to the report"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput(f"the name of a measure must be text, such as 'time', got {type(self.name).__name__}.")
        if not isinstance(self.objective, str) or self.objective not in get_args(Objective):
            given = repr(self.objective) if isinstance(self.objective, str) else type(self.objective).__name__
            raise InvalidInput(
                f"`objective` of a measure must be 'expected' or 'worst', got {given}. What a report costs, a "
                "matrix or a function, is given as `loss`: Measure('time', loss=matrix)."
            )
        if self.loss is not None and not callable(self.loss):
            set_fields(self, loss=frozen(as_matrix(self.loss, "loss")))

    @property
    def words(self) -> str:
        """What the figures are."""
        return f"{messages.objective(self.objective)}: {self.about}" + (
            f", in {messages.units(self.unit)}" if self.unit else ""
        )

    def costs(self, space: FiniteSpace) -> Floats:
        """Return what every report costs every secret."""
        return Problem(space, 1.0, loss=self.loss).loss

    def pairs(self, space: FiniteSpace, secrets: Integers, reports: Integers) -> Floats:
        """Return what single reports cost single secrets, without a matrix."""
        return Problem(space, 1.0, loss=self.loss).losses(secrets, reports)


@dataclass(frozen=True)
class Figure:
    """A loss: exact, or measured on draws and then with an interval that holds it with 95 %."""

    loss: float
    low: float
    high: float
    draws: int = 0

    @property
    def exact(self) -> bool:
        """Whether it was computed rather than measured."""
        return self.draws == 0


def exact_figure(space: FiniteSpace, distribution: Floats, measure: Measure, prior: Floats | None) -> Figure:
    """Return the loss of a table of probabilities."""
    rows = (distribution * measure.costs(space)).sum(axis=1)
    mean = rows.mean() if prior is None else prior @ rows
    value = float(rows.max() if measure.objective == "worst" else mean)
    return Figure(value, value, value)


def simulated_figure(space: FiniteSpace, draw: Draw, measure: Measure, prior: Floats | None, draws: int) -> Figure:
    """Return the loss of a sampler on draws, every secret in turn, with an interval that holds it with 95 %.

    On average: sum_i prior_i mean_i with the variance sum_i prior_i^2 s_i^2 / k. At worst: the largest mean, between
    the largest lower and the largest upper end of intervals that hold for all secrets at once (Bonferroni).
    A simulation, hence seeded: the same comparison gives the same figures.
    """
    from scipy.special import ndtri

    size, generator = len(space), np.random.default_rng(11)
    each = max(LEAST_DRAWS, draws // size)
    some = np.arange(size)
    if measure.objective == "expected" and size * LEAST_DRAWS > draws:  # too many secrets: drawn by the prior
        some = generator.choice(size, size=max(2, draws), p=prior)
        costs = measure.pairs(space, some, draw(some, generator))
        middle, error = float(costs.mean()), float(costs.std(ddof=1) / np.sqrt(len(costs)))
    else:
        secrets = np.repeat(some, each)
        costs = measure.pairs(space, secrets, draw(secrets, generator)).reshape(size, each)
        means, errors = costs.mean(axis=1), costs.std(axis=1, ddof=1) / np.sqrt(each)
        if measure.objective == "worst":
            reach = float(ndtri(1.0 - (1.0 - CONFIDENCE) / (2.0 * size)))
            low, high = float((means - reach * errors).max()), float((means + reach * errors).max())
            return Figure(float(means.max()), max(0.0, low), high, costs.size)
        weights = np.full(size, 1.0 / size) if prior is None else prior
        middle, error = float(weights @ means), float(np.sqrt(np.square(weights * errors).sum()))
    reach = float(ndtri((1.0 + CONFIDENCE) / 2.0)) * error
    return Figure(middle, max(0.0, middle - reach), middle + reach, costs.size)
