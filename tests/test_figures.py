"""Figures are files: the page is what the newest lines say."""

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]
SCRIPT = PROJECT / "benchmarks" / "figures.py"


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
