"""Spark: written once and read back, one stream per partition, workers killed in the middle. One session for all."""

from __future__ import annotations

import os
import runpy
import shutil
import stat
import sys
import traceback
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput, OutOfDomain, OutputProblem
from metricdp.ledger import Ledger
from metricdp.tables import Charging, Disclosure, Draws, protect_batches, protect_table, spec_of, task_for
from metricdp.tables.engines import spark
from metricdp.tables.jobs import plan as jobs
from restoring import as_it_was
from scripts import main
from tables.engines.killing import killing
from tables.engines.law import LOCAL, MATRIX, check, files, together
from tables.engines.replay import HOME, copied, folder_of, replayed
from tables.engines.words import DRAWN, KERNEL, REFUSING, STAYING, WHOLE, WORDS, expected

pytest.importorskip("pyspark", reason="needs the extra `spark`")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"),
    pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds workers by /proc"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
KEY = bytes(range(32))
EXAMPLES = Path(__file__).parents[3] / "examples" / "engines"
WORK = ".frame.metricdp-*/ready"  # where Spark writes before all is well
ROWS, BATCH = 100_000, 20_000


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    from pyspark.sql import SparkSession

    with as_it_was():
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.chdir(tmp_path_factory.mktemp("spark"))  # where Spark is started is where its relative paths are
        made = (
            SparkSession.builder.master("local[2,2]")  # two cores; two tries a task, the second for a worker that died
            .config("spark.ui.enabled", "false")
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # for a short life
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.files.openCostInBytes", str(64 << 20))  # so that no two files share a partition
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(BATCH))
            .getOrCreate()
        )
        made.sparkContext.setLogLevel("OFF")
        yield made
        made.stop()


