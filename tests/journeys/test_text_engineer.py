"""An NLP engineer has a spreadsheet of reviews and has to hand out protected ones: every mistake on the way.

The file is as such files are: a byte order mark, CRLF, semicolons, quotes inside quotes, line breaks inside cells,
emoji, addresses, empty cells, names in a column of their own, and one cell of a megabyte. The command runs as it is
typed; what it prints is read as that person reads it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import jsonschema
import pytest

from scripts import main

SCHEMA = Path(__file__).parents[2] / "src" / "metricdp" / "metricdp.schema.json"
LONG = "the room was clean and the food was good. " * 24_000  # a megabyte
REVIEWS = [
    "The room was CLEAN, and the staff were friendly!",
    'He said "never again" 😀 see https://example.org/room?id=7',
    "",
    "Write to anna.meier@example.org\r\nor call Anna Meier; she paid $1,299.50 on 2024-05-17",
    LONG,
    "  two  spaces, \ttabs\t and a 7-year-old child  ",
    "Zxqvwy was here",
]
SECRET = re.compile(r"anna|meier|example\.org|zxqvwy|1,299\.50", re.IGNORECASE)


class Desk:
    """A folder and a terminal."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def read(self) -> str:
        return self._capsys.readouterr().out

    def errors(self) -> str:
        return self._capsys.readouterr().err

    def types(self, *words: str) -> tuple[int, str, str]:
        status = main(["text", *words])
        captured = self._capsys.readouterr()
        return status, captured.out, captured.err

    def refused(self, *words: str) -> str:
        """Run a command that must be refused with one sentence, and leave nothing behind."""
        before = sorted(path.name for path in self.folder.iterdir())
        status, out, err = self.types(*words)
        assert (status, out) == (2, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert not SECRET.search(err)
        assert sorted(path.name for path in self.folder.iterdir()) == before
        return err

    def done(self, *words: str) -> str:
        status, out, err = self.types(*words)
        assert status == 0, err
        assert not SECRET.search(out + err)
        return out


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    monkeypatch.chdir(tmp_path)
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=";", lineterminator="\r\n")
    writer.writerow(["Review No", "Customer", "Text", "Stars"])
    writer.writerows([number, f"customer {number}", text, 1 + number % 5] for number, text in enumerate(REVIEWS))
    (tmp_path / "reviews May.csv").write_bytes(b"\xef\xbb\xbf" + file.getvalue().encode())
    return Desk(tmp_path, capsys)


def rows(path: str) -> list[list[str]]:
    usual = csv.field_size_limit(10_000_000)
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            return list(csv.reader(file, delimiter=";"))
    finally:
        csv.field_size_limit(usual)


def test_from_a_messy_spreadsheet_to_a_protected_one_with_every_mistake_on_the_way(desk: Desk) -> None:
    source, made = "reviews May.csv", ["--mechanism", "words.mdp"]
    assert "name the table and where the protected one goes" in desk.refused(source)
    assert "say how much a word may leak per distance" in desk.refused(source, "-o", "safe.csv")
    assert "say which words there are" in desk.refused(source, "--epsilon", "2", "-o", "safe.csv")
    assert "does not exist" in desk.refused(source, "--vectors", "glove.npz", "--epsilon", "2", "-o", "safe.csv")

    # A mechanism is made once; `design` says how to go on.
    design = ["--vectors", "bundled", "--words", "250", "--epsilon", "2", "--builder", "exponential"]
    assert main(["design", *design, "-o", "words.mdp"]) == 0
    said = desk.read()
    assert "exponential on 250 words" in said
    assert "metricdp text reviews.csv --column text --mechanism words.mdp" in said
    assert "remove --epsilon" in desk.refused(source, *made, "--epsilon", "3", "-o", "safe.csv")

    # Which column, and what of words that nobody knows.
    assert "Did you mean 'Text'" in desk.refused(source, "--column", "text", *made, "-o", "safe.csv")
    error = desk.refused(source, "--column", "Text", *made, "-o", "safe.csv")
    assert (
        "'Text' are not in the vocabulary of 250 words, in 6 rows so far: 0, 1, 3, 4, 5, 6 (the first is row 0)"
        in error
    )
    assert "never passed through" in error

    out = desk.done(source, "--column", "Text", *made, "--unknown", "mask", "--keep", "Customer", "-o", "safe.csv")
    lines = out.splitlines()
    assert lines[0].startswith("Words are protected one by one: topic, style, length and rare combinations")
    assert re.fullmatch(r"7 rows written to safe.csv in \d+\.\d s; protected column: Text\.", lines[1])
    assert lines[2] == "1 cell held no text: it is empty in the output too, so that this is not hidden."
    assert "epsilon 2" in lines[3]
    assert any(re.fullmatch(r"The output has \[MASK\] [\d,]+ times\.", line) for line in lines)
    assert "Unchanged and not protected: Review No, Customer, Stars." in lines
    assert any(line.startswith("  he and she are ") for line in lines)

    raw = Path("safe.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfReview No;Customer;Text;Stars\r\n")
    assert not SECRET.search(raw.decode())
    assert raw.count(b"\r\n") == Path(source).read_bytes().count(b"\r\n")
    safe = rows("safe.csv")
    assert [row[0] for row in safe[1:]] == [str(number) for number in range(7)]
    assert safe[3][2] == ""
    assert safe[6][2].startswith("  ")
    assert "\t" in safe[6][2]
    assert safe[5][2].count(".") == LONG.count(".")
    assert "[MASK]" in safe[7][2]

    assert "cannot write 'safe.csv'" in desk.refused(source, "--column", "Text", *made, "-o", "safe.csv")
    assert "columns that stay may reveal the secret" in desk.refused(
        source, "--column", "Text", *made, "--unknown", "mask", "--strict", "-o", "strict.csv"
    )


