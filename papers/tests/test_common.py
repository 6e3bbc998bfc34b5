"""Studies made of pieces: they go on where they stopped, in several processes, and fail one piece at a time."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browsers
from metricdp import optimal
from metricdp.cli import main
from metricdp.errors import InvalidInput, MissingExtra
from metricdp.metrics import Lp
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp_papers import STUDIES, Piece, Study, StudyTable
from metricdp_papers.common import StudyRequest, average_repetitions, reproduce
from metricdp_papers.common.rows import read_csv

PLUGIN = """
import os, pathlib, time
from metricdp.errors import InvalidInput
from metricdp_papers import STUDIES, Piece, Study, StudyTable

def square(number, folder):
    with open(pathlib.Path(folder) / "calls", "a") as file:
        file.write(f"{number}\\n")
    if number == 3:
        raise InvalidInput("three is never squared.")
    if number == 4:
        raise ZeroDivisionError("four")
    if number == 5:
        os.kill(os.getpid(), 9)
    if number == 7:
        time.sleep(60)
    return [{"number": number, "measure": "square", "published": 4.0, "as_published": number**2}]

def pieces(full):
    folder = pathlib.Path(__file__).parent
    for number in (1, 2, 3, 4, 5, 6) if full else (1, 2, 7):
        yield Piece(f"n={number}", "1", square, (number, str(folder)))

