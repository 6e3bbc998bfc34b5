"""Jobs over many files: the plan, the working folder, one partition at work, and how workers get what they need."""

from metricdp.tables.jobs.folder import Record, run_partition
from metricdp.tables.jobs.plan import JobPlan
from metricdp.tables.pipeline import RowProgress
from metricdp.tables.sources import sources_of

__all__ = ["JobPlan", "Record", "RowProgress", "run_partition", "sources_of"]
