"""An app developer's way: choose, design for the cells of a city, export, draw on a phone; with their mistakes.

Every line that is printed here was read as that person reads it. The cells and visits are made from bundled streets.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import browsers
import metricdp as mdp
from metricdp import progress
from metricdp.places import bundled_roads, bundled_trips
from scripts import main

PROJECT = Path(__file__).parents[2]
MAP = "41.140,-8.630,41.160,-8.590"
DRAW = """
import { open } from "metricdp";
const mechanism = await open("phone.mdp");
const place = [Number(process.argv[2]), Number(process.argv[3])];
console.log(JSON.stringify(mechanism.sample(place).point));
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    trips = bundled_trips(trips=20, seed=3)
    places = np.stack([trips["lat"].to_numpy(), trips["lon"].to_numpy()], axis=1)
    # what a spreadsheet made of it: every visit a row, some of them twice
    Path("visits.csv").write_text("lat,lon\n" + "".join(f"{a:.6f},{b:.6f}\n" for a, b in places))
    crossings = np.asarray(bundled_roads(nodes=12).coordinates)
    listed = np.concatenate([crossings, crossings[:3]])
    Path("cells.csv").write_text("lat,lon\n" + "".join(f"{a!r},{b!r}\n" for a, b in listed.tolist()))
    Path("short.csv").write_text("n\n" + "1\n" * 7)
    return tmp_path


def said(line: str, code: int, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    capsys.readouterr()
    assert main(shlex.split(line)) == code, capsys.readouterr().err
    found = capsys.readouterr()
    return found.out, found.err


def test_from_a_question_to_a_report_on_a_phone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # in a script nobody can be asked
    _, error = said("choose", 2, capsys)
    assert "no terminal to ask at: give --secrets" in error
    asked = f"choose --secrets grid --places {MAP} --cell 600m --prior visits.csv --device phone"
    # the unit is missing
    _, error = said(f"{asked} --epsilon 3", 2, capsys)
    assert "epsilon 3 has no unit" in error
    assert "--epsilon 10/km" in error
    answer, notes = said(f"{asked} --epsilon 3/km", 0, capsys)
    assert answer.startswith("Take optimal on 24 cells: the least loss for these reports")
    assert "It must be public" in answer
    assert "sends no secret" in answer
    assert "rows of visits.csv at the nearest of 24 places" in notes
    lines = [line.strip() for line in answer.partition("Run:\n")[2].splitlines()]
    assert [line.split()[1] for line in lines] == ["design", "export", "inspect"]
    shown = ""
    for line in lines:
        shown, _ = said(line.removeprefix("metricdp "), 0, capsys)
    assert "checksum correct" in shown
    assert "In short: The slack alone allows a factor of" in shown
    made = mdp.load("phone.mdp")
    assert mdp.audit(made).verdict == "holds"
    assert made.certificate.gap < 0.05
    # on the phone
    node = browsers.node()
    if node is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    (here / "node_modules").mkdir()
    shutil.copytree(PROJECT / "js", here / "node_modules" / "metricdp", ignore=shutil.ignore_patterns("node_modules"))
    Path("draw.mjs").write_text(DRAW)
    latitude, longitude = np.asarray(made.inputs.coordinates)[5].tolist()
    done = subprocess.run(
        [node, "draw.mjs", repr(latitude), repr(longitude)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert np.abs(np.asarray(made.outputs.coordinates) - report).sum(axis=1).min() < 1e-9


def test_the_mistakes_on_the_way(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = "design --points cells.csv --epsilon 5/km --gap 0.01 -o cells.mdp"
    # repeated points, and a prior that was made for others
    _, error = said(f"{design} --prior short.csv", 2, capsys)
    assert "repeat a point: 3 of 15" in error
    assert "'short.csv' has 7 rows, and there are 12 places (or 15, one a row of the points)" in error
    assert not Path("cells.mdp").exists()
    _, error = said(f"{design} --loss squarred", 2, capsys)
    assert "Did you mean squared?" in error
    answer, notes = said(f"{design} --prior visits.csv", 0, capsys)
    assert "merged, which leaves 12 places" in notes
    assert "prior of 0" in notes or "sums to" in notes
    assert answer.startswith("cells.mdp: optimal on 12 points.")
    # a second design would replace the file
    _, error = said(design, 2, capsys)
    assert "--overwrite" in error


def test_ctrl_c_in_the_middle_is_kept_and_marked(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    heard = progress.report_step

    def saying(words: str) -> None:
        heard(words)
        if words == progress.SEARCHING:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)

    monkeypatch.setattr("metricdp.solvers.search.report_step", saying)
    try:
        answer, error = said("design --points cells.csv --epsilon 5/km --gap 1e-9 -o cells.mdp", 3, capsys)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "Ctrl-C: the search ends, and the best so far is audited and written." in error
    assert answer.startswith("INTERRUPTED: the search was ended before it was done.")
    shown, _ = said("inspect cells.mdp --json", 0, capsys)
    assert json.loads(shown)["certificate"]["interrupted"] is True
