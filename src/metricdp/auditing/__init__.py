"""Auditing: what a mechanism really leaks and really costs. Bounds, which need a solver, are loaded when first used."""

from typing import TYPE_CHECKING

from metricdp.auditing.accuracy import accuracy_radius
from metricdp.auditing.betting import PROBED, audit_sampler, audit_samples
from metricdp.auditing.claim import Claim
from metricdp.auditing.concentrated import ConcentratedReport, audit_concentrated, concentrated, delta_at
from metricdp.auditing.context import CurrentPlace, bottleneck_distance, current_place
from metricdp.auditing.densities import (
    COUNT_TOLERANCE,
    Approximate,
    continuous_violations,
    law_violations,
    log_ratios,
)
from metricdp.auditing.exact import audit_matrix
from metricdp.auditing.judging import audit, judge
from metricdp.auditing.leakage import adversary_error, epsilon_at, posterior_leakage, violation_ratio
from metricdp.auditing.local import audit_local
from metricdp.auditing.loss import expected_loss, packing_lower_bound, quantile_loss, worst_loss
from metricdp.auditing.positions import between_positions, position_factor
from metricdp.auditing.report import AuditReport, Finding
from metricdp.auditing.shuffling import shuffled_delta, shuffled_epsilon
from metricdp.auditing.sparse import SparseLaw
from metricdp.auditing.traces import bounded_range, trace_leakage
from metricdp.catalogue import named_later
from metricdp.mechanisms import Witness

if TYPE_CHECKING:
    from metricdp.auditing.bounds import (
        anywhere_lower_bound,
        representative_lower_bound,
        trivial_lower_bound,
        universal_lower_bound,
    )

__all__ = [
    "COUNT_TOLERANCE",
    "PROBED",
    "Approximate",
    "AuditReport",
    "Claim",
    "ConcentratedReport",
    "CurrentPlace",
    "Finding",
    "SparseLaw",
    "Witness",
    "accuracy_radius",
    "adversary_error",
    "anywhere_lower_bound",
    "audit",
    "audit_concentrated",
    "audit_local",
    "audit_matrix",
    "audit_sampler",
    "audit_samples",
    "between_positions",
    "bottleneck_distance",
    "bounded_range",
    "concentrated",
    "continuous_violations",
    "current_place",
    "delta_at",
    "epsilon_at",
    "expected_loss",
    "judge",
    "law_violations",
    "log_ratios",
    "packing_lower_bound",
    "position_factor",
    "posterior_leakage",
    "quantile_loss",
    "representative_lower_bound",
    "shuffled_delta",
    "shuffled_epsilon",
    "trace_leakage",
    "trivial_lower_bound",
    "universal_lower_bound",
    "violation_ratio",
    "worst_loss",
]

__getattr__ = named_later(
    __name__,
    {
        "bounds": [
            "anywhere_lower_bound",
            "representative_lower_bound",
            "trivial_lower_bound",
            "universal_lower_bound",
        ],
    },
)
