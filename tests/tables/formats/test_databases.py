"""Databases from strangers read nothing but themselves, and no table, ledger or key is lost to an output."""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutputProblem
from metricdp.ledger import Ledger
from metricdp.tables import perturb
from scripts import main

NOISE = mdp.laplace(mdp.Haversine(), 10.0)
SECRET = "the-private-file-of-the-reader"


def stranger(folder: Path) -> tuple[Path, dict[str, str]]:
    """Return a DuckDB file with plain tables and views, and views that try to read a private file."""
    private = folder / "private.csv"
    private.write_text(f"lat,lon,note\n41.1,-8.6,{SECRET}\n")
    (folder / "private.json").write_text(f'[{{"lat": 41.1, "lon": -8.6, "note": "{SECRET}"}}]')
    path = folder / "theirs.duckdb"
    reads = {
        "text": f"SELECT 41.1::DOUBLE lat, -8.6::DOUBLE lon, content FROM read_text('{private}')",
        "csv": f"FROM read_csv('{private}')",
        "json": f"FROM read_json('{folder / 'private.json'}')",
        "replaced": f"FROM '{private}'",
        "globbed": f"SELECT 41.1::DOUBLE lat, -8.6::DOUBLE lon, file FROM glob('{folder}/private*')",
        "called": "FROM theirs()",
        "queried": f"FROM query('FROM read_csv(''{private}'')')",
        "subquery": f"SELECT lat, lon, (SELECT content FROM read_text('{private}')) note FROM plain",
        "over": "FROM csv",
        "web": "FROM read_csv('http://127.0.0.1:9/points.csv')",
    }
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE plain AS SELECT 41.1 + i / 1e4 AS lat, -8.6::DOUBLE AS lon FROM range(50) t(i)")
        base.execute("CREATE TABLE derived (lat DOUBLE, lon DOUBLE, north DOUBLE GENERATED ALWAYS AS (lat + 1))")
        base.execute("INSERT INTO derived SELECT lat, lon FROM plain")
        base.execute("CREATE VIEW harmless AS SELECT lat, lon FROM plain WHERE lat > 41")
        base.execute("CREATE VIEW twice AS FROM harmless")
        base.execute(f"CREATE MACRO theirs() AS TABLE FROM read_csv('{private}')")
        made = {}
        for name, query in reads.items():
            try:
                base.execute(f"CREATE VIEW {name} AS {query}")
                made[name] = query
            except duckdb.Error:  # of the network, where its extension is not there
                assert name == "web"
    return path, made


def test_views_of_a_duckdb_file_read_no_other_file(tmp_path: Path) -> None:
    path, reads = stranger(tmp_path)
    assert len(reads) >= 9
    for name in reads:
        with pytest.raises(mdp.MetricdpError) as raised:
            perturb(f"{path}::{name}", NOISE, to=tmp_path / "out.csv")
        assert SECRET not in str(raised.value), name
        assert not (tmp_path / "out.csv").exists()
    with pytest.raises(InvalidInput, match="reads another file or the network"):
        perturb(f"{path}::csv", NOISE, to=tmp_path / "out.csv")


@pytest.mark.parametrize("name", ["plain", "harmless", "twice", "derived"])
def test_views_that_need_no_file_and_outputs_to_duckdb_go_on_working(tmp_path: Path, name: str) -> None:
    path, _ = stranger(tmp_path)
    assert perturb(f"{path}::{name}", NOISE, to=f"{path}::protected").rows == 50
    assert perturb(f"{path}::{name}", NOISE, to=tmp_path / "new.duckdb").rows == 50
    with duckdb.connect(str(path)) as base:
        assert base.execute("SELECT count(*) FROM protected").fetchall() == [(50,)]
        assert base.execute("SELECT count(*) FROM harmless").fetchall() == [(50,)]


@pytest.mark.parametrize(
    "told",
    [
        "(SELECT value FROM duckdb_settings() WHERE name = 'secret_directory')",
        "(SELECT any_value(setting) FROM pg_catalog.pg_settings)",
        "(SELECT any_value(path) FROM duckdb_databases)",
        "current_setting('secret_directory')",
        "(SELECT any_value(x) FROM query('SELECT current_' || 'setting(''temp_directory'') x'))",
        "told()",
        "(SELECT made FROM generated)",
    ],
)
def test_a_view_does_not_tell_paths_of_this_machine(tmp_path: Path, told: str) -> None:
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE MACRO told() AS current_setting('secret_directory')")
        base.execute("CREATE TABLE generated (x INTEGER, made VARCHAR AS (current_setting('secret_directory')))")
        base.execute("INSERT INTO generated VALUES (1)")
        base.execute(f"CREATE VIEW peeks AS SELECT 41.1::DOUBLE lat, -8.6::DOUBLE lon, {told} AS note")
        base.execute("CREATE TABLE plain AS SELECT 41.1::DOUBLE lat, -8.6::DOUBLE lon")
    with pytest.raises(InvalidInput, match="tell about this machine"):
        perturb(f"{path}::peeks", NOISE, to=tmp_path / "out.csv")
    assert perturb(f"{path}::plain", NOISE, to=tmp_path / "out.csv").rows == 1