STUDIES.declare(Study("squares", "squares of small numbers", (StudyTable("1", "Squares"),), pieces))
"""


def seen(number: int, calls: str) -> list[dict[str, Any]]:
    with Path(calls).open("a", encoding="utf-8") as file:
        file.write(f"{number}\n")
    return [
        {"table": "1", "side": number, "measure": "loss", "published": 2.0, "as_published": 2.0 * number},
        {"table": "figure 2", "side": number, "measure": "gap", "corrected": number / 7, "bound": 0.1, "note": "a|b"},
    ]


def refusing(sentence: str) -> list[dict[str, Any]]:
    raise InvalidInput(sentence)


def study(tmp_path: Path, *more: Piece) -> Study:
    def pieces(full: bool) -> Iterator[Piece]:
        for number in range(1, 5 if full else 3):
            yield Piece(f"side={number}", ("1", "figure 2"), seen, (number, str(tmp_path / "calls")))
        yield from more

    def picture(table: StudyTable, rows: Sequence[dict[str, Any]], path: Path) -> None:
        if table.number == "figure 2":
            raise MissingExtra("pictures need more.")
        path.write_bytes(b"\x89PNG not really")

    tables = (StudyTable("1", "Losses", "They grow.", "Fewer sides."), StudyTable("figure 2", "Gaps <here>"))
    return Study("sides", "what sides cost", tables, pieces, picture, ("A note & more.",), ("roads_rome",))


def calls(tmp_path: Path) -> list[int]:
    path = tmp_path / "calls"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def run(tmp_path: Path, *more: Piece, **options: Any) -> Any:
    return reproduce(study(tmp_path, *more), StudyRequest(folder=tmp_path / "out", **options), say=lambda line: None)


def test_what_ran_is_not_run_again_and_a_longer_run_continues(tmp_path: Path) -> None:
    run(tmp_path)
    assert calls(tmp_path) == [1, 2]
    outcome = run(tmp_path, full=True)
    run(tmp_path, full=True, jobs=2)  # nothing is left to do
    assert calls(tmp_path) == [1, 2, 3, 4]
    about, rows = read_csv(tmp_path / "out" / "table_1.csv")
    assert [row["as_published"] for row in rows] == ["2", "4", "6", "8"]
    assert list(rows[0]) == [
        "side", "measure", "published", "as_published", "corrected", "bound", "seconds", "note",
    ]  # fmt: skip
    assert about[0] == "command: metricdp reproduce sides --table 1 --full"
    assert "load" in about[2]
    assert about[3].startswith("pieces: 4 of 4")
    assert read_csv(tmp_path / "out" / "figure_2.csv")[0][0].endswith("--table 'figure 2' --full")
    assert any("pictures need more" in note for note in outcome.notes)


def test_a_run_for_one_table_leaves_the_others_on_the_page(tmp_path: Path) -> None:
    def pieces(full: bool) -> list[Piece]:
        return [Piece(f"table={n}", n, listed, (n,)) for n in ("1", "2", "3")]

    three = Study("three", "three tables", tuple(StudyTable(n, f"Number {n}") for n in ("1", "2", "3")), pieces)
    for number in ("1", "2"):
        outcome = reproduce(three, StudyRequest((number,), folder=tmp_path), say=lambda line: None)
    text = (tmp_path / "index.html").read_text()
    assert "Number 1" in text
    assert "Number 2" in text
    assert "Number 3" not in text
    assert [table.number for table in outcome.tables] == ["1", "2"]
    assert len(list((tmp_path / "pieces").glob("*.json"))) == 2


def listed(number: str) -> list[dict[str, Any]]:
    return [{"side": number, "measure": "loss", "corrected": 1.0}]


def test_a_piece_from_another_machine_counts_and_a_broken_or_older_one_does_not(tmp_path: Path) -> None:
    run(tmp_path)
    there, here = tmp_path / "out" / "pieces", tmp_path / "second" / "pieces"
    here.mkdir(parents=True)
    shutil.copy(there / "side=1.json", here)
    (here / "side=2.json").write_text('{"key": "side=2", "rows": [{"loss": []}]}')
    said: list[str] = []
    reproduce(study(tmp_path), StudyRequest(folder=tmp_path / "second"), say=said.append)
    assert calls(tmp_path) == [1, 2, 2]
    assert any("is no finished piece" in line for line in said)
    older = json.loads((here / "side=1.json").read_text())
    (here / "side=1.json").write_text(json.dumps({**older, "call": "test_common.seen(1.0, 'x')"}))
    reproduce(study(tmp_path), StudyRequest(folder=tmp_path / "second"), say=said.append)
    assert calls(tmp_path) == [1, 2, 2, 1]


def test_no_piece_begins_without_time_and_what_is_missing_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    outcome = reproduce(study(tmp_path), StudyRequest(folder=tmp_path / "out", minutes=0), say=said.append)
    assert calls(tmp_path) == []
    assert [piece.key for piece in outcome.missing(outcome.tables[0])] == ["side=1", "side=2"]
    assert any("2 pieces did not run; `metricdp reproduce sides --table 1 --folder" in line for line in said)
    assert "This table has not run" in (tmp_path / "out" / "index.html").read_text()


def test_a_piece_that_fails_is_recorded_tried_again_and_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = Piece("bad", "1", refusing, ("there is no such city.",))
    outcome = run(tmp_path, bad)
    assert [row["as_published"] for row in outcome.rows["1"]] == [2.0, 4.0]
    assert json.loads((tmp_path / "out" / "pieces" / "bad.json").read_text())["failure"] == "there is no such city."
    assert "failed: bad: there is no such city." in read_csv(tmp_path / "out" / "table_1.csv")[0]
    assert "<li>bad: there is no such city.</li>" in (tmp_path / "out" / "index.html").read_text()
    assert run(tmp_path, bad).failures(outcome.tables[0])
    assert calls(tmp_path) == [1, 2]


def plugin(tmp_path: Path) -> list[str]:
    (tmp_path / "squares.py").write_text(PLUGIN)
    code = "import sys; from metricdp.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, "reproduce", "squares", "--plugin", str(tmp_path / "squares.py")]


def test_processes_share_the_pieces_and_one_that_is_killed_costs_its_own_piece(tmp_path: Path) -> None:
    done = subprocess.run(
        [*plugin(tmp_path), "--full", "--jobs", "2", "--folder", "out"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    about, rows = read_csv(tmp_path / "out" / "table_1.csv")
    assert [row["number"] for row in rows] == ["1", "2", "6"]
    failures = [line for line in about if line.startswith("failed: ")]
    assert len(failures) == 3
    assert "three is never squared" in failures[0]
    assert "ZeroDivisionError: four (squares.py, line" in failures[1]
    assert "killed" in failures[2]


def test_a_piece_without_a_name_to_go_by_fails_alone(tmp_path: Path) -> None:
    pieces = [Piece("a", "1", lambda: listed("a")), Piece("b", "1", list), Piece("c", "1", list)]
    one = Study("one", "one", (StudyTable("1", "One"),), lambda full: pieces)
    outcome = reproduce(one, StudyRequest(folder=tmp_path, jobs=2), say=lambda line: None)
    assert "cannot be sent to another process" in outcome.done["a"].failure
    assert [outcome.done[key].failure for key in "bc"] == ["", ""]


@pytest.mark.parametrize(("jobs", "number"), [("1", signal.SIGINT), ("2", signal.SIGTERM)])
def test_an_interruption_loses_nothing_that_is_done(tmp_path: Path, jobs: str, number: int) -> None:
    process = subprocess.Popen(
        [*plugin(tmp_path), "--jobs", jobs, "--folder", "out"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 90
    while sorted(calls(tmp_path)) != [1, 2, 7] or len(list((tmp_path / "out").glob("pieces/n=*.json"))) < 2:
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    about, rows = read_csv(tmp_path / "out" / "table_1.csv")
    assert [row["as_published"] for row in rows] == ["1", "4"]
    assert "missing: 1 pieces: n=7" in about
    assert "about" in out


def interrupted_inside(number: int) -> list[dict[str, Any]]:
    """Solve, and be interrupted by a real signal while the solver is at work: it answers with the best so far."""
    space = FiniteSpace(np.random.default_rng(0).uniform(size=(30, 2)), Lp(2))
    told: list[float] = []

    def progress(lower: float, upper: float, seconds: float, steps: int) -> None:
        told.append(upper)
        os.kill(os.getpid(), number)

    made = optimal(Problem(space, 3.0), objective="worst", gap=1e-12, progress=progress)
    assert len(told) == 1
    assert "interrupted" in made.certificate.note  # swallowed: the piece seems to be whole
    return [{"table": "1", "side": 9, "measure": "loss", "as_published": told[0]}]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_that_a_solver_answers_ends_the_run_and_keeps_no_half_piece(
    tmp_path: Path, number: int
) -> None:
    before = signal.getsignal(number)
    more = [Piece("half", ("1", "figure 2"), interrupted_inside, (int(number),))]
    more.append(Piece("after", ("1", "figure 2"), seen, (9, str(tmp_path / "calls"))))
    with pytest.raises(KeyboardInterrupt, match="the same command goes on from there"):
        run(tmp_path, *more)
    assert calls(tmp_path) == [1, 2]
    assert sorted(path.stem for path in (tmp_path / "out" / "pieces").iterdir()) == ["side=1", "side=2"]
    assert (tmp_path / "out" / "table_1.csv").exists()
    assert signal.getsignal(number) is before


def test_repetitions_become_a_mean_with_its_interval() -> None:
    rows = [
        {"city": "rome", "repetition": n, "measure": "loss", "published": 3.0, "as_published": v, "corrected": 1.0}
        for n, v in enumerate((1.0, 2.0, 4.0))
    ]
    single = {"city": "rome", "measure": "gap", "corrected": 0.25}
    mean, other = average_repetitions([*rows, single])
    assert other == single
    assert mean["published"] == 3.0
    assert mean["as_published"] == pytest.approx(7 / 3)
    # the 97.5 % point of Student's t with two degrees of freedom is 4.30265
    deviation = math.sqrt(sum((v - 7 / 3) ** 2 for v in (1, 2, 4)) / 2)
    assert mean["as_published_spread"] == pytest.approx(4.30265 * deviation / math.sqrt(3), rel=1e-5)
    assert (mean["spread"], mean["repetitions"]) == (0.0, 3)
    assert "repetition" not in mean


def test_a_repetition_without_a_number_makes_no_mean_of_the_others_and_many_notes_become_one() -> None:
    rows = [
        {"repetition": n, "measure": "loss", "as_published": value, "note": f"run {n}"}
        for n, value in enumerate((1.0, "inf", 2.0, 3.0))
    ]
    (mean,) = average_repetitions(rows)
    assert mean["as_published"] == "inf"
    assert "spread" not in mean
    assert mean["note"] == "run 0 (one of 4 repetitions)"
    assert average_repetitions(rows[:3])[0]["note"] == "run 0; run 1; run 2"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"loss": 1.0}], "no `measure`"),
        ([{"measure": "x", "corrected": [1.0]}], "must be a text, a number or None"),
    ],
)
def test_rows_that_are_not_flat_fail_their_piece(tmp_path: Path, rows: list[Any], said: str) -> None:
    (done,) = reproduce(
        Study("one", "one", (StudyTable("1", "One"),), lambda full: [Piece("a", "1", list, (rows,))]),
        StudyRequest(folder=tmp_path),
        say=lambda line: None,
    ).done.values()
    assert said in done.failure


def test_declarations_that_would_confuse_are_refused(tmp_path: Path) -> None:
    for key in ("", "a/b", "..", ".hidden", "a b", "x" * 201):
        with pytest.raises(InvalidInput, match="key of a piece"):
            Piece(key, "1", seen)
    with pytest.raises(InvalidInput, match="different numbers"):
        Study("one", "one", (StudyTable("1", "a"), StudyTable("1", "b")), lambda full: [])
    with pytest.raises(InvalidInput, match="two pieces"):
        run(tmp_path, Piece("side=1", "1", seen))
    with pytest.raises(InvalidInput, match="does not declare"):
        run(tmp_path, Piece("new", "9", seen))
    with pytest.raises(InvalidInput, match="no table '3': use one of 1, figure 2"):
        run(tmp_path, tables=("3",))
    with pytest.raises(InvalidInput, match="jobs"):
        StudyRequest(jobs=0)
    assert [t.number for t in study(tmp_path).select_tables(("figure_2", "table 1"))] == ["figure 2", "1"]


class Shape(HTMLParser):
    """What of a page matters to whoever cannot see it, and what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values))
        self.fetched += [str(values[name]) for name in ("src", "href") if values.get(name)]


