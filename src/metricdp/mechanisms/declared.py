"""The declarations of the kinds of mechanism: names, files, descriptions, and what judging takes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from metricdp import shared
from metricdp.declarations import Array, Declaration, Effort, Field, Many, Maybe, Number, Part, Registry, Table, Text
from metricdp.mechanisms.bags import BagLaplace
from metricdp.mechanisms.base import Certificate, Mechanism, Stakes
from metricdp.mechanisms.directions import DirectionNoise
from metricdp.mechanisms.gaussian import GaussianNoise, SphericalGaussian
from metricdp.mechanisms.hyperbolic import HyperbolicLaplace
from metricdp.mechanisms.interpolated import MOST_AXES, ROUNDING_RULES, RULES, InterpolatedMechanism
from metricdp.mechanisms.kernel import KernelMechanism
from metricdp.mechanisms.laplace import Lattice, VectorLaplace
from metricdp.mechanisms.local import LocalMechanism
from metricdp.mechanisms.matrix import MatrixMechanism
from metricdp.mechanisms.nearest import NearestMechanism, nearest_loss
from metricdp.mechanisms.outlines import OutlineLaplace
from metricdp.mechanisms.packing import BLOCK, packed, unpacked
from metricdp.mechanisms.product import ProductMechanism
from metricdp.mechanisms.projected import ProjectedLaplace
from metricdp.mechanisms.spherical import SphericalLaplace
from metricdp.mechanisms.streets import StreetMechanism
from metricdp.metrics import Hyperbolic, Lp, Mahalanobis, ShortestPath, measuring, width_of
from metricdp.spaces import FiniteSpace

MECHANISMS = Registry("mechanism")
FINITE = Part("space", ("finite",))
RATE = Number(least=1 / shared.LARGEST_RATE, most=shared.LARGEST_RATE)
WEIGHTS = Array("single", sides=1, least=0, most=float(np.finfo(np.float32).max))
RATIOS = Array(sides=1, least=0, most=shared.LARGEST_RATIO)
NOISE: dict[str, Field] = {"inputs": Part("space", ("unbounded",)), "epsilon": RATE, "pitch": RATE}
NORMAL: dict[str, Field] = {"inputs": Part("space", ("unbounded",)), "sigma": RATE, "pitch": RATE}


def _every_pair(mechanism: MatrixMechanism) -> Effort:
    n, m = (float(side) for side in mechanism.matrix.shape)
    points = mechanism.inputs.points
    apart = measuring(mechanism.inputs.metric, len(points), len(points), width_of(points))
    return apart + Effort(6.0 * n * n + 4.0 * n * m, n * n * (m + 50.0))


def _every_near_pair(stored: Any) -> Effort:
    """All streets, where they imply all pairs; elsewhere all pairs, two rows each: more only says what is near.

    Nothing is held but what is stored: a file is bounded by its own size.
    """
    metric, points = stored.inputs.metric, stored.inputs.points
    n, entries = len(points), float(stored.columns.size)
    held, row = Effort(16.0 * (entries + n + stored.background.size)), entries / n
    if isinstance(metric, ShortestPath) and metric.one_way == "open" and n == metric.nodes:
        return held + Effort(steps=40.0 * len(metric.lengths) * (row + 50.0))
    apart = measuring(metric, n, n, width_of(points))
    return held + Effort(steps=apart.steps + float(n) * n * (row + 50.0))


def _every_distance(stored: Any) -> Effort:
    """All distances twice, block by block, and an exponential and a quotient each; the worst pairs in intervals."""
    points = stored.space.points
    n = float(len(points))
    apart = measuring(stored.space.metric, len(points), len(points), width_of(points))
    return Effort(16.0 * n + 4e7, 2.0 * apart.steps + 60.0 * n * n + 6e10)


def _every_cell(mechanism: InterpolatedMechanism) -> Effort:
    rows, reports = (float(side) for side in mechanism.matrix.shape)
    axes = len(mechanism.axes)
    cells = float(math.prod(len(axis) - 1 for axis in mechanism.axes))
    corners, vertices = 2.0**axes, 3.0**axes if mechanism.rule in ROUNDING_RULES else 1.0
    return Effort(
        8.0 * rows * reports + 4.0 * cells * corners + 2_000_000.0 * (axes + 3.0),
        10.0 * cells * vertices * corners * (axes + 1.0) * reports,
    )


def _every_piece(mechanism: StreetMechanism) -> Effort:
    pieces, reports = float(mechanism.counts.sum()), float(mechanism.matrix.shape[1])
    return Effort(10.0 * pieces * reports, 50.0 * pieces * reports)


def _read_noise(
    mechanism: VectorLaplace
    | SphericalLaplace
    | DirectionNoise
    | HyperbolicLaplace
    | BagLaplace
    | OutlineLaplace
    | ProjectedLaplace,
) -> dict[str, Any]:
    return {"inputs": mechanism.inputs, "epsilon": mechanism.epsilon, "pitch": mechanism.lattice.pitch}


def _matrix(**fields: Any) -> MatrixMechanism:
    return MatrixMechanism(**fields, stakes=Stakes(known=False))  # files hold neither loss nor prior


def _kernel(**fields: Any) -> KernelMechanism:
    cap = fields.pop("cap")
    return KernelMechanism(**fields, cap=math.inf if cap is None else cap, stakes=Stakes(known=False))


def _read_kernel(mechanism: KernelMechanism) -> dict[str, Any]:
    cap = None if math.isinf(mechanism.cap) else mechanism.cap
    return {
        "space": mechanism.space,
        "inner": mechanism.inner,
        "cap": cap,
        "log_weights": mechanism.log_weights,
        "log_normalisers": mechanism.log_normalisers,
        "nearest": mechanism.nearest,
    }


def _nearest(*, inputs: FiniteSpace, epsilon: float, certificate: Certificate, **rest: Any) -> NearestMechanism:
    # The first files stated the mean length of the noise, which bounds nothing: the bound is computed again.
    if isinstance(inputs.metric, Lp | Mahalanobis | Hyperbolic):
        loss = nearest_loss(inputs, epsilon)
        certificate = replace(certificate, loss=loss, lower_bound=min(0.0, loss), at_most=True)
    return NearestMechanism(inputs=inputs, epsilon=epsilon, certificate=certificate, **rest)


def _product(*, parts: tuple[Mechanism, ...], certificate: Certificate, **rest: Any) -> ProductMechanism:
    if any(part.certificate.at_most for part in parts):
        loss = sum(part.guarantee.epsilon * part.certificate.loss for part in parts)
        certificate = replace(certificate, loss=loss, at_most=True)
    return ProductMechanism(parts=parts, certificate=certificate, **rest)


def _vector(*, pitch: float, **rest: Any) -> VectorLaplace:
    return VectorLaplace(lattice=Lattice(pitch), **rest)


def _projected(*, pitch: float, **rest: Any) -> ProjectedLaplace:
    return ProjectedLaplace(lattice=Lattice(pitch), **rest)


def _direction(*, pitch: float, **rest: Any) -> DirectionNoise:
    return DirectionNoise(lattice=Lattice(pitch), **rest)


def _gaussian(*, pitch: float, **rest: Any) -> GaussianNoise:
    return GaussianNoise(lattice=Lattice(pitch), **rest)


def _spherical_gaussian(*, pitch: float, **rest: Any) -> SphericalGaussian:
    return SphericalGaussian(lattice=Lattice(pitch), **rest)


def _read_gaussian(mechanism: GaussianNoise | SphericalGaussian) -> dict[str, Any]:
    return {"inputs": mechanism.inputs, "sigma": mechanism.sigma, "pitch": mechanism.lattice.pitch}


def _hyperbolic(*, pitch: float, **rest: Any) -> HyperbolicLaplace:
    return HyperbolicLaplace(lattice=Lattice(pitch), **rest)


def _bag(*, pitch: float, **rest: Any) -> BagLaplace:
    return BagLaplace(lattice=Lattice(pitch), **rest)


def _outline(*, pitch: float, **rest: Any) -> OutlineLaplace:
    return OutlineLaplace(lattice=Lattice(pitch), **rest)


def _spherical(*, pitch: float, **rest: Any) -> SphericalLaplace:
    return SphericalLaplace(lattice=Lattice(pitch), **rest)


for _declaration in (
    Declaration(
        MatrixMechanism,
        "matrix",
        "a table with one row of probabilities for every secret",
        {"inputs": FINITE, "outputs": FINITE, "matrix": Table()},
        make=_matrix,
        effort=_every_pair,
    ),
    Declaration(
        LocalMechanism,
        "local",
        "a row of weights for the near reports of every secret, and one background law for all others",
        {
            "inputs": FINITE,
            "outputs": FINITE,
            "lengths": Array("narrow", sides=2, most=BLOCK),
            "columns": Array("narrow", sides=1, most=BLOCK - 1),
            "values": replace(WEIGHTS, coded=True),
            "background": WEIGHTS,
        },
        since=2,
        read=packed,
        make=unpacked,
        effort=_every_near_pair,
    ),
    Declaration(
        KernelMechanism,
        "kernel",
        "one law for a whole vocabulary: the farther a word, the less likely it is reported",
        {
            "space": FINITE,
            "inner": RATE,
            "cap": Maybe(Number(least=1 / shared.LARGEST_RATE, most=shared.LARGEST_COORDINATE)),
            "log_weights": Maybe(Array(sides=1, least=-shared.LARGEST_RATIO, most=shared.LARGEST_RATIO)),
            "log_normalisers": Array(sides=1, least=-shared.LARGEST_RATIO, most=shared.LARGEST_RATIO),
            "nearest": Maybe(Array(sides=1, least=0, most=shared.LARGEST_COORDINATE)),
        },
        since=2,
        read=_read_kernel,
        make=_kernel,
        effort=_every_distance,
    ),
    Declaration(
        InterpolatedMechanism,
        "interpolated",
        "tables at the corners of a grid, for any point of a box",
        {
            "inputs": Part("space", ("box",)),
            "outputs": FINITE,
            "axes": Many(Array(sides=1), least=1, most=MOST_AXES),
            "ratios": Many(RATIOS, least=1, most=MOST_AXES),
            "matrix": Table(),
            "rule": Text(RULES),
        },
        effort=_every_cell,
    ),
    Declaration(
        StreetMechanism,
        "streets",
        "tables at crossings, for any place along the streets",
        {
            "inputs": Part("space", ("streets",)),
            "outputs": FINITE,
            "counts": Array("whole", sides=1, least=1, most=shared.LARGEST_MATRIX),
            "ratios": RATIOS,
            "matrix": Table(),
        },
        since=2,
        effort=_every_piece,
    ),
    Declaration(
        SphericalLaplace,
        "spherical-laplace",
        "noise for any place on Earth",
        NOISE,
        read=_read_noise,
        make=_spherical,
    ),
    Declaration(
        VectorLaplace,
        "vector-laplace",
        "noise for any point of a plane or space",
        NOISE,
        read=_read_noise,
        make=_vector,
    ),
    Declaration(
        GaussianNoise,
        "gaussian-noise",
        "normal noise for any point of a plane or space; its promise is concentrated, not pure",
        NORMAL,
        since=2,
        read=_read_gaussian,
        make=_gaussian,
        promise="concentrated",
    ),
    Declaration(
        SphericalGaussian,
        "spherical-gaussian",
        "normal noise for any place on Earth; its promise is concentrated, not pure",
        NORMAL,
        since=2,
        read=_read_gaussian,
        make=_spherical_gaussian,
        promise="concentrated",
    ),
    Declaration(
        ProjectedLaplace,
        "projected-laplace",
        "noise for any vector, after a public projection to fewer dimensions",
        NOISE | {"matrix": Array(sides=2, least=-shared.LARGEST_COORDINATE, most=shared.LARGEST_COORDINATE)},
        since=2,
        read=lambda one: _read_noise(one) | {"matrix": one.matrix},
        make=_projected,
    ),
    Declaration(
        DirectionNoise,
        "direction-noise",
        "noise for any unit vector, on the sphere",
        NOISE | {"inputs": Part("space", ("sphere",))},
        since=2,
        read=_read_noise,
        make=_direction,
    ),
    Declaration(
        HyperbolicLaplace,
        "hyperbolic-laplace",
        "noise for any point of the Poincaré ball",
        NOISE,
        since=2,
        read=_read_noise,
        make=_hyperbolic,
    ),
    Declaration(
        BagLaplace,
        "bag-laplace",
        "noise for every vector of a bag, without their order",
        NOISE,
        since=2,
        read=_read_noise,
        make=_bag,
    ),
    Declaration(
        OutlineLaplace,
        "outline-laplace",
        "noise for the outline of any curve: its start, its end and the box it lies in",
        NOISE,
        since=2,
        read=_read_noise,
        make=_outline,
    ),
    Declaration(
        NearestMechanism,
        "nearest",
        "noise in an embedding, then the nearest word",
        {"inputs": FINITE, "outputs": FINITE, "epsilon": RATE},
        make=_nearest,
    ),
    Declaration(
        ProductMechanism,
        "product",
        "several mechanisms side by side, one for each part of the secret",
        {"parts": Many(Part("mechanism"), least=2, most=shared.LARGEST_PARTS)},
        since=2,
        make=_product,
    ),
):
    MECHANISMS.declare(_declaration)
