"""Small things a new user types, and what is answered."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metricdp.cli import app
from metricdp.errors import BudgetExceeded
from metricdp.ledger import Ledger
from scripts import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_budget_that_is_left_is_not_called_spent(folder):
    with Ledger.open("b.db", policy="50/km ever") as ledger:
        with pytest.raises(BudgetExceeded, match=r"50/km ever does not hold this: 50/km of it is left and 60/km was"):
            ledger.release("anna", "1", key="app", metric="haversine/km", epsilon=60.0, draw=lambda: b"")
        ledger.release("anna", "2", key="app", metric="haversine/km", epsilon=50.0, draw=lambda: b"")
        with pytest.raises(BudgetExceeded, match=r"50/km ever is spent: 0/km of it is left"):
            ledger.release("anna", "3", key="app", metric="haversine/km", epsilon=1.0, draw=lambda: b"")


def test_an_export_goes_to_standard_output(folder, capsys):
    assert main(["budget", "begin", "b.db", "--policy", "50/km ever"]) == 0
    capsys.readouterr()
    assert main(["budget", "export", "b.db", "-o", "-"]) == 0
    printed = capsys.readouterr().out
    assert main(["budget", "export", "b.db", "-o", "e.jsonl"]) == 0
    assert [json.loads(line) for line in printed.splitlines()]
    assert printed == (folder / "e.jsonl").read_text()
    assert not (folder / "-").exists()


DESIGN = ("design", "--grid", "0,0,2,2", "--cell", "1", "--metric", "l2", "--epsilon", "1", "--builder", "exponential")


def test_what_is_no_text_makes_no_file_named_by_a_dash(folder, capsys):
    assert main([*DESIGN, "-o", "c.mdp"]) == 0
    (folder / "t.csv").write_text("lat,lon\n41,-8\n")
    assert main(["budget", "begin", "b.db", "--policy", "50/km ever"]) == 0
    for words in (
        (*DESIGN, "-o", "-"), ("export", "c.mdp", "-o", "-"), ("budget", "backup", "b.db", "-o", "-"),
        ("perturb", "t.csv", "--epsilon", "1/km", "-o", "o.csv", "--json", "-"),
    ):  # fmt: skip
        assert main(list(words)) == 2, words
        assert not (folder / "-").exists(), words
    assert "standard output" in capsys.readouterr().err
    assert main([*DESIGN, "-o", "./-"]) == 0  # the same name, spelled out
    assert (folder / "-").exists()


def test_a_public_key_signs_nothing_and_the_error_says_so(folder, capsys):
    assert main(["keys", "me"]) == 0
    assert main([*DESIGN, "-o", "c.mdp"]) == 0
    capsys.readouterr()
    assert main(["export", "c.mdp", "-o", "d.mdp", "--key", "me.pub"]) == 2
    said = capsys.readouterr().err
    assert "'me.pub' is a public key" in said
    assert "chmod" not in said
    (folder / "me.key").chmod(0o644)
    assert main(["export", "c.mdp", "-o", "d.mdp", "--key", "me.key"]) == 2
    assert "chmod 600" in capsys.readouterr().err


def test_the_help_of_a_stream_names_no_option_that_it_has_not(capsys):
    with pytest.raises(SystemExit):
        app(["stream", "--help"])
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--id" not in text
    assert "lat,lon (trip" not in text
    assert "What a new ledger allows a person" in text
    assert "The columns of person, time" in text


def test_a_table_of_vectors_is_not_asked_for_a_unit_of_length(folder, capsys):
    vectors = pa.array([[0.1, 0.2, 0.3, 0.4]] * 3, pa.list_(pa.float32()))
    pq.write_table(pa.table({"id": [1, 2, 3], "embedding": vectors}), "v.parquet")
    asked = ["perturb", "v.parquet", "--epsilon", "3", "-o", "out.parquet"]
    for columns, said in (([], "no latitude column"), (["--columns", "embedding"], "name the metric of the vectors")):
        assert main([*asked, *columns]) == 2
        answer = capsys.readouterr().err
        assert said in answer
        assert "distances here are in km" not in answer
