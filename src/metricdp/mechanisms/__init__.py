"""Mechanisms: what they are, what they promise, how they draw."""

from metricdp.mechanisms.base import Certificate, Guarantee, Mechanism, Witness
from metricdp.mechanisms.interpolated import InterpolatedMechanism
from metricdp.mechanisms.laplace import Lattice, SphericalLaplace, VectorLaplace
from metricdp.mechanisms.matrix import MatrixMechanism
from metricdp.mechanisms.nearest import NearestMechanism
from metricdp.mechanisms.product import ProductMechanism
from metricdp.mechanisms.streets import StreetMechanism

__all__ = [
    "Certificate",
    "Guarantee",
    "InterpolatedMechanism",
    "Lattice",
    "MatrixMechanism",
    "Mechanism",
    "NearestMechanism",
    "ProductMechanism",
    "SphericalLaplace",
    "StreetMechanism",
    "VectorLaplace",
    "Witness",
]
