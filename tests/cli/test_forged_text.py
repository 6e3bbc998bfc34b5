"""What a file says reaches the terminal, a page or a record as text: it moves no cursor and begins no line."""

import ast
import csv
import io
import json
import re
import shutil
import sqlite3
import sys
import unicodedata
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from forging import forged, opened
from metricdp.artifacts import dumps, loads
from metricdp.cli import terminal
from metricdp.errors import InvalidInput
from metricdp.tables import perturb
from scripts import main

DATA = Path(__file__).parents[1] / "data" / "0.1.0" / "mechanisms"
SOURCE = Path(mdp.__file__).parent
FORGED = "signed, epsilon 0.1"
NASTY = f"a\x1b[2J\x1b[H\r\n{FORGED}\x07\x7f\x9b2J\u202eb\u2066c\u200bd\ufeffe\u2028{FORGED}\u2029f[red]g[/red]\tz"
IN_NAMES = NASTY.replace("\n", "\v").replace("[/", "[")  # a file name holds no slash
KINDS = ("metric-l2-with-names", "kind-kernel", "kind-product", "kind-streets", "kind-gaussian-noise")


def is_harmless(text: str) -> bool:
    """Tell whether text holds line breaks, printable letters and nothing else, and no line that a file wrote."""
    kinds = {unicodedata.category(letter) for letter in text if letter != "\n"}
    return not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"} and not any(
        line.lstrip().startswith(FORGED) for line in text.splitlines()
    )


def run(capsys, *words):
    """Run a command; what it prints must be harmless."""
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    for text in printed:
        assert is_harmless(text), (words, text)
    assert code in (0, 1, 2), words
    return code, printed


def texts_in(value, way=()):
    """The way to every text and every name of a field in a manifest."""
    if isinstance(value, dict | list):
        items = list(value.items() if isinstance(value, dict) else enumerate(value))
        for key, inner in items:
            yield from texts_in(inner, (*way, key))
    elif isinstance(value, str):
        yield way


def with_text(manifest, way, text):
    inner = manifest
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = text


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_a_mechanism_file_is_printed_raw(tmp_path, capsys, kind):
    whole = (DATA / f"{kind}.mdp").read_bytes()
    table, target = tmp_path / "t.csv", tmp_path / "out.csv"
    table.write_text("x,y,lat,lon,word\n0,0,0,0,a\n")
    ways = list(texts_in(opened(whole)[0]))
    assert len(ways) > 10
    accepted = 0
    for number, way in enumerate(way for way in ways if way != ("sha256",)):
        file = tmp_path / f"{number}.mdp"
        file.write_bytes(forged(whole, lambda manifest, _, way=way: with_text(manifest, way, NASTY)))
        if run(capsys, "inspect", file)[0]:
            continue  # refused by the reader that all commands share
        accepted += 1
        run(capsys, "inspect", file, "--json")
        run(capsys, "audit", file)
        run(capsys, "perturb", table, "--mechanism", file, "-o", target, "--overwrite")
    assert accepted > 0, "no text of this file is free: the test shows nothing"


def test_a_forged_note_is_shown_on_one_line_wherever_it_goes(tmp_path, capsys):
    def change(manifest, _):
        manifest["certificate"]["note"] = manifest["licence"] = NASTY
        manifest["certificate"]["method"] = NASTY

    file, table, target = tmp_path / "m.mdp", tmp_path / "t.csv", tmp_path / "out.csv"
    file.write_bytes(forged((DATA / "metric-l2-with-names.mdp").read_bytes(), change))
    code, printed = run(capsys, "inspect", file)
    assert code == 0
    assert sum(r"\x1b[2J\x1b[H\r\n" in line for line in printed.out.splitlines()) >= 3
    names = list(mdp.load(DATA / "metric-l2-with-names.mdp").inputs.columns)
    point = mdp.load(DATA / "metric-l2-with-names.mdp").inputs.coordinates[0].tolist()
    table.write_text(",".join(names) + "\n" + ",".join(map(str, point)) + "\n")
    for words in (
        (
            "perturb",
            table,
            "--mechanism",
            file,
            "-o",
            target,
            "--report",
            tmp_path / "r.html",
            "--json",
            tmp_path / "j",
        ),
        ("export", file, "-o", tmp_path / "e.mdp"),
        ("estimate", table, "--mechanism", file, "-o", tmp_path / "d.csv"),
        ("design", "--base", file, "--builder", "remapped", "-o", tmp_path / "r.mdp"),
    ):
        run(capsys, *words)
    for left in (tmp_path / "r.html", tmp_path / "j"):
        assert is_harmless(left.read_text(encoding="utf-8"))


