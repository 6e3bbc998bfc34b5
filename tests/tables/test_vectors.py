"""Vectors in one column, or in many by a pattern: what comes out has the type that came in, and bad rows are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.tables import perturb
from scripts import main

WIDTH = 12
VECTORS = np.random.default_rng(5).normal(size=(40, WIDTH)).astype(np.float32)
ALMOST = mdp.laplace(mdp.Lp(2), 1e4, dimension=WIDTH)  # noise of about 0.0012
KINDS = [
    pa.list_(pa.float32()),
    pa.list_(pa.float64()),
    pa.large_list(pa.float32()),
    pa.list_(pa.float32(), WIDTH),
    pa.list_(pa.float64(), WIDTH),
    pa.list_(pa.field("element", pa.float32(), nullable=False)),
]


def table_of(kind: pa.DataType, rows: Any = None) -> pa.Table:
    values = VECTORS.tolist() if rows is None else rows
    return pa.table({"id": list(range(len(values))), "embedding": pa.array(values, kind)})


def close(column: Any, truth: Any = VECTORS) -> bool:
    found = np.array(column.to_pylist() if hasattr(column, "to_pylist") else list(column))
    return bool(np.allclose(found, truth, rtol=0, atol=0.05) and not np.array_equal(found, truth))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_lists_come_back_as_the_lists_they_were(kind: pa.DataType) -> None:
    result = mdp.perturb(table_of(kind), ALMOST, columns=["embedding"])
    assert result.schema.field("embedding").type == kind
    assert result["id"].to_pylist() == list(range(40))
    assert close(result["embedding"])


def test_slices_and_chunks_are_read_where_they_begin() -> None:
    whole = table_of(KINDS[0])
    parts = pa.concat_tables([whole.slice(7, 5), whole.slice(30, 3)])
    assert close(mdp.perturb(parts, ALMOST, columns="embedding")["embedding"], VECTORS[[*range(7, 12), *range(30, 33)]])


def test_reports_are_multiples_of_the_pitch_rounded_to_the_type_of_the_lists() -> None:
    noise = mdp.laplace(mdp.Lp(2), 5.0, dimension=WIDTH, pitch=0.25)  # quarters are exact in 32 bits
    made = np.array(mdp.perturb(table_of(KINDS[0]), noise, columns="embedding")["embedding"].to_pylist())
    assert np.array_equal(made * 4, np.rint(made * 4))
    tenths = mdp.laplace(mdp.Lp(2), 5.0, dimension=WIDTH, pitch=0.1)
    made = np.array(mdp.perturb(table_of(KINDS[0]), tenths, columns="embedding")["embedding"].to_pylist())
    assert np.array_equal(made, (np.rint(made * 10) / 10).astype(np.float32).astype(float))


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), WIDTH)], ids=str)
def test_rows_without_a_whole_vector_are_named_and_nothing_of_them_is_shown(kind: pa.DataType) -> None:
    good = VECTORS[0].tolist()
    rows: list[Any] = [good, None, [float("nan"), *good[1:]], good, [None, *good[1:]], [float("inf"), *good[1:]]]
    if not pa.types.is_fixed_size_list(kind):
        rows += [good[:-1], [*good, 1.0], []]
    table = table_of(kind, rows)
    with pytest.raises(OutOfDomain, match=r"row 1 .*embedding holds no list\. .*1, 2, 4, 5") as error:
        mdp.perturb(table, ALMOST, columns="embedding")
    assert not any(f"{value:.5g}" in str(error.value) for value in good)
    with pytest.raises(OutOfDomain, match="a list with 1 of 12 items that are no number"):
        mdp.perturb(table.slice(2), ALMOST, columns="embedding")
    if len(rows) > 6:
        with pytest.raises(OutOfDomain, match="a list of another length than 12"):
            mdp.perturb(table.slice(6), ALMOST, columns="embedding")
    kept = mdp.perturb(table, ALMOST, columns="embedding", on_error="null")["embedding"]
    assert [item.is_valid for item in kept] == [True, False, False, True, *[False] * (len(rows) - 4)]
    assert mdp.perturb(table, ALMOST, columns="embedding", on_error="drop")["id"].to_pylist() == [0, 3]


def test_what_is_no_vector_is_said_in_a_sentence() -> None:
    table = table_of(KINDS[0])
    with pytest.raises(InvalidInput, match="one that holds lists of 12 numbers; got 'id', which holds int64"):
        mdp.perturb(table, ALMOST, columns="id")
    words = pa.table({"embedding": pa.array([["a", "b"]])})
    with pytest.raises(InvalidInput, match="must hold lists of numbers, it holds list<item: string>"):
        mdp.perturb(words, ALMOST, columns="embedding")


def test_frames_of_pandas_and_polars_keep_their_own_kinds() -> None:
    import pandas as pd
    import polars as pl

    arrays = mdp.perturb(pd.DataFrame({"id": range(40), "embedding": list(VECTORS)}), ALMOST, columns="embedding")
    assert isinstance(arrays["embedding"][0], np.ndarray)
    assert arrays["embedding"][0].dtype == np.float32
    lists = mdp.perturb(pd.DataFrame({"embedding": VECTORS.tolist()}), ALMOST)  # the only column there is
    assert isinstance(lists["embedding"][0], list)
    assert close(lists["embedding"])
    typed = pd.Series(VECTORS.tolist(), dtype=pd.ArrowDtype(pa.list_(pa.float32())))
    assert mdp.perturb(pd.DataFrame({"embedding": typed}), ALMOST).dtypes["embedding"] == typed.dtype
    for kind in (pl.List(pl.Float32), pl.Array(pl.Float32, WIDTH)):
        frame = pl.DataFrame({"embedding": pl.Series(VECTORS.tolist(), dtype=kind)})
        made = mdp.perturb(frame, ALMOST, columns="embedding")
        assert made.schema == frame.schema
        assert close(made["embedding"].to_list())


def test_columns_by_a_pattern_are_the_coordinates() -> None:
    import pandas as pd

    names = [f"e_{number}" for number in range(WIDTH)]
    frame = pd.DataFrame(VECTORS, columns=names).assign(id=range(40))
    for columns in ("e_*", "e_0..e_11", ["e_0..e_5", "e_6..e_11"]):
        made = mdp.perturb(frame, ALMOST, columns=columns)
        assert list(made.columns) == [*names, "id"]
        assert close(made[names].to_numpy())
    with pytest.raises(InvalidInput, match="no column 'e_12'"):
        mdp.perturb(frame, ALMOST, columns="e_0..e_12")
    with pytest.raises(InvalidInput, match="from a lower to a higher number"):
        mdp.perturb(frame, ALMOST, columns="e_9..e_2")
    with pytest.raises(InvalidInput, match=r"no column 'f_\*'"):
        mdp.perturb(frame, ALMOST, columns="f_*")


def test_files_of_vectors_become_files_of_vectors(tmp_path: Path) -> None:
    table = table_of(pa.list_(pa.float32()))
    pq.write_table(table, tmp_path / "in.parquet")
    feather.write_feather(table, tmp_path / "in.feather")
    lines = [json.dumps({"id": n, "embedding": row}) for n, row in enumerate(VECTORS.tolist())]
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for end in ("parquet", "feather", "jsonl"):
        summary = perturb(tmp_path / f"in.{end}", ALMOST, to=tmp_path / f"out.{end}", columns="embedding")
        assert summary.columns == ("embedding",)
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.schema.field("embedding").type.value_type == pa.float32()
    assert close(made["embedding"])
    assert close(feather.read_table(tmp_path / "out.feather")["embedding"])
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert close([row["embedding"] for row in rows])


def test_the_command_finds_out_how_long_vectors_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = table_of(pa.list_(pa.float32()))
    wide = pa.table({f"e_{number}": VECTORS[:, number] for number in range(WIDTH)})
    pq.write_table(table, tmp_path / "in.parquet")
    pq.write_table(wide, tmp_path / "wide.parquet")
    for name, columns in (("in", "embedding"), ("wide", "e_*")):
        asked = [
            "--columns",
            columns,
            "--metric",
            "l2",
            "--epsilon",
            "10000",
            "-o",
            str(tmp_path / f"{name}.out.parquet"),
        ]
        assert main(["perturb", str(tmp_path / f"{name}.parquet"), *asked]) == 0
    assert "lies 0.0012 from the truth" in capsys.readouterr().out
    assert close(pq.read_table(tmp_path / "in.out.parquet")["embedding"])


def test_a_row_that_is_odd_for_places_is_no_doubt_about_vectors() -> None:
    far = VECTORS.copy()
    far[3] *= 1e4
    assert mdp.perturb(table_of(KINDS[0], far.tolist()), ALMOST, columns="embedding").num_rows == 40


def test_wide_rows_are_read_in_small_batches(tmp_path: Path) -> None:
    from metricdp.tables import locate_table, open_reader

    zeros = pa.array(np.zeros(3000 * 4096, np.float32))
    wide = pa.table({"embedding": pa.FixedSizeListArray.from_arrays(zeros, 4096)})
    pq.write_table(wide, tmp_path / "wide.parquet", use_dictionary=False, compression="none")
    with open_reader(locate_table(tmp_path / "wide.parquet")) as reader:
        sizes = [batch.num_rows for batch in reader.batches()]
    assert sum(sizes) == 3000
    assert max(sizes) <= 1100  # sixteen megabytes


def test_matrices_of_numpy_and_safetensors_are_tables_of_one_column(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", VECTORS)
    np.savez_compressed(tmp_path / "in.npz", embedding=VECTORS, words=np.array(["a"] * 40))
    header = json.dumps({"emb": {"dtype": "F32", "shape": [40, WIDTH], "data_offsets": [0, VECTORS.nbytes]}}).encode()
    raw = len(header).to_bytes(8, "little") + header + VECTORS.tobytes()
    (tmp_path / "in.safetensors").write_bytes(raw)
    for end, name in (("npy", "vector"), ("npz", "embedding"), ("safetensors", "emb")):
        perturb(tmp_path / f"in.{end}", ALMOST, to=tmp_path / f"out.{end}")
        perturb(tmp_path / f"out.{end}", ALMOST, to=tmp_path / f"{end}.parquet")  # what was written is read again
        assert pq.read_schema(tmp_path / f"{end}.parquet").names == [name]
        assert close(pq.read_table(tmp_path / f"{end}.parquet")[name])
    assert np.load(tmp_path / "out.npy").dtype == np.float32
    assert close(np.load(tmp_path / "out.npz")["embedding"])
    (tmp_path / "cut.safetensors").write_bytes(raw[:-4])
    np.save(tmp_path / "flat.npy", VECTORS[0])
    np.save(tmp_path / "objects.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    np.save(tmp_path / "turned.npy", np.asfortranarray(VECTORS))
    np.savez(tmp_path / "two.npz", a=VECTORS, b=VECTORS)
    (tmp_path / "long.safetensors").write_bytes((2**40).to_bytes(8, "little") + b"{}")
    for name, words in [
        ("cut.safetensors", "ends before"), ("flat.npy", "must hold a matrix"), ("objects.npy", "pickle"),
        ("turned.npy", "row by row"), ("two.npz", "one matrix, got a, b"),
        ("long.safetensors", "must be a table|damaged"),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            perturb(tmp_path / name, ALMOST, to=tmp_path / "never.npy")
    pq.write_table(table_of(KINDS[0]), tmp_path / "in.parquet")
    with pytest.raises(InvalidInput, match="hold one matrix and nothing else, and the table has 'id', 'embedding'"):
        perturb(tmp_path / "in.parquet", ALMOST, to=tmp_path / "never.npy", columns="embedding")
    assert not (tmp_path / "never.npy").exists()


def test_the_command_takes_unit_vectors_and_projections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "in.npy", VECTORS)
    np.save(tmp_path / "matrix.npy", np.eye(WIDTH)[:3])
    out = ["-o", str(tmp_path / "out.npy"), "--overwrite"]
    angular = ["perturb", str(tmp_path / "in.npy"), "--metric", "angular", *out]
    assert main([*angular, "--epsilon", "10000/rad"]) != 0
    assert "must have length 1" in capsys.readouterr().err
    assert main([*angular, "--normalise", "--epsilon", "10000/rad"]) == 0
    made = np.load(tmp_path / "out.npy")
    assert np.allclose(made, VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True), rtol=0, atol=0.02)
    asked = ["--metric", "l2", "--epsilon", "10000", "--projection", str(tmp_path / "matrix.npy")]
    assert main(["perturb", str(tmp_path / "in.npy"), *asked, *out]) == 0
    assert np.allclose(np.load(tmp_path / "out.npy"), VECTORS[:, :3], rtol=0, atol=0.02)


def test_an_embedding_is_not_asked_for_kilometres(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(tmp_path / "t.parquet"), str(tmp_path / "out.parquet")
    pq.write_table(pa.table({"embedding": pa.array(VECTORS.tolist(), pa.list_(pa.float32()))}), source)
    for epsilon in ("5", "5/km"):
        assert main(["perturb", source, "--columns", "embedding", "--epsilon", epsilon, "-o", out]) == 2
        said = capsys.readouterr().err
        assert "--metric l2" in said
        assert "in km" not in said
