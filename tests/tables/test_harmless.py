"""No metadata, category or statistic of the secrets leaves with a table, whichever way it leaves."""

from __future__ import annotations

import io
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.tables import perturb, perturb_batch
from tables.engines.hand import perturbed

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
WORDS = mdp.exponential(
    mdp.FiniteSpace([[0.0], [40.0]], mdp.Lp(1), coordinates=["alder", "birch"], columns=["word"]), 9.0
)
CANARY = "quillfeather"
BOX = [41.15738519, -8.62947137]
GEO = {"version": "1.1.0", "primary_column": "shape", "columns": {"shape": {"encoding": "WKB", "bbox": BOX * 2}}}


def table() -> pa.Table:
    """Rows whose metadata, field notes, struct notes and categories hold canaries; the last row is bad."""
    home = pa.field("home", pa.struct([pa.field("at", pa.int64(), metadata={"note": CANARY})]))
    lat = pa.field("lat", pa.float64(), metadata={"PARQUET:field_id": "7", "note": CANARY})
    kinds = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    schema = pa.schema([lat, pa.field("lon", pa.float64()), home, pa.field("kind", kinds)])
    columns = [
        pa.array([BOX[0], 41.2, 95.0]),
        pa.array([BOX[1], -8.6, 0.0]),
        pa.array([{"at": 1}, {"at": 2}, {"at": 3}], home.type),
        pa.DictionaryArray.from_arrays(pa.array([2, 0, 1], pa.int8()), pa.array(["b", CANARY, "a"]), ordered=True),
    ]
    frame = pa.table(columns, schema=schema).to_pandas()
    frame.attrs = {"seen": CANARY}
    pandas = pa.Table.from_pandas(frame).schema.metadata[b"pandas"]
    return pa.table(columns, schema=schema.with_metadata({"geo": json.dumps(GEO), "pandas": pandas, "by": CANARY}))


def clean(data: bytes) -> bool:
    return CANARY.encode() not in data and b"bbox" not in data and str(BOX[0])[:8].encode() not in data


