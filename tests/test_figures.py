"""Figures are files: the page is what the newest lines say."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SCRIPT = PROJECT / "benchmarks" / "figures.py"
MEASURING = sorted(
    path
    for path in SCRIPT.parent.glob("*.py")
    if path != SCRIPT and "__main__" in path.read_text(encoding="utf-8")  # the others are imported, never run
)
# all in one process, since most of the time goes into imports; each begins with the path that a script begins with
HELP = """
import contextlib, io, json, runpy, sys
found, path = {}, sys.path[1:]
place, *scripts = sys.argv[1:]
for script in scripts:
    sys.argv, sys.path[:], text = [script, "--help"], [place, *path], io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as stop:
            found[script] = [stop.code, text.getvalue()]
print(json.dumps(found))
"""


def test_the_page_of_figures_is_written_from_the_results():
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, "docs/figures.md is out of date: run python benchmarks/figures.py"


def test_every_line_of_the_results_can_be_read():
    for path in (PROJECT / "benchmarks" / "results").glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert {"what", "asked", "measured", "values", "date", "version"} <= set(json.loads(line)), path.name


def test_a_measurement_is_appended_with_its_machine(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PROJECT / "benchmarks"))
    import record

    monkeypatch.setattr(record, "RESULTS", tmp_path)
    record.record("some", "one thing", measured="2 s", asked="3 s", seconds=2.0)
    record.record("some", "one thing", measured="1 s", asked="3 s", seconds=1.0)
    first, second = (json.loads(line) for line in (tmp_path / "some.jsonl").read_text().splitlines())
    assert (first["values"], second["values"]) == ({"seconds": 2.0}, {"seconds": 1.0})
    assert second["machine"]["cores"] >= 1


def test_what_is_tried_leaves_nothing_behind_but_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import record

    monkeypatch.setattr(record, "RESULTS", tmp_path / "results")
    tried = record.recorder(record.arguments("").parse_args([]).record)
    tried("some", "one thing", measured="2 s", seconds=2.0)
    with pytest.raises(TypeError):
        tried("some", "one thing", measured="2 s", seconds=object())
    assert not (tmp_path / "results").exists()
    assert record.recorder(record.arguments("").parse_args(["--record"]).record) is record.record


def test_a_value_that_is_infinite_is_said_in_words_only(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import record

    monkeypatch.setattr(record, "RESULTS", tmp_path)
    record.record("some", "one thing", measured="infinite", epsilon=float("inf"), share=0.5)
    assert json.loads((tmp_path / "some.jsonl").read_text())["values"] == {"share": 0.5}


def _records(tree: ast.Module) -> bool:
    """Whether a script takes `record` or `recorder` from record.py and calls it."""
    taken = {
        name.asname or name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "record"
        for name in node.names
    }
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return bool(taken & called & {"record", "recorder"})


@pytest.mark.parametrize("script", MEASURING, ids=lambda path: path.stem)
def test_every_script_that_measures_records(script):
    assert _records(ast.parse(script.read_text(encoding="utf-8"))), f"{script.name} does not call `record`"


def test_every_script_that_measures_says_how_to_run_it():
    command = [sys.executable, "-c", HELP, str(SCRIPT.parent), *map(str, MEASURING)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for script in MEASURING:
        code, text = found.get(str(script), (None, ""))
        assert code == 0, script.name
        assert "--record" in text, script.name
