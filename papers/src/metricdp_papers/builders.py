"""The builders of papers as a plugin: `metricdp design --plugin metricdp_papers.builders --builder dantzig_wolfe`."""

from metricdp.design import BUILDERS
from metricdp_papers.columns import BUILDER

BUILDERS.declare(BUILDER)
