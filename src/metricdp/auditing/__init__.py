"""Auditing: what a mechanism really leaks and really costs."""

from metricdp.auditing.bounds import (
    block_lower_bound,
    representative_lower_bound,
    universal_lower_bound,
)
from metricdp.auditing.exact import audit_matrix
from metricdp.auditing.judge import audit
from metricdp.auditing.leakage import adversary_error, epsilon_at, posterior_leakage, violation_ratio
from metricdp.auditing.report import AuditReport, Witness
from metricdp.auditing.sampled import audit_samples
from metricdp.auditing.sampled_density import continuous_violations
from metricdp.auditing.utility import expected_loss, packing_lower_bound, quantile_loss, worst_loss

__all__ = [
    "AuditReport",
    "Witness",
    "adversary_error",
    "audit",
    "audit_matrix",
    "audit_samples",
    "block_lower_bound",
    "continuous_violations",
    "epsilon_at",
    "expected_loss",
    "packing_lower_bound",
    "posterior_leakage",
    "quantile_loss",
    "representative_lower_bound",
    "universal_lower_bound",
    "violation_ratio",
    "worst_loss",
]
