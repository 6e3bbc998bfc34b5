"""Mechanisms: what they are, what they guarantee, how they draw."""

from metricdp.mechanisms.base import AnyGuarantee as AnyGuarantee
from metricdp.mechanisms.base import Certificate as Certificate
from metricdp.mechanisms.base import Guarantee as Guarantee
from metricdp.mechanisms.base import LimitedNoise as LimitedNoise
from metricdp.mechanisms.base import LossBasis as LossBasis
from metricdp.mechanisms.base import Mechanism as Mechanism
from metricdp.mechanisms.base import Witness as Witness
from metricdp.mechanisms.base import require_pure as require_pure
from metricdp.mechanisms.concentrated import APPROXIMATE as APPROXIMATE
from metricdp.mechanisms.concentrated import ConcentratedGuarantee as ConcentratedGuarantee
from metricdp.mechanisms.concentrated import rho_for as rho_for
from metricdp.mechanisms.kind import MECHANISMS as MECHANISMS
from metricdp.mechanisms.kinds.bags import BagLaplace as BagLaplace
from metricdp.mechanisms.kinds.directions import DirectionNoise as DirectionNoise
from metricdp.mechanisms.kinds.gaussian import GaussianNoise as GaussianNoise
from metricdp.mechanisms.kinds.hyperbolic import HyperbolicLaplace as HyperbolicLaplace
from metricdp.mechanisms.kinds.interpolated import ROUNDING_RULES as ROUNDING_RULES
from metricdp.mechanisms.kinds.interpolated import InterpolatedMechanism as InterpolatedMechanism
from metricdp.mechanisms.kinds.interpolated import Rule as Rule
from metricdp.mechanisms.kinds.interpolated import corner_weights as corner_weights
from metricdp.mechanisms.kinds.kernel import KernelMechanism as KernelMechanism
from metricdp.mechanisms.kinds.laplace import VectorLaplace as VectorLaplace
from metricdp.mechanisms.kinds.local import LocalMechanism as LocalMechanism
from metricdp.mechanisms.kinds.matrix import MatrixMechanism as MatrixMechanism
from metricdp.mechanisms.kinds.nearest import NearestMechanism as NearestMechanism
from metricdp.mechanisms.kinds.outlines import OutlineLaplace as OutlineLaplace
from metricdp.mechanisms.kinds.product import ProductMechanism as ProductMechanism
from metricdp.mechanisms.kinds.projected import ProjectedLaplace as ProjectedLaplace
from metricdp.mechanisms.kinds.spherical import SphericalLaplace as SphericalLaplace
from metricdp.mechanisms.kinds.spherical_gaussian import SphericalGaussian as SphericalGaussian
from metricdp.mechanisms.kinds.streets import StreetMechanism as StreetMechanism
from metricdp.mechanisms.lattice import LaplaceNoise as LaplaceNoise
from metricdp.mechanisms.lattice import Lattice as Lattice

FiniteMechanism = MatrixMechanism | LocalMechanism | KernelMechanism  # between finite spaces: three ways to hold rows
