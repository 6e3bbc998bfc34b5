"""Jobs over many files: nothing is seen before all is ready, one job an output, one key until the end."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as dataset
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from books import fork
from metricdp.errors import InvalidInput, OutOfDomain, OutputProblem
from metricdp.files import lock_target
from metricdp.tables import Draws, PeopleCount, perturb, protect_table, run_partition, spec_of, task_for
from metricdp.tables.engines import local
from metricdp.tables.jobs import folder as folders
from metricdp.tables.jobs import plan as jobs
from scripts import main
from tables.engines.hand import declare_hand, perturbed
from tables.engines.law import CELLS, MATRIX, files, table
from tables.engines.replay import HOME, folder_of

NEXT = mdp.exponential(CELLS, 0.8)


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PARTITION_ROWS", 1000)
    monkeypatch.setattr(local.os, "cpu_count", lambda: 1)  # one worker will do


def fail(place: Path, message: str = "failed 1 times", **options: bool) -> None:
    """Run the job of a place and lose every worker at once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(local, "ATTEMPTS", 1)
        patched.setattr(local, "_ask", lambda *_: None)
        with pytest.raises(OutputProblem, match=message):
            perturb(place / "in", MATRIX, to=place / "out", **options)


def test_nothing_is_seen_of_a_job_that_failed_and_the_mended_one_gives_the_same_reports(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=2000, count=2)
    column = [0.0] * 1500 + [0.5] + [1.0] * 499
    pq.write_table(table(2000).set_column(1, "x", pa.array(column)), tmp_path / "in/day2.parquet", row_group_size=1000)
    with pytest.raises(OutOfDomain, match=r"in 'day2.parquet', row 1500 .*--resume.*--discard") as caught:
        perturb(tmp_path / "in", MATRIX, to=tmp_path / "out", workers=1)
    assert caught.value.rows == (1500,)
    assert sorted(path.name for path in tmp_path.iterdir()) == [HOME, "in"]
    job = folder_of(tmp_path)
    drawn = {path.name: path.read_bytes() for path in (job / "ready").iterdir()}
    assert len(drawn) == 5
    key = (job / "key").read_bytes()
    with pytest.raises(OutputProblem, match=r"not finished.*--resume.*--discard"):
        perturb(tmp_path / "in", MATRIX, to=tmp_path / "out", workers=1)
    mended = [1.0 if x == 0.5 else x for x in column]
    pq.write_table(table(2000).set_column(1, "x", pa.array(mended)), tmp_path / "in/day2.parquet", row_group_size=1000)
    assert perturb(tmp_path / "in", MATRIX, to=tmp_path / "out", workers=1, resume=True).rows == 6000
    for name, data in drawn.items():  # the good half of the mended file among them: one noise per secret
        assert pq.read_table(tmp_path / "out" / name).equals(pq.read_table(pa.BufferReader(data)))
    half = pq.read_table(tmp_path / "in/day2.parquet").slice(1000)
    task = task_for(half.column_names, MATRIX)
    alone = protect_table(half, task, Draws(key, "day2.00001.parquet", 0, spec_of(task).applied))
    assert pq.read_table(tmp_path / "out/day2.00001.parquet").equals(alone)
    assert not list(tmp_path.rglob("key"))


def test_a_job_that_failed_at_a_bad_row_goes_on_without_that_row(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=100, count=1)
    bad = table(100).set_column(1, "x", pa.array([0.0] * 99 + [0.5]))
    pq.write_table(bad, tmp_path / "in/day1.parquet")
    with pytest.raises(OutOfDomain):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    summary = perturbed(tmp_path / "in", tmp_path / "out", MATRIX, on_error="drop", resume=True)
    assert (summary.rows, summary.written) == (200, 199)


