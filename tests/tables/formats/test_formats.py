"""Files people have: every format in, every format out, and files that are broken get a sentence."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain, OutputProblem
from metricdp.tables import FORMATS, Reading, perturb
from scripts import main
from tabled import (
    ALMOST,
    METRES,
    READERS,
    ROWS,
    WRITERS,
    csv_bytes,
    csv_rows,
    placed,
    read_duckdb,
    read_sqlite,
    write_sqlite,
)
from tables.engines.hand import perturbed


def same_rows(found: list[dict[str, Any]], *, text: bool = False) -> None:
    """Reports lie close to the secrets of the same row, and all else is as it was."""
    assert len(found) == len(ROWS)
    for row, given in zip(placed(found), ROWS, strict=True):
        assert abs(float(row["lat"]) - given["lat"]) < METRES
        assert abs(float(row["lon"]) - given["lon"]) < METRES
        assert (str(row["id"]), row["note"] or "") == (str(given["id"]), given["note"])
        assert set(row) == set(given)


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_becomes_every_other(tmp_path: Path, name: str, suffix: str) -> None:
    source, target = tmp_path / name, tmp_path / f"out{suffix}"
    WRITERS[name](source, ROWS)
    named = f"{source}::fixes" if name == "in.db" else source
    summary = perturb(named, ALMOST, to=target)
    assert summary.written == 3
    same_rows(READERS[suffix](target))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, target.name])


def test_every_declared_format_is_tried_both_ways() -> None:
    # plain lines and matrices have one column, of texts or of vectors: tests/tables/test_texts.py, test_vectors.py
    alone = ("lines", "npy", "npz", "safetensors")
    ends = [end for one in FORMATS for end in one.suffixes[:1] if one.name not in alone]
    assert all(any(name.endswith(end) for name in (*WRITERS, "in.sqlite")) for end in ends)
    assert all(any(suffix.startswith(end) for suffix in (*READERS, ".sqlite")) for end in ends)


def european(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "lat": f"{row['lat']:.7f}".replace(".", ","), "lon": f"{row['lon']:.7f}".replace(".", ",")}


@pytest.mark.parametrize("delimiter", [";", "\t", "|", "~", "^", ":", " "])
def test_separators_and_decimal_commas_are_found_out_and_kept(tmp_path: Path, delimiter: str) -> None:
    rows = [european({**row, "note": "plain"}) for row in ROWS]
    data = csv_bytes(rows, delimiter, "\r\n")
    (tmp_path / "in.csv").write_bytes(b"\xef\xbb\xbf" + data)
    perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv")
    made = (tmp_path / "out.csv").read_bytes()
    assert made.startswith(b"\xef\xbb\xbfid")
    assert made.count(b"\r\n") == made.count(b"\n") == 4
    for row, given in zip(csv_rows(made[3:], delimiter), ROWS, strict=True):
        assert "." not in row["lat"] + row["lon"]
        assert abs(float(row["lat"].replace(",", ".")) - given["lat"]) < METRES
        assert abs(float(row["lon"].replace(",", ".")) - given["lon"]) < METRES


def test_words_with_spaces_are_one_column(tmp_path: Path) -> None:
    space = mdp.FiniteSpace(
        [[0.0], [1.0]], mdp.Lp(1), coordinates=["porto centro", "vila nova"], columns=["place name"]
    )
    (tmp_path / "in.csv").write_text("place name\nporto centro\nvila nova\n")
    perturb(tmp_path / "in.csv", mdp.exponential(space, 1.0), to=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("place name\n")


def test_quoted_decimal_commas_in_a_file_with_commas(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(csv_bytes([european(row) for row in ROWS]))
    perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv")
    rows = csv_rows((tmp_path / "out.csv").read_bytes())
    same_rows([{**row, "lat": row["lat"].replace(",", "."), "lon": row["lon"].replace(",", ".")} for row in rows])


def test_commas_that_may_stand_between_thousands_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('x,y\n"1,234","5,678"\n"2,345","6,789"\n')
    plane = mdp.laplace(mdp.Lp(2), 1e4)
    with pytest.raises(InvalidInput, match=r"'x' has commas.*--decimal comma"):
        perturb(tmp_path / "in.csv", plane, to=tmp_path / "out.csv")
    perturb(tmp_path / "in.csv", plane, to=tmp_path / "out.csv", reading=Reading(decimal="comma"))
    found = csv_rows((tmp_path / "out.csv").read_bytes())[0]
    assert abs(float(found["x"].replace(",", ".")) - 1.234) < 1e-2


def test_mixed_decimal_marks_are_asked_about_and_then_counted_as_bad(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("lat;lon\n41,1;-8,6\n41.2;-8,7\n41,3;-8,8\n")
    with pytest.raises(InvalidInput, match=r"'lat' has decimal points in some rows.*--decimal point"):
        perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv")
    with pytest.raises(OutOfDomain, match=r"row 1 .*lat holds no number"):
        perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv", reading=Reading(decimal="comma"))


BROKEN: dict[str, tuple[bytes, str]] = {
    "cut.csv.gz": (gzip.compress(csv_bytes(ROWS * 1000))[:-20], "cannot be read.*cut off|Truncated compressed stream"),
    "no.csv.gz": (b"lat,lon\n1,2\n", ""),  # what is not compressed is read as it is
    "latin.csv": ("größe;lat;lon\n7;1;2\n".encode("latin-1"), "names of its columns are not UTF-8.*save it as UTF-8"),
    "wide.csv": ("lat;lon\n1;2\n".encode("utf-16"), "UTF-16 text.*save it as UTF-8"),
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\r\n\r\n", "is empty"),
    "header.csv": (b"lat,lon\r\n", "no rows"),
    "ragged.csv": (b"lat,lon,n\n1,2,3\n4,5,6,7\n", r"Expected 3 columns, got 4 in row 1 "),
    "short.csv": (b"lat,lon,n\n1,2,3\n4,5\n", r"Expected 3 columns, got 2 in row 1 "),
    "mixed.csv": (b"lat;lon;n\n1;2;3\n4,5,6\n", r"row 1 .*it looks as if it had ',' between its cells instead of ';'"),
    "open.csv": (b'lat,lon,n\n1,2,"never closed\n3,4,5\n', "never closed, and the last row"),
    "numbers.csv": (b"41.1,-8.6\n41.2,-8.7\n", "needs a header"),
    "half.parquet": (b"PAR1 and then nothing", "cannot be read"),
    "half.feather": (b"ARROW1\x00\x00and then nothing", "cannot be read"),
    "text.feather": (b"no such thing at all", "cannot be read"),
    "half.jsonl": (b'{"lat": 1, "lon": 2}\n{"lat": 1, "lo', "cannot be read"),
    "kinds.jsonl": (b'{"lat": 1, "lon": 2}\n{"lat": "x", "lon": 2}\n', "changed from number to string"),
    "empty.jsonl": (b"\n", "is empty"),
    "array.jsonl": (b"[1, 2]\n", "cannot be read"),
    "half.geojson": (b'{"type": "FeatureCollection", "features": [{"type": "Fea', "ends in the middle"),
    "none.geojson": (b'{"type": "FeatureCollection"}', "no list of features"),
    "empty.geojson": (b'{"type": "FeatureCollection", "features": []}', "no features"),
    "utm.geojson": (
        b'{"type": "FeatureCollection", "crs": {"name": "urn:ogc:def:crs:EPSG::25832"}, "features": []}',
        "say --crs EPSG:25832",
    ),
    "half.db": (b"SQLite format 3\x00 and nothing else", "cannot be read"),
    "half.duckdb": (b"\x00" * 8 + b"DUCK and nothing else", "cannot be read"),
    "what.xlsx": (b"PK\x03\x04", r"must be a table: \.csv.*--from"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_get_a_sentence_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    data, message = BROKEN[name]
    (tmp_path / name).write_bytes(data)
    if not message:
        assert perturb(tmp_path / name, ALMOST, to=tmp_path / "out.csv").written == 1
        return
    with pytest.raises(InvalidInput, match=message):
        perturb(tmp_path / name, ALMOST, to=tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_bytes_that_are_no_utf8_stay_in_csv_and_are_named_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"lat,lon,name\n1,2,ok\n3,4,M\xfcller\n")
    perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv")
    assert b",M\xfcller\n" in (tmp_path / "out.csv").read_bytes()
    with pytest.raises(InvalidInput, match=r"'name' holds text that is not UTF-8 in row 1 ") as refused:
        perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.parquet")
    assert "ller" not in str(refused.value)


def test_tables_of_a_database_are_named_and_new_ones_put_beside_them(tmp_path: Path) -> None:
    base = tmp_path / "trips.db"
    write_sqlite(base, ROWS)
    with pytest.raises(InvalidInput, match=r"name one of its tables, such as .*::fixes. Its tables are fixes, other"):
        perturb(base, ALMOST, to=tmp_path / "out.csv")
    with pytest.raises(InvalidInput, match=r"no table 'fixe'.*Did you mean 'fixes'"):
        perturb(f"{base}::fixe", ALMOST, to=tmp_path / "out.csv")
    with pytest.raises(InvalidInput, match="name the table to make"):
        perturb(f"{base}::fixes", ALMOST, to=base)
    perturb(f"{base}::fixes", ALMOST, to=f"{base}::safe")
    same_rows(read_sqlite(base, "safe"))
    assert read_sqlite(base, "fixes") == ROWS
    with pytest.raises(OutputProblem, match=r"there is such a table.*--overwrite"):
        perturb(f"{base}::fixes", ALMOST, to=f"{base}::safe")
    with pytest.raises(OutOfDomain):
        perturb(f"{base}::fixes", ALMOST, to=f"{base}::safe", columns=["note", "lon"], overwrite=True)
    same_rows(read_sqlite(base, "safe"))
    assert [path.name for path in tmp_path.iterdir()] == ["trips.db"]


def test_a_table_is_not_written_over_itself(tmp_path: Path) -> None:
    base = tmp_path / "trips.db"
    write_sqlite(base, ROWS)
    with pytest.raises(OutputProblem, match="the table that is read"):
        perturb(f"{base}::fixes", ALMOST, to=f"{base}::fixes", overwrite=True)
    assert read_sqlite(base) == ROWS


def test_cells_of_several_kinds_in_sqlite_become_one(tmp_path: Path) -> None:
    import sqlite3

    base = sqlite3.connect(tmp_path / "mixed.db")
    base.execute("CREATE TABLE t (lat, lon, mixed, whole)")
    base.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)", [(41, -8.6, 1, 2), (41.5, -8, "two", None), (None, 1, 2.5, 3)]
    )
    base.commit()
    base.close()
    summary = perturb(f"{tmp_path}/mixed.db::t", ALMOST, to=f"{tmp_path}/out.duckdb::t", on_error="drop")
    assert (summary.written, summary.bad_rows) == (2, (2,))
    found = read_duckdb(tmp_path / "out.duckdb", "t")
    assert [(row["mixed"], row["whole"]) for row in found] == [("1", 2), ("two", None)]


def test_keys_that_only_some_lines_have_and_nested_values_come_back(tmp_path: Path) -> None:
    rows = [
        {"lat": 1, "lon": 2.5},
        {"lat": 3.5, "lon": 4, "who": {"name": "x", "when": "2024-01-01T10:00:00"}, "tags": [1, 2]},
    ]
    (tmp_path / "in.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    perturb(tmp_path / "in.ndjson", ALMOST, to=tmp_path / "out.jsonl")
    found = READERS[".jsonl"](tmp_path / "out.jsonl")
    assert found[0]["who"] is None
    assert (found[1]["who"], found[1]["tags"]) == (rows[1]["who"], rows[1]["tags"])
    perturb(tmp_path / "in.ndjson", ALMOST, to=tmp_path / "out.csv")
    assert json.loads(csv_rows((tmp_path / "out.csv").read_bytes())[1]["who"]) == rows[1]["who"]


@pytest.mark.parametrize("levels", [65, 5_000, 60_000])
@pytest.mark.parametrize("ending", ["jsonl", "geojson"])
def test_values_that_are_nested_too_deeply_get_a_sentence(tmp_path: Path, ending: str, levels: int) -> None:
    deep = "[" * (levels - 1) + "]" * (levels - 1)
    line = f'{{"lat": 41.1, "lon": -8.6, "]": "]\\"", "note": {deep}}}'
    if ending == "geojson":
        point = '{"type": "Point", "coordinates": [-8.6, 41.1]}'
        line = f'{{"type": "FeatureCollection", "features": [{{"geometry": {point}, "properties": {line}}}]}}'
    (tmp_path / f"deep.{ending}").write_text(line + "\n")
    with pytest.raises(InvalidInput, match="nested"):
        perturb(tmp_path / f"deep.{ending}", mdp.laplace(mdp.Haversine(), 10.0), to=tmp_path / "out.csv")


def test_brackets_in_texts_are_no_levels(tmp_path: Path) -> None:
    (tmp_path / "flat.jsonl").write_text(json.dumps({"lat": 41.1, "lon": -8.6, "note": '[{"\\' * 100}) + "\n")
    perturb(tmp_path / "flat.jsonl", mdp.laplace(mdp.Haversine(), 10.0), to=tmp_path / "out.jsonl")
    assert json.loads((tmp_path / "out.jsonl").read_text())["note"] == '[{"\\' * 100


@pytest.mark.parametrize("suffix", [".csv.gz", ".feather", ".jsonl"])
def test_a_job_over_many_files_takes_other_formats_and_gives_the_same_reports_again(
    tmp_path: Path, suffix: str
) -> None:
    (tmp_path / "in").mkdir()
    for day in range(2):
        WRITERS[f"in{suffix}"](tmp_path / "in" / f"day{day}{suffix}", ROWS)
    summary = perturbed(tmp_path / "in", tmp_path / "out", ALMOST)
    assert summary.written == 6
    for day in range(2):
        same_rows(READERS[suffix](tmp_path / "out" / f"day{day}{suffix}"))


def test_simulations_are_marked_in_every_format(tmp_path: Path) -> None:
    WRITERS["in.csv"](tmp_path / "in.csv", ROWS)
    for suffix, read in READERS.items():
        perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / f"out{suffix}", rng=np.random.default_rng(1))
        found = read(tmp_path / f"out{suffix}")
        if suffix in (".parquet", ".feather", ".geoparquet"):
            assert b"metricdp.simulated" in (tmp_path / f"out{suffix}").read_bytes()
        else:
            assert [str(row["metricdp_simulated"]).lower() in ("true", "1") for row in found] == [True] * 3


def test_standard_input_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def piped(data: bytes, *more: str) -> tuple[int, bytes, str]:
        with (tmp_path / "piped").open("w+b") as file:
            file.write(data)
            file.seek(0)
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            status = main(["perturb", "-", "--epsilon", "1e4/km", "-o", "-", *more])
        out, err = capfdbinary.readouterr()
        return status, out, err.decode()

    status, out, err = piped(b"\xef\xbb\xbf" + csv_bytes(ROWS, ";", "\r\n"))
    same_rows(csv_rows(out[3:], ";"))
    assert (status, "3 rows written to standard output" in err) == (0, True)
    table = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), table)
    _, out, _ = piped(table.getvalue(), "--to", "jsonl")
    same_rows([json.loads(line) for line in out.decode().splitlines()])
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    status, out, err = piped(csv_bytes([*ROWS, {"id": 1, "lat": 95.5, "lon": 1.5, "note": ""}]))
    assert (status, out) == (2, b"")
    assert "row 3 (the first is row 0)" in err
    assert list((tmp_path / "temporary").iterdir()) == []