def tables(folder):
    """The same table in several formats, every name in it nasty."""
    columns = {
        f"lat{NASTY}": [41.0, 41.1], f"lon{NASTY}": [-8.6, -8.5], f"who{NASTY}": ["anna", f"ben{NASTY}"],
        f"speed{NASTY}": [1.5, 2.5], f"time{NASTY}": ["2024-01-01T10:11:12", "2024-01-01T11:11:12"],
    }  # fmt: skip
    with (folder / f"t{IN_NAMES}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    yield folder / f"t{IN_NAMES}.csv", columns
    pq.write_table(pa.table(columns), folder / f"t{IN_NAMES}.parquet")
    yield folder / f"t{IN_NAMES}.parquet", columns
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (folder / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    yield folder / "t.jsonl", columns
    with sqlite3.connect(folder / "t.db") as base:
        spelled = ", ".join('"' + name + '"' for name in columns)
        base.execute(f'CREATE TABLE "fixes{IN_NAMES}" ({spelled})')
        base.executemany(f'INSERT INTO "fixes{IN_NAMES}" VALUES (?, ?, ?, ?, ?)', zip(*columns.values(), strict=True))
    yield f"{folder / 't.db'}::fixes{IN_NAMES}", columns
    yield f"{folder / 't.db'}::missing{IN_NAMES}", columns


def test_no_name_in_a_table_is_printed_raw(tmp_path, capsys):
    done = 0
    for number, (table, columns) in enumerate(tables(tmp_path)):
        quoted = io.StringIO()
        csv.writer(quoted).writerow(list(columns)[:2])
        named = ("--columns", quoted.getvalue().strip("\r\n"))
        page, record = tmp_path / f"{number}.html", tmp_path / f"{number}.json"
        out = tmp_path / f"{number}{IN_NAMES}.csv"
        done += not run(
            capsys, "perturb", table, "--epsilon", "10/km", *named, "--id", list(columns)[2], "-o", out, "--report",
            page, "--json", record,
        )[0]  # fmt: skip
        run(capsys, "perturb", table, "--epsilon", "10/km", "-o", tmp_path / "x.csv")  # finds no columns, and says so
        run(capsys, "perturb", table, "--epsilon", "10/km", *named, "-o", tmp_path / "x.csv", "--strict")
        run(capsys, "perturb", table, "--epsilon", "10/km", *named, "-o", out, "--drop", f"gone{NASTY}", "--overwrite")
        run(capsys, "text", table, "--column", list(columns)[2], "--epsilon", "1.5", "--vectors", table, "-o", "-")
        run(capsys, "estimate", table, "--mechanism", table, "-o", tmp_path / "x.csv")
        run(capsys, "audit", table, "--secret", named[1], "--report", named[1], "--metric", "l2", "--epsilon", "1")
        run(capsys, "compare", "--points", table, "--epsilon", "1", "-o", tmp_path / "x.html")
        run(capsys, "design", "--points", table, "--metric", f"l2{NASTY}", "--epsilon", "1", "-o", tmp_path / "x.mdp")
        for left in (page, record):
            assert not left.exists() or is_harmless(left.read_text(encoding="utf-8")), left
        if record.exists():  # a program reads the true names back
            assert list(columns)[3] in json.loads(record.read_text(encoding="utf-8"))["columns"]["kept"]
    assert done >= 3


def test_no_word_about_a_budget_is_printed_raw(tmp_path, capsys):
    ledger = tmp_path / f"b{IN_NAMES}.db"
    assert run(capsys, "budget", "begin", ledger, "--policy", "40/km ever")[0] == 0
    for words in (
        ("begin", tmp_path / "c.db", "--policy", NASTY), ("show", ledger, "--person", NASTY),
        ("show", ledger, "--json"), ("policy", ledger, NASTY), ("plan", NASTY, "--epsilon", NASTY),
        ("verify", ledger, "--head", NASTY), ("verify", ledger),
        ("export", ledger, "-o", tmp_path / f"e{IN_NAMES}"), ("erase", ledger, "--person", NASTY),
        ("backup", ledger, "-o", tmp_path / f"k{IN_NAMES}.db"), ("restore", ledger), ("show", f"{ledger}{NASTY}"),
        ("show", f"postgresql://{NASTY}@127.0.0.1:1/{NASTY}", "--key-file", NASTY),
    ):  # fmt: skip
        run(capsys, "budget", *words)
    shutil.copy(DATA / "signed.mdp", tmp_path / f"m{IN_NAMES}.mdp")
    run(capsys, "inspect", tmp_path / f"m{IN_NAMES}.mdp", "--key", tmp_path / f"gone{IN_NAMES}")
    run(capsys, NASTY)
    run(capsys, "inspect", f"--{NASTY}")
    run(capsys, "choose", "--epsilon", NASTY)


def test_an_error_and_a_summary_show_what_they_quote_in_programs_too(tmp_path):
    assert str(InvalidInput(f"the column {NASTY} is not there")) == (
        f"the column {NASTY} is not there".encode("unicode_escape").decode()
    )
    table = tmp_path / "t.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([["lat", "lon", f"kept{NASTY}"], [41.0, -8.0, 1]])
    summary = perturb(table, mdp.laplace(mdp.Haversine(), 10.0), to=tmp_path / "o.csv")
    assert all(is_harmless(line) and "\n" not in line for line in summary.lines())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("bar", [terminal.progress_bar, terminal.steps_bar])
def test_a_name_on_a_progress_bar_is_no_markup(monkeypatch, bar):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with bar("t\x1b[3m\u202e\x07[red]g[/red].csv"):
        pass
    shown = screen.getvalue()
    assert r"t\x1b[3m\u202e\x07[red]g[/red].csv" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "\x1b[3m" not in shown


def test_commands_print_through_one_function():
    """`print` stands in `cli/terminal.py` alone, and markup is read of no column of a bar."""
    for path in sorted((SOURCE / "cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("print", "TextColumn"):
                assert path.name == "terminal.py", f"{path.name}:{node.lineno}"


def test_a_manifest_is_altered_and_not_its_copy():
    manifest = opened((DATA / "kind-matrix.mdp").read_bytes())[0]
    before = deepcopy(manifest)
    ways = list(texts_in(manifest))
    with_text(manifest, ways[0], NASTY)
    assert manifest != before


def test_what_a_program_prints_of_a_forged_mechanism_is_harmless(caplog):
    distances = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    space = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.Precomputed(distances, unit=NASTY))
    mechanism = loads(dumps(mdp.optimal(mdp.Problem(space, 1.0))))
    claimed = mdp.audit(mechanism.matrix, metric=space.metric, points=space.points, epsilon=0.1)
    secrets = [f"{NASTY}1", f"{NASTY}2"] * 300
    samples = mdp.audit_samples(secrets, secrets, metric=mdp.Levenshtein(), epsilon=0.0001)
    for one in (
        mechanism, mechanism.guarantee, mechanism.certificate, mechanism.inputs, mdp.Problem(space, 1.0),
        mdp.audit(mechanism), mdp.audit(mechanism).witness, claimed, samples, samples.witness, *samples.findings,
    ):  # fmt: skip
        assert is_harmless(f"{one} {one!r}"), one
    table = pd.DataFrame(
        {f"lat{NASTY}": [41.1, 41.2] * 50, "lon": [-8.6, -8.5] * 50, f"who{NASTY}": ["anna", "ben"] * 50}
    )
    mdp.perturb(table, mdp.laplace(mdp.Haversine(), 10.0), columns=[f"lat{NASTY}", "lon"])
    assert any("\\x1b" in record.getMessage() for record in caplog.records)
    assert all(is_harmless(record.getMessage()) for record in caplog.records)
