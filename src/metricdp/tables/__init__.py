"""Tables in, protected tables out: data frames in memory, files of any length, and the caller's own engine."""

from metricdp.tables.anything import perturb
from metricdp.tables.file import perturb_file
from metricdp.tables.formats import Reading
from metricdp.tables.kernel import perturb_batch
from metricdp.tables.many import perturb_files
from metricdp.tables.persons import Charging
from metricdp.tables.summary import Summary
from metricdp.tables.task import Task, task_for

__all__ = [
    "Charging",
    "Reading",
    "Summary",
    "Task",
    "perturb",
    "perturb_batch",
    "perturb_file",
    "perturb_files",
    "task_for",
]
