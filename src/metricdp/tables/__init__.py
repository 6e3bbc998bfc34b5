"""Tables in, protected tables out: data frames in memory, files of any length, and the caller's own engine."""

from metricdp.tables.api import duckdb_table, perturb, perturb_file, perturb_files, protect_text_files, protect_texts
from metricdp.tables.kernel import perturb_batch
from metricdp.tables.options import Charging, Disclosure, Job, People, PerturbOptions, Reading
from metricdp.tables.summary import Summary
from metricdp.tables.task import Task, task_for

__all__ = [
    "Charging",
    "Disclosure",
    "Job",
    "People",
    "PerturbOptions",
    "Reading",
    "Summary",
    "Task",
    "duckdb_table",
    "perturb",
    "perturb_batch",
    "perturb_file",
    "perturb_files",
    "protect_text_files",
    "protect_texts",
    "task_for",
]