def test_numbers_and_budgets_and_pages(desk: Desk) -> None:
    Path("notes.csv").write_text('id,text\n1,"they had 120 men in 1999, on 2024-05-17"\n2,"it was for all of them"\n')
    common = ["notes.csv", "--vectors", "bundled", "--words", "150", "--epsilon", "2", "--unknown", "mask"]
    assert "such as 1/10" in desk.refused(*common, "--numbers", "ten", "-o", "safe.csv")
    assert "--budget, which is not given" in desk.refused(*common, "--beyond", "mask", "-o", "safe.csv")
    assert "cost more than the budget of 5, in 2 rows so far: 0, 1 (the first is row 0)" in desk.refused(
        *common, "--budget", "5", "-o", "safe.csv"
    )
    out = desk.done(
        *common, "--numbers", "1/10", "--dates", "1/7", "--budget", "14", "--lower", "1", "--beyond", "drop",
        "-o", "safe.csv", "--report", "page.html", "--json", "record.json",
    )  # fmt: skip
    assert "Numbers that differ add epsilon 1 for every 10" in out
    assert "Page: page.html. Nothing of the table is in it." in out
    text = Path("safe.csv").read_text()
    assert re.search(r"\d{4}-\d\d-\d\d", text)
    page = Path("page.html").read_text()
    assert "120 men" not in page
    assert page.index("What this does not hide") < page.index("What is guaranteed") < page.index("Before and after")
    assert "The train was late, the office was closed and my phone was dead." in page
    record = json.loads(Path("record.json").read_text())
    jsonschema.validate(record, {"$ref": "#/$defs/summary", "$defs": json.loads(SCHEMA.read_text())["$defs"]})
    assert (record["texts"]["lower"], record["counts"]["written"], record["guarantee"]["epsilon"]) == ([1.0], 2, 14.0)
    assert (record["promise"]["lower"], record["rules"]["budget"]) == ([1.0], 14.0)
    assert (record["format"], record["version"], record["rows"]) == ("metricdp.text", 1, 2)
    assert record["promise"]["epsilon"] == 2.0
    assert 0 < record["on_public_sentences"]["unchanged"] < 1
    assert "120" not in json.dumps({**record, "seconds": 0})


def test_bytes_that_are_no_text_lines_and_standard_output(desk: Desk) -> None:
    Path("old.csv").write_bytes(b"id,text\n1,the time\n2,caf\xe9 was here\n")
    common = ["--vectors", "bundled", "--words", "150", "--epsilon", "3", "--unknown", "drop"]
    assert "not UTF-8 in row 1" in desk.refused("old.csv", "--column", "text", *common, "-o", "safe.csv")
    Path("notes.txt").write_bytes(b"they had time\r\n\r\nshe was not\r\n")
    assert "3 rows written to safe.txt" in desk.done("notes.txt", *common, "-o", "safe.txt")
    assert [len(line.split()) for line in Path("safe.txt").read_bytes().split(b"\r\n")] == [3, 0, 3, 0]
    status, out, err = desk.types("notes.txt", *common, "-o", "-", "--to", "jsonl", "--seed", "7")
    assert status == 0
    assert [set(json.loads(line)) for line in out.splitlines()] == [{"text", "metricdp_simulated"}] * 3
    assert "SIMULATION ONLY" in err


