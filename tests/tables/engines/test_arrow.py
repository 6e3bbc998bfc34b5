"""Arrow data sets and readers: streamed to one file, whole or not at all, in constant memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain, OutputProblem
from tables.engines.law import LOCAL, MATRIX, check, files, table


def test_a_data_set(tmp_path: Path) -> None:
    before = files(tmp_path / "in", rows=25_000, count=4, groups=10_000)
    source = ds.dataset(tmp_path / "in")
    result = mdp.perturb(source, MATRIX, to=tmp_path / "out.parquet")
    assert isinstance(result, ds.Dataset)
    check(before, result.to_table())
    assert result.to_table().equals(result.to_table())
    with pytest.raises(OutputProblem, match="file that is read"):
        mdp.perturb(source, MATRIX, to=tmp_path / "in/day1.parquet")


def test_a_reader(tmp_path: Path) -> None:
    before = table(40_000)
    result = mdp.perturb(before.to_reader(max_chunksize=7000), MATRIX, to=tmp_path / "out.parquet")
    assert isinstance(result, pa.RecordBatchReader)
    check(before, result.read_all())
    city = mdp.perturb(before.to_reader(max_chunksize=7000), LOCAL, to=tmp_path / "city.parquet")
    check(before, city.read_all(), LOCAL)
    marked = mdp.perturb(
        before.to_reader(), MATRIX, to=tmp_path / "seed.parquet", rng=np.random.default_rng(0)
    ).read_all()
    assert b"metricdp.simulated" in marked.schema.metadata


def test_what_cannot_be_done(tmp_path: Path) -> None:
    source = ds.dataset(table(10))
    with pytest.raises(InvalidInput, match="longer than memory"):
        mdp.perturb(source, MATRIX)
    with pytest.raises(InvalidInput, match=r"named \.parquet"):
        mdp.perturb(source, MATRIX, to=tmp_path / "out.csv")
    with pytest.raises(InvalidInput, match="no rows"):
        mdp.perturb(ds.dataset(table(10).slice(0, 0)), MATRIX, to=tmp_path / "out.parquet")
    with pytest.raises(InvalidInput, match="`to` is for"):
        mdp.perturb(table(10), MATRIX, to=tmp_path / "out.parquet")
    bad = table(10).set_column(1, "x", pa.array([1.0] * 9 + [4.4]))
    with pytest.raises(OutOfDomain, match="row 9"):
        mdp.perturb(ds.dataset(bad), MATRIX, to=tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


MEMORY = """
import resource, sys
import pyarrow.dataset as ds
import metricdp as mdp
mechanism = mdp.laplace(mdp.Lp(2), 1.0, dimension=2)
for name in sys.argv[1:3]:
    mdp.perturb(ds.dataset(name), mechanism, to=sys.argv[3])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def test_memory_does_not_grow_with_the_data(tmp_path: Path) -> None:
    for name, copies in (("small", 2), ("large", 16)):  # 12 and 96 MB of numbers
        (tmp_path / name).mkdir()
        rows = pa.table({"x": np.arange(250_000.0), "y": np.arange(250_000.0)[::-1], "z": np.arange(250_000.0)})
        for number in range(copies):
            pq.write_table(rows, tmp_path / name / f"{number}.parquet", compression="none", use_dictionary=False)
    names = [str(tmp_path / name) for name in ("small", "large", "out.parquet")]
    done = subprocess.run([sys.executable, "-c", MEMORY, *names], capture_output=True, text=True, check=True)
    small, large = (float(line) for line in done.stdout.split())
    assert large - small < 42  # half of the difference
