"""What a table engine is: whoever runs the partitions of a job over files, possibly one of them twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from metricdp.tables.jobs.plan import Job
from metricdp.tables.pump import Tell


class Run(Protocol):
    """How an engine runs the pending partitions of a job.

    For every pending number somebody calls `run_partition(job.folder, number)`: in any order, in any process that sees
    the folder, as often as it takes, since it gives the same reports every time. `tell` hears the rows of every
    partition that is done. It returns when all are done, and raises what no further try can mend.
    """

    def __call__(self, job: Job, pending: Sequence[int], tell: Tell, /, *, workers: int | None = None) -> None: ...


@dataclass(frozen=True)
class Engine:
    """A table engine, declared once, in its own file.

    Attributes:
        name: `perturb_files(..., engine=name)` and `metricdp perturb --engine name`.
        about: One line for people.
        run: How it runs partitions.
        extra: The extra of metricdp that brings what it needs; empty where it needs nothing.
    """

    name: str
    about: str
    run: Run
    extra: str = ""
