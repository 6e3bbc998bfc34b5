"""Tables in, protected tables out: data frames in memory and files of any length."""

from metricdp.tables.columns import Task, task_for
from metricdp.tables.frames import perturb
from metricdp.tables.kernel import perturb_batch
from metricdp.tables.stream import perturb_file
from metricdp.tables.summary import Summary

__all__ = ["Summary", "Task", "perturb", "perturb_batch", "perturb_file", "task_for"]
