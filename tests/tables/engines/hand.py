"""An engine that does the work in this process: for tests of jobs, where `test_local.py` is about processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metricdp.tables import ENGINES, Engine, JobPlan, RowProgress, perturb, run_partition


def run(job: JobPlan, pending: Sequence[int], tell: RowProgress, /, *, workers: int | None = None) -> None:
    """Do one partition after the other."""
    for number in pending:
        run_partition(job.folder, number, tell)


def declare_hand() -> None:
    """Declare the engine until the end of the test."""
    if "hand" not in ENGINES.names:
        ENGINES.declare(Engine("hand", "this process", run))


def perturbed(sources: Any, target: Any, mechanism: Any, **options: Any) -> Any:
    """Run a job over files in this process."""
    declare_hand()
    return perturb(sources, mechanism, to=target, engine="hand", **options)