@pytest.mark.usefixtures("session")
def test_workers_on_this_machine_run_the_python_that_runs_us_unless_another_is_named(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    spark._session()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/other/python3")
    spark._session()
    assert os.environ["PYSPARK_PYTHON"] == "/opt/other/python3"


def is_worker(command: bytes, parent: bytes) -> bool:
    """Tell a worker from the daemon it was forked from."""
    return b"pyspark.daemon" in command and b"pyspark.daemon" in parent


def frames(session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(folder / "points", rows=ROWS, count=2, groups=ROWS)
    frame = session.read.parquet(str(folder / "points"))
    monkeypatch.setattr("metricdp.tables.engines.spark.secrets.token_bytes", lambda count: KEY)
    target = folder / "frame"

    def at_work() -> bool:
        assert not target.exists()
        assert all(stat.S_IMODE(home.stat().st_mode) == 0o700 for home in folder.glob(".frame.metricdp-*"))
        return any(folder.glob(f"{WORK}/_temporary/*/_temporary/*/*.parquet"))

    thread, killed = killing(is_worker, before=at_work)
    result = mdp.perturb(frame, MATRIX, to=str(target))
    thread.join()
    monkeypatch.undo()
    assert len(killed) == 1
    written = [pq.read_table(path) for path in sorted(target.glob("part-*.parquet"))]  # one file a partition
    after = pa.concat_tables(written).sort_by("id")
    check(before, after)  # no row lost, none twice
    assert result.toArrow().sort_by("id").equals(after)  # drawn once: looking at it reads what was written
    # A partition that is run again gives the same reports, whoever runs it: here the kernel alone.
    task = task_for(before.column_names, MATRIX)
    applied = spec_of(task).applied
    for partition, start in enumerate(int(part["id"][0].as_py()) for part in written):
        for batch, first in enumerate(range(start, start + ROWS, BATCH)):
            alone = protect_table(
                before.slice(first, BATCH), task, Draws(KEY, f"partition {partition}", batch, applied)
            )
            assert np.array_equal(alone["x"], after["x"].slice(first, BATCH))
    city = mdp.perturb(frame, LOCAL, to=str(folder / "city"))
    check(before, city.toArrow().sort_by("id"), LOCAL)
    with pytest.raises(OutputProblem, match="exists already"):
        mdp.perturb(frame, MATRIX, to=str(target))
    with pytest.raises(InvalidInput, match="is a recipe"):
        mdp.perturb(frame, MATRIX)


def traps(session, folder: Path) -> None:
    constant = session.range(0, 4000, 1, 2).selectExpr(
        "CAST(41 AS FLOAT) AS lat", "-8 AS lon", "DATE '2026-01-01' AS day", "id"
    )
    protected = mdp.perturb(constant, mdp.laplace(mdp.Haversine(), 10.0), to=str(folder / "constant"))
    assert [kind for _, kind in protected.dtypes] == ["float", "double", "date", "bigint"]
    reports = together(folder / "constant")
    assert reports.num_rows == 4000
    assert len(set(reports["lon"].to_pylist())) > 500  # one draw a row, however constant the columns are
    halves = [np.asarray(reports.sort_by("id")["lon"].slice(start, 2000)) for start in (0, 2000)]
    assert not np.array_equal(*halves)  # equal partitions draw independently
    bad = session.range(0, 2, 1, 1).selectExpr("1.0D + 6 * id AS x", "1.0D AS y")
    with pytest.raises(OutOfDomain, match=r"in one of the partitions, row 1 .*in x, y, secrets are its 9 points"):
        mdp.perturb(bad, MATRIX, to=str(folder / "bad"))
    half = session.range(0, 40_000, 1, 2).selectExpr("IF(id = 39999, 1.515625D, 1D) AS x", "1.0D AS y")
    with pytest.raises(OutOfDomain, match=r"in one of the partitions, row 19999 ") as caught:
        mdp.perturb(half, MATRIX, to=str(folder / "bad"))
    assert "515625" not in "".join(traceback.format_exception(caught.value))
    assert not list(folder.glob("bad*"))
    assert not list(folder.glob(".*"))  # neither the half that was well nor any other trace
    with pytest.raises(InvalidInput, match="`rng` cannot be given"):
        mdp.perturb(bad, MATRIX, to=str(folder / "no"), rng=np.random.default_rng(0))


def charged(session, folder: Path) -> None:
    rows = "IF(id < 3, 'anna', 'ben') AS who", "1.0D AS x", "1.0D AS y"
    frame = session.range(0, 5, 1, 2).selectExpr(*rows)

    def others(batches):  # a recipe that gives rows of other persons every time
        for batch in batches:
            count = batch.num_rows
            yield pa.RecordBatch.from_pydict({"who": list(os.urandom(count)), "x": [1.0] * count, "y": [1.0] * count})

    with Ledger.open(folder / "budget.db", policy="5 ever") as ledger:
        options = {"id": "who", "ledger": Charging(ledger, job="monday")}
        place = str(folder / "charged")
        after = sorted(map(tuple, mdp.perturb(frame, MATRIX, to=place, **options).collect()))
        assert [row[0] for row in after] == ["anna"] * 3 + ["ben"] * 2
        assert sorted(map(tuple, mdp.perturb(frame, MATRIX, to=place, **options).collect())) == after
        spent = [ledger.budget(person).accounts[0].spent for person in ("anna", "ben")]
        assert spent == [2_700_003, 1_800_002]  # 0.9 is a double a little above nine tenths
        with pytest.raises(BudgetExceeded, match="1 of 2 people"):
            mdp.perturb(frame, MATRIX, to=str(folder / "refused"), id="who", ledger=ledger)
        with pytest.raises(InvalidInput, match="its output is not at"):
            mdp.perturb(frame, MATRIX, to=str(folder / "refused"), **options)
        changing = session.range(0, 40, 1, 1).mapInArrow(others, "who bigint, x double, y double")
        with pytest.raises(InvalidInput, match="the table changed while it was read"):
            mdp.perturb(changing, MATRIX, to=str(folder / "refused"), id="who", ledger=ledger)
        assert not (folder / "refused").exists()
        assert [ledger.budget(person).accounts[0].spent for person in ("anna", "ben")] == spent


def job_over_files(folder: Path) -> None:
    before = files(folder / "in", rows=100_000, count=2, groups=100_000)

    def copy() -> bool:
        if not list(folder.glob(f"{HOME}/*/partial/*")):  # a worker of the jobs before this one
            return False
        copied(folder)
        return True

    thread, killed = killing(is_worker, before=copy)
    mdp.save(MATRIX, folder / "cells.mdp")
    places = [str(folder / name) for name in ("in", "cells.mdp", "out")]
    assert main(["perturb", places[0], "--mechanism", places[1], "-o", places[2], "--engine", "spark"]) == 0
    thread.join()
    assert len(killed) == 1
    check(before, together(folder / "out"))
    assert not (folder_of(folder) / "key").exists()
    replayed(folder)


def texts(session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = session.createDataFrame(WHOLE.to_pylist() * 2, "id int, text string, note string").coalesce(1)
    monkeypatch.setattr("metricdp.tables.engines.spark.secrets.token_bytes", lambda count: KEY)
    made = mdp.perturb(frame, DRAWN, columns="text", drop="note", to=str(folder / "texts"))
    monkeypatch.undo()
    assert [kind for _, kind in made.dtypes] == ["int", "string"]
    # What Spark drew is what anybody draws who has the key, the place and the texts.
    task = task_for(WHOLE.schema.names, DRAWN, columns="text")
    rows = pa.Table.from_pylist(WHOLE.to_pylist() * 2, WHOLE.schema).combine_chunks().to_batches()
    dropped = task_for(WHOLE.schema.names, DRAWN, columns="text", disclosure=Disclosure(drop="note"))
    applied = spec_of(dropped).applied
    (alone,) = protect_batches(rows, task, Draws(KEY, "partition 0", 0, applied))
    assert [row.text for row in made.collect()] == alone.result["text"].to_pylist()
    staying = mdp.perturb(frame, STAYING, columns="text", to=str(folder / "staying"))
    assert [row.text for row in staying.collect()] == expected() * 2
    with pytest.raises(
        OutOfDomain, match=r"in one of the partitions, words in the column 'text' .* 12 words, in "
    ) as told:
        mdp.perturb(frame, REFUSING, columns="text", to=str(folder / "refused"))
    assert "ebra" not in "".join(traceback.format_exception(told.value))
    bad = session.sql("SELECT CAST(X'62ff' AS STRING) AS text")
    with pytest.raises(InvalidInput, match="in one of the partitions, the column 'text' holds text that is not UTF-8"):
        mdp.perturb(bad, STAYING, to=str(folder / "refused"))
    with pytest.raises(InvalidInput, match="the column 'id' must hold text, it holds int32"):
        mdp.perturb(frame, STAYING, columns="id", to=str(folder / "refused"))
    assert not (folder / "refused").exists()
    words = session.createDataFrame([(word,) for word in WORDS], "word string").coalesce(1)
    kernel = mdp.perturb(words, KERNEL, columns="word", to=str(folder / "words"))
    assert [row.word for row in kernel.collect()] == WORDS
    vectors = session.sql("SELECT array(1.0D, id) AS v, array(CAST(id AS FLOAT), 2.0F) AS w FROM range(4)")
    noise = mdp.laplace(mdp.Lp(2), 1e6, dimension=2)
    for column, other in (("v", 0), ("w", 1)):
        near = mdp.perturb(vectors.select(column), noise, columns=column, to=str(folder / column))
        assert near.dtypes == vectors.select(column).dtypes
        found = sorted(tuple(row[0])[1 - other] for row in near.collect())
        assert np.allclose(found, range(4), atol=0.01)


def test_spark(session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames(session, tmp_path, monkeypatch)
    traps(session, tmp_path)
    monkeypatch.setattr(jobs, "PARTITION_ROWS", 1000)
    job_over_files(tmp_path)
    texts(session, tmp_path, monkeypatch)
    charged(session, tmp_path)  # last: it leaves workers behind that wait, and above those at work are killed
    shown = runpy.run_path(str(EXAMPLES / "spark_frame.py"))
    assert shown["protected"].count() == 1000


def test_times_of_every_kind_pass_through_and_are_coarsened(session, tmp_path):
    frame = session.range(0, 40, 1, 1).selectExpr(
        "41.1D + id / 1e4 AS lat", "-8.6D AS lon", "timestamp_seconds(1714558807 + id) AS t",
        "CAST(timestamp_seconds(1714558807 + id) AS timestamp_ntz) AS plain",
        "named_struct('at', timestamp_seconds(1714558807 + id)) AS inner", "array(timestamp_seconds(id)) AS many",
    )  # fmt: skip
    before = frame.toArrow()
    earth = mdp.laplace(mdp.Haversine(), 10.0)
    made = mdp.perturb(frame, earth, to=str(tmp_path / "out"), coarsen={"plain": "1h"})
    assert made.dtypes == frame.dtypes
    after = made.toArrow()
    for name in ("t", "inner", "many"):
        assert after.column(name).to_pylist() == before.column(name).to_pylist()
    assert {(at.hour, at.minute, at.second) for at in after.column("plain").to_pylist()} == {
        (at.hour, 0, 0) for at in before.column("plain").to_pylist()
    }
