"""The law of the noise as plain values, for those who model with protected data: what lies in `out.csv.law.json`.

Everything here is public: it follows from the mechanism, never from a table.
"""

from __future__ import annotations

import math
from typing import Any

from metricdp.auditing.accuracy import Radius, radii_of
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    BagLaplace,
    ConcentratedGuarantee,
    DirectionNoise,
    GaussianNoise,
    HyperbolicLaplace,
    InterpolatedMechanism,
    KernelMechanism,
    LocalMechanism,
    MatrixMechanism,
    Mechanism,
    NearestMechanism,
    OutlineLaplace,
    ProductMechanism,
    ProjectedLaplace,
    SphericalGaussian,
    SphericalLaplace,
    StreetMechanism,
    VectorLaplace,
    pure,
)
from metricdp.mechanisms.laplace import cell_reach, log_normaliser
from metricdp.mechanisms.spherical import spherical_mass
from metricdp.metrics import Angular, Hyperbolic, Metric
from metricdp.units import METRES

FORMAT, VERSION = "metricdp.law", 1
LEVELS = (0.5, 0.75, 0.9, 0.95, 0.99)
STATEMENT = (
    "For every secret, the report lies within `radius` of it with a chance of at least `level`. The chance is over the "
    "noise alone: it holds whatever the secrets are, and is not the chance given a report, which would take a prior."
)
KINDS: dict[type, str] = {
    SphericalLaplace: "spherical_laplace",
    VectorLaplace: "vector_laplace",
    GaussianNoise: "gaussian_noise",
    SphericalGaussian: "spherical_gaussian",
    DirectionNoise: "direction_noise",
    BagLaplace: "bag_laplace",
    OutlineLaplace: "outline_laplace",
    HyperbolicLaplace: "hyperbolic_laplace",
    ProjectedLaplace: "projected_laplace",
    MatrixMechanism: "matrix",
    LocalMechanism: "local",
    KernelMechanism: "kernel",
    NearestMechanism: "nearest",
    InterpolatedMechanism: "interpolated",
    StreetMechanism: "streets",
    ProductMechanism: "product",
}
TABLES = {
    "matrix": "Pr[report k | secret i] = matrix[i, k] / sum_k matrix[i, k]",
    "local": "Pr[report k | secret i] = w[i, k] / sum_k w[i, k]; w[i, k] = the stored value, else background[k]",
    "kernel": "Pr[report k | secret i] = w[k] exp(-a min(d(i, k), cap)) / N[i], in real numbers of the stored points",
    "nearest": "report = the vector nearest to v + R U; v the secret's vector, R ~ Gamma(n, 1 / epsilon), U on the "
    "unit sphere of the metric",
    "interpolated": "Pr[report k | x] = sum over corners c of the cell of x of weight_c(x) matrix[c, k]",
    "streets": "Pr[report k | x] = (1 - s(x)) matrix[near anchor, k] + s(x) matrix[far anchor, k]",
}


def law_of(mechanism: Mechanism, *, snap: float = 0.0) -> dict[str, Any]:
    """Return the law of a mechanism's noise as plain values that JSON holds: kind, density, lattice, radii.

    `snap` is the distance (in the unit of what tables hold) up to which values were put on a secret: radii are larger
    by it.
    """
    promise, kind = mechanism.guarantee, KINDS.get(type(mechanism))
    if kind is None:
        raise InvalidInput(f"the law of {type(mechanism).__name__} has no description.")
    law: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        **(
            {"rho": promise.rho, "promise": "concentrated, not pure"}
            if isinstance(promise, ConcentratedGuarantee)
            else {"epsilon": promise.epsilon, "slack": promise.slack}
        ),
        "metric": metric_words(promise.metric),
        "basis": promise.basis,
    }
    if isinstance(mechanism, ProductMechanism):
        return law | {"parts": [law_of(part, snap=snap if _snaps(part) else 0.0) for part in mechanism.parts]}
    radii = radii_of(mechanism, LEVELS)
    law |= {
        "density": density_of(mechanism),
        "snap": snap,
        "loss": {
            "value": mechanism.certificate.loss,
            "objective": mechanism.certificate.objective,
            "at_most": mechanism.certificate.at_most,
        },
        "measured_in": metric_words(radii[0].metric),
        "radii": [{"level": one.level, "tight": one.tight and not snap} | _sizes(one, snap) for one in radii],
        "statement": STATEMENT,
    }
    if isinstance(mechanism, SphericalLaplace | VectorLaplace | GaussianNoise | SphericalGaussian):
        reach = cell_reach(promise.metric, mechanism.inputs.dimension, mechanism.lattice.pitch)
        unit = "degrees" if isinstance(mechanism, SphericalLaplace | SphericalGaussian) else promise.unit
        law["lattice"] = {"pitch": mechanism.lattice.pitch, "unit": unit, "moves_at_most": reach}
    if isinstance(mechanism, DirectionNoise | HyperbolicLaplace):
        law["lattice"] = {"pitch": mechanism.lattice.pitch, "unit": "", "moves_at_most": mechanism.reach}
    return law


def metric_words(metric: Metric) -> dict[str, Any]:
    """Return a metric as its name, its unit and its exponent where it has one."""
    words: dict[str, Any] = {"name": type(metric).__name__, "unit": metric.unit}
    exponent = getattr(metric, "p", None)
    if exponent is not None:
        words["p"] = exponent if math.isfinite(exponent) else "infinity"
    return words


def in_metres(value: float, unit: str) -> float | None:
    """Return a length in metres, rounded as doubles are; None where the unit is no length."""
    return value * float(METRES[unit]) if unit in METRES else None


