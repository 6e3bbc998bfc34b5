"""One function for every table: whatever is asked of whatever source, it answers or says in a sentence why not."""

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

import metricdp as mdp
from metricdp.errors import InvalidInput, MetricdpError
from metricdp.ledger import Ledger
from metricdp.tables import Charging, PerturbOptions
from metricdp.tables.options import OLD_WORDS, RECORDS, WORDS
from metricdp.text import Rules, TextMechanism
from tables.engines.hand import declare_hand

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
VECTORS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
TEXTS = TextMechanism(mdp.exponential(mdp.vocabulary(["good", "bad", "room"], VECTORS), 2.0), Rules(unknown="mask"))
ROWS = pa.table(
    {
        "who": ["anna", "ben", "anna", "cleo"],
        "lat": [41.15, 41.16, 41.17, 41.18],
        "lon": [-8.61, -8.62, -8.63, -8.64],
        "fare": [3, 14, 15, 92],
        "text": ["good room", "bad", "room", "good"],
    }
)

ALONE = {  # a word with a value that is not the usual one
    "id": "who", "budget": "40/km", "allocation": "even", "max_rows": 1, "which": "random", "ledger": "budget.db",
    "purpose": "research", "key": "me", "refused": "report",
    "drop": ["fare"], "coarsen": {"fare": 10}, "keep": "fare", "strict": True, "force": True, "accuracy_column": "m",
    "format": "parquet", "target_format": "parquet", "separator": ";", "decimal": "comma", "crs": "EPSG:25829",
    "scale": 0.5, "snap": 0.5, "on_error": "null", "show_values": True, "block_bytes": 1 << 16,
    "engine": "hand", "name": "monday", "resume": True, "discard": True, "workers": 2, "overwrite": True,
    "progress": lambda share: None, "watch": lambda task, step: None,
}  # fmt: skip
TOGETHER: dict[str, dict[str, Any]] = {  # what a word is nothing without
    "budget": {"id": "who"}, "allocation": {"id": "who", "budget": "40/km"}, "max_rows": {"id": "who"},
    "which": {"id": "who", "max_rows": 1}, "ledger": {"id": "who", "budget": "40/km"},
    **{word: {"id": "who", "ledger": "budget.db", "budget": "40/km"} for word in ("key", "refused", "name")},
}  # fmt: skip


def in_file(folder: Path) -> Path:
    pq.write_table(ROWS, folder / "in.parquet")
    return folder / "in.parquet"


def in_folder(folder: Path) -> Path:
    (folder / "days").mkdir()
    for number in range(2):
        pq.write_table(ROWS.slice(2 * number, 2), folder / "days" / f"{number}.parquet")
    return folder / "days"


def in_duckdb(folder: Path) -> Any:
    connection = pytest.importorskip("duckdb").connect()
    connection.register("points", ROWS)
    return connection


SOURCES: dict[str, tuple[Callable[[Path], Any], str | None]] = {
    "pandas": (lambda folder: ROWS.to_pandas(), None),
    "polars": (lambda folder: pl.from_arrow(ROWS), None),
    "lazy polars": (lambda folder: pl.from_arrow(ROWS).lazy(), None),
    "arrow": (lambda folder: ROWS, None),
    "batch": (lambda folder: ROWS.to_batches()[0], None),
    "data set": (lambda folder: dataset.dataset(in_file(folder)), "out.parquet"),
    "reader": (lambda folder: ROWS.to_reader(), "out.parquet"),
    "file": (in_file, "out.parquet"),
    "folder": (in_folder, "out"),
    "pattern": (lambda folder: str(in_folder(folder) / "*.parquet"), "out"),
    "list of files": (lambda folder: [in_file(folder)], "out"),
    "query": (lambda folder: (in_duckdb(folder), "FROM points"), "safe"),
    "relation": (lambda folder: (one := in_duckdb(folder), one.sql("FROM points")), "safe"),
}


