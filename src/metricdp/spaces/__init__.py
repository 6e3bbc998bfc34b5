"""Where secrets live: finitely many points, also with a context, a box, the plane, the Earth, streets, products."""

from metricdp.spaces.augmented import Augmented as Augmented
from metricdp.spaces.base import ON_EARTH as ON_EARTH
from metricdp.spaces.base import UNDER_LP as UNDER_LP
from metricdp.spaces.base import UNDER_NORMS as UNDER_NORMS
from metricdp.spaces.base import Space as Space
from metricdp.spaces.base import Under as Under
from metricdp.spaces.base import exchange_hint as exchange_hint
from metricdp.spaces.base import mark_checked as mark_checked
from metricdp.spaces.base import require_space as require_space
from metricdp.spaces.continuous import Box as Box
from metricdp.spaces.continuous import Sphere as Sphere
from metricdp.spaces.continuous import Unbounded as Unbounded
from metricdp.spaces.finite import ROUNDING as ROUNDING
from metricdp.spaces.finite import FiniteSpace as FiniteSpace
from metricdp.spaces.near import Near as Near
from metricdp.spaces.product import ProductSpace as ProductSpace
from metricdp.spaces.schema import SPACES as SPACES
from metricdp.spaces.streets import Streets as Streets
