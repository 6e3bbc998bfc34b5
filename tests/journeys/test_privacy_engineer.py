"""A privacy engineer gets the fleet's spreadsheet and has to hand out a protected one: every mistake on the way.

The file is made of real trips (see `messy`), with semicolons, decimal commas, a byte order mark, CRLF, line breaks
inside quotes, names with spaces, names that are there twice, and three bad rows. The command runs as it is typed; what
it prints is read as that person reads it.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import messy
from scripts import main

START = ["--columns", "Lat#1,Lon#1"]


class Desk:
    """A folder with the file in it, and a terminal."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys
        self.said: list[str] = []

    def types(self, *words: str) -> tuple[int, str]:
        """Run a command and return its status and all that it printed."""
        status = main(list(words))
        captured = self._capsys.readouterr()
        self.said.append(captured.out + captured.err)
        return status, self.said[-1]

    def refused(self, *words: str) -> str:
        """Run a command that must be refused with one sentence, and leave nothing behind."""
        before = sorted(path.name for path in self.folder.iterdir())
        status, text = self.types(*words)
        assert status == 2
        assert text.startswith("error: ")
        assert text.count("\n") == 1
        assert sorted(path.name for path in self.folder.iterdir()) == before
        return text

    def done(self, *words: str) -> str:
        status, text = self.types(*words)
        assert status == 0, text
        return text


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet May.csv").write_bytes(messy.spreadsheet())
    return Desk(tmp_path, capsys)


def number(cell: str) -> float:
    return float(cell.replace(",", "."))


