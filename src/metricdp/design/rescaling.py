"""The same mechanism at another epsilon: the distribution of that epsilon, built anew, never draws that are scaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from metricdp.design.exponential import exponential
from metricdp.design.gaussian import gaussian
from metricdp.design.laplace import laplace, madlib, von_mises_fisher
from metricdp.mechanisms import (
    MECHANISMS,
    BagLaplace,
    DirectionNoise,
    GaussianNoise,
    HyperbolicLaplace,
    MatrixMechanism,
    Mechanism,
    NearestMechanism,
    SphericalGaussian,
    SphericalLaplace,
    VectorLaplace,
)

Make = Callable[[float], Mechanism]


def rescaler(mechanism: Mechanism) -> Make:
    """Return what makes the same mechanism at another epsilon (rho, where its guarantee is concentrated)."""
    found: Make = MECHANISMS.facet("rescale", mechanism)(mechanism)
    return found


def _noise_maker(mechanism: Any, build: Callable[..., Any], level: float, **options: Any) -> Make:
    """Return noise on the same space; its lattice follows the noise, unless one of its own was chosen."""
    inputs = mechanism.inputs
    at = partial(build, inputs.metric, dimension=inputs.dimension)
    own = mechanism.lattice.pitch
    pitch = None if at(level).lattice.pitch == own else own
    # The same space: what it found legal stays legal.
    return lambda amount: replace(at(amount, pitch=pitch, **options), inputs=inputs)


def _direction(mechanism: DirectionNoise) -> Make:
    build: Any = laplace if mechanism.angular else von_mises_fisher
    return _noise_maker(mechanism, build, mechanism.epsilon, normalise=mechanism.inputs.lengths == "any")


def _nearest(mechanism: NearestMechanism) -> Make:
    if mechanism.outputs is not mechanism.inputs:
        raise MECHANISMS.refusal("rescale", mechanism)
    return partial(madlib, mechanism.inputs)


def _table(mechanism: MatrixMechanism) -> Make:
    """An exponential mechanism, which is the one that comes out when it is built again."""
    own = np.array_equal(mechanism.inputs.points, mechanism.outputs.points)
    make = partial(exponential, mechanism.inputs, outputs=None if own else mechanism.outputs)
    if not np.array_equal(make(mechanism.guarantee.epsilon).matrix, mechanism.matrix):
        raise MECHANISMS.refusal("rescale", mechanism)
    return make


for _noise in (SphericalLaplace, VectorLaplace, HyperbolicLaplace, BagLaplace):
    MECHANISMS.register(_noise, rescale=lambda one: _noise_maker(one, laplace, one.epsilon))
for _normal in (GaussianNoise, SphericalGaussian):
    MECHANISMS.register(_normal, rescale=lambda one: _noise_maker(one, gaussian, one.guarantee.rho))
MECHANISMS.register(DirectionNoise, rescale=_direction)
MECHANISMS.register(NearestMechanism, rescale=_nearest)
MECHANISMS.register(MatrixMechanism, rescale=_table)