def _sizes(radius: Radius, snap: float) -> dict[str, Any]:
    value = radius.value + snap
    return {"radius": value, "unit": radius.unit, "metres": in_metres(value, radius.unit)}


def _snaps(part: Mechanism) -> bool:
    return part.inputs.size is not None and not part.inputs.is_text


def density_of(mechanism: Mechanism) -> dict[str, Any]:
    """Return the formula of a law, with its constants where it has a closed form."""
    if isinstance(mechanism, GaussianNoise):
        size = mechanism.inputs.dimension
        return {
            "formula": "f(y | x) = constant * exp(-d(x, y)^2 / (2 sigma^2)), put on the nearest point of the lattice",
            "sigma": mechanism.sigma,
            "per": f"volume of {size} coordinate{'s' if size > 1 else ''}",
            "distance": f"(d / sigma)^2 has the law chi-squared with {size} degrees of freedom",
        }
    if isinstance(mechanism, SphericalGaussian):
        return {
            "formula": "the place as a point in space plus N(0, sigma^2) in each of three coordinates, seen from the "
            "centre of the Earth, put on the nearest point of the lattice",
            "sigma": mechanism.sigma,
            "per": f"sigma in {mechanism.inputs.unit}",
            "distance": "d / sigma has nearly the law of Rayleigh while sigma is small beside the Earth",
        }
    epsilon = pure(mechanism.guarantee, "this law").epsilon
    if isinstance(mechanism, SphericalLaplace):
        rate = float(mechanism.law.rate)
        radius = rate / mechanism.epsilon
        return {
            "formula": "f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of the lattice",
            "constant": 1.0 / (spherical_mass(rate) * radius**2),
            "per": f"area in {mechanism.inputs.unit}^2 on a sphere of radius {radius:.9g} {mechanism.inputs.unit}",
            "distance": "Pr[d > r] = (exp(-epsilon r) (epsilon R sin(r / R) + cos(r / R)) + exp(-pi epsilon R)) / "
            "(1 + exp(-pi epsilon R)), R the radius of the sphere",
        }
    if isinstance(mechanism, VectorLaplace):
        size = mechanism.inputs.dimension
        return {
            "formula": "f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of the lattice",
            "constant": math.exp(min(700.0, max(-700.0, log_normaliser(mechanism.inputs, epsilon)))),
            "log_constant": log_normaliser(mechanism.inputs, epsilon),
            "per": f"volume of {size} coordinate{'s' if size > 1 else ''}",
            "distance": f"epsilon * d has the law Gamma({size}, 1)",
        }
    if isinstance(mechanism, DirectionNoise):
        angular = isinstance(mechanism.inputs.metric, Angular)
        fall = "-epsilon * angle(x, y)" if angular else "epsilon * (<x, y> - 1)"
        sphere = "x the direction of the secret"
        power = mechanism.profile.power
        return {
            "formula": f"f(y | x) = constant * exp({fall}), {sphere}, put on the nearest point of the lattice",
            "log_constant": -mechanism.log_mass,
            "per": f"area of the unit sphere of {mechanism.inputs.dimension} coordinates",
            "distance": f"the angle t has a density proportional to exp(-epsilon t) sin(t)^{power:g}"
            if angular
            else f"v = d^2 / 2 has a density proportional to exp(-epsilon v) (v (2 - v))^{power:g}",
        }
    if isinstance(mechanism, HyperbolicLaplace):
        size = mechanism.inputs.dimension
        return {
            "formula": "f(y | x) = constant * exp(-epsilon * d(x, y)), put on the nearest point of a lattice of the "
            "hyperboloid's first coordinates, v = 2 y / (1 - |y|^2)",
            "log_constant": -mechanism.log_mass,
            "per": f"hyperbolic volume in {size} dimension{'s' if size > 1 else ''}",
            "distance": f"exp(-2 d) has the law Beta({(mechanism.epsilon - size + 1) / 2:g}, {size})",
        }
    if isinstance(mechanism, BagLaplace):
        one = density_of(mechanism.part)
        return one | {
            "formula": f"every one of {mechanism.count} vectors: {one['formula']}; the reports in lexicographic order"
        }
    if isinstance(mechanism, OutlineLaplace):
        return density_of(mechanism.part) | {
            "secrets": "x is the outline of a curve: its start, its end, the least and the largest of every coordinate"
        }
    if isinstance(mechanism, ProjectedLaplace):
        return {
            "formula": "f(y | x) = constant * exp(-rate * |A x - y|), put on the nearest point of the lattice",
            "log_constant": log_normaliser(mechanism.outputs, mechanism.epsilon),
            "rate": mechanism.epsilon,
            "per": f"volume of {len(mechanism.matrix)} coordinates",
            "distance": f"rate * |A x - y| has the law Gamma({len(mechanism.matrix)}, 1)",
            "numbers": "A is in the mechanism file: metricdp.load(file).matrix",
        }
    words = {"formula": TABLES[KINDS[type(mechanism)]]}
    if isinstance(mechanism, InterpolatedMechanism) and mechanism.rule in ("log", "relaxed"):
        words["formula"] = "Pr[report k | x] is proportional to the product over corners c of matrix[c, k]^weight_c(x)"
    if isinstance(mechanism, NearestMechanism) and isinstance(mechanism.inputs.metric, Hyperbolic):
        words["formula"] = "report = the vector nearest to y, y from exp(-epsilon d(v, y)) in hyperbolic space"
    if not isinstance(mechanism, NearestMechanism):
        words["numbers"] = "in the mechanism file: metricdp.load(file)"
    return words
