"""Measure tables: ten million GPS rows from Parquet to Parquet, the peers' loops, and the law on every engine.

python benchmarks/tables.py rows [--rows 10000000] [--folder FOLDER]
python benchmarks/tables.py peers --python PYTHON_OF_AN_ENVIRONMENT_WITH_THEM
    (pip install qif opendp diffprivlib "scikit-learn==1.6.1" numpy)
python benchmarks/tables.py law [--draws 1000000] [--engines pandas,polars,duckdb,arrow,local,spark,ray]

With --record the figures are kept.
Wall time is what a user waits for; on a machine that others use, look at the processor time (children included).
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from record import Recorder, arguments, recorder
from scipy.stats import chi2

import metricdp as mdp
from metricdp.tables import perturb

SECRETS = 1000
MILLION = 1_000_000
BAR = "2 million rows/s, under 1 GB"


def processor() -> float:
    """Return the processor seconds of this process and its finished children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Resident:
    """Follows the resident memory of this process and all its children."""

    def __enter__(self) -> Resident:
        self.peak, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.peak = max(self.peak, self._now())

    def _now(self) -> float:
        parents = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                except (OSError, IndexError):
                    continue
        total = 0
        for pid in parents:
            above = pid
            while above in parents and above != os.getpid():
                above = parents[above]
            if above == os.getpid():
                total += self._share(pid)
        return total / 1024

    def _share(self, pid: int) -> int:
        """Return the kilobytes of a process; pages shared with others count in parts."""
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def write_points(path: Path, rows: int, places: Any = None) -> None:
    """Write GPS rows with a person and a time, a million a row group."""
    rng = np.random.default_rng(0)
    schema = pa.schema({"user": pa.int64(), "time": pa.timestamp("s"), "lat": pa.float64(), "lon": pa.float64()})
    with pq.ParquetWriter(path, schema, use_dictionary=["user"]) as writer:
        for start in range(0, rows, 1 << 20):
            count = min(1 << 20, rows - start)
            if places is None:
                spots = rng.uniform([41.1, -8.7], [41.2, -8.5], (count, 2))
            else:
                spots = places[rng.integers(0, len(places), count)]
            times = np.arange(start, start + count) + 1_700_000_000
            users = rng.integers(0, 50_000, count)
            columns = [
                pa.array(users),
                pa.array(times, pa.timestamp("s")),
                pa.array(spots[:, 0]),
                pa.array(spots[:, 1]),
            ]
            writer.write_table(pa.table(columns, schema=schema))


