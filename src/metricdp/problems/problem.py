"""A problem: secrets, epsilon, reports, loss and prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp import messages
from metricdp.arrays import Floats, as_codes, as_floats, as_matrix, as_positive, as_probabilities, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.metrics import protected_distance
from metricdp.problems.losses import FunctionLoss, Loss, MetricLoss, NearLoss, SpaceLoss, TableLoss
from metricdp.rendering import card, printable
from metricdp.spaces import Augmented, FiniteSpace, Near, require_space

ROWS = 1024  # secrets whose near losses are evaluated at a time


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A mechanism to be designed: from `inputs` to `outputs`, epsilon per unit of distance, least loss.

    `loss[i, k]` is what it costs to report k when the secret is i; it defaults to the distance. It may be given as a
    matrix, as a function loss(a, b) of two arrays of points, row by row like a metric (on a road network points are the
    numbers of crossings), as another `FiniteSpace` of the same places, whose distances it is (kilometres, where the
    guarantee is in levels), or as `NearLoss`, a sparse table of near pairs with bounds of all others. `prior[i]` is how
    likely the secret i is; it defaults to uniform. `radius` limits the guarantee, on purpose, to pairs this close; in
    a policy graph of several parts to pairs of one part at most.

    `outputs` are the candidate reports, the secrets themselves unless given: a space, or "finer", which adds places
    between them (`inputs.finer()`). More candidates cost time and no privacy, and may lower the loss: a lower bound of
    a certificate speaks about mechanisms with these reports alone.

    Whole matrices (`loss`, `cost`, `log_ratios`) are computed when they are first asked for. Where there are too many
    pairs, `losses`, `near_losses`, `least_beyond` and `most_beyond` say what a solver has to know without them.
    """

    inputs: FiniteSpace
    epsilon: float
    outputs: FiniteSpace
    prior: Floats
    radius: float | None
    _loss: Loss

    def __init__(
        self,
        inputs: FiniteSpace | Augmented,
        epsilon: float,
        *,
        outputs: FiniteSpace | Literal["finer"] | None = None,
        loss: ArrayLike | Callable[[Any, Any], Any] | FiniteSpace | NearLoss | None = None,
        prior: ArrayLike | None = None,
        radius: float | None = None,
    ) -> None:
        inputs = require_space(getattr(inputs, "finite", inputs), FiniteSpace, "inputs")
        if isinstance(outputs, str) and outputs != "finer":
            raise InvalidInput(f'`outputs` must be a space of candidate reports or "finer", got {outputs!r}.')
        outputs = inputs.finer() if isinstance(outputs, str) else outputs
        reports = inputs if outputs is None else require_space(outputs, FiniteSpace, "outputs")
        n = len(inputs)
        weights = np.full(n, 1.0 / n) if prior is None else as_probabilities(prior, n)
        rate, costs = as_positive(epsilon, "epsilon"), _loss_of(loss, inputs, reports)
        set_fields(self, inputs=inputs, epsilon=rate, outputs=reports, _loss=costs)
        set_fields(self, prior=frozen(weights), radius=_radius_of(radius, inputs))

    @cached_property
    def loss(self) -> Floats:
        """What it costs to report k when the secret is i, as a matrix."""
        return frozen(self._loss.matrix())

    @property
    def loss_is_distance(self) -> bool:
        """Whether the loss is the distance from the secret to the report, because none was given."""
        return isinstance(self._loss, MetricLoss)

    def losses(self, rows: ArrayLike, columns: ArrayLike, /) -> Floats:
        """Return the losses of the pairs (rows[e], columns[e]) of secrets and reports."""
        secrets = as_codes(rows, len(self.inputs), "rows")
        reports = as_codes(columns, len(self.outputs), "columns")
        if secrets.ndim != 1 or secrets.shape != reports.shape:
            raise InvalidInput(
                f"`rows` and `columns` must be lists of equal length, got shapes {secrets.shape} and {reports.shape}."
            )
        return self._loss.of(secrets, reports)

    def near_losses(self, near: Near, /) -> Floats:
        """Return the losses of the pairs that `inputs.near(radius, outputs)` lists, in its order."""
        self._check_near(near)
        if self.loss_is_distance:
            return near.distances
        result = np.empty(len(near.codes))
        for start in range(0, len(near), ROWS):
            some = slice(near.starts[start], near.starts[min(len(near), start + ROWS)])
            rows = np.repeat(np.arange(start, min(len(near), start + ROWS)), near.counts[start : start + ROWS])
            result[some] = self._loss.of(rows, near.codes[some].astype(np.int64))
        return result

    def least_beyond(self, near: Near, /) -> Floats:
        """Return for every secret a proven lower bound of the loss of all reports that are not in its row of `near`.

        `near` is what `inputs.near(radius, outputs)` lists: where the loss is the distance, the bound is the radius.
        Infinite where all reports are near.
        """
        self._check_near(near)
        return self._loss.least_beyond(near)

    def most_beyond(self, distribution: ArrayLike, /) -> Floats:
        """Return for every secret i a proven upper bound of sum_k q_k loss_ik, for one distribution of all reports.

        Where the loss is the distance and there are many pairs, by landmarks and the triangle inequality.
        """
        weights = as_floats(distribution, "distribution")
        if weights.shape != (len(self.outputs),) or np.any(weights < 0):
            raise InvalidInput(
                f"`distribution` must be {len(self.outputs)} non-negative numbers, got shape {weights.shape}."
            )
        return self._loss.most_beyond(weights)

    def _check_near(self, near: Near) -> None:
        if len(near) != len(self.inputs) or int(near.codes.max(initial=0)) >= len(self.outputs):
            raise InvalidInput("`near` must be the near pairs of this problem: inputs.near(radius, outputs).")

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
        return printable("Problem(" + ", ".join(f"{name}: {value}" for name, value in self._facts()) + ")")

    def _repr_html_(self) -> str:
        return card("Problem", self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        """Return what is asked, in words; no arrays."""
        facts = [
            ("secrets", f"{len(self.inputs):,}"),
            ("reports", "the same" if self.outputs is self.inputs else f"{len(self.outputs):,}"),
            ("epsilon", messages.epsilon(self.epsilon, self.inputs.unit)),
            ("metric", type(self.inputs.metric).__name__),
            ("loss", self._loss.words()),
            ("prior", "uniform" if np.ptp(self.prior) == 0 else f"{self.prior.min():.3g} to {self.prior.max():.3g}"),
        ]
        if self.radius is not None:
            facts.append(("protects", f"pairs within {messages.distance(self.radius, self.inputs.unit, 'down')}"))
        return facts


def _radius_of(radius: float | None, inputs: FiniteSpace) -> float | None:
    limits = [
        protected_distance(inputs.metric, inputs.points),
        None if radius is None else as_positive(radius, "radius"),
    ]
    return min((limit for limit in limits if limit is not None), default=None)


def _loss_of(loss: Any, inputs: FiniteSpace, outputs: FiniteSpace) -> Loss:
    shape = (len(inputs), len(outputs))
    if loss is None:
        inputs.refuse_other(outputs)
        return MetricLoss(inputs, outputs)
    if isinstance(loss, NearLoss):
        if loss.table.shape != shape:
            raise InvalidInput(f"`loss` must be a table of shape {shape[0]} x {shape[1]}, got {loss.table.shape}.")
        return loss
    if callable(getattr(loss, "near", None)):  # a space, whose distances it is
        if len(loss) != len(inputs) or outputs is not inputs:
            raise InvalidInput(
                f"a `loss` given as a space must be one of the {len(inputs):,} secrets, which are the reports too; it "
                f"has {len(loss):,} places."
            )
        return SpaceLoss(loss)
    if callable(loss):
        return FunctionLoss(loss, inputs, outputs)
    return TableLoss(frozen(as_matrix(loss, "loss", shape)))
