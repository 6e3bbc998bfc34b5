"""Run a job again from a copy of its folder, key included."""

from __future__ import annotations

import shutil
from pathlib import Path

from metricdp.tables import run_partition
from metricdp.tables.jobs.folder import read_job

HOME = ".out.metricdp-job"


def folder_of(place: Path) -> Path:
    """Return the folder of the one job for the output `out` of a place."""
    (folder,) = (path for path in (place / HOME).iterdir() if path.is_dir())
    return folder


def copied(place: Path) -> None:
    """Keep a copy of the job as it is now."""
    shutil.copytree(folder_of(place), place / "copy", ignore=shutil.ignore_patterns("partial"))
    (place / "copy" / "partial").mkdir()


def replayed(place: Path) -> None:
    """Run every partition again from the copy and compare with what was released."""
    for number, partition in enumerate(read_job(place / "copy").partitions):
        run_partition(str(place / "copy"), number)
        made = place / "copy" / "ready" / partition.target
        assert made.read_bytes() == (place / "out" / partition.target).read_bytes()
