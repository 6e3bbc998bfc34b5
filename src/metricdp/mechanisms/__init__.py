"""Mechanisms: what they are, what they promise, how they draw."""

from metricdp.mechanisms.bags import BagLaplace
from metricdp.mechanisms.base import AnyGuarantee, Certificate, Guarantee, Limited, Mechanism, Stakes, Witness, pure
from metricdp.mechanisms.concentrated import ConcentratedGuarantee
from metricdp.mechanisms.directions import DirectionNoise
from metricdp.mechanisms.gaussian import GaussianNoise
from metricdp.mechanisms.hyperbolic import HyperbolicLaplace
from metricdp.mechanisms.interpolated import ROUNDING_RULES, InterpolatedMechanism, Rule, corner_weights
from metricdp.mechanisms.kernel import KernelMechanism
from metricdp.mechanisms.kind import MECHANISMS
from metricdp.mechanisms.laplace import LaplaceNoise, Lattice, VectorLaplace
from metricdp.mechanisms.local import LocalMechanism
from metricdp.mechanisms.matrix import MatrixMechanism
from metricdp.mechanisms.nearest import NearestMechanism
from metricdp.mechanisms.outlines import OutlineLaplace
from metricdp.mechanisms.product import ProductMechanism
from metricdp.mechanisms.projected import ProjectedLaplace
from metricdp.mechanisms.spherical import SphericalLaplace
from metricdp.mechanisms.spherical_gaussian import SphericalGaussian
from metricdp.mechanisms.streets import StreetMechanism

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
