"""Independent mechanisms on separate parts of one secret, such as a place, an hour and a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from metricdp import constants
from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, Mechanism, mechanism_card
from metricdp.mechanisms.kind import Distribution, RadiusBound, declare_kind
from metricdp.metrics import Metric, Weighted, sum_of
from metricdp.randomness import Randomness, source_of
from metricdp.registry import Many, Part
from metricdp.spaces import ProductSpace


@dataclass(frozen=True, eq=False)
class ProductMechanism:
    """Every part of a secret goes through its own mechanism, with randomness of its own.

        Pr[M(x) = y] = prod_i Pr[M_i(x_i) = y_i]

    Guarantee: ln Pr[M(x)=y] - ln Pr[M(x')=y] <= sum_i epsilon_i d_i(x_i, x'_i) + sum_i slack_i. It is stated as
    epsilon 1 for the metric sum_i epsilon_i d_i, and no smaller guarantee holds where the parts' own are tight.
    """

    parts: tuple[Mechanism, ...]
    guarantee: Guarantee
    certificate: Certificate

    def __repr__(self) -> str:
        return f"ProductMechanism({', '.join(repr(part) for part in self.parts)})"

    @cached_property
    def inputs(self) -> Any:
        return ProductSpace(tuple(part.inputs for part in self.parts), self._metric)

    @cached_property
    def outputs(self) -> Any:
        return ProductSpace(tuple(part.outputs for part in self.parts), self._metric)

    @property
    def _metric(self) -> Metric:
        metric = self.guarantee.metric
        if not sum_of(metric):
            raise InvalidInput(
                "the guarantee of a product must be in a Weighted metric with one group of columns a part."
            )
        return metric

    _repr_html_ = mechanism_card

    def sample(self, secrets: Sequence[Any], /, *, rng: Randomness = None) -> tuple[Any, ...]:
        """Return the reports part by part, for secrets given part by part."""
        source = None if rng is None else source_of(rng)
        columns = self._split(secrets, "secrets")
        return tuple(part.sample(values, rng=source) for part, values in zip(self.parts, columns, strict=True))

    def log_density(self, secrets: Sequence[Any], reports: Sequence[Any], /) -> Floats:
        """Return the sum of the parts' log densities: the log of their product."""
        pairs = zip(self.parts, self._split(secrets, "secrets"), self._split(reports, "reports"), strict=True)
        return np.asarray(sum(part.log_density(values, drawn) for part, values, drawn in pairs))

    def _split(self, values: Sequence[Any], name: str) -> list[Any]:
        parts = list(values)
        if len(parts) != len(self.parts) or len({len(part) for part in parts}) != 1:
            raise InvalidInput(
                f"`{name}` must be {len(self.parts)} arrays of equal length, one per part of the product."
            )
        return parts

    def _facet_accuracy(self, levels: Floats) -> RadiusBound:
        raise InvalidInput("a product has one radius for every part: ask for those of `mechanism.parts`.")

    def _facet_distribution(self) -> Distribution:
        raise InvalidInput("a product has one distribution for every part: ask for those of `mechanism.parts`.")


def product_metric(parts: Sequence[Mechanism]) -> Weighted:
    """Return sum_i epsilon_i d_i over groups of columns, in the order of the parts."""
    groups, start = [], 0
    for part in parts:
        end = start + part.inputs.dimension
        groups.append((part.guarantee.metric, range(start, end), part.guarantee.epsilon))
        start = end
    return Weighted(groups)


def _product(*, parts: tuple[Mechanism, ...], certificate: Certificate, **rest: Any) -> ProductMechanism:
    if any(part.certificate.at_most for part in parts):
        loss = sum(part.guarantee.epsilon * part.certificate.loss for part in parts)
        certificate = replace(certificate, loss=loss, at_most=True)
    return ProductMechanism(parts=parts, certificate=certificate, **rest)


def parts_of(mechanism: Mechanism) -> tuple[Mechanism, ...]:
    """Return the parts of a product; any other mechanism is its own only part."""
    return mechanism.parts if isinstance(mechanism, ProductMechanism) else (mechanism,)


declare_kind(
    ProductMechanism,
    "product",
    "several mechanisms side by side, one for each part of the secret",
    {"parts": Many(Part("mechanism"), least=2, most=constants.LARGEST_PARTS)},
    since=2,
    make=_product,
)
