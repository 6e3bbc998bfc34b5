"""Mechanisms: what they are, what they promise, how they draw."""

from metricdp.mechanisms.base import AnyGuarantee, Certificate, Guarantee, Limited, Mechanism, Stakes, Witness, pure
from metricdp.mechanisms.concentrated import ConcentratedGuarantee
from metricdp.mechanisms.kind import MECHANISMS
from metricdp.mechanisms.kinds.bags import BagLaplace
from metricdp.mechanisms.kinds.directions import DirectionNoise
from metricdp.mechanisms.kinds.gaussian import GaussianNoise
from metricdp.mechanisms.kinds.hyperbolic import HyperbolicLaplace
from metricdp.mechanisms.kinds.interpolated import ROUNDING_RULES, InterpolatedMechanism, Rule, corner_weights
from metricdp.mechanisms.kinds.kernel import KernelMechanism
from metricdp.mechanisms.kinds.laplace import VectorLaplace
from metricdp.mechanisms.kinds.local import LocalMechanism
from metricdp.mechanisms.kinds.matrix import MatrixMechanism
from metricdp.mechanisms.kinds.nearest import NearestMechanism
from metricdp.mechanisms.kinds.outlines import OutlineLaplace
from metricdp.mechanisms.kinds.product import ProductMechanism
from metricdp.mechanisms.kinds.projected import ProjectedLaplace
from metricdp.mechanisms.kinds.spherical import SphericalLaplace
from metricdp.mechanisms.kinds.spherical_gaussian import SphericalGaussian
from metricdp.mechanisms.kinds.streets import StreetMechanism
from metricdp.mechanisms.lattice import LaplaceNoise, Lattice

FiniteMechanism = MatrixMechanism | LocalMechanism | KernelMechanism  # between finite spaces: three ways to hold rows

__all__ = [
    "MECHANISMS",
    "ROUNDING_RULES",
    "AnyGuarantee",
    "BagLaplace",
    "Certificate",
    "ConcentratedGuarantee",
    "DirectionNoise",
    "FiniteMechanism",
    "GaussianNoise",
    "Guarantee",
    "HyperbolicLaplace",
    "InterpolatedMechanism",
    "KernelMechanism",
    "LaplaceNoise",
    "Lattice",
    "Limited",
    "LocalMechanism",
    "MatrixMechanism",
    "Mechanism",
    "NearestMechanism",
    "OutlineLaplace",
    "ProductMechanism",
    "ProjectedLaplace",
    "Rule",
    "SphericalGaussian",
    "SphericalLaplace",
    "Stakes",
    "StreetMechanism",
    "VectorLaplace",
    "Witness",
    "corner_weights",
    "pure",
]
