"""Measure tables of vectors: 300 coordinates as float32 lists, Parquet to Parquet, l_2 noise and noise on the sphere.

    python benchmarks/vectors.py --record
    python benchmarks/vectors.py --rows 1000000 --folder /tmp

Every law runs in a process of its own, so that its peak of memory is its own; what was written is deleted.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from record import arguments, recorder

import metricdp as mdp
from metricdp.tables import perturb

GROUP, WIDTH, PIECE = "vectors", 300, 20_000


def written(path: Path, rows: int) -> None:
    """Write unit vectors as lists of floats of 32 bits, piece by piece."""
    kind, rng = pa.list_(pa.float32()), np.random.default_rng(0)
    schema = pa.schema([("id", pa.int64()), ("embedding", kind)])
    with pq.ParquetWriter(path, schema, compression="snappy", use_dictionary=False) as writer:
        for start in range(0, rows, PIECE):
            size = min(PIECE, rows - start)
            values = rng.standard_normal((size, WIDTH), dtype=np.float32)
            values /= np.linalg.norm(values, axis=1, keepdims=True)
            offsets = pa.array(np.arange(size + 1, dtype=np.int32) * WIDTH)
            lists = pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))
            writer.write_table(pa.table([pa.array(np.arange(start, start + size)), lists.cast(kind)], schema=schema))


def one(law: str, source: str, target: str) -> None:
    """Protect a file and print what it took."""
    made = {
        "l2": lambda: mdp.laplace(mdp.Lp(2), 50.0, dimension=WIDTH),
        "angle": lambda: mdp.laplace(mdp.Angular(), 50.0, dimension=WIDTH),
        "von Mises-Fisher": lambda: mdp.von_mises_fisher(mdp.Lp(2), 50.0, dimension=WIDTH),
    }
    mechanism = made[law]()
    wall, processor = time.perf_counter(), time.process_time()
    summary = perturb(source, mechanism, to=target, columns="embedding", overwrite=True)
    spent = (time.perf_counter() - wall, time.process_time() - processor)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": summary.rows, "wall": spent[0], "processor": spent[1], "megabytes": peak}))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--one", nargs=3, default=None)
    chosen = parser.parse_args()
    if chosen.one:
        one(*chosen.one)
        return
    keep = recorder(chosen.record)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        source, target = Path(folder) / "in.parquet", Path(folder) / "out.parquet"
        written(source, chosen.rows)
        for law in ("l2", "angle", "von Mises-Fisher"):
            asked = [sys.executable, __file__, "--one", law, str(source), str(target)]
            done = subprocess.run(asked, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout.splitlines()[-1])
            measured = (
                f"{found['rows']:,} vectors: {found['rows'] / found['wall']:,.0f} a second, "
                f"{1e6 * found['processor'] / found['rows']:.1f} microseconds of a processor each, "
                f"{found['megabytes']:,.0f} MB at most"
            )
            print(law, measured, flush=True)
            keep(GROUP, f"float32 lists of 300, Parquet to Parquet, {law}", asked="20,000 a second, under 1 GB",
                 measured=measured, **found)  # fmt: skip
            target.unlink()


if __name__ == "__main__":
    sys.exit(main())