TOLD = "current_setting('secret_directory')"


@pytest.mark.parametrize(
    "made",
    [
        [f'CREATE MACRO "a""b"() AS {TOLD}', '"a""b"()'],
        ["CREATE SCHEMA other", f"CREATE MACRO m() AS {TOLD}", "CREATE MACRO other.m() AS 1", "m()"],
        ["CREATE SCHEMA other", "CREATE MACRO m() AS 1", f"CREATE MACRO other.m() AS {TOLD}", "other.m()"],
        [f"CREATE MACRO m(a) AS {TOLD}, (a, b) AS 7", "m(1)"],
        [f"CREATE MACRO m(a := {TOLD}) AS a", "m()"],
        [f"CREATE VIEW told AS SELECT {TOLD} AS x", "(SELECT max(bin) FROM histogram_values('to' || 'ld', x))"],
        ["CREATE SCHEMA other", f"CREATE VIEW other.told AS SELECT {TOLD} AS x", "CREATE VIEW told AS SELECT 1 AS x",
         "(SELECT x FROM other.told)"],
    ],
)  # fmt: skip
def test_a_view_does_not_tell_paths_by_what_is_behind_it(tmp_path: Path, made: list[str]) -> None:
    path = tmp_path / "theirs.duckdb"
    *before, called = made
    with duckdb.connect(str(path)) as base:
        for statement in before:
            base.execute(statement)
        base.execute(f"CREATE VIEW peeks AS SELECT 41.1::DOUBLE lat, -8.6::DOUBLE lon, {called} AS note")
    with pytest.raises(InvalidInput, match="tell about this machine"):
        perturb(f"{path}::peeks", NOISE, to=tmp_path / "out.csv")


def test_a_view_beside_one_that_tells_goes_on_working(tmp_path: Path) -> None:
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as base:
        base.execute(f"CREATE MACRO a() AS {TOLD}")  # a letter that is in every text
        base.execute("CREATE TABLE plain AS SELECT 41.1::DOUBLE lat, -8.6::DOUBLE lon")
        base.execute("CREATE VIEW harmless AS FROM plain")
    assert perturb(f"{path}::harmless", NOISE, to=tmp_path / "out.csv").rows == 1


def test_a_view_does_not_read_variables_of_this_program(tmp_path: Path) -> None:
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE batch AS SELECT 41.1 lat, -8.6 lon")
        base.execute("CREATE VIEW peeks AS FROM batch")
        base.execute("DROP TABLE batch")
    batch = {"lat": [1.0]}  # a replacement scan looks for a variable of the view's name
    assert batch
    with pytest.raises(mdp.MetricdpError, match="DuckDB stopped with CatalogException"):
        perturb(f"{path}::peeks", NOISE, to=tmp_path / "out.csv")


def test_a_pipe_that_is_no_database_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"lat,lon\n41.1,-8.6\n")))
    with pytest.raises(InvalidInput, match="cannot be read"):
        perturb("-", NOISE, to=tmp_path / "out.csv", format="sqlite")


