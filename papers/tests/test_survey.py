"""The table of the survey is complete and true: nothing invented, nothing left out, every name can be imported."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.metrics import METRICS
from metricdp_papers.common.rows import read_csv
from metricdp_papers.survey.study import STATES, lines, pieces, resolve_name, resolve_rows

PROJECT = Path(__file__).parents[2]
PAPER = PROJECT.parent / "shared" / "papers" / "survey.txt"
PAPER = PAPER if PAPER.exists() else PROJECT.parents[1] / "shared" / "papers" / "survey.txt"


def test_every_line_says_where_it_is_by_names_that_exist_or_why_it_is_not() -> None:
    for line in lines():
        called = f"{line['table']} {line['sort']} {line['name']}"
        assert line["state"] in STATES, called
        assert line["name"].strip(), called
        assert re.fullmatch(r"\d+( \d+)*", line["papers"]), called
        assert all(1 <= int(number) <= 144 for number in line["papers"].split()), called
        names = line["here"].split()
        assert bool(names) == (line["state"] != "not here"), called
        assert line["note"] or line["state"] == "here", called
        names += [f"metricdp.{name}" for name in re.findall(r"mdp\.([\w.]+\w)", line["note"])]
        names += [f"metricdp_papers.{name}" for name in re.findall(r"`metricdp reproduce (\w+)`", line["note"])]
        assert all(resolve_name(name) is not None for name in names), called


def test_a_name_that_is_gone_fails_the_piece() -> None:
    with pytest.raises(InvalidInput, match="which is not there"):
        resolve_name("metricdp.nothing_of_that_name")
    with pytest.raises(InvalidInput, match="no module"):
        resolve_name("metricdp.nowhere.at_all")


def test_no_line_stands_twice_and_every_piece_gives_its_lines() -> None:
    named = Counter((line["table"], line["sort"], line["name"]) for line in lines())
    assert [name for name, count in named.items() if count > 1] == []
    rows = [row for piece in pieces(True) if piece.function is resolve_rows for row in resolve_rows(*piece.arguments)]
    assert len(rows) == len(lines())


def test_every_metric_that_is_declared_and_named_by_the_survey_is_said_to_be_here() -> None:
    said = {name for line in lines() if line["sort"] == "metric" for name in line["here"].split()}
    # not named by the survey: edits of a text, several columns together, one's own matrix
    others = {"Levenshtein", "Weighted", "Precomputed"}
    metrics = [one.name for one in METRICS if one.name not in others]
    assert {f"metricdp.{'' if name in mdp.__all__ else 'metrics.'}{name}" for name in metrics} <= said
    assert all(hasattr(mdp, name) for name in others)


def test_what_is_recorded_is_the_table() -> None:
    results = PROJECT / "papers" / "docs" / "results"
    recorded = [row for path in sorted(results.glob("survey_*.csv")) for row in read_csv(path)[1] if "sort" in row]
    assert Counter((r["sort"], r["name"], r["state"], r["here"], r["note"]) for r in recorded) == Counter(
        (r["sort"], " ".join(r["name"].split()), r["state"], r["here"], " ".join(r["note"].split())) for r in lines()
    ), "run `metricdp reproduce survey --folder F`, `python tools/results.py F` and `python tools/pages.py`"


@pytest.mark.skipif(not PAPER.exists(), reason="the text of the survey is not at hand")
def test_tables_hold_every_line_of_the_paper_and_no_other() -> None:
    text = PAPER.read_text(encoding="utf-8")
    one, rest = text.split("TABLE I:", 1)
    two, three = rest.split("TABLE II:", 1)[1].split("#### D. Comparison")[0], rest.split("TABLE III:", 1)[1]
    ours: dict[str, list[dict[str, str]]] = {}
    for line in lines():
        ours.setdefault(f"{line['table']} {line['sort']}", []).append(line)

    def cells(row: str) -> list[str]:
        return [cell.strip() for cell in row.strip().strip("|").split("|")]

    metrics = [cells(row) for row in one.splitlines() if re.match(r"\| \S.*\[\d+\]", row)]
    wanted = Counter(" ".join(re.findall(r"\[(\d+)\]", row[0])) for row in metrics)
    assert Counter(line["papers"] for line in ours["I metric"]) == wanted
    works = [cells(row) for row in two.splitlines() if re.match(r"\| \S.*\[\d+\]", row)]
    families = ("Lap.", "Exp.", "Opt.")
    for row, line in zip(works, ours["II mechanism"], strict=True):
        assert re.search(r"\[(\d+)\]", row[0])[1] == line["papers"]  # type: ignore[index]
        assert line["name"].split(" (")[0] == re.sub(r" \(.*| \[.*", "", row[0])
        ticks = [name for name, cell in zip(families, row[1:4], strict=True) if "✓" in cell or "√" in cell]
        assert " ".join(ticks) == line["family"]
        assert line["says"] == row[5]
        assert line["size"].strip("—") == row[4].replace("l ", "").strip("—_- ")
    measures = {row[5] for row in works} | {"Expected inference error (EIE)"}  # the caption names the last
    assert {line["name"] for line in ours["II measure"]} == measures
    for line in ours["II measure"]:
        if not line["name"].endswith("(EIE)"):
            assert line["papers"].split() == [
                re.search(r"\[(\d+)\]", row[0])[1] for row in works if row[5] == line["name"]  # type: ignore[index]
            ]  # fmt: skip
    sets = [cells(row) for row in three.splitlines() if re.match(r"\| (?!Dataset Name|-)\S", row)]
    assert len(sets) == len(ours["III data"]) == 19
    for row, line in zip(sets, ours["III data"], strict=True):
        plain = re.sub(r"<br>", " ", row[0])
        assert re.sub(r" ?\[\d+\],?", "", plain).strip() == line["name"]
        if "Synthetic" not in plain:
            assert re.findall(r"\[(\d+)\]", plain) == line["papers"].split()