def kilometres(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The distance on the sphere, by the haversine formula."""
    first, second = math.radians(a[0]), math.radians(b[0])
    half = math.sin((first - second) / 2) ** 2
    half += math.cos(first) * math.cos(second) * math.sin(math.radians(a[1] - b[1]) / 2) ** 2
    return 2 * 6371.0088 * math.asin(math.sqrt(half))


def test_from_the_spreadsheet_to_a_protected_one_with_every_mistake_on_the_way(desk: Desk) -> None:
    source = "fleet May.csv"
    assert "say how much may leak, with either --epsilon or --protect" in desk.refused(
        "perturb", source, "-o", "safe.csv"
    )
    assert "epsilon 10 has no unit" in desk.refused("perturb", source, "--epsilon", "10", "-o", "safe.csv")
    ask = ["perturb", source, "--epsilon", "10/km"]
    text = desk.refused(*ask, "-o", "safe.csv")
    assert "more than one latitude column: Lat#1, Lat#2. Choose with" in text
    text = desk.refused(*ask, "--columns", "Lat,Lon", "-o", "safe.csv")
    assert "there are 2 columns 'Lat': name one as 'Lat#1' or 'Lat#2', counted from the left" in text
    text = desk.refused(*ask, "--columns", "Lat#1,Long#1", "-o", "safe.csv")
    assert "no column 'Long#1'" in text
    assert "Did you mean 'Lon#1'?" in text
    text = desk.refused(*ask, *START, "-o", "safe.csv")
    assert "row 17 (the first is row 0) holds no secret of this mechanism: Lat#1 holds no number." in text
    assert "3 rows are bad so far: 17, 40, 63." in text
    assert "--on-error" in text
    assert "--show-values" in text
    assert "safe.xlsx' must be a table: .csv, .parquet" in desk.refused(*ask, *START, "-o", "safe.xlsx")
    assert "the folder" in desk.refused(*ask, *START, "-o", "nowhere/safe.csv")
    assert "it is the file that is read" in desk.refused(*ask, *START, "--overwrite", "-o", source)

    text = desk.done(*ask, *START, "--on-error", "drop", "-o", "safe.csv")
    assert "117 rows written to safe.csv" in text
    assert "protected columns: Lat#1, Lon#1." in text
    assert "3 of 120 rows held no legal secret and were left out: rows 17, 40, 63." in text
    assert "Guarantee per row: epsilon 10 per km" in text
    kept = next(line for line in text.splitlines() if line.startswith("Unchanged and not protected:"))
    assert kept.endswith("Trip No, Driver, Started, Remark, Lat#2, Lon#2.")
    assert "it is there already" in desk.refused(*ask, *START, "--on-error", "drop", "-o", "safe.csv")

    made = (desk.folder / "safe.csv").read_bytes()
    assert made.count(b"\r\n") == 1 + 117 + sum("\r\n" in row[5] for row in messy.lines() if row[3] not in ("", "k.A."))
    assert made.count(b"\n") == made.count(b"\r\n")
    header, *rows = messy.cells(made)
    assert header == messy.HEADER
    given = [row for number_, row in enumerate(messy.lines()) if number_ not in messy.BAD]
    far = []
    for row, true in zip(rows, given, strict=True):
        assert row[:3] + row[5:] == true[:3] + true[5:]  # remarks with line breaks and quotes, too
        assert re.fullmatch(r"-?\d+,\d+", row[3])
        far.append(kilometres((number(row[3]), number(row[4])), (number(true[3]), number(true[4]))))
    assert min(far) > 0
    assert abs(sum(far) / len(far) - 0.2) < 6 * 0.1414 / math.sqrt(len(far))  # the law: 2 / epsilon on average
    first = made
    desk.done(*ask, *START, "--on-error", "drop", "--overwrite", "-o", "safe.csv")
    assert (desk.folder / "safe.csv").read_bytes() != first

    secrets = {cell for row in messy.lines() for cell in (row[3], row[4], row[6]) if len(cell) > 6}
    secrets |= {cell.replace(",", ".")[:8] for cell in secrets}
    for words in desk.said:  # through it all, no position was printed
        assert not [cell for cell in secrets if cell in words]
    text = desk.refused(*ask, *START, "--show-values", "-o", "other.csv")
    assert "It holds: Lat#1 is nothing, Lon#1 is" in text


def test_what_the_others_want_it_in(desk: Desk) -> None:
    ask = ["perturb", "fleet May.csv", "--epsilon", "10/km", *START, "--on-error", "drop"]
    text = desk.done(
        *ask, "--drop", "Lat#2,Lon#2,Remark", "--coarsen", "Started=1h", "--id", "Driver", "-o", "safe.parquet"
    )
    assert "Columns that are kept stay text in safe.parquet: a csv file has no types." in text
    assert "7 persons by Driver" in text
    table = pq.read_table("safe.parquet")
    assert table.schema.names == ["Trip No", "Driver", "Started", "Lat", "Lon"]
    assert [str(kind) for kind in table.schema.types] == ["string"] * 3 + ["double"] * 2
    desk.done(*ask, "-o", "fleet.db::starts")
    desk.done("perturb", "fleet.db::starts", "--epsilon", "10/km", *START, "-o", "fleet.db::again")
    assert "such a table" in desk.refused(
        "perturb", "fleet.db::starts", "--epsilon", "10/km", *START, "-o", "fleet.db::again"
    )
    assert "Its tables are again, starts. Did you mean 'starts'?" in desk.refused(
        "perturb", "fleet.db::start", "--epsilon", "10/km", *START, "-o", "x.csv"
    )
    with closing(sqlite3.connect("fleet.db")) as base:
        assert base.execute('SELECT count(*), typeof("Lat#1") FROM again').fetchone() == (117, "real")
    desk.done(*ask, "-o", "map.geojson")
    features = json.loads((desk.folder / "map.geojson").read_text())["features"]
    assert all(-9 < feature["geometry"]["coordinates"][0] < -8 for feature in features)
    text = desk.done(*ask, "--to", "jsonl", "-o", "-")
    assert json.loads(text.splitlines()[0])["Driver"] == "D000"
    assert "117 rows written to standard output" in text


def test_files_that_came_broken(desk: Desk) -> None:
    whole = messy.spreadsheet(400)
    ask = ["--epsilon", "10/km", *START, "-o", "safe.csv"]
    (desk.folder / "cut.csv.gz").write_bytes(gzip.compress(whole)[:-200])
    assert "'cut.csv.gz' cannot be read: Truncated compressed stream" in desk.refused("perturb", "cut.csv.gz", *ask)
    (desk.folder / "bare.csv").write_bytes(whole.partition(b"\r\n")[2])
    text = desk.refused("perturb", "bare.csv", "--epsilon", "10/km", "-o", "safe.csv")
    assert "as if the table had no header and its first row stood there: they are not shown" in text
    lines = whole.split(b"\r\n")
    lines[40] = lines[40].replace(b";", b"\t")
    (desk.folder / "mixed.csv").write_bytes(b"\r\n".join(lines))
    assert "it looks as if it had '\\t' between its cells instead of ';'" in desk.refused("perturb", "mixed.csv", *ask)
    (desk.folder / "ragged.csv").write_bytes(whole + b"1;2;3\r\n")
    assert "Expected 8 columns, got 3 in row " in desk.refused("perturb", "ragged.csv", *ask)
    (desk.folder / "header.csv").write_bytes(lines[0] + b"\r\n")
    assert "'header.csv' has no rows" in desk.refused("perturb", "header.csv", *ask)
    (desk.folder / "empty.csv").write_bytes(b"")
    assert "'empty.csv' is empty" in desk.refused("perturb", "empty.csv", *ask)
    (desk.folder / "table.csv").write_bytes(b"PAR1")
    assert "named as a csv file and begins as a parquet file does" in desk.refused("perturb", "table.csv", *ask)
    assert "does not exist" in desk.refused("perturb", "fleet.csv", *ask)
    text = desk.refused("perturb", "fleet May.csv", "--crs", "EPSG:25829", *ask)
    assert "most of the first rows are no places in or near the area that EPSG:25829 is for" in text


def test_the_same_file_serves_to_design_compare_and_audit(desk: Desk) -> None:
    rows = messy.lines()
    stops = sorted({(row[6], row[7]) for row in rows})[:12]
    lines = ["Lat;Lon;Lat", *(f"{lat};{lon};0" for lat, lon in stops)]
    (desk.folder / "stops.csv").write_text("\n".join(lines) + "\n")
    place = ["--points", "stops.csv", "--columns", "Lat#1,Lon"]
    design = ["design", *place, "--epsilon", "5/km", "--builder", "exponential", "-o", "stops.mdp"]
    assert f"exponential on {len(stops)} points" in desk.done(*design)
    assert "'stops.mdp': it is there already" in desk.refused(*design)
    desk.done("audit", "stops.mdp")
    text = desk.refused("design", "--points", "fleet May.csv", *START, "--epsilon", "5/km", "-o", "fleet.mdp")
    assert "the column 'Lat#1' must hold finite numbers, row 17 (the first is row 0) holds none" in text
    matrix = [";".join("0,5" if one == other else "0,04545454545454545" for one in stops) for other in stops]
    (desk.folder / "matrix.csv").write_text("\n".join(matrix) + "\n")
    status, text = desk.types("audit", "matrix.csv", *place, "--metric", "haversine", "--epsilon", "1e-6/km")
    assert status == 1, text
    assert "violated" in text
    pairs = [f"{lat};{lon};{lat};{lon}" for lat, lon in stops * 30]
    (desk.folder / "pairs.csv").write_text("\n".join(["a lat;a lon;b lat;b lon", *pairs]) + "\n")
    status, text = desk.types(
        "audit", "pairs.csv", "--secret", "a lat,a lon", "--report", "b lat,b lon", "--epsilon", "0.5/km"
    )
    assert status == 1, text  # reports that are the secrets refute every promise
