"""The local engine: many files, workers that die, jobs that are killed, and nothing released twice."""

from __future__ import annotations

import logging
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp import cli
from metricdp.errors import InvalidInput, OutputProblem
from metricdp.tables import Draws, perturb
from metricdp.tables.batch import fingerprint
from metricdp.tables.engines import local
from metricdp.tables.jobs import plan as jobs
from tables.engines.hand import perturbed
from tables.engines.law import CELLS, LOCAL, MATRIX, check, files, table, together
from tables.engines.replay import HOME, copied, folder_of, replayed

NEXT = mdp.exponential(CELLS, 0.8)


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PARTITION_ROWS", 1000)


def test_many_files_follow_the_law_and_leave_no_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    before = files(tmp_path / "in", rows=15_000, count=4, groups=5000)
    keys: list[bytes] = []

    def look(share: float) -> None:
        assert not (tmp_path / "out").exists()
        for path in (tmp_path / HOME).glob("*/key"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE((tmp_path / HOME).stat().st_mode) == 0o700
            keys.append(path.read_bytes())

    summary = perturb(str(tmp_path / "in/*.parquet"), MATRIX, to=tmp_path / "out", id="note", progress=look)
    check(before, together(tmp_path / "out"))
    assert (summary.rows, summary.written, summary.bad) == (60_000, 60_000, 0)
    assert summary.people is not None
    assert summary.people.count == 13
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names[:3] == ["day0.00000.parquet", "day0.00001.parquet", "day0.00002.parquet"]
    assert len(names) == 12
    assert sorted(path.name for path in tmp_path.iterdir()) == [HOME, "in", "out"]
    assert len(keys) >= 1
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert keys[0] not in path.read_bytes()
            assert path.name != "key"
    assert keys[0].hex() not in caplog.text
    again = perturb(str(tmp_path / "in/*.parquet"), MATRIX, to=tmp_path / "out", resume=True)
    assert again.rows == summary.rows  # finished: nothing is drawn
    with pytest.raises(OutputProblem, match="finished job"):
        perturb(str(tmp_path / "in/*.parquet"), MATRIX, to=tmp_path / "out")


def test_sparse_rows_travel_to_workers_as_a_file(tmp_path: Path) -> None:
    before = files(tmp_path / "in", rows=15_000, count=2, groups=5000)
    perturb(str(tmp_path / "in/*.parquet"), LOCAL, to=tmp_path / "out")
    check(before, together(tmp_path / "out"), LOCAL)


def test_a_killed_worker_is_replaced_and_gives_the_same_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "PARTITION_ROWS", 200_000)
    before = files(tmp_path / "in", rows=200_000, count=3, groups=100_000)
    processes: list[subprocess.Popen[str]] = []
    start = local._start

    def starting(job: jobs.JobPlan) -> subprocess.Popen[str]:
        processes.append(start(job))
        return processes[-1]

    monkeypatch.setattr(local, "_start", starting)
    killed: list[int] = []

    def kill(share: float) -> None:
        if not killed:  # one batch of the first partition is through: its worker is in the middle of it
            copied(tmp_path)
            for process in processes:
                os.kill(process.pid, signal.SIGKILL)
                killed.append(process.pid)

    summary = perturb(tmp_path / "in", MATRIX, to=tmp_path / "out", workers=2, progress=kill)
    assert len(killed) >= 1
    assert len(processes) > len(killed)
    assert summary.rows == 600_000
    check(before, together(tmp_path / "out"))  # no row lost, none twice
    replayed(tmp_path)