def test_the_page_needs_nothing_from_elsewhere_and_can_be_heard(tmp_path: Path) -> None:
    run(tmp_path, full=True)
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    shape = Shape()
    shape.feed(text)
    assert all(one.startswith(("data:", "#")) for one in shape.fetched)
    assert "url(" not in text
    names = [tag for tag, _ in shape.tags]
    assert names.count("h1") == 1
    assert all(values.get("alt") for tag, values in shape.tags if tag == "img")
    assert all(values.get("scope") == "col" for tag, values in shape.tags if tag == "th")
    assert names.count("caption") == names.count("table") == 2
    for words in ("Gaps &lt;here&gt;", "A note &amp; more.", "They grow.", "Fewer sides.", "reproduced as published"):
        assert words in text
    assert re.search(r'<td class="number as_published">4 <small>\+100 %</small></td>', text)
    anchors = {values.get("id") for _, values in shape.tags}
    assert {one[1:] for one in shape.fetched if one.startswith("#")} <= anchors


def test_the_page_is_filtered_in_a_browser(tmp_path: Path) -> None:
    program = browsers.chromium()
    if program is None:
        pytest.skip("no Chromium")
    many = [Piece(f"more={n}", ("1",), seen_once, (n,)) for n in range(40)]
    run(tmp_path, *many)
    page = tmp_path / "out" / "index.html"
    text = page.read_text(encoding="utf-8")
    probe = (
        "<script>const box = document.querySelector('input[data-table]'); box.value = 'forty 7';"
        "box.dispatchEvent(new Event('input'));</script></body>"
    )
    page.write_text(text.replace("</body>", probe), encoding="utf-8")
    options = [*browsers.CHROMIUM_OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([program, *options, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    assert re.search(r"<output[^>]*>4 of 42</output>", done.stdout)  # 7, 17, 27, 37


def seen_once(number: int) -> list[dict[str, Any]]:
    return [{"table": "1", "side": f"forty {number}", "measure": "loss", "as_published": 0.5}]


def test_every_study_takes_the_same_options_and_has_a_help_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for entry in STUDIES:
        assert main(["reproduce", entry.name, "--help"]) == 0
        text = " ".join(capsys.readouterr().out.split())
        assert f"Usage: metricdp reproduce {entry.name}" in text
        for option in ("--table", "--full", "--folder", "--jobs", "--minutes"):
            assert option in text
        for table in entry.whole().tables:
            assert " ".join(table.title.split()) in text
        for wrong in ("--ful", "out"):  # the folder is an option, as everywhere
            assert main(["reproduce", entry.name, wrong]) == 2
            assert wrong in capsys.readouterr().err