def measured(name: str, rows: int, call: Callable[[], Any]) -> tuple[str, dict[str, float]]:
    """Return speed, processor time and memory of a call, in words and as values."""
    with Resident() as memory:
        wall, spent = time.perf_counter(), processor()
        call()
        wall, spent = time.perf_counter() - wall, processor() - spent
    print(
        f"{name}: {rows / wall / 1e6:.2f} million rows/s ({wall:.2f} s wall, {spent:.2f} s of processor, "
        f"{rows / spent / 1e6:.2f} million rows a processor second), at most {memory.peak:.0f} MB resident, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    told = f"{rows / wall / 1e6:.2f} million rows/s, {spent:.1f} processor s, {memory.peak:.0f} MB"
    return told, {"seconds": wall, "processor_seconds": spent, "megabytes": memory.peak}


def benchmark_rows(rows: int, folder: Path, ways: str, keep: Recorder) -> None:
    rng = np.random.default_rng(1)
    places = rng.uniform([41.1, -8.7], [41.2, -8.5], (SECRETS, 2))
    write_points(folder / "points.parquet", rows)
    write_points(folder / "places.parquet", rows, places)
    noise = mdp.laplace(mdp.Haversine(), 10.0)
    planar = mdp.laplace(mdp.Lp(2), 1000.0, dimension=2)
    matrix = mdp.exponential(mdp.FiniteSpace(places, mdp.Haversine()), 10.0)
    matrix.sample([0])  # the sampler's tables are made once
    cases = [
        ("spherical Laplace", "points", noise, {}),
        ("planar Laplace", "points", planar, {"columns": ["lat", "lon"]}),
        ("matrix of 1,000 secrets, rows on secrets", "places", matrix, {}),
        ("rows snapped to the secrets", "points", matrix, {"snap": 5.0}),
    ]
    whole = rows == 10 * MILLION
    jobs = []
    for number, (name, source, mechanism, options) in enumerate(cases):
        path = folder / f"{source}.parquet"
        call = partial(perturb, path, mechanism, to=folder / "out.parquet", overwrite=True, **options)
        told, values = measured(f"{name}, one file", rows, call)
        what = f"{'10 million' if whole else f'{rows:,}'} GPS rows, Parquet to Parquet, {name}"
        if whole and number:  # the page says it once
            what = f"the same, {name}"
        keep("tables", what, asked=(BAR if not number else "the same") if whole else "", measured=told, **values)
        if "local" not in ways:
            continue
        # a folder of its own: where a job was finished, the same rows are not protected a second time
        call = partial(perturb, path, mechanism, to=folder / f"out{number}", engine="local", **options)
        jobs.append(measured(f"{name}, --engine local", rows, call))
        shutil.rmtree(folder / f"out{number}")
    if jobs:
        keep(
            "tables",
            f"{'the same four' if whole else f'four times {rows:,} rows'} as a job with `--engine local` "
            "(three processes, start included)",
            asked="the same" if whole else "",
            measured="; ".join(told for told, _ in jobs),
            runs=[values for _, values in jobs],
        )


PEERS = {
    "libqif's loop": """
from qif import mechanism
def call(): return [mechanism.geo_ind.planar_laplace_sample(0.01) for _ in range({count})]
""",
    "OpenDP, user measurement": """
import numpy as np, opendp.prelude as dp
dp.enable_features("contrib", "honest-but-curious")
rng = np.random.default_rng()
def planar(values):
    rows = np.asarray(values).reshape(-1, 2)
    angle, radius = rng.uniform(0, 2 * np.pi, len(rows)), rng.gamma(2, 1 / 0.01, len(rows))
    return (rows + (radius * np.stack([np.cos(angle), np.sin(angle)])).T).ravel().tolist()
domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
measurement = dp.m.make_user_measurement(
    domain, dp.l2_distance(T=float), dp.max_divergence(), planar, lambda d: 0.01 * d, TO="Vec<f64>")
points = np.random.default_rng(0).uniform(0, 1000, 2 * {count}).tolist()
def call(): return measurement(points)
""",
    "diffprivlib, Laplace a coordinate": """
from diffprivlib.mechanisms import Laplace
noise = Laplace(epsilon=0.01, sensitivity=1)
def call(): return [noise.randomise(0.0) for _ in range(2 * {count})]
""",
}
TIMING = """
import time
figures = []
for _ in range({runs}):
    wall, processor = time.perf_counter(), time.process_time()
    call()
    figures.append((time.perf_counter() - wall, time.process_time() - processor))
print(*min(figures))
"""


AGAINST = {  # what the page calls them (it says once how many rows), and the bar
    "libqif's loop": ("one million rows against libqif's loop", "3x"),
    "OpenDP, user measurement": ("against OpenDP's user measurement", "10x"),
    "diffprivlib, Laplace a coordinate": ("against diffprivlib's Laplace a coordinate", "10x"),
}


def benchmark_peers(python: str, count: int, runs: int, keep: Recorder) -> None:
    quiet = ", quiet" if os.getloadavg()[0] < 1.0 else ""
    rng = np.random.default_rng(0)
    planar = pa.table({"x": rng.uniform(0, 1000, count), "y": rng.uniform(0, 1000, count)})
    earth = pa.table({"lat": rng.uniform(41.1, 41.2, count), "lon": rng.uniform(-8.7, -8.5, count)})
    ours = {}
    for name, table, mechanism in (
        ("ours, planar", planar, mdp.laplace(mdp.Lp(2), 0.01, dimension=2)),
        ("ours, on the Earth", earth, mdp.laplace(mdp.Haversine(), 10.0)),
    ):
        figures = []
        for _ in range(runs):
            wall, spent = time.perf_counter(), time.process_time()
            mdp.perturb(table, mechanism)
            figures.append((time.perf_counter() - wall, time.process_time() - spent))
        ours[name] = min(figures)
        print(f"{name}: {ours[name][0]:.3f} s wall, {ours[name][1]:.3f} s of processor (best of {runs})")
    for name, code in PEERS.items():
        tries = 1 if name.startswith("diffprivlib") else runs
        whole = code.format(count=count) + TIMING.format(runs=tries)
        done = subprocess.run([python, "-W", "ignore", "-c", whole], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: not measured,", (done.stderr.strip().splitlines() or ["no reason given"])[-1])
            continue
        wall, spent = (float(figure) for figure in done.stdout.split()[-2:])
        ratios = ", ".join(
            f"{wall / other[0]:.1f}x by wall and {spent / other[1]:.1f}x by processor of {label}"
            for label, other in ours.items()
        )
        print(f"{name}: {wall:.2f} s wall, {spent:.2f} s of processor (best of {tries}): {ratios}")
        (planar_wall, planar_spent), (earth_wall, earth_spent) = ours.values()
        what, bar = AGAINST[name]
        if count != MILLION:
            what = f"{count:,} rows against {name}"
        keep(
            "tables",
            f"{what}, same run{quiet}",
            asked=bar if count == MILLION else "",
            measured=f"by wall (our two threads) planar {wall / planar_wall:.1f}x, on the Earth "
            f"{wall / earth_wall:.1f}x; by processor {spent / planar_spent:.1f}x and {spent / earth_spent:.1f}x",
            seconds=wall,
            processor_seconds=spent,
            ours=ours,
        )


CELLS = mdp.FiniteSpace([[float(i), float(j)] for i in range(3) for j in range(3)], mdp.Lp(2))


NAMES = {
    "pandas": "pandas",
    "polars": "Polars (lazy)",
    "duckdb": "DuckDB",
    "arrow": "Arrow",
    "local": "local files",
    "spark": "Spark",
    "ray": "Ray",
}


def benchmark_law(draws: int, engines: list[str], folder: Path, keep: Recorder) -> None:
    mechanism = mdp.exponential(CELLS, 0.9)
    codes = np.random.default_rng(0).integers(0, 9, draws)
    before = pa.table(
        {"id": np.arange(draws), "x": CELLS.points[codes, 0], "y": CELLS.points[codes, 1], "t": codes * 7}
    )
    chances, changed, shuffled = [], [], []
    for engine in engines:
        wall = time.perf_counter()
        after = on_engine(engine, before, mechanism, folder / engine)
        wall = time.perf_counter() - wall
        order = "kept" if after["id"].equals(before["id"]) else "not kept by the engine"
        after = after.sort_by("id")
        untouched = after["id"].equals(before["id"]) and after["t"].equals(before["t"])
        reports = (3 * np.asarray(after["x"]) + np.asarray(after["y"])).astype(int)
        counts = np.zeros((9, 9))
        np.add.at(counts, (codes, reports), 1)
        law = mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True)
        expected = law * counts.sum(axis=1, keepdims=True)
        statistic = float(((counts - expected) ** 2 / expected).sum())
        chances.append(float(chi2.sf(statistic, 72)))
        changed += [] if untouched else [NAMES[engine]]
        shuffled += [] if order == "kept" else [NAMES[engine]]
        print(
            f"{engine}: {draws:,} draws, chi-square {statistic:.1f} on 72 degrees of freedom, "
            f"p {chances[-1]:.3f}; other columns {'untouched' if untouched else 'CHANGED'}; "
            f"row order {order}; {wall:.1f} s"
        )
    words = "one million" if draws == MILLION else f"{draws:,}"
    keep(
        "tables",
        f"{words} draws each on " + ", ".join(NAMES[engine] for engine in engines),
        asked="chi-square, other columns untouched, order kept",
        measured=f"p {', '.join(f'{chance:.2f}' for chance in chances)}; "
        f"other columns {'CHANGED on ' + ', '.join(changed) if changed else 'untouched'} and "
        f"{'not in order on ' + ', '.join(shuffled) if shuffled else 'in order'}",
        p=dict(zip(engines, chances, strict=True)),
    )


def on_engine(engine: str, before: pa.Table, mechanism: Any, folder: Path) -> pa.Table:
    """Protect the table on one engine and return it as an Arrow table."""
    folder.mkdir()
    if engine == "pandas":
        return pa.Table.from_pandas(mdp.perturb(before.to_pandas(), mechanism), preserve_index=False)
    if engine == "polars":
        import polars

        return mdp.perturb(polars.from_arrow(before).lazy(), mechanism).to_arrow()
    if engine == "duckdb":
        import duckdb

        with duckdb.connect() as connection:
            connection.register("points", before)
            return mdp.perturb((connection, "FROM points"), mechanism, to="protected").to_arrow_table()
    if engine == "arrow":
        import pyarrow.dataset as ds

        return mdp.perturb(ds.dataset(before), mechanism, to=folder / "out.parquet").to_table()
    if engine == "ray":
        import ray

        ray.init(include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        blocks = [before.slice(start, 1 << 17) for start in range(0, before.num_rows, 1 << 17)]
        after = pa.concat_tables(ray.get(mdp.perturb(ray.data.from_arrow(blocks), mechanism).to_arrow_refs()))
        ray.shutdown()
        return after
    if engine == "spark":
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        pq.write_table(before, folder / "in.parquet", row_group_size=1 << 17)
        session = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
        frame = session.read.parquet(str(folder / "in.parquet"))
        after = mdp.perturb(frame, mechanism, to=str(folder / "out")).toArrow()
        session.stop()
        return after
    pq.write_table(before, folder / "in.parquet", row_group_size=1 << 17)
    perturb(folder / "in.parquet", mechanism, to=folder / "out", engine="local")
    return pa.concat_tables([pq.read_table(path) for path in sorted((folder / "out").glob("*.parquet"))])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", choices=["rows", "peers", "law"])
    parser.add_argument("--rows", type=int, default=10 * MILLION)
    parser.add_argument("--ways", default="file,local", help="one file by threads, and the same by the local engine")
    parser.add_argument("--draws", type=int, default=MILLION)
    parser.add_argument("--count", type=int, default=MILLION, help="points for the peers")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="the Python that has the peers")
    parser.add_argument("--engines", default="pandas,polars,duckdb,arrow,local,spark,ray")
    parser.add_argument("--folder", type=Path, default=None, help="where the files go; a temporary folder unless said")
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        if chosen.what == "rows":
            benchmark_rows(chosen.rows, Path(folder), chosen.ways, keep)
        elif chosen.what == "peers":
            benchmark_peers(chosen.python, chosen.count, chosen.runs, keep)
        else:
            benchmark_law(chosen.draws, chosen.engines.split(","), Path(folder), keep)


if __name__ == "__main__":
    main()
