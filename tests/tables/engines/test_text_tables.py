"""Texts on every engine: the same law, the same rules and the same words; a partition that is run again is the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2

import metricdp as mdp
from metricdp.errors import InvalidInput, NotPrivate, OutOfDomain
from metricdp.tables import Draws, files, perturb, protect_batches, run_partition, task_for
from metricdp.tables.batch import PIECE, pieces
from metricdp.tables.jobs.folder import records_of
from metricdp.text import TextMechanism
from tables.engines.words import BAD, DRAWN, KERNEL, REFUSING, STAYING, WHOLE, WORDS, expected, mechanism

duckdb = pytest.importorskip("duckdb", reason="needs the extra `duckdb`")
SURE = 1e-6


def in_duckdb(table: pa.Table, texts: TextMechanism, **options) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("given", table)
        return mdp.perturb((connection, "FROM given"), texts, to="made", **options).to_arrow_table()


def in_stream(table: pa.Table, texts: TextMechanism, folder: Path, **options) -> pa.Table:
    made = mdp.perturb(ds.dataset(table), texts, to=folder / "made.parquet", **options)
    return made.to_table()


ENGINES = {
    "arrow": lambda table, texts, folder, **options: mdp.perturb(table, texts, **options),
    "batch": lambda table, texts, folder, **options: pa.Table.from_batches(
        [mdp.perturb(table.combine_chunks().to_batches()[0], texts, **options)]
    ),
    "pandas": lambda table, texts, folder, **options: pa.Table.from_pandas(
        mdp.perturb(table.to_pandas(), texts, **options), preserve_index=False
    ),
    "polars": lambda table, texts, folder, **options: mdp.perturb(pl.from_arrow(table), texts, **options).to_arrow(),
    "lazy": lambda table, texts, folder, **options: mdp.perturb(
        pl.from_arrow(table).lazy(), texts, **options
    ).to_arrow(),
    "stream": in_stream,
    "duckdb": lambda table, texts, folder, **options: in_duckdb(table, texts, **options),
}
each = pytest.mark.parametrize("engine", ENGINES)


@each
def test_words_that_stay_give_the_text_and_all_else_stays(engine: str, tmp_path: Path) -> None:
    made = ENGINES[engine](WHOLE, STAYING, tmp_path, columns="text", drop=["note"])
    assert made.column_names == ["id", "text"]
    assert made["id"].to_pylist() == [1, 2, 3, 4, 5]
    assert made["text"].to_pylist() == expected()


@each
def test_unknown_words_refuse_the_whole_table_in_one_sentence(engine: str, tmp_path: Path) -> None:
    with pytest.raises(OutOfDomain, match=r"words in the column 'text' are not in the vocabulary .* in row 1 ") as told:
        ENGINES[engine](BAD, REFUSING, tmp_path, columns="text")
    assert "quagga" not in str(told.value)
    assert not list(tmp_path.iterdir())


@each
def test_a_budget_pays_for_the_first_words_of_every_text(engine: str, tmp_path: Path) -> None:
    made = ENGINES[engine](WHOLE, mechanism(2000.0, budget=4000.0, beyond="mask"), tmp_path, columns="text")
    assert made["text"].to_pylist() == expected(most=2)


@each
def test_what_is_no_text_is_refused(engine: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the column 'id' must hold text, it holds int64"):
        ENGINES[engine](WHOLE, STAYING, tmp_path, columns="id")
    with pytest.raises(InvalidInput, match=r"no column 'txt'.*Did you mean 'text'"):
        ENGINES[engine](WHOLE, STAYING, tmp_path, columns="txt")
    copied = WHOLE.append_column("again", WHOLE["text"])
    many = pa.concat_tables([copied] * 20)
    with pytest.raises(NotPrivate, match="again"):
        ENGINES[engine](many, STAYING, tmp_path, columns="text", strict=True)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_every_kind_of_text_column_is_one(kind: pa.DataType, tmp_path: Path) -> None:
    table = WHOLE.set_column(1, "text", WHOLE["text"].cast(kind))
    for engine in ("arrow", "batch", "polars", "duckdb", "stream"):
        (tmp_path / engine).mkdir()
        made = ENGINES[engine](table, STAYING, tmp_path / engine, columns="text")
        assert made["text"].to_pylist() == expected(), engine


def test_options_of_rows_are_none_of_texts() -> None:
    with pytest.raises(InvalidInput, match="`snap` is for rows"):
        mdp.perturb(WHOLE, STAYING, columns="text", snap=1.0)
    with duckdb.connect() as connection:
        with pytest.raises(InvalidInput, match="`crs` is for rows"):
            mdp.perturb((connection, "SELECT 'a' AS text"), STAYING, to="made", crs="EPSG:25832")
        mdp.tables.duckdb_function(connection, "protect", STAYING)
        found = connection.sql("SELECT protect('the room'), protect(NULL)").fetchall()
        assert found == [("the room", None)]
        with pytest.raises(InvalidInput, match="is a recipe"):
            mdp.perturb(connection.sql("SELECT 'a' AS text"), STAYING)
    mixed = pd.DataFrame({"text": ["room", 3, 2.5]})
    with pytest.raises(InvalidInput, match="'text' mixes kinds of values"):
        mdp.perturb(mixed, STAYING, columns="text")


def test_kernels_and_vectors_are_protected_in_duckdb() -> None:
    assert isinstance(KERNEL, mdp.mechanisms.KernelMechanism)
    with duckdb.connect() as connection:
        connection.register("given", pa.table({"word": WORDS}))
        made = mdp.perturb((connection, "FROM given"), KERNEL, to="made", columns="word").fetchall()
        assert [word for (word,) in made] == WORDS
        mdp.tables.duckdb_function(connection, "protect", KERNEL)
        assert connection.sql("SELECT protect('room')").fetchall() == [("room",)]
        noise = mdp.laplace(mdp.Angular(), 1e6, dimension=4)
        for kind in ("FLOAT[4]", "DOUBLE[]"):
            query = f"SELECT [1, 0, 0, 0]::{kind} AS v FROM range(3)"
            near = mdp.perturb((connection, query), noise, to=f"near {kind}", columns="v")
            assert [str(found) for found in near.types] == [kind]
            assert np.allclose([row[0] for row in near.fetchall()], [[1, 0, 0, 0]] * 3, atol=0.01)


def test_reports_in_duckdb_follow_the_law_of_the_words() -> None:
    many = pa.table({"text": ["good"] * 4000})
    drawn = Counter(in_duckdb(many, DRAWN)["text"].to_pylist())
    distribution = DRAWN.words.matrix[0] / DRAWN.words.matrix[0].sum() * 4000
    seen = np.array([drawn[word] for word in WORDS])
    assert seen.sum() == 4000
    rare = distribution < 10.0  # counted together: a report expected once in a hundred runs has no normal error
    distribution, seen = (np.append(one[~rare], one[rare].sum()) for one in (distribution, seen))
    assert len(distribution) >= 3
    assert chi2.sf(((seen - distribution) ** 2 / distribution).sum(), len(distribution) - 1) > SURE


def test_equal_keys_give_equal_texts_however_batches_are_stored() -> None:
    """Streams are bound to the key, the place and the texts, not to how an engine holds them."""
    task = task_for(["text"], DRAWN, columns="text")
    texts = pa.array([" ".join(WORDS)] * 30 + [None])
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
    stored = [pa.record_batch({"text": texts.cast(kind)}) for kind in kinds]
    stored.append(pa.record_batch({"text": pa.concat_arrays([texts, texts]).slice(31)}))

    def drawn(batch: pa.RecordBatch, key: bytes = b"k" * 32, place: str = "a", applied: str = "x") -> list:
        steps = protect_batches([batch], task, Draws(key, place, 0, applied))
        return [text for step in steps for text in step.result["text"].to_pylist()]

    first = drawn(stored[0])
    assert all(drawn(batch) == first for batch in stored)
    assert len(set(first)) > 20
    others = [drawn(stored[0], key=b"j" * 32), drawn(stored[0], place="b"), drawn(stored[0], applied="y")]
    assert all(other != first for other in others)


def test_long_texts_come_in_small_pieces() -> None:
    batch = pa.record_batch({"text": ["a" * (PIECE // 3)] * 7 + ["b" * (3 * PIECE)] + ["c"] * 5, "n": range(13)})
    task = task_for(["text", "n"], DRAWN, columns="text")
    assert [piece.num_rows for piece in pieces(batch, task)] == [3, 3, 1, 1, 5]


def here(job, pending, tell, /, *, workers=None) -> None:
    """Run the partitions of a job in this process, each of them twice."""
    for number in pending:
        made = Path(job.folder) / "ready" / job.partitions[number].target
        tell(run_partition(job.folder, number).rows)
        first = made.read_bytes()
        run_partition(job.folder, number)
        assert made.read_bytes() == first
    assert len(records_of(job)) == len(job.partitions)


def days(folder: Path, table: pa.Table = WHOLE) -> str:
    folder.mkdir()
    for day in range(2):
        pq.write_table(table, folder / f"{day}.parquet", row_group_size=2)
    return f"{folder}/*.parquet"


def test_a_partition_that_is_run_again_gives_the_same_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "runner", lambda engine: here)
    monkeypatch.setattr("metricdp.tables.jobs.plan.PARTITION_ROWS", 2)
    lower = [mechanism(1000.0).words]
    texts = TextMechanism(STAYING.words, mechanism(1.0, budget=4000.0, beyond="mask").rules, lower)
    summary = perturb(days(tmp_path / "in"), texts, to=tmp_path / "out", columns="text", drop="note")
    assert (summary.rows, summary.empty) == (10, 4)
    assert summary.kept_columns == ("id",)
    made = pa.concat_tables(pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet")))
    assert made["text"].to_pylist() == expected(most=4) * 2  # the second level pays for four words
    assert made.column_names == ["id", "text"]
    perturb(f"{tmp_path}/in/*.parquet", DRAWN, to=tmp_path / "two", columns="text")
    halves = [pq.read_table(path)["text"].to_pylist() for path in sorted((tmp_path / "two").glob("0.*.parquet"))]
    other = [pq.read_table(path)["text"].to_pylist() for path in sorted((tmp_path / "two").glob("1.*.parquet"))]
    assert len(halves) == 3
    assert halves != other  # equal files draw independently


def test_a_job_that_met_an_unknown_word_goes_on_with_other_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "runner", lambda engine: here)
    source = days(tmp_path / "in", BAD)
    with pytest.raises(OutOfDomain, match=r"in '0.parquet', words in the column 'text' .* row 1 .*The job is kept"):
        perturb(source, REFUSING, to=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    summary = perturb(source, DRAWN, to=tmp_path / "out", resume=True)
    assert (summary.rows, summary.masked) == (4, 2)
    with pytest.raises(InvalidInput, match="with another mechanism"):
        perturb(source, STAYING, to=tmp_path / "out", resume=True)


def test_a_seed_marks_what_it_draws_on_every_table() -> None:
    rng = np.random.default_rng(0)
    assert b"metricdp.simulated" in mdp.perturb(WHOLE, DRAWN, columns="text", rng=rng).schema.metadata
    assert "metricdp_simulated" in mdp.perturb(pl.from_arrow(WHOLE), DRAWN, columns="text", rng=rng).columns
    assert mdp.perturb(WHOLE.to_pandas(), DRAWN, columns="text", rng=rng).attrs
