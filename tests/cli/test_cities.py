"""Whole cities at the command line: roads in, a mechanism of sparse rows out; and what people get wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import metricdp as mdp
from metricdp.cli import terminal
from metricdp.design import BUILDERS
from metricdp.specs import build
from scripts import main

SIDE, STREET = 14, 0.1  # crossings a side, kilometres from one to the next
NEAR = "--roads town --epsilon 10/km --window 0.8km"


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a town of square blocks, as two tables."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "town").mkdir()
    (tmp_path / "empty").mkdir()
    write_town(tmp_path / "town")
    return tmp_path


def write_town(folder: Path) -> None:
    row, column = np.divmod(np.arange(SIDE * SIDE), SIDE)
    places = {"lat": 45.0 + row * STREET / 111.2, "lon": 9.0 + column * STREET / 111.2 / np.cos(np.radians(45.0))}
    right, down = np.flatnonzero(column < SIDE - 1), np.flatnonzero(row < SIDE - 1)
    ends = np.concatenate([np.stack([right, right + 1], 1), np.stack([down, down + SIDE], 1)])
    streets = {"u": ends[:, 0], "v": ends[:, 1], "length_m": np.full(len(ends), 1000 * STREET)}
    pc.write_csv(pa.table(places), folder / "nodes.csv")
    pc.write_csv(pa.table(streets), folder / "edges.csv")


def run(line: str) -> int:
    return main(line.split())


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a line that must fail with one sentence, nothing written."""
    capsys.readouterr()
    assert run(line) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert not Path("out.mdp").exists()
    return said.err


def test_a_city_is_designed_audited_protected_and_cut_into_districts(
    town: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"design {NEAR} --gap 0.06 -o town.mdp") == 0
    said = capsys.readouterr().out
    assert said.startswith(f"town.mdp: optimal on {SIDE * SIDE} crossings.\n")
    assert "expected loss at most" in said
    assert "from one background" in said
    assert "On average a report lies at most" in said
    made = mdp.load("town.mdp")
    assert isinstance(made, mdp.mechanisms.LocalMechanism)
    assert made.certificate.at_most
    assert made.certificate.gap <= 0.06
    assert made.guarantee.epsilon == 10.0

    # every line it suggests works as it stands
    row, column = np.array([0, 5, 13]), np.array([1, 6, 13])
    places = np.asarray(made.inputs.coordinates)[row * SIDE + column]
    pc.write_csv(pa.table({"lat": places[:, 0], "lon": places[:, 1]}), "table.csv")
    lines = [line.strip().partition("   ")[0] for line in said.splitlines() if line.startswith("  metricdp ")]
    assert [line.split()[1] for line in lines] == ["audit", "perturb", "export"]
    for line in lines:
        assert run(line.removeprefix("metricdp ").replace("3km", "300m")) == 0
    assert "holds" in capsys.readouterr().out
    reports = pc.read_csv("protected.csv")
    for place in zip(reports["lat"].to_pylist(), reports["lon"].to_pylist(), strict=True):
        assert np.abs(np.asarray(made.inputs.coordinates) - place).sum(axis=1).min() < 1e-9
    district = mdp.load("district.mdp")
    assert isinstance(district, mdp.mechanisms.LocalMechanism)
    assert 1 < len(district.inputs) < len(made.inputs)

    assert run("inspect town.mdp") == 0
    assert "expected loss at most" in capsys.readouterr().out  # a file says so too


def test_crossings_around_the_centre_are_taken(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("design --roads town --nodes 20 --epsilon 10/km --gap 0.01 -o part.mdp") == 0
    assert "optimal on 20 crossings." in capsys.readouterr().out
    part = mdp.load("part.mdp")
    assert isinstance(part, mdp.mechanisms.MatrixMechanism)  # few secrets: no windows
    middle = np.array([SIDE - 1, SIDE - 1]) / 2 * STREET / 111.2
    away = (np.asarray(part.inputs.coordinates) - [45.0, 9.0]) * [1.0, np.cos(np.radians(45.0))] - middle
    assert np.linalg.norm(away, axis=1).max() < 4 * STREET / 111.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--roads town --epsilon 10", "has no unit"),
        ("--roads town --epsilon 10/km --window 0.8", "write 0.8km or 800m"),
        ("--roads empty --epsilon 10/km", r"tables nodes \(lat, lon\) and edges \(u, v, length_m\)"),
        ("--roads nowhere --epsilon 10/km", "a .graphml file, or one of the cities"),
        ("--roads town.graphml --epsilon 10/km", "does not exist"),
        ("--roads town --points town/nodes.csv --epsilon 10/km", "either --points .* or --roads"),
        ("--epsilon 10/km", "either --points .* or --roads"),
        ("--roads town --metric l2 --epsilon 10/km", "--metric belongs to --points"),
        ("--points town/nodes.csv --nodes 5 --epsilon 10/km", "belongs to --roads"),
        ("--roads town --nodes 1 --epsilon 10/km", "at least 2"),
        (f"{NEAR} --builder exponential", "--window is not an option of exponential"),
        (f"{NEAR} --objective worst", "worst loss"),
        (f"{NEAR} --solver interior", "FirstOrder"),
        (f"{NEAR} --solver simplex", "must be one of auto"),
        ("--roads town --epsilon 10/km --window 0.05km --builder nothing", "nothing"),
    ],
)
def test_mistakes_get_one_sentence(town: Path, options: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.search(message, refused(f"design {options} -o out.mdp", capsys))


def test_a_builder_of_matrices_says_so_before_it_measures_a_city() -> None:
    count = 20_001
    line = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    roads = mdp.FiniteSpace(np.arange(count), mdp.ShortestPath(line, np.ones(count - 1), count))
    for builder in BUILDERS:
        if builder.dense and builder.on_places:
            with pytest.raises(
                mdp.MetricdpError, match=r"at most 20,000 secrets, and here are 20,001.*--builder optimal"
            ):
                build(builder.name, roads, 1.0)


def test_compare_takes_crossings_of_a_town(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare --roads town --nodes 12 --epsilon 5/km,10/km --gap 0.01 -o out.png") == 0
    assert "optimal" in capsys.readouterr().out


def test_progress_says_both_bounds_and_the_gap() -> None:
    assert terminal.bounds_text(0.1157, 0.1187, "km") == "loss 119 m, none with these reports below 115 m, gap 2.53 %"
    assert terminal.bounds_text(0.1157, np.inf, "km") == "none with these reports below 115 m"
    assert terminal.bounds_text(-np.inf, np.inf, "km") == "no bounds yet"


def test_a_search_that_is_interrupted_writes_the_best_so_far(town: Path) -> None:
    words = f"design {NEAR} --gap 1e-9 -o best.mdp"
    code = "import sys; from metricdp import cli; sys.exit(cli.main(sys.argv[1:]))"
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words.split()], stdout=subprocess.PIPE, stderr=follower, text=True
    )
    os.close(follower)
    shown = b""
    while b"gap" not in shown:
        shown += os.read(leader, 10_000)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=100)
    os.close(leader)
    assert process.returncode == 3
    assert said.startswith("INTERRUPTED: ")
    found = mdp.load("best.mdp")
    assert mdp.audit(found).verdict == "holds"
    assert b"none with these reports below" in shown
