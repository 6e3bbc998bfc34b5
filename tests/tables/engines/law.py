"""What the engines' tests share: a mechanism with a known law, and the chi-square test against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import chi2

import metricdp as mdp
from instances import local_on

CELLS = mdp.FiniteSpace([[float(i), float(j)] for i in range(3) for j in range(3)], mdp.Lp(2), columns=["x", "y"])
MATRIX = mdp.exponential(CELLS, 0.9)
LOCAL = local_on(CELLS, 1.5, 0.9)
SURE = 1e-6  # cryptographic draws cannot be repeated: a right engine fails once in a million runs


def table(rows: int, seed: int = 0) -> pa.Table:
    """Return rows on the cells with columns that must stay as they are."""
    codes = np.random.default_rng(seed).integers(0, 9, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "x": CELLS.points[codes, 0],
            "note": pa.array([f"n{i % 13}" for i in range(rows)]),
            "y": CELLS.points[codes, 1],
        }
    )


def check(before: pa.Table, after: pa.Table, mechanism: Any = MATRIX) -> None:
    """Check row order, untouched columns, and the reports of every secret against its row of the matrix."""
    assert after.column_names == before.column_names
    assert after["id"].equals(before["id"])
    assert after["note"].cast(pa.string()).equals(before["note"])
    secret = (3 * np.asarray(before["x"]) + np.asarray(before["y"])).astype(int)
    report = (3 * np.asarray(after["x"]) + np.asarray(after["y"])).astype(int)
    counts = np.zeros((9, 9))
    np.add.at(counts, (secret, report), 1)
    statistic, freedom = 0.0, 0
    for seen, distribution in zip(counts, mechanism.matrix, strict=True):
        expected = distribution / distribution.sum() * seen.sum()
        assert expected.min() > 5
        statistic += float(((seen - expected) ** 2 / expected).sum())
        freedom += 8

    assert chi2.sf(statistic, freedom) > SURE, statistic


def files(folder: Path, rows: int = 3000, count: int = 4, groups: int = 500) -> pa.Table:
    """Write a folder of Parquet files and return all their rows."""
    folder.mkdir()
    whole = table(rows * count)
    for number in range(count):
        pq.write_table(whole.slice(number * rows, rows), folder / f"day{number}.parquet", row_group_size=groups)
    return whole


def together(folder: Path) -> pa.Table:
    """Read all files of a folder in the order of their names."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
