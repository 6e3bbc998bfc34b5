"""The distribution as a whole: what it declares, how its pages call it, and that it knows public names only."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path

import pytest

import metricdp_papers
from metricdp import cli
from metricdp_papers import STUDIES
from scripts import command, script

PROJECT = Path(__file__).parents[2]
SOURCE = Path(metricdp_papers.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))


def test_every_study_is_declared() -> None:
    assert set(STUDIES.names) == {path.parent.name for path in SOURCE.glob("*/study.py")}
    for study in STUDIES:
        assert study.about


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_studies_use_public_names_only(path: Path) -> None:
    """`import metricdp` and `from metricdp.<package> import name`, where the package lists the name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not [one.name for one in node.names if one.name.startswith("metricdp.")]
        if not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] != "metricdp":
            continue
        package = importlib.import_module(node.module)
        assert node.module.count(".") <= 1, f"{node.module} is inside a package"
        for name in (one.name for one in node.names):
            listed = getattr(package, "__all__", dir(package))
            assert not name.startswith("_"), name
            assert name in listed or node.module == "metricdp", f"{node.module} does not list {name}"


def test_without_the_distribution_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("metricdp.cli.learn.find_spec", lambda name: None)
    for words in (["reproduce"], ["reproduce", "aipo"], ["reproduce", "aipo", "--help"]):
        assert cli.main(words) == 2
        assert "pip install metricdp-papers" in capsys.readouterr().err


def test_a_study_from_outside_runs(tmp_path: Path) -> None:
    plugin = f"--plugin {PROJECT / 'examples' / 'extend' / 'study.py'}"
    assert "what privacy costs on grids that grow" in command(f"reproduce {plugin}".split(), tmp_path)
    command(f"reproduce grids --folder out {plugin}".split(), tmp_path)
    rows = (tmp_path / "out" / "table_1.csv").read_text().splitlines()
    assert rows[0] == "# command: metricdp reproduce grids --table 1"
    assert len([row for row in rows if row.startswith(("2,", "3,"))]) == 4
    assert "Loss on growing grids" in (tmp_path / "out" / "index.html").read_text()


def test_no_study_is_known_that_was_not_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["reproduce", "grids"]) == 2
    assert "unknown study 'grids'" in capsys.readouterr().err


def test_the_python_of_the_trajectory_page_runs(tmp_path: Path) -> None:
    (block,) = re.findall(
        r"```python\n(.*?)```", (PROJECT / "papers" / "docs" / "contextual.md").read_text(encoding="utf-8"), re.DOTALL
    )
    before = """
import pyarrow.parquet, numpy
from metricdp_papers.contextual.cities import Layout, simulated_city
from metricdp.places import bundled_trips
pyarrow.parquet.write_table(bundled_trips(trips=40), "points.parquet")
city = simulated_city(Layout(5, 0.35, 30.0), trips=40)
places, allowed, detours = city.places, city.allowed, city.detours
from metricdp.mobility import histories_of
domain = histories_of(allowed, 2)
sizes = 1 + domain[:, 0] % 2
now, before, earlier = domain[3]
"""
    after = "print(mdp.audit(mechanism), len(report))"
    assert script(before + block + after, tmp_path).startswith("holds")


def test_studies_are_called_as_they_can_be() -> None:
    """Every line with `metricdp reproduce` names a study, options that all of them take, and tables it has."""
    known = {"--table", "--full", "--folder", "--jobs", "--minutes", "--help", "--plugin"}
    found = 0
    pages = [page for folder in ("docs", "papers") for page in (PROJECT / folder).rglob("*.md")]
    for page in (*pages, PROJECT / "README.md", PROJECT / "CHANGELOG.md"):
        for line in re.findall(r"metricdp reproduce ([^`#\n]*)", page.read_text(encoding="utf-8")):
            if "OPTIONS" in line:
                continue  # the usage line of the command's own help
            words = shlex.split(line.replace("[", " ").replace("]", " "))
            if not words or words[0].startswith("-") or words[0] in ("NAME", "grids"):
                continue
            found += 1
            study = STUDIES.named(words[0].rstrip(".,:;)|"))
            options = [word.rstrip(".,:;)") for word in words[1:] if word.startswith("--")]
            assert set(options) <= known, f"{page.name}: {line}"
            tables = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--table"]
            assert study.whole().select_tables([table for table in tables if table != "N"])
    assert found > 20
