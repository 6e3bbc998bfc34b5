"""Where secrets live: finitely many points, those with a context, a box, the whole plane or the Earth."""

from metricdp.spaces.augmented import Augmented
from metricdp.spaces.continuous import Box, Unbounded
from metricdp.spaces.finite import ROUNDING, FiniteSpace

Space = FiniteSpace | Box | Unbounded

__all__ = ["ROUNDING", "Augmented", "Box", "FiniteSpace", "Space", "Unbounded"]
