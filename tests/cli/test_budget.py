"""The command that keeps the books, as an operator types it."""

import io
import json
from pathlib import Path

import pytest

from books import ask
from metricdp import cli
from metricdp.ledger import Ledger
from scripts import main

POLICY = "40/km per day, 200/km ever"


@pytest.fixture
def books(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["budget", "begin", "budget.db", "--policy", POLICY]) == 0
    with Ledger.open("budget.db") as ledger:
        for number in range(3):
            ask(ledger, "anna", str(number), 2.0, draw=lambda: b"there")
    return "budget.db"


def said(capsys, *words):
    capsys.readouterr()
    code = main(["budget", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_person_is_shown_with_what_is_left_and_what_it_adds_up_to(books, capsys, monkeypatch):
    code, out, _ = said(capsys, "show", books, "--person", "anna", "--radius", "200m")
    assert code == 0
    assert "40/km per day: 6/km spent, 34/km left, refreshes at" in out
    assert "200/km ever: 6/km spent, 194/km left" in out
    assert "at most a factor of 3.32 " in out  # exp(6/km * 0.2 km)
    bare = said(capsys, "show", books, "--person", "anna", "--radius", "200")
    assert bare[0] == 2
    assert "--radius 200 has no unit, and distances here are in km: write 200m or 0.2km." in bare[2]
    monkeypatch.setattr("sys.stdin", io.StringIO("anna\n"))
    _, out, _ = said(capsys, "show", books, "--person", "-", "--json")
    assert json.loads(out)["accounts"][0]["limits"][1]["micro_left"] == 194_000_000
    assert "Every person may spend: 40/km per day, 200/km ever." in said(capsys, "show", books)[1]


def test_a_person_is_shown_in_three_lines(books, capsys):
    assert cli.main(["budget", "show", books, "--person", "anna"]) == 0
    spent, left, watch = capsys.readouterr().out.splitlines()
    assert spent.startswith("Spent: 6/km (great-circle distance, per km)")
    assert left.startswith("Left: 34/km of 40/km per day, refreshes at ")
    assert watch == "To watch: nothing. --verbose says more."


def test_two_rules_are_told_where_the_second_is_no_weaker(books, capsys):
    assert cli.main(["budget", "show", books, "--person", "anna", "--radius", "200m"]) == 0
    out = capsys.readouterr().out
    assert (
        "places 200 m apart each time: at most a factor of 3.32 (the basic rule, which the ledger charges by)." in out
    )
    assert "with probability" not in out


def test_a_plan_says_what_a_day_costs_and_when_it_ends(capsys):
    _, out, _ = said(capsys, "plan", POLICY, "--epsilon", "2/km", "--every", "10min")
    assert "144 releases a day at 2/km each would cost 288/km a day." in out
    assert "20 of 144 are granted on the first day, for 40/km; the first refusal comes at 03:20 UTC of day 1" in out
    assert "On day 5 the last one is granted, 100 in all" in out
    assert "All of them fit" in said(capsys, "plan", "5 per day", "--epsilon", "0.5", "--every", "3h")[1]


def test_books_are_checked_exported_rotated_copied_and_a_person_erased(books, capsys):
    code, out, _ = said(capsys, "verify", books)
    head = out.splitlines()[-1].strip()
    assert code == 0
    assert "entries: 4, accounts: 1" in out
    assert said(capsys, "verify", books, "--head", head)[0] == 0
    assert said(capsys, "verify", books, "--head", head[:-1] + ("0" if head[-1] != "0" else "1"))[0] == 1
    said(capsys, "export", books, "--person", "anna", "-o", "anna.jsonl")
    lines = [json.loads(line) for line in Path("anna.jsonl").read_text().splitlines()]
    assert [(line["micro_epsilon"], line["report"]) for line in lines] == [(2_000_000, "dGhlcmU=")] * 3
    said(capsys, "export", books, "-o", "all.jsonl")
    assert "anna" not in Path("all.jsonl").read_text()
    assert "reports dropped: 0." in said(capsys, "rotate", books, "--drop-reports", "30d")[1]
    assert said(capsys, "backup", books, "-o", "copy.db")[0] == 0
    assert "closed for ever" in said(capsys, "erase", books, "--person", "anna")[1]
    assert "erased before" in said(capsys, "erase", books, "--person", "anna")[1]
    assert "closed for ever" in said(capsys, "show", books, "--person", "anna")[1]
    assert "6/km spent" in said(capsys, "show", "copy.db", "--person", "anna")[1]
    assert "In use from now on" in said(capsys, "restore", "copy.db")[1]
    assert "is no backup" in said(capsys, "restore", "copy.db")[2]
    assert said(capsys, "policy", books, "10/km ever")[0] == 0
    assert said(capsys, "verify", books)[0] == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["show", "missing.db"], "there is no ledger at 'missing.db'"),
        (["begin", "new.db", "--policy", "lots"], "a policy is written such as"),
        (["begin", "new.db", "--policy", "10/km ever for ads"], "has no total above it: purposes share ONE total"),
        (["begin", "new.db", "--policy", "10/km per fortnight"], "unknown period 'fortnight'"),
        (["begin", "new.db", "--policy", "10/km ever, 20/km ever"], "two limits for the same thing"),
        (["begin", "new.db", "--policy", "slack 1 ever"], "needs a limit of epsilon"),
        (["begin", "postgresql://a@127.0.0.1:1/b", "--policy", POLICY], "needs its key named"),
        (["begin", "mysql://a:geheim@host/b", "--policy", POLICY], "a ledger lies in a file or on PostgreSQL"),
        (["plan", POLICY, "--epsilon", "2/km", "--every", "often"], "a time is written such as 30s"),
        (["plan", POLICY, "--epsilon", "2"], "has no unit"),
        (["begin", "budget.db", "--policy", "1/km ever"], "has the policy '40/km per day, 200/km ever'"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(books, capsys, words, sentence):
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "geheim" not in err