@pytest.mark.parametrize("name", ["day.parquet", "day.csv"])
def test_persons_are_counted_over_the_rows_that_were_released(name: str, tmp_path: Path) -> None:
    people = ["ann"] * 6 + ["bob"] * 4 + ["eve"]
    x = [0.5] * 5 + [0.0] * 5 + [0.5]  # five of ann's rows and the only one of eve's are bad
    rows = pa.table({"x": x, "y": [0.0] * len(x), "who": people})
    (tmp_path / "in").mkdir()
    (pq.write_table if name.endswith("parquet") else pacsv.write_csv)(rows, tmp_path / "in" / name)
    noise = mdp.exponential(mdp.FiniteSpace([[0.0, 0.0], [1.0, 0.0]], mdp.Lp(2)), 1.0)
    options = {"columns": ["x", "y"], "id": "who"}
    summary = perturbed(tmp_path / "in", tmp_path / "out", noise, on_error="drop", **options)
    assert summary.people == PeopleCount("who", 2, 4, 0)
    again = perturbed(tmp_path / "in", tmp_path / "out", noise, on_error="drop", resume=True, **options)
    assert again.people == summary.people
    whole = perturbed(tmp_path / "in", tmp_path / "nulls", noise, on_error="null", **options)
    assert whole.people == PeopleCount("who", 3, 6, 0)


def test_a_file_that_changed_is_done_again_under_the_same_key(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=100, count=2)
    fail(tmp_path)
    first = folder_of(tmp_path)
    for number in (0, 1):
        run_partition(str(first), number)
    ready = {path.name: path.read_bytes() for path in (first / "ready").iterdir()}
    key = (first / "key").read_bytes()
    pq.write_table(table(100, seed=9), tmp_path / "in/day1.parquet")
    with pytest.raises(InvalidInput, match="changed while the job was at work"):
        run_partition(str(first), 1)
    fail(tmp_path, "partition 1 failed", resume=True)
    second = folder_of(tmp_path)
    assert second != first
    assert (second / "key").read_bytes() == key
    perturbed(tmp_path / "in", tmp_path / "out", MATRIX, resume=True)
    assert (tmp_path / "out/day0.parquet").read_bytes() == ready["day0.parquet"]
    assert (tmp_path / "out/day1.parquet").read_bytes() != ready["day1.parquet"]


def test_a_job_without_its_key_cannot_go_on_and_can_be_given_up(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=100, count=1)
    fail(tmp_path)
    old = folder_of(tmp_path)
    (old / "key").unlink()
    with pytest.raises(OutputProblem, match=r"key of the job .* is gone"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX, resume=True)
    with pytest.raises(InvalidInput, match="choose one of them"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX, resume=True, discard=True)
    assert perturbed(tmp_path / "in", tmp_path / "out", MATRIX, discard=True).rows == 100
    assert not old.exists()


