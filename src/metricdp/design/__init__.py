"""Design: how a mechanism is made. The only room where privacy meets solvers.

Every builder lives in the module of its idea, named in `builders`, and is loaded when first used. So is what stands
here beside them: what studies, comparisons and plugins are made of.
"""

from typing import TYPE_CHECKING

from metricdp.catalogue import named_later

if TYPE_CHECKING:
    from metricdp.design._certify import certify
    from metricdp.design.builders import BUILDERS, Builder, builder_named
    from metricdp.design.comparison.noises import no_noise, noise_of
    from metricdp.design.comparison.rivals import Question
    from metricdp.design.constopt import PUBLISHED_PENALTIES
    from metricdp.design.contextual import near_stretch
    from metricdp.design.decomposed import Neighbours
    from metricdp.design.interpolation.anchors import grid_edges
    from metricdp.design.levels import ConcentratedLevel, Level
    from metricdp.design.optimal import exact_edges, plain_columns
    from metricdp.design.parts import falls_apart, part_by_part
    from metricdp.design.timely import in_time

__all__ = [
    "BUILDERS",
    "PUBLISHED_PENALTIES",
    "Builder",
    "ConcentratedLevel",
    "Level",
    "Neighbours",
    "Question",
    "builder_named",
    "certify",
    "exact_edges",
    "falls_apart",
    "grid_edges",
    "in_time",
    "near_stretch",
    "no_noise",
    "noise_of",
    "part_by_part",
    "plain_columns",
]

__getattr__ = named_later(
    __name__,
    {
        "_certify": ["certify"],
        "builders": ["BUILDERS", "Builder", "builder_named"],
        "comparison.noises": ["no_noise", "noise_of"],
        "comparison.rivals": ["Question"],
        "constopt": ["PUBLISHED_PENALTIES"],
        "contextual": ["near_stretch"],
        "decomposed": ["Neighbours"],
        "interpolation.anchors": ["grid_edges"],
        "levels": ["ConcentratedLevel", "Level"],
        "optimal": ["exact_edges", "plain_columns"],
        "parts": ["falls_apart", "part_by_part"],
        "timely": ["in_time"],
    },
)
