"""Design: how a mechanism is made. The only room where privacy meets solvers.

Every builder lives in the module of its idea, named in `builders`, and is loaded when first used. So is what stands
here beside them: what studies, comparisons and plugins are made of.
"""

from typing import TYPE_CHECKING

from metricdp.registry import lazy_names

if TYPE_CHECKING:
    from metricdp.design._certify import certify as certify
    from metricdp.design.builders import BUILDERS as BUILDERS
    from metricdp.design.builders import Builder as Builder
    from metricdp.design.builders import builder_named as builder_named
    from metricdp.design.comparison.noises import noise_mismatch as noise_mismatch
    from metricdp.design.comparison.noises import noise_of as noise_of
    from metricdp.design.comparison.trials import ComparisonSpec as ComparisonSpec
    from metricdp.design.components import build_by_component as build_by_component
    from metricdp.design.components import is_disconnected as is_disconnected
    from metricdp.design.constopt import PUBLISHED_PENALTIES as PUBLISHED_PENALTIES
    from metricdp.design.contextual import near_stretch as near_stretch
    from metricdp.design.decomposed import Neighbours as Neighbours
    from metricdp.design.interpolation.anchors import grid_edges as grid_edges
    from metricdp.design.optimal import exact_edges as exact_edges
    from metricdp.design.optimal import plain_columns as plain_columns
    from metricdp.design.privacy_levels import ConcentratedLevel as ConcentratedLevel
    from metricdp.design.privacy_levels import PrivacyLevel as PrivacyLevel
    from metricdp.design.time_limits import build_in_time as build_in_time


__getattr__ = lazy_names(
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