def test_a_virtual_table_of_sqlite_is_refused_also_under_a_view(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE plain (lat, lon)")
        base.execute("INSERT INTO plain VALUES (41.1, -8.6)")
        base.execute("CREATE VIEW harmless AS SELECT * FROM plain")
        base.execute("CREATE VIRTUAL TABLE Made USING fts4(lat, lon)")
        base.execute("INSERT INTO Made VALUES (41.1, -8.6)")
        base.execute("CREATE VIEW over AS SELECT * FROM Made")
        base.execute("CREATE TRIGGER plain_trigger AFTER INSERT ON plain BEGIN SELECT load_extension('/tmp/x'); END")
        base.commit()
    for source in ("Made", "made"):
        with pytest.raises(InvalidInput, match="virtual table"):
            perturb(f"{path}::{source}", NOISE, to=tmp_path / "out.csv")
    with pytest.raises(mdp.MetricdpError):
        perturb(f"{path}::over", NOISE, to=tmp_path / "out.csv")
    with pytest.raises(InvalidInput, match="virtual table"):
        perturb(f"{path}::plain", NOISE, to=f"{path}::made", overwrite=True)
    assert perturb(f"{path}::harmless", NOISE, to=f"{path}::protected").rows == 1


def test_a_virtual_table_is_refused_whatever_its_schema_says(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE VIRTUAL TABLE made USING fts4(lat, lon)")
        base.execute("INSERT INTO made VALUES (41.1, -8.6)")
        base.execute("PRAGMA writable_schema = ON")
        base.execute("UPDATE sqlite_master SET rootpage = 2 WHERE name = 'made'")
        base.commit()
    with pytest.raises(InvalidInput, match="virtual table"):
        perturb(f"{path}::made", NOISE, to=tmp_path / "out.csv")


def base_of(folder: Path, kind: str, name: str = "Fixes") -> Path:
    path = folder / f"t.{kind}"
    if kind == "db":
        with closing(sqlite3.connect(path)) as base:
            base.execute(f"CREATE TABLE {name} (lat REAL, lon REAL)")
            base.execute(f"INSERT INTO {name} VALUES (41.123456, -8.6)")
            base.execute(f"CREATE VIEW shown AS SELECT * FROM {name}")
            base.commit()
    else:
        with duckdb.connect(str(path)) as made:
            made.execute(f"CREATE TABLE {name} AS SELECT 41.123456::DOUBLE lat, -8.6::DOUBLE lon")
            made.execute(f"CREATE VIEW shown AS FROM {name}")
    return path


def cells(path: Path, name: str = "Fixes") -> list[tuple[float, ...]]:
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as base:
            return base.execute(f"SELECT * FROM {name}").fetchall()
    with duckdb.connect(str(path)) as made:
        return made.execute(f"FROM {name}").fetchall()


@pytest.mark.parametrize("kind", ["db", "duckdb"])
def test_a_table_in_another_spelling_is_the_same_table(tmp_path: Path, kind: str) -> None:
    path = base_of(tmp_path, kind)
    link, hard = tmp_path / f"link.{kind}", tmp_path / f"hard.{kind}"
    link.symlink_to(path)
    os.link(path, hard)
    for place in (path, link, hard, tmp_path / "." / ".." / tmp_path.name / path.name):
        for source in ("Fixes", "FIXES", "shown"):
            for overwrite in (False, True):
                with pytest.raises(OutputProblem):
                    perturb(f"{path}::{source}", NOISE, to=f"{place}::fixes", overwrite=overwrite)
                assert cells(path) == [(41.123456, -8.6)]
    (tmp_path / "points.csv").write_text("lat,lon\n1,2\n")
    assert main(["perturb", str(tmp_path / "points.csv"), "--epsilon", "1/km", "-o", f"{path}::fixes"]) == 2
    assert cells(path) == [(41.123456, -8.6)]


@pytest.mark.parametrize("kind", ["db", "duckdb"])
def test_the_only_table_is_not_written_over_without_its_name(tmp_path: Path, kind: str) -> None:
    path = base_of(tmp_path, kind)
    with duckdb.connect(str(path)) if kind == "duckdb" else closing(sqlite3.connect(path)) as base:
        base.execute("DROP VIEW shown")
    with pytest.raises(OutputProblem, match="it is the table that is read"):
        perturb(path, NOISE, to=f"{path}::fixes", overwrite=True)
    assert cells(path) == [(41.123456, -8.6)]


def test_a_table_is_found_in_any_spelling_and_replaced_where_that_is_asked_for(tmp_path: Path) -> None:
    path = base_of(tmp_path, "db", "Old")
    (tmp_path / "points.csv").write_text("lat,lon\n1,2\n")
    perturb(tmp_path / "points.csv", NOISE, to=f"{path}::OLD", overwrite=True)
    assert cells(path, "old") != [(41.123456, -8.6)]
    raw = path.read_bytes()
    assert b"\x40\x44\x8f\xcd\x67\xfd\x3f\x5b" not in raw  # the double that stood there is in no free page


def test_an_output_never_takes_the_place_of_a_ledger_or_of_what_belongs_to_it(tmp_path: Path) -> None:
    books = tmp_path / "budget.db"
    source = tmp_path / "points.csv"
    source.write_text("who,lat,lon\nanna,41.1,-8.6\n")
    with Ledger.open(books, policy="40/km ever"):
        before = {path.name: path.read_bytes() for path in tmp_path.glob("budget*")}
        for end in (".head", "-wal", "-shm", "-journal"):
            if not books.with_name(f"budget.db{end}").exists():
                before[f"budget.db{end}"] = b""
        (tmp_path / "hard.db").hardlink_to(books)
        (tmp_path / "soft.db").symlink_to(books)
        (tmp_path / "hard.csv").hardlink_to(tmp_path / "budget.db.key")
        (tmp_path / "soft.csv").symlink_to(tmp_path / "budget.db.key")
        head = tmp_path / "elsewhere.csv"
        head.write_text('{"format": "metricdp ledger head 1"}')
        targets = [
            *(f"{books}::{table}" for table in ("Accounts", "accounts", "new", "books")),
            *(str(tmp_path / f"{name}.db::new") for name in ("hard", "soft")),
            *(str(tmp_path / f"{name}.csv") for name in ("hard", "soft", "elsewhere")),
            *(str(tmp_path / name) for name in before),
            str(tmp_path / "sub" / ".." / "budget.db") + "::Accounts",
        ]
        (tmp_path / "sub").mkdir()
        for target in targets:
            for more in ([], ["--overwrite"]):
                for charged in ([], ["--id", "who", "--ledger", str(books)]):
                    asked = ["perturb", str(source), "--epsilon", "1/km", "--to", "csv", "-o", target, *more, *charged]
                    if "::" in target:
                        asked.remove("--to")
                        asked.remove("csv")
                    assert main(asked) == 2, asked
        for name, data in before.items():
            if data and not name.endswith(("-wal", "-shm")):
                assert (tmp_path / name).read_bytes() == data, name
            if not data and not name.endswith(("-wal", "-shm")):
                assert not (tmp_path / name).exists(), name
        with pytest.raises(OutputProblem, match="is a ledger"):
            mdp.save(NOISE, books)
        with pytest.raises(InvalidInput, match="is a ledger"):
            perturb(f"{books}::accounts", NOISE, to=tmp_path / "out.csv")
    with Ledger.open(books) as ledger:
        assert ledger.verify().holds


def test_a_page_never_takes_the_place_of_the_ledger_that_its_command_begins(tmp_path: Path) -> None:
    books, source = tmp_path / "page.html", tmp_path / "points.csv"
    source.write_text("who,lat,lon\nanna,41.1,-8.6\n")
    asked = ["perturb", str(source), "--epsilon", "1/km", "-o", str(tmp_path / "out.csv"), "--report", str(books)]
    assert main([*asked, "--id", "who", "--budget", "40/km", "--ledger", str(books)]) == 2
    with Ledger.open(books) as ledger:
        assert ledger.verify().holds


@pytest.mark.parametrize("name", ["budget.db", "budget.db.key", "budget.db.head", "fixes.csv", "hard.csv", "soft.csv"])
def test_lines_of_a_stream_never_take_the_place_of_its_source_or_ledger(tmp_path: Path, name: str) -> None:
    books, source = tmp_path / "budget.db", tmp_path / "fixes.csv"
    source.write_text("person,t,lat,lon\nanna,1,41.1,-8.6\n")
    (tmp_path / "hard.csv").hardlink_to(source)
    (tmp_path / "soft.csv").symlink_to(source)
    Ledger.open(books, policy="960/km per day").close()
    before = (tmp_path / name).read_bytes()
    asked = ["stream", str(source), "--window", "2", "--total", "20/km", "--ledger", str(books), "--follow"]
    assert main([*asked, "-o", str(tmp_path / name), "--overwrite"]) == 2
    assert (tmp_path / name).read_bytes() == before


def test_no_table_is_put_into_a_database_with_several_names(tmp_path: Path) -> None:
    path = base_of(tmp_path, "db")
    (tmp_path / "other.db").hardlink_to(path)
    before = path.read_bytes()
    for name in ("t.db", "other.db"):
        with pytest.raises(OutputProblem, match="several names"):
            perturb(f"{path}::Fixes", NOISE, to=f"{tmp_path / name}::new")
    assert path.read_bytes() == before


def test_a_table_with_a_name_of_sqlites_own_is_refused(tmp_path: Path) -> None:
    path = base_of(tmp_path, "db")
    for target in (f"{path}::sqlite_stat1", f"{tmp_path / 'new.db'}::SQLITE_made"):
        with pytest.raises(OutputProblem, match="keeps names"):
            perturb(f"{path}::Fixes", NOISE, to=target)
    assert not (tmp_path / "new.db").exists()


def test_a_ledger_that_was_emptied_beside_its_key_is_still_one(tmp_path: Path) -> None:
    books = tmp_path / "budget.db"
    Ledger.open(books, policy="40/km ever").close()
    books.write_bytes(b"")
    (tmp_path / "points.csv").write_text("lat,lon\n1,2\n")
    with pytest.raises(OutputProblem, match="is a ledger"):
        perturb(tmp_path / "points.csv", NOISE, to=f"{books}::new", overwrite=True)
    assert books.read_bytes() == b""


@pytest.mark.parametrize("target", ["out.db::protected\0x", "out.duckdb::protected\0x", "out\0.csv"])
def test_names_with_a_zero_character_are_refused_in_a_sentence(tmp_path: Path, target: str) -> None:
    (tmp_path / "in.csv").write_text("lat,lon\n41.1,-8.6\n41.2,-8.7\n")
    with pytest.raises(InvalidInput, match="zero character"):
        perturb(tmp_path / "in.csv", mdp.laplace(mdp.Haversine(), 10.0), to=str(tmp_path / target))
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
