"""Design: how a mechanism is made. The only package where privacy meets solvers."""

from ._certify import certify as certify
from .builders import BUILDERS as BUILDERS
from .builders import Builder as Builder
from .builders import builder_named as builder_named
from .comparison.measures import Measure as Measure
from .comparison.trials import ComparisonSpec as ComparisonSpec
from .comparison.trials import noise_mismatch as noise_mismatch
from .comparison.trials import noise_of as noise_of
from .components import build_by_component as build_by_component
from .components import is_disconnected as is_disconnected
from .constopt import PUBLISHED_PENALTIES as PUBLISHED_PENALTIES
from .contextual import near_stretch as near_stretch
from .decomposed import Neighbours as Neighbours
from .interpolation.anchors import grid_edges as grid_edges
from .optimal import exact_edges as exact_edges
from .optimal import plain_columns as plain_columns
from .post_processing import prunable as prunable
from .post_processing import prune_reports as prune_reports
from .post_processing import pruned_leakage as pruned_leakage
from .post_processing import pruning_cost as pruning_cost
from .privacy_levels import ConcentratedLevel as ConcentratedLevel
from .privacy_levels import PrivacyLevel as PrivacyLevel
from .time_limits import build_in_time as build_in_time
