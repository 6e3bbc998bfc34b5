"""Tables: same type back, other columns untouched, bad rows named, files whole or not at all."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
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
from metricdp.errors import InvalidInput, NotPrivate, OutOfDomain, OutputProblem
from metricdp.mechanisms import Guarantee, MatrixMechanism
from metricdp.tables import formats, perturb, perturb_batch

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
CELLS = mdp.FiniteSpace([[i, j] for i in range(4) for j in range(4)], mdp.Lp(2))
MATRIX = mdp.exponential(CELLS, 1.0)
WORDS = mdp.exponential(mdp.FiniteSpace([[0.0, 0], [1, 0], [0, 1]], mdp.Lp(2), coordinates=["cat", "dog", "bird"]), 2.0)


def points(rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "user": pa.array([f"u{i % 7}" for i in range(rows)]),
            "lat": rng.uniform(41.0, 41.3, rows),
            "time": pa.array(np.arange(rows), pa.timestamp("s")),
            "lon": rng.uniform(-8.7, -8.5, rows),
            "tags": pa.array([[i] for i in range(rows)]),
        }
    )


@pytest.mark.parametrize("kind", ["table", "chunks", "batch", "pandas", "polars"])
def test_the_same_type_comes_back_with_other_columns_untouched(kind: str) -> None:
    table = points()
    frame = {
        "table": lambda: table,
        "chunks": lambda: pa.concat_tables([table.slice(0, 50), table.slice(50)]),
        "batch": lambda: table.to_batches()[0],
        "pandas": lambda: table.to_pandas().set_index(pd.Index(np.arange(200) * 3 + 5)),
        "polars": lambda: pl.from_arrow(table),
    }[kind]()
    result = perturb(frame, EARTH)
    assert type(result) is type(frame)
    columns = ["user", "lat", "time", "lon", "tags"]
    if kind == "pandas":
        assert list(result.columns) == columns
        assert result.index.equals(frame.index)
        assert result.dtypes.equals(frame.dtypes)
        assert result[["user", "time", "tags"]].equals(frame[["user", "time", "tags"]])
    elif kind == "polars":
        assert result.schema == frame.schema
        assert result.select("user", "time", "tags").equals(frame.select("user", "time", "tags"))
    else:
        assert result.schema.equals(frame.schema)
        assert result.select(["user", "time", "tags"]).equals(frame.select(["user", "time", "tags"]))
    before, after = np.asarray(frame["lat"]), np.asarray(result["lat"])
    assert np.all(before != after)
    assert np.abs(before - after).max() < 0.05  # five kilometres at a mean of 200 metres


def test_the_mean_displacement_is_that_of_the_mechanism() -> None:
    table = points(20_000)
    result = perturb(table, EARTH, rng=np.random.default_rng(5))
    before = np.column_stack([table["lat"], table["lon"]])
    after = np.column_stack([result["lat"], result["lon"]])
    assert mdp.Haversine()(before, after).mean() == pytest.approx(0.2, rel=0.03)


def test_columns_keep_their_types() -> None:
    frame = points().to_pandas().drop(columns="tags")
    for kind in ("float32", "Float64", "double[pyarrow]"):
        typed = frame.astype({"lat": kind, "lon": kind})
        assert perturb(typed, EARTH).dtypes.equals(typed.dtypes)
    whole = pa.table({"x": pa.array([0, 1], pa.int8()), "y": pa.array([2, 3], pa.int64())})
    assert perturb(whole, MATRIX).schema.equals(whole.schema)
    assert perturb(whole.rename_columns(["lat", "lon"]), EARTH).schema.types == [pa.float64(), pa.float64()]
    words = pl.DataFrame({"word": pl.Series(["cat", "dog"] * 50, dtype=pl.Enum(["cat", "dog"]))})
    assert perturb(words, WORDS)["word"].null_count() == 0


def test_a_lazy_frame_is_collected_once() -> None:
    result = perturb(pl.from_arrow(points()).lazy().filter(pl.col("user") == "u1"), EARTH)
    assert isinstance(result, pl.DataFrame)  # a lazy one would draw again whenever it is looked at
    assert result["user"].unique().to_list() == ["u1"]
    assert result.equals(result.lazy().collect())
    literal = pl.LazyFrame({"id": range(1000)}).with_columns(lat=pl.lit(41.0), lon=pl.lit(-8.0))
    assert perturb(literal, EARTH, force=True)["lat"].n_unique() > 300  # one draw a row, however constant the column is


@pytest.mark.parametrize("thing", [[1, 2], np.zeros((3, 2)), {"lat": [1.0]}, None, pd.Series([1.0])])
def test_what_is_no_table_is_refused(thing: object) -> None:
    with pytest.raises(InvalidInput, match="data frame"):
        perturb(thing, EARTH)


def test_repeated_and_nameless_columns_are_refused() -> None:
    with pytest.raises(InvalidInput, match="different names"):
        perturb(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["lat", "lat", "lon"]), EARTH)
    with pytest.raises(InvalidInput, match="must be text"):
        perturb(pd.DataFrame([[1.0, 2.0]]), EARTH)
    doubled = pa.table([pa.array([1.0]), pa.array([1.0]), pa.array([1.0])], names=["lat", "lat", "lon"])
    with pytest.raises(InvalidInput, match="more than one"):
        perturb(doubled, EARTH, columns=["lat", "lon"])


@pytest.mark.parametrize(
    "names",
    [("lat", "lon"), ("latitude", "longitude"), ("Lat", "LNG")],
)
def test_the_usual_names_are_found(names: tuple[str, str]) -> None:
    table = pa.table({names[1]: [2.0], names[0]: [50.0]})
    result = perturb(table, EARTH)
    assert result[names[0]][0].as_py() == pytest.approx(50.0, abs=0.1)


def test_missing_columns_are_listed() -> None:
    with pytest.raises(InvalidInput, match=r"no latitude column.*'a', 'b'"):
        perturb(pa.table({"a": [1.0], "b": [2.0]}), EARTH)
    with pytest.raises(InvalidInput, match=r"no column 'latt'.*'lat', 'lon'.*Did you mean 'lat'"):
        perturb(pa.table({"lat": [1.0], "lon": [2.0]}), EARTH, columns=["latt", "lon"])
    with pytest.raises(InvalidInput, match="needs 2 columns"):
        perturb(pa.table({"lat": [1.0], "lon": [2.0]}), EARTH, columns="lat")
    with pytest.raises(InvalidInput, match="say which columns"):
        perturb(pa.table({"a": [1.0], "b": [2.0], "c": [3.0]}), MATRIX)


@pytest.mark.parametrize("frame", [points().slice(0, 0), points().to_pandas().iloc[:0]])
def test_an_empty_table_is_refused(frame: object) -> None:
    with pytest.raises(InvalidInput, match="empty"):
        perturb(frame, EARTH)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "lat holds no number"),
        (np.nan, "lat holds no number"),
        (np.inf, "lat holds no number"),
        (91.0, r"lat, lon, latitude must lie in \[-90, 90\]"),
        (-8e9, "latitude must lie"),
    ],
)
def test_bad_rows_are_named(value: float | None, message: str) -> None:
    rows = [41.0] * 40
    rows[17] = rows[23] = value
    table = pa.table({"lat": pa.array(rows, pa.float64()), "lon": [8.0] * 40, "n": range(40)})
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        with pytest.raises(OutOfDomain, match=rf"row 17 .*(?:{message}).*17, 23") as caught:
            perturb(frame, EARTH)
        assert caught.value.rows == (17, 23)
        with pytest.raises(OutOfDomain, match=r"row 17 .*It holds: lat is (?:nothing|nan|inf|91|-8e\+09)"):
            perturb(frame, EARTH, show_values=True)
        dropped = perturb(frame, EARTH, on_error="drop")
        assert len(dropped) == 38
        assert np.array_equal(np.asarray(dropped["n"]), np.delete(np.arange(40), [17, 23]))
        emptied = perturb(frame, EARTH, on_error="null")
        assert len(emptied) == 40
        for name in ("lat", "lon"):
            values = np.asarray(emptied[name], dtype=float)
            assert np.array_equal(np.flatnonzero(np.isnan(values)), [17, 23])


def test_exchanged_coordinates_are_suspected() -> None:
    with pytest.raises(OutOfDomain, match="exchanged"):
        perturb(pa.table({"lat": [139.7], "lon": [35.6]}), EARTH)


def test_a_matrix_takes_only_its_secrets_and_snaps_on_request() -> None:
    table = pa.table({"x": [0.0, 1.04, 2.0], "y": [0, 3, 2]})
    with pytest.raises(OutOfDomain, match=r"row 1 .*in x, y, secrets are its 16 points") as caught:
        perturb(table, MATRIX)
    assert "1.04" not in str(caught.value)
    with pytest.raises(OutOfDomain, match=r"row 1 .*x is 1.04, y is 3.*nearest is \(1, 3\), 0.04 away"):
        perturb(table, MATRIX, show_values=True)
    with pytest.raises(OutOfDomain, match=r"beyond the declared snap of 0.01"):
        perturb(table, MATRIX, snap=0.01)
    result = perturb(table, MATRIX, snap=0.05)
    assert result.schema.equals(table.schema)
    assert set(np.asarray(result["x"])) <= {0.0, 1.0, 2.0, 3.0}
    with pytest.raises(InvalidInput, match="finitely many"):
        perturb(points(), EARTH, snap=0.1)
    with pytest.raises(InvalidInput, match="at least 0"):
        perturb(table, MATRIX, snap=-1.0)


def test_a_matrix_draws_its_own_law() -> None:
    table = pa.table({"x": np.full(200_000, 1.0), "y": np.full(200_000, 2.0)})
    result = perturb(table, MATRIX, rng=np.random.default_rng(1))
    codes = 4 * np.asarray(result["x"]) + np.asarray(result["y"])
    counts = np.bincount(codes.astype(int), minlength=16)
    expected = MATRIX.matrix[6] * 200_000
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi-square with 15 degrees of freedom


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_words(kind: pa.DataType) -> None:
    table = pa.table({"n": [1, 2, 3], "word": pa.array(["cat", "dog", "cat"]).cast(kind)})
    result = perturb(table, WORDS, columns="word")
    assert result.schema.equals(table.schema)
    assert set(result["word"].to_pylist()) <= {"cat", "dog", "bird"}
    bad = pa.table({"word": pa.array(["cat", "dgo", None]).cast(kind)})
    with pytest.raises(OutOfDomain, match=r"row 1 .*3 words of this vocabulary.*1, 2"):
        perturb(bad, WORDS)
    with pytest.raises(OutOfDomain, match=r"'dgo'.*\(dog\)"):
        perturb(bad, WORDS, show_values=True)
    assert perturb(bad, WORDS, on_error="null")["word"].null_count == 2
    assert len(perturb(bad, WORDS, on_error="drop")) == 1
    with pytest.raises(InvalidInput, match="must hold words"):
        perturb(table, WORDS, columns="n")


def test_a_seed_repeats_and_marks_its_output() -> None:
    table = points()
    first, second = (perturb(table, EARTH, rng=np.random.default_rng(3)) for _ in range(2))
    assert first.equals(second)
    assert b"metricdp.simulated" in first.schema.metadata
    assert "metricdp.simulated" in perturb(table.to_pandas(), EARTH, rng=np.random.default_rng(3)).attrs
    assert not perturb(table, EARTH).equals(perturb(table, EARTH))
    assert perturb(table, EARTH).schema.metadata is None


def test_a_mechanism_without_a_promise_protects_nothing() -> None:
    promise = Guarantee(1.0, CELLS.metric, basis="none")
    broken = MatrixMechanism(CELLS, CELLS, np.eye(16), promise, MATRIX.certificate)
    with pytest.raises(NotPrivate):
        perturb(pa.table({"x": [0.0], "y": [0.0]}), broken)


def test_text_columns_are_numbers_only_where_they_read_as_such() -> None:
    with pytest.raises(InvalidInput, match="must hold numbers"):
        perturb(pa.table({"lat": [True], "lon": [1.0]}), EARTH)
    with pytest.raises(OutOfDomain, match="'north'"):
        perturb(pa.table({"lat": ["1.5", "north"], "lon": [1.0, 2.0]}), EARTH, show_values=True)


def test_a_batch_may_be_empty_and_counts_from_its_first_row() -> None:
    batch = points().to_batches()[0]
    assert perturb_batch(batch.slice(0, 0), EARTH).num_rows == 0
    assert perturb_batch(batch, EARTH, ["lat", "lon"]).num_rows == 200
    bad = pa.record_batch({"lat": [95.0], "lon": [0.0]})
    with pytest.raises(OutOfDomain, match="row 1000 "):
        perturb_batch(bad, EARTH, first_row=1000)


# Files


def write_csv(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


cells = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8), st.sampled_from(",;\t"))
def test_other_csv_columns_stay_identical(tmp_path_factory: pytest.TempPathFactory, notes, delimiter) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("csv")
    rows = [["note", "lat", "na,me", "lon"], *([a, "41.10", b, "-8.60"] for a, b in notes)]
    with (folder / "in.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(rows)
    perturb(folder / "in.csv", EARTH, to=folder / "out.csv")
    with (folder / "out.csv").open(newline="", encoding="utf-8") as file:
        result = list(csv.reader(file, delimiter=delimiter))
    assert [[row[0], row[2]] for row in result] == [[row[0], row[2]] for row in rows]
    assert all(row[1] != "41.10" for row in result[1:])


def test_csv_keeps_the_spelling_of_other_columns(tmp_path: Path) -> None:
    rows = [["id", "lat", "lon", "when", "zip"], ["007", "41.1", "-8.6", "2020-01-01T00:00:00Z", "0123"]]
    write_csv(tmp_path / "in.csv", rows)
    summary = perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "out.csv", id="id")
    (header, row) = read_csv(tmp_path / "out.csv")
    assert header == rows[0]
    assert [row[0], row[3], row[4]] == ["007", "2020-01-01T00:00:00Z", "0123"]
    assert summary.kept_columns == ("id", "when", "zip")
    assert '"' not in (tmp_path / "out.csv").read_text()


def test_csv_of_another_encoding_passes_through(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"lat,lon,name\n41.1,-8.6,S\xe3o\n")
    perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "out.csv", id="name")
    assert (tmp_path / "out.csv").read_bytes().endswith(b",S\xe3o\n")


def test_parquet_keeps_schema_compression_and_order(tmp_path: Path) -> None:
    table = points(140_000).replace_schema_metadata({"origin": "test"})
    pq.write_table(table, tmp_path / "in.parquet", compression="zstd", row_group_size=30_000)
    table = pq.read_table(tmp_path / "in.parquet")  # Parquet knows no timestamps in seconds
    shares: list[float] = []
    summary = perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet", id="user", progress=shares.append)
    result = pq.read_table(tmp_path / "out.parquet")
    assert result.schema.equals(table.schema)
    assert result.schema.metadata is None  # whatever it said, it may have said it of the secrets
    assert summary.dropped == ("metadata 'origin'",)
    assert result.drop_columns(["lat", "lon"]).equals(table.drop_columns(["lat", "lon"]))
    assert np.abs(np.asarray(result["lat"]) - np.asarray(table["lat"])).max() < 0.05
    assert pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0).compression == "ZSTD"
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert summary.people is not None
    assert (summary.people.count, summary.people.most_rows) == (7, 20000)
    assert summary.composed_epsilon == pytest.approx(200_000)
    assert summary.revealing_columns == ("time",)
    text = "\n".join(summary.lines())
    for words in (
        "20,000 x 10 = 200000 per km",
        "2 x 10 = 20 per km",
        "not protected: user, time, tags",
        "Check time",
    ):
        assert words in text


def test_a_seeded_file_is_marked(tmp_path: Path) -> None:
    pq.write_table(points(), tmp_path / "in.parquet")
    for name in ("a", "b"):
        summary = perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / f"{name}.parquet", rng=np.random.default_rng(1))
    first, second = (pq.read_table(tmp_path / f"{name}.parquet") for name in "ab")
    assert first.equals(second)
    assert b"metricdp.simulated" in first.schema.metadata
    assert any("SIMULATION ONLY" in line for line in summary.lines())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_are_counted_over_the_whole_file(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats.parquet, "BATCH_ROWS", 1000)
    monkeypatch.setattr(formats.csv, "CSV_BLOCK_BYTES", 20_000)
    rows = 5000
    latitude = np.linspace(41.0, 41.1, rows)
    latitude[[4321, 4777]] = 95.0
    table = pa.table({"lat": latitude, "lon": np.linspace(-8.1, -8.0, rows), "n": np.arange(rows)})
    source, target = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"
    if suffix == "csv":
        write_csv(source, [table.schema.names, *([str(v) for v in row.values()] for row in table.to_pylist())])
    else:
        pq.write_table(table, source)
    target.write_text("what was there before")
    with pytest.raises(OutputProblem, match=r"there already.*--overwrite"):
        perturb(source, EARTH, to=target)
    with pytest.raises(OutOfDomain, match="row 4321 "):
        perturb(source, EARTH, to=target, overwrite=True)
    assert target.read_text() == "what was there before"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, target.name])
    summary = perturb(source, EARTH, to=target, on_error="drop", overwrite=True)
    assert (summary.rows, summary.written, summary.bad, summary.bad_rows) == (rows, rows - 2, 2, (4321, 4777))
    assert any("4321, 4777" in line for line in summary.lines())
    summary = perturb(source, EARTH, to=target, on_error="null", overwrite=True)
    assert summary.written == rows
    if suffix == "csv":
        assert read_csv(target)[1 + 4321] == ["", "", "4321"]
    else:
        assert pq.read_table(target)["lat"].null_count == 2


class Interrupting:
    """A mechanism that is interrupted at its third batch, as by Ctrl-C."""

    def __init__(self, error: type[BaseException]) -> None:
        self.inputs = self.outputs = EARTH.inputs
        self.guarantee, self.certificate = EARTH.guarantee, EARTH.certificate
        self.calls, self.error = 0, error

    def sample(self, secrets, /, *, rng=None):  # type: ignore[no-untyped-def]
        self.calls += 1
        if self.calls == 3:
            raise self.error
        return EARTH.sample(secrets, rng=rng)

    def log_density(self, secrets, reports, /):  # type: ignore[no-untyped-def]
        return EARTH.log_density(secrets, reports)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_nothing_is_left_after_an_interruption(
    tmp_path: Path, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats.parquet, "BATCH_ROWS", 1000)
    pq.write_table(points(5000), tmp_path / "in.parquet")
    with pytest.raises(error):
        perturb(tmp_path / "in.parquet", Interrupting(error), to=tmp_path / "out.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_targets_are_checked_before_any_work(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    write_csv(source, [["lat", "lon"], ["1", "2"]])
    link = tmp_path / "link.csv"
    link.symlink_to(source)
    for target in (source, link):
        with pytest.raises(OutputProblem, match="file that is read"):
            perturb(source, EARTH, to=target)
    with pytest.raises(OutputProblem, match="does not exist"):
        perturb(source, EARTH, to=tmp_path / "no" / "out.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputProblem, match="not a plain file"):
        perturb(source, EARTH, to=tmp_path / "folder.csv")
    with pytest.raises(InvalidInput, match=r"\.csv, \.parquet.*--to"):
        perturb(source, EARTH, to=tmp_path / "out.xlsx")
    assert source.read_text() == "lat,lon\n1,2\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", [["lat", "lon"], ["1", "2"]])
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(OutputProblem, match="no permission"):
        perturb(tmp_path / "in.csv", EARTH, to=folder / "out.csv")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files")
def test_a_folder_that_takes_no_files_is_refused(tmp_path: Path) -> None:
    write_csv(tmp_path / "in.csv", [["lat", "lon"], ["1", "2"]])
    with pytest.raises(OutputProblem, match="cannot write"):
        perturb(tmp_path / "in.csv", EARTH, to="/proc/self/out.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"lat,lon\n", "no rows"),
        (b"lat,lon\n1,2,3\n", "cannot be read"),
        (b"lat,lon\n1,\n", "lon holds no number"),
        (b"lat,lon\n1,east\n", "row 0 .*lon holds no number"),
        (b"a,b\n1,2\n", "'a', 'b'"),
    ],
)
def test_bad_csv_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_bad_parquet_files(tmp_path: Path) -> None:
    pq.write_table(points(), tmp_path / "good.parquet")
    data = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "in.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInput, match="cannot be read"):
        perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet")
    with pytest.raises(InvalidInput, match="does not exist"):
        perturb(tmp_path / "none.parquet", EARTH, to=tmp_path / "out.parquet")
    with pytest.raises(InvalidInput, match="no column 'nobody'"):
        perturb(tmp_path / "good.parquet", EARTH, to=tmp_path / "out.parquet", id="nobody")
    assert not (tmp_path / "out.parquet").exists()


MEMORY = """
import resource, sys
import metricdp as mdp
from metricdp.tables import perturb
mechanism = mdp.laplace(mdp.Haversine(), 10.0)
perturb(sys.argv[1], mechanism, to=sys.argv[3], force=True)
small = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
perturb(sys.argv[2], mechanism, to=sys.argv[3], overwrite=True, force=True)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - small) / 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    line = b"41.1,-8.6," + b"x" * 190 + b"\n"
    for name, rows in (("small.csv", 80_000), ("large.csv", 480_000)):  # 16 MB and 96 MB
        with (tmp_path / name).open("wb") as file:
            file.write(b"lat,lon,note\n")
            for _ in range(rows // 10_000):
                file.write(line * 10_000)
    names = [str(tmp_path / name) for name in ("small.csv", "large.csv", "out.csv")]
    done = subprocess.run([sys.executable, "-c", MEMORY, *names], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 40  # half of the difference of the files
