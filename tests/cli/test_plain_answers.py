"""Small things a new user types, and what is answered."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metricdp import cli
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


def test_hardly_any_noise_is_said(folder, capsys):
    Path("trips.csv").write_text("lat,lon\n41.1,-8.6\n41.2,-8.5\n")
    assert cli.main(["perturb", "trips.csv", "--epsilon", "10/m", "-o", "near.csv"]) == 0
    assert "To watch: Hardly anything is hidden: on average a report lies 0.2 m from" in capsys.readouterr().out
    assert cli.main(["perturb", "trips.csv", "--epsilon", "10/km", "-o", "far.csv"]) == 0
    assert "Hardly" not in capsys.readouterr().out


def test_an_audit_says_the_unit_of_the_claim_and_which_column_is_the_latitude(folder, capsys):
    Path("points.csv").write_text("x,y\n41.1,-8.6\n41.2,-8.5\n")
    Path("matrix.csv").write_text("0.6,0.4\n0.4,0.6\n")
    line = ["audit", "matrix.csv", "--points", "points.csv", "--epsilon", "1.0/km", "--metric", "haversine"]
    assert cli.main(line) == 0
    said = capsys.readouterr()
    assert "(claimed 1 per km), worst at" in said.out
    assert "note: the metric takes x as the latitude and y as the longitude, in degrees." in said.err
    Path("points.csv").write_text("lat,lon\n41.1,-8.6\n41.2,-8.5\n")
    assert cli.main(line) == 0
    assert "latitude" not in capsys.readouterr().err


def test_units_that_are_missing_or_in_capitals_are_named(folder, capsys):
    Path("trips.csv").write_text("who,lat,lon\na,41.1,-8.6\nb,41.2,-8.5\n")
    assert cli.main(["budget", "begin", "plain.db", "--policy", "40 per day"]) == 0
    assert "note: no unit: for lat and lon write 40/km." in capsys.readouterr().err
    assert cli.main(["budget", "begin", "places.db", "--policy", "40/km per day"]) == 0
    assert "no unit" not in capsys.readouterr().err
    line = ["perturb", "trips.csv", "-o", "out.csv", "--id", "who", "--epsilon"]
    assert cli.main([*line, "10/km", "--budget", "40"]) == 2
    assert "--budget 40 has no unit, and distances here are in km. Write --budget 40/km." in capsys.readouterr().err
    assert cli.main([*line, "10/KM"]) == 2
    assert "unknown unit 'KM': did you mean 10/km?" in capsys.readouterr().err