def stream(result: pa.Table) -> bytes:
    """Return a table as it would be sent to somebody."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, result.schema) as writer:
        writer.write(result)
    return sink.getvalue()


def test_the_canaries_are_there_before(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "in.parquet")
    assert not clean((tmp_path / "in.parquet").read_bytes())
    assert stream(table()).count(CANARY.encode()) >= 4


def test_a_file_keeps_names_types_and_rows_only(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "in.parquet", write_statistics=True)
    summary = perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet", on_error="drop")
    assert clean((tmp_path / "out.parquet").read_bytes())
    result = pq.read_table(tmp_path / "out.parquet")
    assert result.schema.equals(table().schema)
    assert set(result.schema.metadata) == {b"pandas"}
    assert result.schema.field("lat").metadata == {b"PARQUET:field_id": b"7"}
    assert result["kind"].to_pylist() == ["a", "b"]
    assert result.to_pandas()["kind"].cat.categories.tolist() == ["b", "a"]  # in the order they had
    assert result.to_pandas()["kind"].cat.ordered
    line = next(line for line in summary.lines() if "Not copied" in line)
    for part in ("metadata 'geo'", "metadata 'by'", "pandas attributes", "'lat'", "'home'", "categories of 'kind'"):
        assert part in line
    # Statistics are those of the reports.
    chunk = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0)
    reports = np.asarray(result["lat"])
    assert (chunk.statistics.min, chunk.statistics.max) == (reports.min(), reports.max())
    assert not {BOX[0], 41.2, 95.0} & {chunk.statistics.min, chunk.statistics.max}


def test_every_way_out_of_memory_is_clean(tmp_path: Path) -> None:
    before = table()
    for result in (
        perturb(before, EARTH, on_error="drop"),
        perturb(pa.concat_tables([before, before]), EARTH, on_error="drop"),
        pa.Table.from_batches([perturb(before.to_batches()[0], EARTH, on_error="drop")]),
        pa.Table.from_batches([perturb_batch(before.to_batches()[0], EARTH, on_error="drop")]),
    ):
        assert clean(stream(result))
        assert result.column("home").type.field(0).metadata is None
        assert result.schema.equals(before.schema)
        result.validate(full=True)
    perturb(before.to_reader(), EARTH, on_error="drop", to=str(tmp_path / "stream.parquet"))
    pq.write_table(before, tmp_path / "in.parquet")
    perturb(ds.dataset(tmp_path / "in.parquet"), EARTH, on_error="drop", to=str(tmp_path / "set.parquet"))
    for name in ("stream", "set"):
        assert clean((tmp_path / f"{name}.parquet").read_bytes())


def test_a_job_is_clean_and_says_what_it_left(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "in.parquet")
    summary = perturbed([tmp_path / "in.parquet"], tmp_path / "out", EARTH, on_error="drop")
    assert clean((tmp_path / "out" / "in.parquet").read_bytes())
    assert "metadata 'geo'" in summary.dropped
    assert "categories of 'kind' that no row holds" in summary.dropped


@pytest.mark.parametrize("ordered", [False, True])
def test_pandas_keeps_no_notes_and_no_unused_categories(ordered: bool) -> None:
    words = pd.Categorical(["alder", "alder"], categories=["alder", CANARY], ordered=ordered)
    towns = pd.Categorical(["x", "x"], categories=["x", CANARY])
    index = pd.MultiIndex.from_tuples([(1, CANARY), (2, "b"), (3, "c")])[1:]
    frame = pd.DataFrame({"word": words, "town": towns}, index=index)
    frame.attrs = {"box": CANARY}
    result = perturb(frame, WORDS)
    assert result.attrs == {}
    assert list(result["town"]) == ["x", "x"]
    assert str(result["word"].dtype) == "category"
    assert set(result["word"].cat.categories) <= {"alder", "birch"}
    assert result.index.equals(index)
    assert CANARY.encode() not in pd.io.pickle.pickle.dumps(result)
    assert frame.attrs == {"box": CANARY}  # the caller's own frame stays as it is
    assert CANARY in frame["town"].cat.categories


def test_polars_enumerations_name_the_rows_only() -> None:
    frame = pl.DataFrame(
        {
            "word": pl.Series(["alder"] * 3, dtype=pl.Enum(["alder", CANARY])),
            "town": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", CANARY, "x"])),
        }
    )
    result = perturb(frame, WORDS)
    assert result["town"].dtype == pl.Enum(["y", "x"])
    assert result["town"].to_list() == ["x", "y", "x"]
    sink = io.BytesIO()
    result.write_parquet(sink)
    assert CANARY.encode() not in sink.getvalue()


def test_polars_keeps_no_values_under_nulls_nor_of_rows_that_went() -> None:
    seen = pa.array([True, False, True, True])
    number = int.from_bytes(CANARY.encode()[:8], "little")
    numbers = pa.Array.from_buffers(pa.int64(), 4, [seen.buffers()[1], pa.array([1, number, 3, 4]).buffers()[1]])
    gone = pl.Series([["here"], ["here"], ["here"], [CANARY]])
    frame = pl.DataFrame(
        {
            "lat": [41.1, 41.1, 41.1, None],
            "lon": [-8.6] * 4,
            "lists": gone,
            "wide": pl.Series([1, None, 3, 4], dtype=pl.Int128),
        }
    ).with_columns(pl.Series("number", numbers))
    result = perturb(frame, EARTH, on_error="drop")
    assert result.schema == frame.schema
    assert result["number"].to_list() == [1, None, 3]
    assert result["lists"].to_list() == [["here"]] * 3
    sink = io.BytesIO()
    result.drop("wide").write_ipc(sink, compression="uncompressed")
    for written in (sink.getvalue(), pickle.dumps(result)):
        assert CANARY.encode() not in written
        assert CANARY.encode()[:8] not in written


def test_duckdb_enumerations_of_the_secret_do_not_stay() -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TYPE words AS ENUM ('alder', '{CANARY}')")
        connection.execute("CREATE TABLE t AS SELECT 'alder'::words AS word FROM range(50)")
        relation = mdp.perturb((connection, "FROM t"), WORDS, to="safe")
        assert [str(kind) for kind in relation.types] == ["VARCHAR"]


def test_pandas_reads_back_what_it_wrote(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "lat": [41.1, 41.2],
            "lon": [-8.6, -8.5],
            "when": pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Europe/Lisbon"),
            "who": pd.array([1, None], dtype="Int64"),
            "kind": pd.Categorical(["a", "b"]),
        },
        index=pd.Index([5, 7], name="key"),
    )
    frame.to_parquet(tmp_path / "in.parquet")
    perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet")
    before, after = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("in", "out"))
    assert after.index.equals(before.index)
    assert after.dtypes.equals(before.dtypes)
    assert after.drop(columns=["lat", "lon"]).equals(before.drop(columns=["lat", "lon"]))
