"""Noise for curves and series, which `laplace` builds under `Frechet`."""

from __future__ import annotations

from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, Guarantee, Lattice, OutlineLaplace
from metricdp.mechanisms.laplace import tidy_pitch
from metricdp.metrics import Frechet
from metricdp.spaces import Unbounded


def of_outlines(
    metric: Frechet, epsilon: float, dimension: int | None, *, pitch: float | None = None
) -> OutlineLaplace:
    """Return noise on the outlines of curves of `dimension` numbers."""
    if dimension is None or dimension < metric.dimension or dimension % metric.dimension:
        raise InvalidInput(
            f"`dimension` must say how many numbers a curve has, a multiple of the {metric.dimension} of a vertex, got "
            f"{dimension}."
        )
    size = 4 * metric.dimension
    lattice = Lattice(tidy_pitch(0.01 / epsilon) if pitch is None else pitch)
    proof = Certificate(
        loss=size / epsilon,
        lower_bound=0.0,
        method="l_inf Laplace on the outline of a curve (theorem)",
        epsilon=epsilon,
        note=f"the loss is the mean largest gap between the outline and its report, {size} numbers",
    )
    promise = Guarantee(epsilon, metric, basis="theorem")
    return OutlineLaplace(Unbounded(metric, int(dimension)), epsilon, lattice, promise, proof)
