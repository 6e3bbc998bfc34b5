"""Betting: audits of anyone's sampler, or of what one recorded, valid whenever one stops."""

from metricdp.auditing.betting.drawing import PROBED
from metricdp.auditing.betting.sampler import audit_sampler
from metricdp.auditing.betting.samples import audit_samples

__all__ = ["PROBED", "audit_sampler", "audit_samples"]
