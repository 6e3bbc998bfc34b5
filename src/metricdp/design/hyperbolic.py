"""Noise for points of the Poincare ball, which `laplace` builds under `Hyperbolic`."""

from __future__ import annotations

from dataclasses import replace

from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, Guarantee, HyperbolicLaplace, Lattice
from metricdp.mechanisms.laplace import tidy_pitch
from metricdp.metrics import Hyperbolic
from metricdp.spaces import Unbounded


def hyperbolic(
    metric: Hyperbolic, epsilon: float, dimension: int | None, *, pitch: float | None = None
) -> HyperbolicLaplace:
    """Return noise of hyperbolic space, with the mean distance it goes in its certificate."""
    if dimension is None:
        raise InvalidInput(
            "`dimension` must say how many numbers a point of the ball has; the command takes it from --columns."
        )
    blank = Certificate(loss=0.0, lower_bound=0.0, method="hyperbolic Laplace (theorem)", epsilon=epsilon)
    lattice = Lattice(tidy_pitch(1.0 / (100.0 * epsilon)) if pitch is None else pitch)
    promise = Guarantee(epsilon, metric, basis="theorem")
    made = HyperbolicLaplace(Unbounded(metric, dimension), epsilon, lattice, promise, blank)
    note = (
        f"the lattice changes the mean distance by at most {made.reach:.3g}; drawn exactly: decided in doubles with "
        "proven error bounds, in arbitrary precision where they cannot"
    )
    return replace(made, certificate=replace(blank, loss=made.mean, note=note))
