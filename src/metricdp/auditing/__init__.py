"""Auditing: what a mechanism really leaks and really costs. Bounds, which need a solver, are loaded when first used."""

from typing import TYPE_CHECKING

from metricdp.auditing.accuracy import accuracy_radius as accuracy_radius
from metricdp.auditing.betting import PROBED as PROBED
from metricdp.auditing.betting import audit_sampler as audit_sampler
from metricdp.auditing.betting import audit_samples as audit_samples
from metricdp.auditing.claim import Claim as Claim
from metricdp.auditing.concentrated import ConcentratedReport as ConcentratedReport
from metricdp.auditing.concentrated import audit_concentrated as audit_concentrated
from metricdp.auditing.concentrated import concentrated as concentrated
from metricdp.auditing.concentrated import delta_at as delta_at
from metricdp.auditing.context import CurrentPlace as CurrentPlace
from metricdp.auditing.context import bottleneck_distance as bottleneck_distance
from metricdp.auditing.context import current_place as current_place
from metricdp.auditing.densities import COUNT_TOLERANCE as COUNT_TOLERANCE
from metricdp.auditing.densities import ApproximateDistribution as ApproximateDistribution
from metricdp.auditing.densities import continuous_violations as continuous_violations
from metricdp.auditing.densities import distribution_violations as distribution_violations
from metricdp.auditing.densities import log_ratios as log_ratios
from metricdp.auditing.dispatch import audit as audit
from metricdp.auditing.dispatch import verify_claim as verify_claim
from metricdp.auditing.exact import audit_matrix as audit_matrix
from metricdp.auditing.leakage import adversary_error as adversary_error
from metricdp.auditing.leakage import epsilon_at as epsilon_at
from metricdp.auditing.leakage import posterior_leakage as posterior_leakage
from metricdp.auditing.leakage import violation_ratio as violation_ratio
from metricdp.auditing.local import audit_local as audit_local
from metricdp.auditing.loss import expected_loss as expected_loss
from metricdp.auditing.loss import packing_lower_bound as packing_lower_bound
from metricdp.auditing.loss import quantile_loss as quantile_loss
from metricdp.auditing.loss import worst_loss as worst_loss
from metricdp.auditing.positions import position_factor as position_factor
from metricdp.auditing.positions import position_guarantee as position_guarantee
from metricdp.auditing.report import AuditReport as AuditReport
from metricdp.auditing.report import Finding as Finding
from metricdp.auditing.shuffling import shuffled_delta as shuffled_delta
from metricdp.auditing.shuffling import shuffled_epsilon as shuffled_epsilon
from metricdp.auditing.sparse import SparseDistribution as SparseDistribution
from metricdp.auditing.traces import bounded_range as bounded_range
from metricdp.auditing.traces import trace_leakage as trace_leakage
from metricdp.mechanisms import Witness as Witness
from metricdp.registry import lazy_names

if TYPE_CHECKING:
    from metricdp.auditing.bounds import anywhere_lower_bound as anywhere_lower_bound
    from metricdp.auditing.bounds import representative_lower_bound as representative_lower_bound
    from metricdp.auditing.bounds import trivial_lower_bound as trivial_lower_bound
    from metricdp.auditing.bounds import universal_lower_bound as universal_lower_bound


__getattr__ = lazy_names(
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