def test_a_finished_job_whose_output_is_gone_is_not_silently_done_twice(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=100, count=1)
    perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    with pytest.raises(OutputProblem, match="not an empty folder"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX, discard=True)
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(OutputProblem, match=r"costs their epsilon twice.*--discard"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    assert perturbed(tmp_path / "in", tmp_path / "out", MATRIX, discard=True).rows == 100
    shutil.rmtree(tmp_path / "out")
    pq.write_table(table(50, seed=3), tmp_path / "in/day0.parquet")  # other rows: nothing is paid twice
    assert perturbed(tmp_path / "in", tmp_path / "out", MATRIX).rows == 50


def test_a_job_cut_off_after_its_output_appeared_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path / "in", rows=100, count=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(folders, "finish", lambda job: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    assert (folder_of(tmp_path) / "key").exists()
    released = (tmp_path / "out/day0.parquet").read_bytes()
    with pytest.raises(OutputProblem, match="finished job"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    assert not (folder_of(tmp_path) / "key").exists()
    assert perturbed(tmp_path / "in", tmp_path / "out", MATRIX, resume=True).rows == 100
    assert (tmp_path / "out/day0.parquet").read_bytes() == released


def test_an_output_that_appears_from_elsewhere_is_not_touched(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=100, count=1)

    def meanwhile(share: float) -> None:
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out/theirs").write_text("x")

    with pytest.raises(OutputProblem, match=r"cannot write .*ready and kept"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX, progress=meanwhile)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["theirs"]
    (tmp_path / "out/theirs").unlink()
    (tmp_path / "out").chmod(0o750)
    assert perturbed(tmp_path / "in", tmp_path / "out", MATRIX, resume=True).rows == 100
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o750


def test_a_worker_that_outlives_a_job_takes_the_next_mechanism(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=500, count=1)
    rows = pq.read_table(tmp_path / "in/day0.parquet")
    for mechanism in (MATRIX, NEXT):  # two jobs for the same output, one after the other, in one process
        task = task_for(rows.column_names, mechanism)
        spec = spec_of(task)
        planned = jobs.plan([tmp_path / "in/day0.parquet"], tmp_path / "out", spec, simulated=False, order_key="")
        with folders.begin_job(planned, discard=True) as job:
            key = (Path(job.folder) / "key").read_bytes()
            run_partition(job.folder, 0)
            alone = protect_table(rows, task, Draws(key, "day0.parquet", 0, spec.applied))
            assert pq.read_table(Path(job.folder) / "ready/day0.parquet").equals(alone)


def test_a_worker_that_outlives_its_job_writes_into_no_other(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=500, count=1)
    spec = spec_of(task_for(["x", "y"], MATRIX))
    paths = [tmp_path / "in/day0.parquet"]
    with folders.begin_job(jobs.plan(paths, tmp_path / "out", spec, simulated=False, order_key="")) as first:
        pass
    rows: list[int] = []

    def meanwhile(count: int) -> None:  # the worker is in the middle when its job is given up and another one begins
        rows.append(perturbed(paths, tmp_path / "out", MATRIX, discard=True).rows)

    with pytest.raises(OSError, match="No such file"):
        run_partition(first.folder, 0, meanwhile)
    assert rows == [500]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["day0.parquet"]
    assert not Path(first.folder).exists()


START = """
import sys
import metricdp as mdp
from metricdp.errors import OutputProblem
from metricdp.tables import perturb
print("ready", flush=True)
sys.stdin.readline()
try:
    options = dict.fromkeys(sys.argv[4:], True)
    print(perturb(sys.argv[1], mdp.load(sys.argv[3]), to=sys.argv[2], **options).rows)
except OutputProblem as error:
    print(error)
"""


@pytest.mark.parametrize(("source", "target"), [("in", "out"), ("in/day0.parquet", "out.parquet")])
def test_of_simultaneous_starts_one_does_the_work_and_the_others_are_refused(
    tmp_path: Path, source: str, target: str
) -> None:
    files(tmp_path / "in", rows=200_000, count=1)
    mdp.save(MATRIX, tmp_path / "cells.mdp")
    command = [sys.executable, "-c", START, source, target, "cells.mdp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": tmp_path}
    started = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for process in started:
        assert process.stdout.readline() == "ready\n"
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate()[0].strip() for process in started]
    right = [answer for answer in answers if answer == "200000"]
    refused = [answer for answer in answers if "is at work on it" in answer or "finished job" in answer]
    assert len(right) + len(refused) == 3
    assert len(right) == 1 or source != "in"
    assert pq.read_table(tmp_path / target).num_rows == 200_000
    assert not list(tmp_path.glob(".*lock"))


def test_links_are_not_written_through_and_links_that_are_read_are_named(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=100, count=1)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to("elsewhere")
    with pytest.raises(OutputProblem, match="symbolic link to 'elsewhere'"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    (tmp_path / "out.parquet").symlink_to("elsewhere/file.parquet")
    with pytest.raises(OutputProblem, match="symbolic link"):
        perturb(tmp_path / "in/day0.parquet", MATRIX, to=tmp_path / "out.parquet")
    (tmp_path / HOME).symlink_to("elsewhere")  # somebody else's idea of where keys go
    (tmp_path / "out").unlink()
    with pytest.raises(OutputProblem, match="a folder of yours"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    (tmp_path / HOME).unlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (tmp_path / "in/link.parquet").symlink_to("day0.parquet")
    with pytest.raises(InvalidInput, match="are one file"):
        perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    os.rename(tmp_path / "in/day0.parquet", tmp_path / "elsewhere/day0.parquet")
    (tmp_path / "in/link.parquet").unlink()
    (tmp_path / "in/link.parquet").symlink_to("../elsewhere/day0.parquet")
    summary = perturbed(tmp_path / "in", tmp_path / "out", MATRIX)
    assert any("'link.parquet' is a symbolic link: 'day0.parquet' was read." in line for line in summary.lines())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["link.parquet"]
    summary = perturb(tmp_path / "in/link.parquet", MATRIX, to=tmp_path / "one.parquet")
    assert any("symbolic link" in line for line in summary.lines())


def in_little_room(words: list[str], most: int) -> tuple[int, str]:
    """Run the command in a fork of this process where what is written beyond so many bytes fails, as on a full disk."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            sys.stdout = sys.stderr = os.fdopen(writing, "w")
            code = main(words)
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


@pytest.mark.parametrize(("most", "engine"), [(0, "local"), (1500, "hand"), (30_000, "local")])
def test_a_full_disk_is_one_sentence_and_the_job_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = files(tmp_path / "in", rows=4000, count=2)
    mdp.save(MATRIX, tmp_path / "cells.mdp")
    declare_hand()
    monkeypatch.setattr(jobs, "PARTITION_ROWS", 1_000_000)  # a file is one partition
    words = ["perturb", "in/*.parquet", "--mechanism", "cells.mdp", "-o", "out", "--engine", engine]
    code, said = in_little_room(words, most)
    assert code == 2
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()
    kept = {path.name: path.read_bytes() for path in tmp_path.glob(f"{HOME}/*/ready/*")}
    summary = perturbed("in/*.parquet", tmp_path / "out", MATRIX, resume=True)
    assert summary.rows == whole.num_rows
    for name, data in kept.items():
        assert (tmp_path / "out" / name).read_bytes() == data


def test_however_often_a_job_is_killed_a_secret_is_seen_with_one_noise(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=20_000, count=3, groups=20_000)
    noise = mdp.laplace(mdp.Lp(2), 1.0, dimension=2)  # two noises are never equal by chance
    mdp.save(noise, tmp_path / "noise.mdp")
    drawn: dict[str, bytes] = {}
    command = [sys.executable, "-c", START, "in", "out"]
    for wait in (0.0, 0.3, 0.45):
        process = subprocess.Popen(
            [*command, "noise.mdp", "resume"], cwd=tmp_path, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("go\n")
        process.stdin.flush()
        time.sleep(wait)
        process.kill()  # its workers live on for a while
        process.communicate()
        for path in tmp_path.glob(f"{HOME}/*/ready/*"):
            assert drawn.setdefault(path.name, path.read_bytes()) == path.read_bytes()
    perturbed(tmp_path / "in", tmp_path / "out", noise, resume=True)
    for path in (tmp_path / "out").iterdir():
        assert drawn.setdefault(path.name, path.read_bytes()) == path.read_bytes()
    assert not list(tmp_path.rglob("key"))


def test_every_way_to_a_file_is_closed_while_somebody_is_at_work_on_it(tmp_path: Path) -> None:
    files(tmp_path / "in", rows=100, count=1)
    ways = {
        "out.parquet": lambda target: perturb(tmp_path / "in/day0.parquet", MATRIX, to=target),
        "stream.parquet": lambda target: mdp.perturb(dataset.dataset(tmp_path / "in"), MATRIX, to=target),
        "out": lambda target: perturb(tmp_path / "in", MATRIX, to=target),
    }
    for name, way in ways.items():
        with (
            lock_target(tmp_path / name),
            pytest.raises(OutputProblem, match=f"process {os.getpid()} .* is at work on it"),
        ):
            way(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
