"""Every piece of advice that the command prints about columns works when it is pasted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from scripts import main

ROWS = 120
RNG = np.random.default_rng(1)
LAT, LON = 41.1 + RNG.random(ROWS) / 10, -8.6 + RNG.random(ROWS) / 10


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)


def table() -> pa.Table:
    """Return a table with columns of every kind that is found, under names that a shell and commas read otherwise."""
    return pa.table({
        "lat": LAT, "lon": LON,
        "hour": np.arange(ROWS) % 24,
        "minute": [f"{row % 60}" for row in range(ROWS)],
        "t": 1_700_000_000 + np.arange(ROWS) * 17,
        "created at": [f"2024-05-01 {row % 24:02}:{row % 60:02}:07" for row in range(ROWS)],
        "when": ["soon", "later"] * (ROWS // 2),
        "a,b": LAT, "-x": LON, "it's": LAT, 'q"': LON, "$(x)": LAT, "b=c": LON, "dot.ted": LAT,
        "mail": [f"u{row}@example.org" for row in range(ROWS)],
    })  # fmt: skip


def nested() -> pa.Table:
    inner = pa.StructArray.from_arrays([pa.array(LAT), pa.array(1_700_000_000 + np.arange(ROWS))], ["p", "t"])
    clock = pa.array(1_700_000_007 + np.arange(ROWS) * 61, pa.timestamp("s"))
    return (
        table()
        .append_column("in", inner)
        .append_column("list", pa.array([[a, b] for a, b in zip(LAT, LON, strict=True)]))
        .append_column("clock", clock)
        .append_column("times", pa.array([[t] for t in clock.to_pylist()]))
    )


def pasted(source: str, out: Path, capfd: pytest.CaptureFixture[str], more: tuple[str, ...] = ()) -> list[str]:
    """Return what was advised where a table was refused, after it was pasted and the command went through."""
    asked = ["perturb", source, "--epsilon", "10/km", "--strict", "-o", *more]
    assert main([*asked, str(out)]) != 0
    advised = shlex.split(
        re.search(r"what is not needed: (.*) \(or --keep", " ".join(capfd.readouterr().err.split()))[1]
    )
    assert main([*asked, str(out), *advised]) == 0, (advised, capfd.readouterr().err)
    return advised


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_advised_for_a_file_works_when_pasted(
    tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / f"in{suffix}"
    if suffix == ".csv":
        pacsv.write_csv(table(), source)
    else:
        pq.write_table(nested(), source)
    advised = pasted(str(source), tmp_path / f"out{suffix}", capfd)
    assert "t=1h" in advised
    assert "hour=1h" not in advised
    assert any("hour" in word for word in advised)


def test_what_is_advised_for_folders_works_when_pasted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number, (day, zone) in enumerate([("2024-05-01", "41.1_-8.6"), ("2024-05-02", "41.2_-8.5")]):
        place = tmp_path / "in" / f"day={day}" / f"zone={zone}"
        place.mkdir(parents=True)
        pq.write_table(nested().slice(number * 60, 60), place / "part.parquet")
    pasted(str(tmp_path / "in"), tmp_path / "out", capfd)
    found = [str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.parquet")]
    assert len(found) == 2
    assert not any("zone" in name for name in found)


def test_what_is_advised_where_only_the_files_give_it_away_works_when_pasted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pq.write_table(nested(), tmp_path / "in" / f"{name}.parquet")
    pasted(str(tmp_path / "in"), tmp_path / "out", capfd)
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == 2


def test_hours_of_a_day_are_no_times_to_coarsen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table(), tmp_path / "in.parquet")
    asked = [
        "perturb",
        str(tmp_path / "in.parquet"),
        "--epsilon",
        "10/km",
        "-o",
        str(tmp_path / "out.parquet"),
        "--overwrite",
    ]
    for name in ("hour", "minute"):
        assert main([*asked, "--coarsen", f"{name}=1h"]) == 2
        said = " ".join(capfd.readouterr().err.split())
        advised = re.search(rf"such as ({name}=\d+)", said)[1]
        assert main([*asked, "--coarsen", advised]) == 0
        capfd.readouterr()
    assert pq.read_table(tmp_path / "out.parquet").column("hour").to_pylist()[:3] == [0, 1, 2]
