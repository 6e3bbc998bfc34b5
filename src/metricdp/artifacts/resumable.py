"""Builders whose long runs are kept in a file and go on from it."""

from __future__ import annotations

import os
from pathlib import Path

from metricdp.artifacts.checkpoint import CheckpointFile
from metricdp.design.decomposed import Executor, Start
from metricdp.design.decomposed import decomposed as build
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MatrixMechanism
from metricdp.problems import Problem
from metricdp.solvers.benders.partition import PartitionName
from metricdp.solvers.program import Progress


def decomposed(
    problem: Problem,
    *,
    blocks: int = 3,
    partition: PartitionName = "balanced",
    neighbours: float | None = None,
    gap: float = 1e-3,
    seconds: float | None = None,
    start: Start = "engine",
    stabilise: bool = True,
    executor: Executor = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> MatrixMechanism:
    """Build the mechanism of least expected loss by Benders decomposition, with its state in a file.

    With `checkpoint` cuts, rows, bases, the best matrix and the bounds are kept in that file while the run goes on.
    `resume=True` goes on from it, where there is one: a run that was killed ends with the same bounds as one that was
    not. Everything else is as in `metricdp.design.decomposed.decomposed`.
    """
    if resume and checkpoint is None:
        raise InvalidInput("`resume` needs `checkpoint`, the file to go on from.")
    return build(
        problem,
        blocks=blocks,
        partition=partition,
        neighbours=neighbours,
        gap=gap,
        seconds=seconds,
        start=start,
        stabilise=stabilise,
        executor=executor,
        memory=None if checkpoint is None else CheckpointFile(Path(checkpoint), resume),
        progress=progress,
    )