def asked(mechanism: Any, source: str, folder: Path, **options: Any) -> Any:
    """What comes back, or the sentence of the refusal."""
    folder.mkdir()
    made, target = SOURCES[source]
    columns = "text" if mechanism is TEXTS else None
    to = str(folder / target) if target and "." in target else target
    to = str(folder / "out") if to == "out" else to
    if "ledger" in options:
        options["ledger"] = str(folder / "budget.db")
    try:
        return mdp.perturb(made(folder), mechanism, columns=columns, to=to, **options)
    except MetricdpError as error:
        return str(error)


@pytest.mark.parametrize("mechanism", [EARTH, TEXTS], ids=["rows", "texts"])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_answers_every_option_or_says_why_not(tmp_path: Path, source: str, mechanism: Any) -> None:
    declare_hand()
    assert set(ALONE) == set(WORDS)
    usual = {"engine": "hand"} if source in ("folder", "pattern", "list of files") else {}  # no processes
    plain = asked(mechanism, source, tmp_path / "plain", **usual)
    assert not isinstance(plain, str)
    for word, value in ALONE.items():
        words = {**usual, **TOGETHER.get(word, {}), word: value}
        flat = asked(mechanism, source, tmp_path / f"{word} flat", **words)
        kinds = {kind: {one: words[one] for one in words if WORDS[one] == kind} for kind in RECORDS}
        if "ledger" in words:
            kinds["people"]["ledger"] = str(tmp_path / f"{word} records" / "budget.db")
        records = {kind: RECORDS[kind](**own) for kind, own in kinds.items() if own}
        kept = asked(mechanism, source, tmp_path / f"{word} records", **records)
        assert type(kept) is type(flat), (word, flat, kept)
        if isinstance(flat, str):
            assert flat.endswith((".", ")"))
            assert flat.replace(" flat", "") == str(kept).replace(" records", "")
        else:
            assert type(flat) is type(plain), word


def refused(source: str, folder: Path, word: str, mechanism: Any = EARTH) -> str:
    found = asked(mechanism, source, folder, **{**TOGETHER.get(word, {}), word: ALONE[word]})
    assert isinstance(found, str), found
    return found


def test_what_means_nothing_here_is_refused(tmp_path: Path) -> None:
    cases = [
        ("pandas", "separator", "is for files"), ("pandas", "accuracy_column", "is for files"),
        ("file", "workers", "many files"), ("file", "name", "in a program"), ("folder", "budget", "one file"),
        ("folder", "show_values", "one file"), ("folder", "overwrite", "one file"),
        ("query", "engine", "is for files"), ("reader", "max_rows", "read once"),
    ]  # fmt: skip
    for number, (source, word, sentence) in enumerate(cases):
        assert sentence in refused(source, tmp_path / str(number), word)
    for word in ("snap", "crs", "show_values", "accuracy_column"):
        assert "rows of numbers" in refused("pandas", tmp_path / word, word, TEXTS)
    for word in ("budget", "ledger"):
        assert "Rules(budget=60)" in refused("pandas", tmp_path / word, word, TEXTS)
    with pytest.raises(InvalidInput, match="`to` is for"):
        mdp.perturb(ROWS, EARTH, to="out.parquet")
    with pytest.raises(InvalidInput, match=r'to="protected.csv"'):
        mdp.perturb(in_file(tmp_path), EARTH)
    with pytest.raises(InvalidInput, match="`purpose` is for a ledger"):
        mdp.perturb(ROWS, EARTH, id="who", purpose="research")
    with pytest.raises(InvalidInput, match="`mechanism` must be a mechanism"):
        mdp.perturb(EARTH, ROWS)
    with pytest.raises(InvalidInput, match="`people` must be"):
        mdp.perturb(ROWS, EARTH, people={"id": "who"})


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("budgt", "budget"), ("max_row", "max_rows"), ("seperator", "separator"), ("id_colum", "id"),
        ("atmost", "max_rows"), ("disclosur", "disclosure"), ("column", "columns"), ("yes_realy", "force"),
    ],
)  # fmt: skip
def test_an_unknown_word_is_refused_with_the_nearest(word: str, meant: str) -> None:
    with pytest.raises(InvalidInput, match=f"no option `{word}`. Did you mean `{meant}`"):
        mdp.perturb(ROWS, EARTH, **{word: 1})


