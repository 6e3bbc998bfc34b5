"""Betting: audits of anyone's sampler, or of what one recorded, valid whenever one stops."""

from metricdp.auditing.betting.dealing import PROBED
from metricdp.auditing.betting.recorded import audit_samples
from metricdp.auditing.betting.sampler import audit_sampler

__all__ = ["PROBED", "audit_sampler", "audit_samples"]
