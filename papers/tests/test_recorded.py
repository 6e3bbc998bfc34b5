"""Pages take their tables and numbers from recorded results, and a folder becomes a record."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from metricdp.errors import InvalidInput
from metricdp_papers import Piece, Study, StudyTable
from metricdp_papers.common import StudyRequest, markdown, reproduce
from metricdp_papers.common.rows import write_csv

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    rows = [
        {"city": city, "norm": "l2", "method": method, "epsilon": e, "measure": "loss", "published": 1.0,
         "corrected": 0.123456 * e * k, "note": ""}
        for k, city in enumerate(("rome", "london"), 1)
        for method in ("EM", "A|B")
        for e in (0.5, 1.0)
    ]  # fmt: skip
    about = [
        "command: metricdp reproduce maps --table 2 --full",
        "version: 1",
        "missing: 2 pieces: a b",
        "failed: c: no",
    ]
    write_csv(rows, tmp_path / "maps_table_2.csv", about=about)
    return tmp_path


def test_pages_take_tables_and_numbers_from_recorded_results(recorded: Path) -> None:
    text = markdown.table(recorded, "maps_table_2 city=rome across=epsilon value=published,corrected digits=3")
    assert "*city: rome; norm: l2; measure: loss*" in text
    assert "| method | epsilon 0.5, published | epsilon 0.5, corrected | epsilon 1, published |" in text
    assert "| EM | 1 | 0.0617 | 1 | 0.123 |" in text
    assert "| A\\|B |" in text
    assert "Not run: 2 pieces" in text
    assert "Failed: 1 pieces" in text
    plain = markdown.table(recorded, "maps_table_2 city=london method=EM show=epsilon,corrected about=no")
    assert plain == "| epsilon | corrected |\n| --- | --- |\n| 0.5 | 0.1235 |\n| 1 | 0.2469 |\n"
    assert markdown.value(recorded, "maps_table_2 city=rome method=EM epsilon=0.50 digits=2") == "0.062"
    assert markdown.value(recorded, "maps_table_2 city=rome range=yes digits=2") == "0.062 to 0.12"
    assert markdown.value(recorded, "maps_table_2 city=rome value=published range=yes") == "1"
    with pytest.raises(InvalidInput, match="must leave one row"):
        markdown.value(recorded, "maps_table_2 city=rome")
    with pytest.raises(InvalidInput, match="no column 'town'"):
        markdown.table(recorded, "maps_table_2 town=rome")
    assert "have not run yet" in markdown.table(recorded, "maps_table_2 city=paris")
    path = recorded / "maps_table_2.csv"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if line[:4] not in ("# mi", "# fa")))
    with pytest.raises(InvalidInput, match="no row"):  # everything ran, so it is a mistake
        markdown.table(recorded, "maps_table_2 city=paris")


def test_a_table_that_was_not_run_says_how_it_is_run(recorded: Path) -> None:
    said = markdown.table(recorded, "maps_figure_7 city=rome")
    assert "`metricdp reproduce maps --table 'figure 7' --full` runs it" in said
    assert markdown.value(recorded, "maps_table_3 city=rome") == "(not run yet)"


def tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, PROJECT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(number: str) -> list[dict[str, Any]]:
    return [{"side": number, "measure": "loss", "corrected": 1.0}]


def test_a_finished_folder_is_recorded_with_what_made_it(tmp_path: Path) -> None:
    numbers = ("1", "figure 2")
    study = Study(
        "sides",
        "what sides cost",
        tuple(StudyTable(number, "Losses") for number in numbers),
        lambda full: [Piece(f"n={number[-1]}", number, listed, (number,)) for number in numbers],
    )
    reproduce(study, StudyRequest(folder=tmp_path / "out"), say=lambda line: None)
    paths = tool("results").record(tmp_path / "out", tmp_path / "results")
    assert [path.name for path in paths] == ["sides_figure_2.csv", "sides_table_1.csv"]
    assert paths[1].read_bytes() == (tmp_path / "out" / "table_1.csv").read_bytes()
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="no table"):
        tool("results").record(tmp_path / "empty", tmp_path / "results")


def test_numbers_within_sentences_are_written(monkeypatch: pytest.MonkeyPatch, recorded: Path) -> None:
    pages = tool("pages")
    monkeypatch.setattr(pages, "RESULTS", recorded)
    line = "It is <!-- number maps_table_2 city=rome method=EM epsilon=1 digits=3 -->9<!-- end --> km."
    assert pages.written(line).endswith("digits=3 -->0.123<!-- end --> km.")
    part = "<!-- results maps_table_2 city=rome across=epsilon: written by tools/pages.py -->\nold\n<!-- end -->"
    assert "| EM | 0.06173 | 0.1235 |" in pages.written(part)
