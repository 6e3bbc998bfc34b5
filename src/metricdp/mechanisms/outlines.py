"""Noise for curves and series under the discrete Frechet distance: the outline of a curve, not its vertices.

The outline is where a curve starts and ends and the box it lies in: 4 k numbers for vertices of k coordinates. A leash
of length d joins the two starts and the two ends, and every vertex of one curve to some vertex of the other, so none of
these numbers moves by more than d. Noise under the largest gap with rate epsilon on them therefore keeps epsilon times
the Frechet distance. Noise on the vertices themselves does not: the largest gap of two curves may be far above their
Frechet distance (the same walk, begun a minute later), and what is private in the larger distance tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Booleans, Floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Certificate, Guarantee, mechanism_card
from metricdp.mechanisms.kind import MECHANISMS, NOISE, Distribution, Kind, Reach
from metricdp.mechanisms.laplace import Lattice, VectorLaplace, noise_fields, on_lattice
from metricdp.metrics import Lp, exponent_of, points_are
from metricdp.randomness import Randomness
from metricdp.spaces import Unbounded, Under, given

CURVES: Under = ("Frechet", lambda metric: points_are(metric, "curves"))


@dataclass(frozen=True, eq=False)
class OutlineLaplace:
    """Noise of rate `epsilon` under the largest gap on the outline of a curve.

    Reports are the start, the end, the least and the largest number of every coordinate, in this order, each with
    noise: a least number may come out above the largest.

    Guarantee: epsilon times the discrete Frechet distance, exactly: an outline consists of numbers of the curve.
    """

    inputs: Unbounded
    epsilon: float
    lattice: Lattice
    guarantee: Guarantee
    certificate: Certificate

    def __post_init__(self) -> None:
        metric: Any = given(self.inputs, Unbounded, "inputs", under=CURVES).metric
        object.__setattr__(self, "epsilon", as_positive(self.epsilon, "epsilon"))
        if exponent_of(metric.ground) is None:
            raise InvalidInput("the outline of a curve is private under Frechet with an Lp ground: its coordinates.")
        if self.inputs.dimension % metric.dimension:
            raise InvalidInput(f"`inputs` must have a multiple of {metric.dimension} numbers, one vertex each.")
        _ = self.part

    def __repr__(self) -> str:
        size = f"{self.inputs.dimension} numbers of a curve to {self.part.inputs.dimension}"
        return f"OutlineLaplace({size}, pitch {self.lattice.pitch:g}, {self.guarantee})"

    @property
    def size(self) -> int:
        """How many coordinates a vertex has."""
        metric: Any = self.inputs.metric
        return int(metric.dimension)

    @cached_property
    def part(self) -> VectorLaplace:
        """The noise of the outline."""
        gap = Lp(np.inf, self.inputs.unit)
        promise = Guarantee(self.epsilon, gap, basis="theorem")
        return VectorLaplace(Unbounded(gap, 4 * self.size), self.epsilon, self.lattice, promise, self.certificate)

    @property
    def outputs(self) -> Unbounded:
        return self.part.inputs

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of a report are; those of a curve they are not."""
        axes = [""] if self.size == 1 else [f"_{axis}" for axis in range(1, self.size + 1)]
        return tuple(f"{what}{axis}" for what in ("start", "end", "least", "largest") for axis in axes)

    def _repr_html_(self) -> str:
        return mechanism_card(self)

    def outline(self, curves: Any, /) -> Floats:
        """Return the outlines of curves, without noise."""
        rows = self.inputs.encode(curves)
        vertices = rows.reshape(len(rows), -1, self.size)
        parts = [vertices[:, 0], vertices[:, -1], vertices.min(axis=1), vertices.max(axis=1)]
        return np.concatenate(parts, axis=1)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one noisy outline for every curve."""
        return self.part.sample(self.outline(secrets), rng=rng)

    @property
    def limit(self) -> str:
        return self.part.limit

    def holds(self, rows: Floats) -> Booleans:
        """Tell which curves noise can be added to."""
        return self.lattice.holds(rows)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report."""
        return self.part.log_density(self.outline(secrets), reports)


def _accuracy(mechanism: OutlineLaplace, levels: Floats) -> Reach:
    """How far a report lies from the outline, in its largest gap."""
    found: Reach = MECHANISMS.facet("accuracy", mechanism.part)(mechanism.part, levels)
    return found


def _distribution(mechanism: OutlineLaplace) -> Distribution:
    density = MECHANISMS.facet("distribution", mechanism.part)(mechanism.part).density
    secrets = "x is the outline of a curve: its start, its end, the least and the largest of every coordinate"
    return Distribution({**density, "secrets": secrets})


MECHANISMS.declare(
    Kind(
        OutlineLaplace,
        "outline-laplace",
        "noise for the outline of any curve: its start, its end and the box it lies in",
        NOISE,
        since=2,
        read=noise_fields,
        make=on_lattice(OutlineLaplace),
        accuracy=_accuracy,
        distribution=_distribution,
        reports=lambda one: one.names,
    )
)
