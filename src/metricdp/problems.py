"""What is asked: secrets, epsilon, reports, loss and prior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp import wording
from metricdp.arrays import Floats, as_matrix, as_positive, as_probabilities, frozen
from metricdp.cards import card
from metricdp.errors import InvalidInput
from metricdp.spaces import Augmented, FiniteSpace

SHOWN = 1_000_000  # distances that are computed for the sake of a description


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A mechanism to be designed: from `inputs` to `outputs`, epsilon per unit of distance, least loss.

    `loss[i, k]` is what it costs to report k when the secret is i; it defaults to the distance. `prior[i]` is how
    likely the secret i is; it defaults to uniform. `radius` limits the promise, on purpose, to pairs this close.
    Whole matrices (`loss`, `cost`, `log_ratios`) are computed when they are first asked for.
    """

    inputs: FiniteSpace
    epsilon: float
    outputs: FiniteSpace
    prior: Floats
    radius: float | None
    _loss: Floats | None

    def __init__(
        self,
        inputs: FiniteSpace | Augmented,
        epsilon: float,
        *,
        outputs: FiniteSpace | None = None,
        loss: ArrayLike | None = None,
        prior: ArrayLike | None = None,
        radius: float | None = None,
    ) -> None:
        inputs = inputs.space if isinstance(inputs, Augmented) else inputs
        if not isinstance(inputs, FiniteSpace):
            raise InvalidInput(f"`inputs` must be a FiniteSpace, got {type(inputs).__name__}.")
        reports = inputs if outputs is None else outputs
        if not isinstance(reports, FiniteSpace):
            raise InvalidInput(f"`outputs` must be a FiniteSpace, got {type(reports).__name__}.")
        n, m = len(inputs), len(reports)
        if loss is None:
            inputs.refuse_other(reports)
        costs = None if loss is None else frozen(as_matrix(loss, "loss", (n, m)))
        weights = np.full(n, 1.0 / n) if prior is None else as_probabilities(prior, n)
        values: dict[str, Any] = {
            "inputs": inputs,
            "epsilon": as_positive(epsilon, "epsilon"),
            "outputs": reports,
            "_loss": costs,
            "prior": frozen(weights),
            "radius": None if radius is None else as_positive(radius, "radius"),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def loss(self) -> Floats:
        """What it costs to report k when the secret is i, as a matrix."""
        given: Floats | None = self._loss
        return frozen(self.inputs.distances_to(self.outputs)) if given is None else given

    @cached_property
    def cost(self) -> Floats:
        """prior[i] * loss[i, k], what one unit of probability costs."""
        return frozen(self.prior[:, None] * self.loss)

    @cached_property
    def log_ratios(self) -> Floats:
        """epsilon * distance for every pair of secrets; infinite for pairs beyond `radius`, which stay unprotected."""
        ratios = self.epsilon * self.inputs.distances
        if self.radius is not None:
            ratios = np.where(self.inputs.distances <= self.radius, ratios, np.inf)
        return frozen(ratios)

    def __repr__(self) -> str:
        return "Problem(" + ", ".join(f"{name}: {value}" for name, value in self._facts()) + ")"

    def _repr_html_(self) -> str:
        return card("Problem", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        """Return what is asked, in words; no arrays."""
        facts = [
            ("secrets", f"{len(self.inputs):,}"),
            ("reports", "the same" if self.outputs is self.inputs else f"{len(self.outputs):,}"),
            ("epsilon", wording.epsilon(self.epsilon, self.inputs.unit)),
            ("metric", type(self.inputs.metric).__name__),
            ("loss", self._losses_in_words()),
            ("prior", "uniform" if np.ptp(self.prior) == 0 else f"{self.prior.min():.3g} to {self.prior.max():.3g}"),
        ]
        if self.radius is not None:
            facts.append(("protects", f"pairs within {wording.distance(self.radius, self.inputs.unit, 'down')}"))
        return facts

    def _losses_in_words(self) -> str:
        if self._loss is None and len(self.inputs) * len(self.outputs) > SHOWN:
            return "the distance"
        return f"{self.loss.min():.4g} to {self.loss.max():.4g}"
