"""Columns that are dropped or coarsened, in every kind of table, and nothing passed through by mistake."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.tables import CoarseningStep, Trim, coarsen_column, perturb
from metricdp.text import Rules, TextMechanism
from tables.engines.hand import perturbed

EARTH = mdp.laplace(mdp.Haversine(), 10.0)


def table(rows: int = 60) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "lat": rng.uniform(41.0, 41.3, rows),
            "lon": rng.uniform(-8.7, -8.5, rows),
            "t": pa.array(1_372_636_858 + 977 * np.arange(rows), pa.timestamp("s")).cast(pa.timestamp("ms")),
            "age": rng.integers(18, 90, rows),
            "ip": [f"10.0.0.{i}" for i in range(rows)],
            "pos": pa.array([{"accuracy": float(i), "floor": i} for i in range(rows)]),
        }
    )


ASKED = {"drop": ["ip", "pos.accuracy"], "coarsen": {"t": "1h", "age": 10}}


@pytest.mark.parametrize("kind", ["table", "batch", "pandas", "polars", "file", "files", "csv", "dataset"])
def test_columns_are_dropped_and_coarsened_in_every_kind_of_table(kind: str, tmp_path: Path) -> None:
    whole = table()
    if kind in ("pandas", "csv"):
        whole = whole.drop_columns(["pos"])
    asked = {
        "drop": [name for name in ASKED["drop"] if name.partition(".")[0] in whole.schema.names],
        "coarsen": ASKED["coarsen"],
    }
    if kind in ("file", "files", "dataset"):
        pq.write_table(whole, tmp_path / "in.parquet")
    if kind == "file":
        perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet", **asked)
        result = pq.read_table(tmp_path / "out.parquet")
    elif kind == "files":
        perturbed(tmp_path / "in.parquet", tmp_path / "out", EARTH, **asked)
        result = pq.read_table(tmp_path / "out" / "in.parquet")
    elif kind == "dataset":
        from pyarrow import dataset

        source = dataset.dataset(tmp_path / "in.parquet")
        result = perturb(source, EARTH, to=tmp_path / "out.parquet", **asked).to_table()
    elif kind == "csv":
        whole.to_pandas().to_csv(tmp_path / "in.csv", index=False)
        perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "out.csv", **asked)
        result = pa.Table.from_pandas(pd.read_csv(tmp_path / "out.csv", parse_dates=["t"]))
    else:
        frame = {
            "table": lambda: whole,
            "batch": lambda: whole.to_batches()[0],
            "pandas": lambda: whole.to_pandas().set_index(pd.Index(np.arange(60) * 3 + 5)),
            "polars": lambda: pl.from_arrow(whole),
        }[kind]()
        made = perturb(frame, EARTH, **asked)
        assert type(made) is type(frame)
        result = (
            made if kind in ("table", "batch") else pa.Table.from_pandas(made) if kind == "pandas" else made.to_arrow()
        )
    assert "ip" not in result.schema.names
    seconds = np.asarray(result["t"]).astype("datetime64[s]").astype(np.int64)
    before = 1_372_636_858 + 977 * np.arange(60)
    assert np.array_equal(seconds, before - before % 3600)
    assert np.array_equal(np.asarray(result["age"]), np.asarray(whole["age"]) // 10 * 10)
    if "pos" in result.schema.names:
        assert result.schema.field("pos").type.num_fields == 1
        assert [row["floor"] for row in result["pos"].to_pylist()] == list(range(60))


def test_a_table_in_duckdb_is_trimmed_too() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    whole = table().drop_columns(["pos"])
    connection.register("points", whole)
    made = mdp.perturb(
        (connection, "FROM points"), EARTH, to="safe", drop="ip", coarsen=ASKED["coarsen"]
    ).to_arrow_table()
    assert made.schema.names == ["lat", "lon", "t", "age"]
    assert np.array_equal(np.asarray(made["age"]), np.asarray(whole["age"]) // 10 * 10)
    assert {value.minute for value in made["t"].to_pylist()} == {0}
    with pytest.raises(InvalidInput, match="whole columns"):
        mdp.perturb((connection, "SELECT *, {'a': 1} AS s FROM points"), EARTH, to="other", drop="s.a")


@given(values=st.lists(st.integers(-(2**40), 2**40) | st.none(), min_size=1, max_size=20), step=st.integers(1, 10**6))
@settings(max_examples=50, deadline=None)
def test_whole_numbers_are_put_down_to_multiples(values: list[int | None], step: int) -> None:
    made = coarsen_column(pa.array(values, pa.int64()), "n", CoarseningStep.of(step)).to_pylist()
    assert made == [None if value is None else value - value % step for value in values]


@pytest.mark.parametrize(
    ("texts", "step", "made"),
    [
        (["2013-07-01T17:42:09Z", "", None], "1h", ["2013-07-01T17:00:00Z", "", None]),
        (["2013-07-01 17:42:09.123+02:00"], "15min", ["2013-07-01 17:30:00+02:00"]),
        (["1/7/2013 5:42"], "30min", ["1/7/2013 05:30"]),
        (["2013-07-01 17:42", "2013-07-01"], "1d", ["2013-07-01 00:00", "2013-07-01"]),
        (["2013-07-05T17:42:09", "2013-07-04"], "7d", ["2013-07-04", "2013-07-04"]),
        (["1372636858", ""], "1h", ["1372636800", ""]),
        (["1372636858123"], "1h", ["1372636800000"]),
        (["17.5", "-3", " 8 "], "5", ["15", "-5", "5"]),
        (["0.37", "0.3"], "0.1", ["0.3", "0.3"]),
    ],
)
def test_texts_keep_their_writing(texts: list[str | None], step: str, made: list[str | None]) -> None:
    assert coarsen_column(pa.array(texts, pa.string()), "t", CoarseningStep.of(step)).to_pylist() == made


@pytest.mark.parametrize(
    ("array", "step", "words"),
    [
        (pa.array(["17:00", "soon"]), "1h", "no times"),
        (pa.array(["1.5", "many"]), "10", "no numbers"),
        (pa.array([True]), "10", "drop it"),
        (pa.array([5]), "0.5", "whole step"),
        (pa.array([5], pa.timestamp("s")), "10", "t=1h"),
        (pa.array(["01/07/2013"]), "7d", "2013-07-01"),
    ],
)
def test_what_cannot_be_coarsened_is_refused_without_its_value(array: pa.Array, step: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as error:
        coarsen_column(array, "t", CoarseningStep.of(step))
    assert "soon" not in str(error.value)
    assert "many" not in str(error.value)


@pytest.mark.parametrize("step", ["", "0", "-1h", "7min", "1.5d", "1fortnight", "h", "90min "])
def test_steps_that_mean_nothing_are_refused(step: str) -> None:
    if step == "90min ":
        assert CoarseningStep.of(step).size == 5400  # sixteen of them make a day
    else:
        with pytest.raises(InvalidInput, match="coarsened"):
            CoarseningStep.of(step)


def test_asking_for_both_is_refused() -> None:
    with pytest.raises(InvalidInput, match="both"):
        Trim.of(["t"], {"t": "1h"})


def test_what_was_coarsened_is_not_said_to_be_kept_as_it_was(tmp_path: Path) -> None:
    rows = [f"{41.15 + k / 1e4:.4f},{-8.61 - k / 1e4:.4f},2026-01-01T10:{k % 60:02d}:00,{k % 3}" for k in range(80)]
    (tmp_path / "in.csv").write_text("\n".join(["lat,lon,t,kind", *rows]) + "\n")
    summary = perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "out.csv", coarsen={"t": "1h"})
    assert summary.kept_columns == ("kind",)
    lines = summary.lines()
    assert "Coarsened, as requested: t to 1h." in lines
    assert "Unchanged and not protected: kind." in lines
    alone = perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "alone.csv", coarsen={"t": "1h"}, drop=["kind"]).lines()
    assert not [line for line in alone if line.startswith("Unchanged and not protected")]
    assert [line for line in alone if line.startswith("Columns were checked")]


def test_a_text_table_says_the_same(tmp_path: Path) -> None:
    words = mdp.vocabulary(["good", "bad", "room"], np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    mechanism = TextMechanism(mdp.exponential(words, 3.0), Rules(unknown="mask"))
    (tmp_path / "in.csv").write_text("text,t,n\ngood,2026-01-01T10:11:12,1\nbad,2026-01-01T10:12:12,2\n")
    summary = perturb(tmp_path / "in.csv", mechanism, to=tmp_path / "out.csv", columns="text", coarsen={"t": "1h"})
    assert summary.kept_columns == ("n",)
