"""An auditor's way: somebody else's matrix, mechanism file, samples and sampler; with their mistakes.

Every line that is printed here was read as that person reads it.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from metricdp.places import bundled_roads
from scripts import main

SAMPLER = """
import sys
import numpy as np

rng = np.random.default_rng(5)
for line in sys.stdin:
    x = float(line)
    print(round(x + rng.laplace(scale=1 / {rate}), 2), flush=True)
"""


def spreadsheet(path: str, rows: np.ndarray, header: str | None = None) -> None:
    """Write what a spreadsheet exports: semicolons, decimal commas, a mark in front, Windows line ends."""
    lines = [] if header is None else [header]
    lines += [";".join(f"{x:.12f}".replace(".", ",") for x in row) for row in rows]
    Path(path).write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.chdir(tmp_path)
    places = np.asarray(bundled_roads(nodes=6).coordinates)
    made = mdp.exponential(mdp.FiniteSpace(places, mdp.Haversine()), 6.0)
    matrix = np.array(made.matrix)
    spreadsheet("places.csv", places, "Latitude;Longitude")
    spreadsheet("five.csv", places[:5], "Latitude;Longitude")
    spreadsheet("matrix.csv", matrix)
    silent = matrix.copy()
    silent[2] = np.eye(6)[2]  # one secret that always reports itself
    spreadsheet("silent.csv", silent)
    mdp.save(made, "theirs.mdp")
    rng = np.random.default_rng(3)
    secrets = rng.integers(0, 2, 6000).astype(float)
    reports = np.round(secrets + rng.laplace(scale=1 / 3.0, size=6000), 2)
    rows = "".join(f"{x};{y}\n".replace(".", ",") for x, y in zip(secrets, reports, strict=True))
    Path("samples.csv").write_text(f"Secret;Report\n{rows}")
    Path("theirs.py").write_text(SAMPLER.format(rate=3))
    Path("line.csv").write_text("x\n0\n1\n")
    return places


def said(line: str, code: int, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    capsys.readouterr()
    assert main(shlex.split(line)) == code, capsys.readouterr()
    found = capsys.readouterr()
    return found.out, found.err


def test_a_matrix_from_a_spreadsheet(here: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    # the name is wrong, the places are forgotten, the unit is forgotten
    _, error = said("audit matrx.csv", 2, capsys)
    assert "matrx.csv" in error
    assert "judged with its secrets" not in error
    _, error = said("audit matrix.csv --metric haversine --epsilon 6/km", 2, capsys)
    assert "--points points.csv" in error
    _, error = said("audit matrix.csv --points places.csv --metric haversine --epsilon 6", 2, capsys)
    assert "epsilon 6 has no unit" in error
    # a place too few: the first line of the matrix is a law and no header, so this is an error and no verdict
    _, error = said("audit matrix.csv --points five.csv --metric haversine --epsilon 6/km", 2, capsys)
    assert "'matrix.csv' has 6 rows and 'five.csv' has 5 points: one row belongs to one secret" in error
    answer, _ = said("audit matrix.csv --points places.csv --metric haversine --epsilon 6/km", 0, capsys)
    assert answer.startswith("holds: epsilon 5.99999")
    assert "by proof, exact, 15 pairs" in answer
    answer, _ = said("audit matrix.csv --points places.csv --metric haversine --epsilon 5.9/km", 1, capsys)
    assert answer.startswith("violated: epsilon 5.99999")
    answer, _ = said("audit silent.csv --points places.csv --metric haversine --epsilon 6/km --json", 1, capsys)
    found = json.loads(answer)
    assert found["verdict"] == "violated"
    assert 2 in (found["witness"]["secret"], found["witness"]["other"])


def test_a_mechanism_file_is_judged_whatever_it_says(here: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    answer, _ = said("audit theirs.mdp", 0, capsys)
    assert answer.startswith("holds")
    _, error = said("audit theirs.mdp --points places.csv", 2, capsys)
    assert "it brings its own secrets" in error
    data = bytearray(Path("theirs.mdp").read_bytes())
    data[-5] ^= 1
    Path("altered.mdp").write_bytes(data)
    _, error = said("audit altered.mdp", 2, capsys)
    assert "altered.mdp" in error


def test_recorded_samples_and_a_sampler_that_is_asked(here: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    # noise of rate 3 under a claim of 1: refuted by what was recorded, and by asking
    _, error = said("audit samples.csv --metric l1 --epsilon 1", 2, capsys)
    assert "--secret x,y --report u,v" in error
    _, error = said("audit samples.csv --secret Secret --report Reprot --metric l1 --epsilon 1", 2, capsys)
    assert "Reprot" in error
    answer, _ = said("audit samples.csv --secret Secret --report Report --metric l1 --epsilon 1", 1, capsys)
    assert answer.startswith("violated")
    answer, _ = said("audit samples.csv --secret Secret --report Report --metric l1 --epsilon 4", 2, capsys)
    assert answer.startswith("not refuted")
    command = f"{sys.executable} theirs.py"
    answer, _ = said(f"audit --command '{command}' --secrets line.csv --metric l1 --epsilon 1 --draws 4000", 1, capsys)
    assert answer.startswith("violated")
    _, error = said("audit --command 'python nothing.py' --secrets line.csv --metric l1 --epsilon 1", 2, capsys)
    assert error