def test_a_word_that_is_like_none_is_refused_with_all() -> None:
    with pytest.raises(InvalidInput, match="The options are id, budget"):
        mdp.perturb(ROWS, EARTH, qqq=1)


def test_what_is_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="`id` is given twice"):
        mdp.perturb(ROWS, EARTH, people=mdp.People(id="who"), id="who")
    with pytest.raises(InvalidInput, match="`snap` is given twice"):
        mdp.perturb(ROWS, EARTH, reading=mdp.Reading(snap=0.1), snap=0.2)
    with Ledger.open(tmp_path / "b.db", policy="40/km ever") as ledger:
        charging = Charging(ledger, refused="report")
        with pytest.raises(InvalidInput, match="`refused` is given twice"):
            mdp.perturb(ROWS, EARTH, id="who", ledger=charging, refused="report")
    made = mdp.perturb(ROWS, EARTH, people=mdp.People(id="who", budget="40/km"), max_rows=1)
    assert made.num_rows == 3


def test_the_types_know_every_word(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    assert set(PerturbOptions.__annotations__) == {*WORDS, *OLD_WORDS}
    types = {one.name: one.type for kind in RECORDS.values() for one in fields(kind)}
    written = {name: hint.__forward_arg__ for name, hint in PerturbOptions.__annotations__.items()}
    assert {name: written[name] for name in WORDS} == types
    (tmp_path / "asked.py").write_text(
        "import pyarrow as pa\nimport metricdp as mdp\n"
        "noise = mdp.laplace(mdp.Haversine(), 10.0)\n"
        'rows: int = mdp.perturb("a.csv", noise, to="b.csv", id="who", people=mdp.People(budget="40/km")).rows\n'
        "same: dict[int, int] = mdp.perturb({1: 2}, noise, drop=[])\n"
        'mdp.perturb("a.csv", noise, budgt=3)\n'
        'mdp.perturb("a.csv", noise, max_rows="3")\n'
    )
    project = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", str(tmp_path / "asked.py")],
        cwd=project, env={**os.environ, "MYPYPATH": "src"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = {line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line}
    assert errors == {"6", "7"}, done.stdout[:2000]


def test_the_calls_of_the_design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert mdp.perturb(ROWS, EARTH, columns=["lat", "lon"]).schema == ROWS.schema
    rows = ROWS.rename_columns(["person", "lat", "lon", "fare", "text"])
    pq.write_table(rows, "trips.parquet")
    people = mdp.People(id="person", budget="40/km", ledger="budget.db")
    summary = mdp.perturb("trips.parquet", EARTH, to="out.parquet", people=people)
    assert isinstance(summary, mdp.Summary)
    assert summary.rows == pq.read_table("out.parquet").num_rows == 4
    with Ledger.open("budget.db") as ledger:
        first = mdp.perturb(rows, EARTH, id="person", ledger=ledger, name="monday")
        assert mdp.perturb(rows, EARTH, id="person", ledger=ledger, name="monday").equals(first)


def test_a_relation_of_another_connection_is_refused(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    one, other = in_duckdb(tmp_path), in_duckdb(tmp_path)
    relation = one.sql("SELECT lat, lon FROM points WHERE fare > 3")
    for source in ((other, relation), relation):
        with pytest.raises(InvalidInput, match="of another connection"):
            mdp.perturb(source, EARTH, to="safe")
    made = mdp.perturb((one, relation), EARTH, to="safe")
    assert made.columns == ["lat", "lon"]
    assert len(made) == 3
    assert {name for (name,) in one.execute("SHOW TABLES").fetchall()} == {"points", "safe"}
    with duckdb.connect() as again:
        again.execute("CREATE TABLE points AS SELECT 41.1 AS lat, -8.6 AS lon")
        with pytest.raises(InvalidInput, match='to="protected"'):
            mdp.perturb(again.table("points"), EARTH)
    usual = duckdb.sql("SELECT 41.1 AS lat, -8.6 AS lon")  # of the connection that is there without being asked for
    assert len(mdp.perturb(usual, EARTH, to="safe_of_this_test")) == 1
    duckdb.sql("DROP TABLE safe_of_this_test")


OLD = {
    "perturb_file": lambda folder: mdp.perturb_file(folder / "in.parquet", folder / "a.parquet", EARTH),
    "perturb_files": lambda folder: mdp.perturb_files(folder / "in.parquet", folder / "b", EARTH, workers=1),
    "protect_texts": lambda folder: mdp.protect_texts(folder / "in.parquet", folder / "c.csv", TEXTS, columns="text"),
    "protect_text_files": lambda folder: mdp.protect_text_files(
        folder / "in.parquet", folder / "d", TEXTS, columns="text", workers=1
    ),
    "duckdb_table": lambda folder: mdp.duckdb_table(in_duckdb(folder), "FROM points", "safe", EARTH),
}


@pytest.mark.parametrize("name", OLD)
def test_the_old_functions_work_and_name_the_new_one(tmp_path: Path, name: str) -> None:
    in_file(tmp_path)
    with pytest.warns(DeprecationWarning, match=rf"mdp.{name} .*mdp.perturb\(") as told:
        made = OLD[name](tmp_path)
    assert told[0].filename == __file__
    assert len(made) == 4 if name == "duckdb_table" else made.target


@pytest.mark.parametrize("word", OLD_WORDS)
def test_the_old_words_work_and_name_the_new_ones(tmp_path: Path, word: str) -> None:
    source = in_file(tmp_path)
    asked = {"id_column": "who", "spread": "even", "at_most": 1, "yes_really": True, "source_format": "parquet"}
    more = {"spread": {"budget": "40/km", "id": "who"}, "at_most": {"id": "who"}}
    target = {"target" if word == "target" else "to": tmp_path / "out.parquet"}
    words = {**more.get(word, {}), **target, **({word: asked[word]} if word in asked else {})}
    with pytest.warns(DeprecationWarning, match=f"`{word}` is called `{OLD_WORDS[word]}`") as told:
        made = mdp.perturb(source, EARTH, **words)
    assert told[0].filename == __file__
    assert made.rows == 4
    warnings.simplefilter("ignore")
    with pytest.raises(InvalidInput, match="given twice"):
        mdp.perturb(source, EARTH, **{**words, OLD_WORDS[word]: "x"})


def test_data_frames_keep_their_type_and_name_columns_by_their_index() -> None:
    frame = ROWS.to_pandas()
    made = mdp.perturb(frame, EARTH, drop=frame.columns[3:])
    assert isinstance(made, pd.DataFrame)
    assert list(made.columns) == list(frame.columns[:3])


@pytest.mark.parametrize("options", [{"drop": 3}, {"drop": [3]}, {"keep": [None]}, {"coarsen": {3: "1h"}}])
def test_columns_that_are_not_named_by_text_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="columns are named by text"):
        mdp.perturb(ROWS, EARTH, **options)


def test_the_old_name_of_a_format_is_taken_and_told() -> None:
    with pytest.warns(DeprecationWarning, match="`source_format` is called `format` now"):
        assert mdp.Reading(source_format="csv") == mdp.Reading(format="csv")
    assert replace(mdp.Reading(format="csv"), crs="EPSG:3763").format == "csv"
