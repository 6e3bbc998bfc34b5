"""Jobs over many files: the plan, the working folder, one partition at work, and how workers get what they need."""

from metricdp.tables.jobs.folder import Record, run_partition
from metricdp.tables.jobs.plan import Job, sources_of
from metricdp.tables.pipeline import Tell

__all__ = ["Job", "Record", "Tell", "run_partition", "sources_of"]
