"""Running a job again from its key, to compare with what it released."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from metricdp.tables.jobs.plan import read_job, run_partition

JOB = ".metricdp-job"


def replayed(out: Path, job: Path, place: Path) -> None:
    """Run every partition again from a copy of the job (its key included) and compare with what was released."""
    place.mkdir()
    shutil.copytree(job, place / JOB)
    entry = json.loads((place / JOB / "job.json").read_text())
    (place / JOB / "job.json").write_text(json.dumps(entry | {"target": str(place)}))
    for number, partition in enumerate(read_job(place / JOB).partitions):
        run_partition(str(place / JOB), number)
        assert (place / partition.target).read_bytes() == (out / partition.target).read_bytes()