def test_choosing_an_epsilon_looks_at_no_table(desk: Desk) -> None:
    common = ["--vectors", "bundled", "--words", "200", "--choose"]
    assert "never at a table" in desk.refused("reviews May.csv", *common)
    out = desk.done(*common, "--epsilon", "0.5,3", "--json", "found.json", "--report", "found.html")
    assert out.startswith("exponential on 200 words, bundled English sentences:\nepsilon  unchanged  attacker right")
    held = json.loads(Path("found.json").read_text())["rows"]
    assert [row["epsilon"] for row in held] == [0.5, 3.0]
    assert held[0]["unchanged"] < 0.2 < 0.9 < held[1]["unchanged"]
    assert held[0]["rank"] > held[1]["rank"] == 1.0
    assert "<svg" in Path("found.html").read_text()
    assert "do not depend on any table" in out


def test_words_of_a_list_have_vectors_or_are_measured_by_their_spelling(desk: Desk) -> None:
    Path("list.txt").write_text("time\nyear\n\ntime\nzxqvwy\n")
    with_vectors = ["design", "--vectors", "bundled", "--words", "list.txt", "--epsilon", "1", "-o", "a.mdp"]
    assert main(with_vectors) == 2
    assert "1 of 3 words have no vector in bundled, such as zxqvwy" in desk.errors()
    Path("list.txt").write_text("time\nyear\ntimes\n")
    assert main(with_vectors) == 0
    assert main(["design", "--words", "list.txt", "--epsilon", "1", "-o", "b.mdp"]) == 0
    said = desk.read()
    assert said.count("exponential on 3 words") == 2
    assert main(["design", "--words", "list.txt", "--metric", "l2", "--epsilon", "1", "-o", "c.mdp"]) == 2
    assert main(["design", "--words", "7", "--epsilon", "1", "-o", "c.mdp"]) == 2
    assert main(["design", "--points", "cells.csv", "--words", "list.txt", "--epsilon", "1", "-o", "c.mdp"]) == 2
    errors = desk.errors().splitlines()
    assert [line.partition(":")[0] for line in errors] == ["error"] * 3
    assert "measures vectors" in errors[0]
    assert "does not go with --points" in errors[2]
    Path("notes.csv").write_text("text\nTimes of year\n")
    assert "The output has [MASK] once" in desk.done(
        "notes.csv", "--mechanism", "b.mdp", "--unknown", "mask", "-o", "safe.csv"
    )


def test_a_wrong_column_is_said_before_a_mechanism_is_built(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.specs.build_words", lambda *_: pytest.fail("a mechanism was built first"))
    words = ["--vectors", "bundled", "--epsilon", "2", "-o", "out.csv"]
    assert "txet" in desk.refused("reviews May.csv", "--column", "txet", *words)
    assert "no.csv" in desk.refused("no.csv", "--column", "Text", *words)
    Path("days").mkdir()
    for day in ("1", "2"):
        Path("days", f"{day}.csv").write_text("text\nTimes of year\n")
    assert "txet" in desk.refused("days/*.csv", "--column", "txet", *words)


@pytest.mark.parametrize("options", [("--column", "text"), ("--column", "Meie"), ("--from", "csv", "--drop", "name")])
def test_no_piped_text_is_shown_however_short_it_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Meier,has gout\nBob,is fine\n")))
    said = desk.refused("-", "--vectors", "bundled", "--words", "300", "--epsilon", "2", "-o", "-", *options)
    assert "Meier" not in said
    assert "gout" not in said


def test_a_piped_sentence_is_a_document_and_is_never_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "Anna Meier, the cleaner, had no time for us"
    words = ["-", "--vectors", "bundled", "--words", "300", "--epsilon", "2", "-o", "-"]
    for options, code in ((("--unknown", "mask"), 0), ((), 2), (("--column", "text"), 2), (("--from", "csv"), 2)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(f"{sentence}\n".encode())))
        status, out, err = desk.types(*words, *options)
        assert status == code
        assert "Meier" not in out + err
        assert "cleaner" not in out + err
        if code == 0:
            assert len(out.splitlines()) == 1
            assert out.count("[MASK]") >= 2