def run_command(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "import sys; from metricdp.cli import main; sys.exit(main())", *arguments]
    return subprocess.Popen(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def test_a_killed_command_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = files(tmp_path / "in", rows=80_000, count=8, groups=80_000)
    mdp.save(MATRIX, tmp_path / "cells.mdp")
    arguments = ("perturb", "in/*.parquet", "--mechanism", "cells.mdp", "-o", "out", "--engine", "local")
    process = run_command(*arguments, folder=tmp_path)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob(f"{HOME}/*/done/*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "out").exists()
    job = folder_of(tmp_path)
    ready = {path.name: path.read_bytes() for path in (job / "ready").glob("*.parquet")}
    assert 2 <= len(ready) < 8
    assert (job / "key").exists()
    assert cli.main([*arguments]) == 2
    assert "--resume" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="another mechanism, epsilon"):
        perturb(tmp_path / "in", NEXT, to=tmp_path / "out", resume=True)
    copied(tmp_path)
    assert cli.main([*arguments, "--resume"]) == 0
    assert "640,000 rows" in capsys.readouterr().out
    for name, data in ready.items():
        assert (tmp_path / "out" / name).read_bytes() == data
    check(before, together(tmp_path / "out"))
    assert not (job / "key").exists()
    replayed(tmp_path)


def test_equal_partitions_draw_independently(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        pq.write_table(table(2000), tmp_path / f"in/{name}.parquet")
    perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    first, second = (np.asarray(pq.read_table(tmp_path / f"out/{name}.parquet")["x"]) for name in "ab")
    secret = np.asarray(table(2000)["x"])
    # Given the secret the two are independent: they agree as often as the law says, not always.
    codes = (3 * secret + np.asarray(table(2000)["y"])).astype(int)
    marginal = MATRIX.matrix.reshape(9, 3, 3).sum(axis=2)[codes]
    wanted = (marginal**2).sum(axis=1)
    spread = np.sqrt((wanted * (1 - wanted)).sum())
    assert abs((first == second).sum() - wanted.sum()) < 6 * spread


def test_csv_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for place in ("in/a.csv", "in/deep/b.csv"):
        (tmp_path / place).write_text("x,y,z\n" + "1,2,abc\n" * 50)
    summary = perturbed(tmp_path / "in", tmp_path / "out", MATRIX, rng=np.random.default_rng(1))
    assert summary.simulated
    assert summary.rows == 100
    lines = (tmp_path / "out/deep/b.csv").read_text().splitlines()
    assert lines[0] == "x,y,z,metricdp_simulated"  # drawn from a seed
    assert len(lines) == 51
    assert {line.split(",")[2] for line in lines[1:]} == {"abc"}


@pytest.mark.parametrize(
    ("pattern", "target", "message"),
    [
        ("in/*.txt", "out", "no file matches"),
        ("in/*.csv", "in", "empty folder"),
        ("in/*.csv", "no/out", "does not exist"),
    ],
)
def test_what_cannot_be_done(tmp_path: Path, pattern: str, target: str, message: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("x,y\n1,2\n")
    with pytest.raises((InvalidInput, OutputProblem), match=message):
        perturb(str(tmp_path / pattern), MATRIX, to=tmp_path / target)
    with pytest.raises(InvalidInput, match="no engine 'dask' runs jobs over files: use one of local, spark, ray"):
        perturb(str(tmp_path / "in"), MATRIX, to=tmp_path / "out", engine="dask")


def test_streams_are_bound_to_everything_that_matters() -> None:
    key, rows = bytes(range(32)), np.arange(6.0).reshape(3, 2)
    base = Draws(key, "a.parquet", 0, "laplace 1").source([rows]).words(4).tolist()
    assert Draws(key, "a.parquet", 0, "laplace 1").source([rows.copy()]).words(4).tolist() == base
    others = [
        Draws(bytes(32), "a.parquet", 0, "laplace 1").source([rows]),  # another job
        Draws(key, "b.parquet", 0, "laplace 1").source([rows]),  # the same rows elsewhere
        Draws(key, "a.parquet", 1, "laplace 1").source([rows]),
        Draws(key, "a.parquet", 0, "laplace 2").source([rows]),  # equal noise at two scales would give the secret away
        Draws(key, "a.parquet", 0, "laplace 1").source([rows + 1]),  # other rows in the same place
        Draws(key, "a.parquet", 0, "laplace 1").source([rows[:2]]),
        Draws(key, "a.parquet", 0, "laplace 1").source([rows[:, :1], rows[:, 1:]]),
    ]
    assert all(other.words(4).tolist() != base for other in others)
    assert "000102" not in repr(Draws(key, "a", 0, "m"))
    words = pa.array(["cat", None, "dog"])
    assert fingerprint(words) == fingerprint(pa.array(["x", "cat", None, "dog"]).slice(1))
    assert len({fingerprint(pa.array(w)) for w in (["cat", ""], ["ca", "t"], ["cat", None], ["cat"])}) == 4
