"""Loss and lower bound of what was loaded: verified where the file holds what is needed, else marked as stated by it.

A file holds neither prior nor loss matrix, since a prior may tell more than any report does, and no multipliers that
would prove a bound. So the loss is computed again as the distance, all secrets equally likely, and by the formulas of
noise and products; what they do not give stays what the file states.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from metricdp.artifacts.limits import Budget
from metricdp.auditing.loss import SOON, distance_losses
from metricdp.design.directions import von_mises_fisher
from metricdp.design.gaussian import gaussian
from metricdp.design.laplace import laplace
from metricdp.errors import CorruptFile
from metricdp.mechanisms import (
    BagLaplace,
    Certificate,
    DirectionNoise,
    GaussianNoise,
    HyperbolicLaplace,
    KernelMechanism,
    MatrixMechanism,
    NearestMechanism,
    ProductMechanism,
    SphericalGaussian,
    SphericalLaplace,
    VectorLaplace,
)
from metricdp.metrics import Lp, measurable, measuring, width_of

SAME = 1e-6  # relative: two ways to compute one number
UNVERIFIED = ("loss", "lower_bound")


def with_verified_figures(mechanism: Any, budget: Budget, *, judged: bool = True) -> Any:
    """Return the mechanism with a certificate that says which of its figures are only stated by the file."""
    certificate: Certificate = mechanism.certificate
    if not judged or mechanism.guarantee.basis == "none":
        return replace(mechanism, certificate=replace(certificate, stated=UNVERIFIED))
    if isinstance(mechanism, ProductMechanism):
        parts = tuple(with_verified_figures(part, budget) for part in mechanism.parts)
        stated = _product(certificate, parts)
        return replace(mechanism, parts=parts, certificate=replace(certificate, stated=stated))
    if isinstance(mechanism, MatrixMechanism):
        stated = _table(mechanism, budget)
    elif isinstance(mechanism, KernelMechanism):
        stated = _kernel(mechanism, budget)
    elif isinstance(mechanism, GaussianNoise | SphericalGaussian):
        stated = _normal(mechanism)
    elif isinstance(mechanism, VectorLaplace | SphericalLaplace | DirectionNoise | HyperbolicLaplace | BagLaplace):
        stated = _noise(mechanism)
    else:  # nearest words: the bound of the loss was computed again when the mechanism was made
        stated = () if isinstance(mechanism, NearestMechanism) else UNVERIFIED
    return replace(mechanism, certificate=replace(certificate, stated=stated))


def _table(mechanism: MatrixMechanism, budget: Budget) -> tuple[str, ...]:
    inputs, outputs, certificate = mechanism.inputs, mechanism.outputs, mechanism.certificate
    if inputs.points.shape[1:] != outputs.points.shape[1:] or inputs.points.dtype.kind != outputs.points.dtype.kind:
        return UNVERIFIED
    if not measurable(inputs.metric, outputs.points).all():  # histories in codes, reports in degrees
        return UNVERIFIED
    budget.spend(measuring(inputs.metric, len(inputs), len(outputs), width_of(inputs.points)), "its loss")
    apart = inputs.distances_to(outputs)
    losses = (mechanism.matrix * apart).sum(axis=1) / mechanism.matrix.sum(axis=1)
    least = apart.min(axis=1)  # what no mechanism with these reports goes below
    worst = certificate.objective == "worst"
    if not _same(certificate.loss, float(losses.max() if worst else losses.mean())):
        return UNVERIFIED
    trivial = float(least.max() if worst else least.mean())
    return () if certificate.lower_bound <= trivial * (1.0 + SAME) else ("lower_bound",)


def _kernel(mechanism: KernelMechanism, budget: Budget) -> tuple[str, ...]:
    """Judge the loss of a small vocabulary; of a large one it takes as long as the audit, which is remembered."""
    space, certificate = mechanism.space, mechanism.certificate
    if len(space) > SOON or certificate.objective == "worst":
        return UNVERIFIED
    budget.spend(measuring(space.metric, len(space), len(space), width_of(space.points)), "its loss")
    if not _same(certificate.loss, float(distance_losses(mechanism).mean())):
        return UNVERIFIED
    return () if certificate.lower_bound <= 0.0 else ("lower_bound",)


def _noise(
    mechanism: VectorLaplace | SphericalLaplace | DirectionNoise | HyperbolicLaplace | BagLaplace,
) -> tuple[str, ...]:
    space = mechanism.inputs
    make = von_mises_fisher if isinstance(mechanism, DirectionNoise) and isinstance(space.metric, Lp) else laplace
    honest = make(space.metric, mechanism.epsilon, dimension=space.dimension, pitch=mechanism.lattice.pitch)
    if not _same(mechanism.certificate.loss, honest.certificate.loss):
        raise CorruptFile("the loss it states is not that of its noise")
    same = mechanism.certificate.lower_bound <= honest.certificate.lower_bound * (1.0 + SAME)
    return () if same else ("lower_bound",)


def _normal(mechanism: GaussianNoise | SphericalGaussian) -> tuple[str, ...]:
    space = mechanism.inputs
    honest = gaussian(
        space.metric, sigma=mechanism.sigma, dimension=space.dimension, pitch=mechanism.lattice.pitch
    ).certificate
    if not _same(mechanism.certificate.loss, honest.loss):
        raise CorruptFile("the loss it states is not that of its noise")
    return () if mechanism.certificate.lower_bound <= honest.lower_bound else ("lower_bound",)


def _product(certificate: Certificate, parts: tuple[Any, ...]) -> tuple[str, ...]:
    """Losses and bounds of the parts add up, each times its epsilon."""
    stated = []
    for name in UNVERIFIED:
        total = float(np.sum([part.guarantee.epsilon * getattr(part.certificate, name) for part in parts]))
        value = getattr(certificate, name)
        fits = _same(value, total) if name == "loss" else value <= total * (1.0 + SAME)
        if not fits:
            raise CorruptFile("the loss or the bound it states is not the sum of those of its parts")
        if any(name in part.certificate.stated for part in parts):
            stated.append(name)
    return tuple(stated)


def _same(stated: float, found: float) -> bool:
    return math.isclose(stated, found, rel_tol=SAME, abs_tol=1e-300)
