"""A table engine of one's own: the partitions of a job over files on the threads of this process."""

import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import metricdp as mdp
from metricdp.tables.engines import ENGINES, Engine
from metricdp.tables.jobs import JobPlan, RowProgress, run_partition


def run(job: JobPlan, pending: Sequence[int], tell: RowProgress, /, *, workers: int | None = None) -> None:
    """Run every pending partition once; the folder of the job holds all that is needed, and takes what is made."""
    with ThreadPoolExecutor(workers) as pool:
        for record in pool.map(lambda number: run_partition(job.folder, number), pending):
            tell(record.rows)


ENGINES.declare(Engine("threads", "threads of one process", run))

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        days = Path(folder) / "days"
        days.mkdir()
        for day in ("monday.csv", "tuesday.csv"):
            rows = (f"{41.15 + row / 1e5:.5f},{-8.61 - row / 1e5:.5f}\n" for row in range(1000))
            (days / day).write_text("lat,lon\n" + "".join(rows))
        noise = mdp.laplace(mdp.Haversine(), 10.0)
        print(mdp.perturb(days, noise, to=Path(folder) / "protected", engine="threads").rows)
