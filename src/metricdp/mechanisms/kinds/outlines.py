"""Noise for curves and series under the discrete Frechet distance: the outline of a curve, not its vertices.

The outline is where a curve starts and ends and the box it lies in: 4 k numbers for vertices of k coordinates. A leash
of length d joins the two starts and the two ends, and every vertex of one curve to some vertex of the other, so none of
these numbers moves by more than d. Noise under the largest gap with rate epsilon on them therefore keeps epsilon times
the Frechet distance. Noise on the vertices themselves does not: the largest gap of two curves may be far above their
Frechet distance (the same walk, begun a minute later), and what is private in the larger distance tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms.base import Guarantee
from metricdp.mechanisms.kind import Distribution, RadiusBound, Theorem
from metricdp.mechanisms.kinds.laplace import VectorLaplace
from metricdp.mechanisms.lattice import FarNoise, LaplaceNoise, declare_noise
from metricdp.metrics import Lp, exponent_of, points_are
from metricdp.randomness import Randomness
from metricdp.spaces import Unbounded, Under, require_space

CURVES: Under = ("Frechet", lambda metric: points_are(metric, "curves"))


@dataclass(frozen=True, eq=False, repr=False)
class OutlineLaplace(FarNoise, LaplaceNoise):
    """Noise of rate `epsilon` under the largest gap on the outline of a curve.

    Reports are the start, the end, the least and the largest number of every coordinate, in this order, each with
    noise: a least number may come out above the largest.

    Guarantee: epsilon times the discrete Frechet distance, exactly: an outline consists of numbers of the curve.
    """

    def check(self) -> None:
        """Refuse what are no curves of numbers."""
        metric: Any = require_space(self.inputs, Unbounded, "inputs", under=CURVES).metric
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
        guarantee = Guarantee(self.epsilon, gap, basis="theorem")
        return VectorLaplace(Unbounded(gap, 4 * self.size), self.epsilon, self.lattice, guarantee, self.certificate)

    @property
    def outputs(self) -> Any:
        return self.part.inputs

    def outline(self, curves: Any, /) -> Floats:
        """Return the outlines of curves, without noise."""
        rows = self.inputs.encode(curves)
        vertices = rows.reshape(len(rows), -1, self.size)
        parts = [vertices[:, 0], vertices[:, -1], vertices.min(axis=1), vertices.max(axis=1)]
        return np.concatenate(parts, axis=1)

    def sample(self, secrets: Any, /, *, rng: Randomness = None) -> Floats:
        """Return one noisy outline for every curve."""
        return self.part.sample(self.outline(secrets), rng=rng)

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the lattice cell of each report."""
        return self.part.log_density(self.outline(secrets), reports)

    def _facet_theorem(self) -> Theorem:
        """An outline moves by at most the Frechet distance of two curves, in its largest gap."""
        moved = "the outline of a curve moves by at most the Frechet distance; on the outline: {}"
        return replace(self.part._facet_theorem(), template=moved)

    def _facet_accuracy(self, levels: Floats) -> RadiusBound:
        """How far a report lies from the outline, in its largest gap."""
        return self.part._facet_accuracy(levels)

    def _facet_distribution(self) -> Distribution:
        secrets = "x is the outline of a curve: its start, its end, the least and the largest of every coordinate"
        return Distribution({**self.part._facet_distribution().density, "secrets": secrets})

    def _facet_report_names(self) -> tuple[str, ...]:
        """What the numbers of a report are; those of a curve they are not."""
        axes = [""] if self.size == 1 else [f"_{axis}" for axis in range(1, self.size + 1)]
        return tuple(f"{what}{axis}" for what in ("start", "end", "least", "largest") for axis in axes)


declare_noise(
    OutlineLaplace,
    "outline-laplace",
    "noise for the outline of any curve: its start, its end and the box it lies in",
    since=2,
)
