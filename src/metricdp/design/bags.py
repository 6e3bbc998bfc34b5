"""Noise for bags of vectors, which `laplace` builds under `Bags`."""

from __future__ import annotations

from dataclasses import replace

from metricdp.errors import InvalidInput
from metricdp.mechanisms import BagLaplace, Guarantee
from metricdp.mechanisms.bags import Noise
from metricdp.metrics import Bags
from metricdp.spaces import Unbounded


def of_bags(metric: Bags, part: Noise, dimension: int | None) -> BagLaplace:
    """Return the noise of one vector for all vectors of a bag of `dimension` numbers."""
    if dimension is None or dimension < metric.dimension or dimension % metric.dimension:
        raise InvalidInput(
            f"`dimension` must say how many numbers a bag has, a multiple of the {metric.dimension} of a vector, got "
            f"{dimension}."
        )
    count = dimension // metric.dimension
    promise = Guarantee(part.epsilon, metric, basis="theorem")
    proof = replace(
        part.certificate,
        loss=count * part.certificate.loss,
        method=f"{part.certificate.method.removesuffix(' (theorem)')} on every vector of a bag (theorem)",
        at_most=True,
        note=f"{part.certificate.note}; the loss is the mean total length of the noise of {count} vectors: pairing "
        "them anew can only be shorter",
    )
    return BagLaplace(Unbounded(metric, dimension), part.epsilon, part.lattice, promise, proof)
