"""Where secrets live: finitely many points, also with a context, a box, the plane, the Earth, streets, products."""

from metricdp.spaces.augmented import Augmented
from metricdp.spaces.base import ON_EARTH, UNDER_LP, UNDER_NORMS, Space, Under, checked, exchange_hint, given
from metricdp.spaces.continuous import Box, Unbounded
from metricdp.spaces.declared import SPACES
from metricdp.spaces.finite import ROUNDING, FiniteSpace
from metricdp.spaces.near import Near
from metricdp.spaces.product import ProductSpace
from metricdp.spaces.sphere import Sphere
from metricdp.spaces.streets import Streets

__all__ = [
    "ON_EARTH",
    "ROUNDING",
    "SPACES",
    "UNDER_LP",
    "UNDER_NORMS",
    "Augmented",
    "Box",
    "FiniteSpace",
    "Near",
    "ProductSpace",
    "Space",
    "Sphere",
    "Streets",
    "Unbounded",
    "Under",
    "checked",
    "exchange_hint",
    "given",
]
