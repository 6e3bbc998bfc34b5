"""Laplace noise after a public projection: fewer dimensions, and so less noise for the same guarantee.

A report is the lattice point nearest to A x + noise, in real numbers. |A x - A x'| <= |A| |x - x'| with the spectral
norm |A|, so noise of rate r in the projected space keeps r |A| per unit of the l_2 distance of the vectors themselves.
A is public: it must not be made from the table that is protected, which would leak through it without any noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from metricdp import constants
from metricdp.arrays import Floats, as_matrix, frozen, set_fields
from metricdp.errors import InvalidInput
from metricdp.mechanisms.kind import NOISE, Distribution, Theorem
from metricdp.mechanisms.kinds.laplace import VectorNoise, log_normaliser, vector_distribution
from metricdp.mechanisms.lattice import declare_noise
from metricdp.mechanisms.noise.distributions import VectorDistribution
from metricdp.metrics import exponent_of
from metricdp.registry import Array
from metricdp.spaces import UNDER_LP, Unbounded, require_space

UNIT = 2.0**-53
NUMERIC = 1e-6  # relative: a norm is bounded from above


@dataclass(frozen=True, eq=False, repr=False)
class ProjectedLaplace(VectorNoise):
    """l_2 Laplace noise of rate `epsilon` around A x: density proportional to exp(-epsilon |A x - y|).

    Guarantee: epsilon |A| times the l_2 distance of the vectors, exactly: A x is never rounded before the lattice.
    """

    matrix: Floats = field(kw_only=True)

    def check(self) -> None:
        """Refuse a projection that is none, and another distance than l_2."""
        metric = require_space(self.inputs, Unbounded, "inputs", under=UNDER_LP).metric
        matrix = as_matrix(self.matrix, "matrix", (None, self.inputs.dimension))
        if exponent_of(metric) != 2.0 or not 1 <= len(matrix) <= self.inputs.dimension:
            raise InvalidInput("a projection goes to fewer dimensions, and its guarantee is in the l_2 distance.")
        set_fields(self, matrix=frozen(matrix))

    def __repr__(self) -> str:
        size = f"{self.inputs.dimension} to {len(self.matrix)} dimensions"
        return f"ProjectedLaplace({size}, pitch {self.lattice.pitch:g}, {self.guarantee})"

    @cached_property
    def outputs(self) -> Unbounded:
        return Unbounded(self.inputs.metric, len(self.matrix))

    @cached_property
    def distribution(self) -> VectorDistribution:
        """The exact distribution of the noise, in whole numbers of cells."""
        return vector_distribution(self.outputs, self.lattice.ratio, self.epsilon, self.matrix)

    def centres(self, rows: Floats) -> Floats:
        """Return where the noise lies around: A x."""
        return rows @ self.matrix.T

    @property
    def limit(self) -> str:
        return f"after the projection {self.lattice.limit}"

    def log_density(self, secrets: Any, reports: Any, /) -> Floats:
        """Return the log of the mass of the cell of each report: the density at its centre times its volume."""
        start, goal = self.centres(self.inputs.encode(secrets)), self.outputs.encode(reports)
        away, volume = self.inputs.metric(start, goal), len(self.matrix) * np.log(self.lattice.pitch)
        return np.asarray(log_normaliser(self.outputs, self.epsilon) - self.epsilon * away + volume)

    def _facet_theorem(self) -> Theorem:
        """Noise of a rate around A x keeps the rate times the norm of A, in the distance of the vectors themselves."""
        norm, rate = norm_above(self.matrix), self.epsilon
        distribution = (
            f"density proportional to exp(-{rate:.6g} d) around A x, and |A x - A x'| is at most {norm:.9g} |x - x'|; "
            "put on a lattice by bounds that are proven"
        )
        return Theorem(rate * norm * (1.0 + 2.0**-50), distribution, certain_share=1.0 - NUMERIC)

    def _facet_distribution(self) -> Distribution:
        size = len(self.matrix)
        return Distribution(
            {
                "formula": "f(y | x) = constant * exp(-rate * |A x - y|), put on the nearest point of the lattice",
                "log_constant": log_normaliser(self.outputs, self.epsilon),
                "rate": self.epsilon,
                "per": f"volume of {size} coordinates",
                "distance": f"rate * |A x - y| has the distribution Gamma({size}, 1)",
                "numbers": "A is in the mechanism file: metricdp.load(file).matrix",
            }
        )

    def _facet_report_names(self) -> tuple[str, ...]:
        """What was projected does not read like the columns that it comes from."""
        size = len(self.matrix)
        return ("report",) if size == 1 else tuple(f"report_{number}" for number in range(1, size + 1))


def norm_above(matrix: Floats) -> float:
    """Return a number that the spectral norm of a matrix does not exceed, within some 1e-12 of it.

    |A|^2 = |G| for G = A A^T, and |G| <= |V^T G V| / s^2 for any V with s^2 = its least squared singular value, at
    least 1 - |V^T V - I|. With V from an eigenvalue routine, whose errors do not matter, V^T G V is nearly diagonal and
    its norm at most its largest diagonal entry and the length of the rest. A product of sums of n terms is off by
    (n + 2) u times the product of the lengths, in whatever order it is summed.
    """
    k, n = matrix.shape
    scale = float(np.abs(matrix).max())
    if not scale > 0.0:
        raise InvalidInput("`matrix` must not be zero: nothing of a vector would be left.")
    rows = matrix / scale
    length = float(np.linalg.norm(rows)) * (1.0 + n * k * UNIT)
    gram = rows @ rows.T
    of_gram = (n + 4) * UNIT * length**2
    _, vectors = np.linalg.eigh(gram)
    size = float(np.linalg.norm(vectors)) * (1.0 + k * k * UNIT)
    turned = vectors.T @ (gram @ vectors)
    of_turned = (2 * k + 8) * UNIT * size**2 * (float(np.linalg.norm(gram)) + of_gram)
    rest = turned - np.diag(np.diag(turned))
    largest = float(np.diag(turned).max()) + float(np.linalg.norm(rest)) * (1.0 + k * k * UNIT) + of_turned
    skew = float(np.linalg.norm(vectors.T @ vectors - np.eye(k))) + (k + 4) * UNIT * size**2
    return float(scale * (np.sqrt(largest / (1.0 - skew) + of_gram) + 2.0 * UNIT * length) * (1.0 + 16 * UNIT))


declare_noise(
    ProjectedLaplace,
    "projected-laplace",
    "noise for any vector, after a public projection to fewer dimensions",
    NOISE | {"matrix": Array(sides=2, least=-constants.LARGEST_COORDINATE, most=constants.LARGEST_COORDINATE)},
    since=2,
)
