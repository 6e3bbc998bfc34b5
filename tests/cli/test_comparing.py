"""Comparisons: every bound belongs to the loss beside it."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import metricdp as mdp
from metricdp.design import BUILDERS
from scripts import main

pytest.importorskip("matplotlib")

POINTS = np.round(np.random.default_rng(3).uniform(0, 3, size=(11, 2)), 2)
PRIOR = np.array([0.9, *np.full(10, 0.01)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("cells.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in POINTS))
    Path("prior.csv").write_text("p\n" + "".join(f"{p}\n" for p in PRIOR))
    return tmp_path


def optimum(epsilon: float, objective: str, prior: np.ndarray | None) -> float:
    """The least loss of any mechanism, by a linear program over every ratio, written out here."""
    size = len(POINTS)
    apart = np.linalg.norm(POINTS[:, None] - POINTS[None], axis=2)
    weights = np.full(size, 1 / size) if prior is None else prior
    rows, limits = [], []
    for i in range(size):
        for j in range(size):
            for k in range(size):
                if i != j:
                    row = np.zeros(size * size + 1)
                    row[i * size + k], row[j * size + k] = 1.0, -np.exp(epsilon * apart[i, j])
                    rows.append(row)
                    limits.append(0.0)
    if objective == "worst":
        for i in range(size):
            row = np.zeros(size * size + 1)
            row[i * size : (i + 1) * size], row[-1] = apart[i], -1.0
            rows.append(row)
            limits.append(0.0)
        cost = np.concatenate([np.zeros(size * size), [1.0]])
    else:
        cost = np.concatenate([(weights[:, None] * apart).ravel(), [0.0]])
    sums = np.zeros((size, size * size + 1))
    for i in range(size):
        sums[i, i * size : (i + 1) * size] = 1.0
    return float(linprog(cost, np.array(rows), limits, sums, np.ones(size), bounds=(0, None)).fun)


def losses(mechanism: mdp.mechanisms.MatrixMechanism, objective: str, prior: np.ndarray | None) -> float:
    apart = np.linalg.norm(POINTS[:, None] - POINTS[None], axis=2)
    rows = (mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True) * apart).sum(axis=1)
    return float(rows.max() if objective == "worst" else (np.full(11, 1 / 11) if prior is None else prior) @ rows)


@pytest.mark.parametrize("objective", ["expected", "worst"])
@pytest.mark.parametrize("with_prior", [False, True])
def test_no_printed_bound_lies_above_an_optimum(here: Path, capsys, objective: str, with_prior: bool) -> None:
    names = "exponential,constopt,optimal,spanner,truncated_exponential"
    line = f"compare --points cells.csv --metric l2 --epsilon 0.5,2 --builders {names} --objective {objective} -o c.png"
    assert main((line + (" --prior prior.csv" if with_prior else "")).split()) == 0
    said = capsys.readouterr().out
    assert {"expected": "Expected loss", "worst": "Worst loss of any secret"}[objective] in said
    rows = read("c.csv")
    assert len(rows) == 10
    prior = PRIOR if with_prior else None
    for row in rows:
        best = optimum(float(row["epsilon"]), objective, prior)
        assert row["objective"] == objective
        assert float(row["lower_bound"]) <= best * (1 + 1e-7)
        assert float(row["loss"]) >= best * (1 - 1e-7)
        assert float(row["above_bound"]) == pytest.approx(float(row["loss"]) / float(row["lower_bound"]) - 1)
        if row["builder"] == "optimal":
            assert float(row["loss"]) <= best * 1.002
            assert float(row["lower_bound"]) >= best * 0.998  # the bound of this objective is used
        if row["builder"] == "exponential":  # the loss beside the bound counts the same thing
            mechanism = mdp.exponential(mdp.FiniteSpace(POINTS, mdp.Lp(2)), float(row["epsilon"]))
            assert float(row["loss"]) == pytest.approx(losses(mechanism, objective, prior))


def read(path: str) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_all_that_fit_are_compared_by_several_losses_and_the_others_are_named(here: Path, capsys) -> None:
    np.savetxt("own.csv", 1.0 - np.eye(len(POINTS)), delimiter=",")
    line = "compare --points cells.csv --epsilon 1 --loss squared,own.csv --objective expected --draws 3000"
    assert main([*line.split(), "--seconds", "5", "--gap", "0.02", "-o", "c.html", "-o", "c.json"]) == 0
    out, err = capsys.readouterr()
    record = json.loads(Path("c.json").read_text())
    assert (record["format"], record["version"], record["places"]) == ("metricdp.compare", 1, 11)
    built = {row["builder"] for row in record["rows"]}
    assert built >= {
        "exponential",
        "optimal",
        "dictionary",
        "remapped",
        "laplace",
        "spanner",
        "constopt",
        "interpolated",
    }
    assert {(row["measure"], row["objective"]) for row in record["rows"]} == {
        ("squared", "expected"),
        ("own", "expected"),
    }
    for name in ("product", "from_matrix", "contextual", "quantised", "weighted_exponential"):
        assert f"Left out: {name}: " in err
    assert record["lower_bound_says"] == (
        "no mechanism with this guarantee that reports these places can go below lower_bound"
        if record["unit"]
        else "no mechanism with this guarantee that gives these reports can go below lower_bound"
    )
    for row in record["rows"]:
        assert row["low"] <= row["loss"] <= row["high"]
        assert (row["draws"] > 0) == (row["builder"] == "laplace")
        assert row["lower_bound"] is None or row["lower_bound"] <= row["high"] + 1e-12
        if row["builder"] == "optimal":
            assert row["gap"] <= 0.03
    assert "±" in out
    page = Path("c.html").read_text()
    assert "http" not in page
    assert "Not compared, and why" in page
    assert not Path("c.html.unfinished").exists()
    assert len(read("c.csv")) == len(record["rows"])


def test_endings_objectives_and_limits_are_checked_before_any_work(here: Path, capsys) -> None:
    start = "compare --points cells.csv --epsilon 1"
    for more, why in (
        ("-o c.txt", "must be named .html"),
        ("-o c.csv --objective best", "must be expected, worst"),
        ("-o c.csv --loss guess", "must be distance, squared, ground, time"),
        ("-o c.csv --loss time", "belongs to --roads"),
        ("-o c.csv --speed 30", "belongs to --loss time"),
        ("-o c.csv --seconds 0", "above 0"),
        ("-o c.csv --builders optimall", "optimal"),
        ("-o cells.csv", "it is the file that is read"),
    ):
        assert main([*start.split(), *more.split()]) == 2
        assert why in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["cells.csv", "prior.csv"]


def test_design_does_not_call_the_worst_loss_an_average(here: Path, capsys) -> None:
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder constopt --nearest 3 -o c.mdp"
    assert main(line.split()) == 0
    text = capsys.readouterr().out
    assert "worst loss of any secret" in text
    assert "On average a report lies" not in text
    assert "For the secret with the largest loss" in text
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder optimal --objective worst -o w.mdp"
    assert main(line.split()) == 0
    assert "with the largest loss" in capsys.readouterr().out
    assert main(line.replace("worst -o w", "expected -o e").split()) == 0
    assert "On average a report lies" in capsys.readouterr().out
    assert main(["inspect", "w.mdp"]) == 0
    assert "with the largest loss" in capsys.readouterr().out


def test_an_objective_is_refused_where_the_builder_has_none(here: Path, capsys) -> None:
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder exponential --objective worst -o w.mdp"
    assert main(line.split()) == 2
    assert "--objective is not an option of exponential" in capsys.readouterr().err
    assert BUILDERS.named("optimal").options.count("objective") == 1


def test_a_page_named_like_the_points_does_not_replace_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("cells.csv").read_text()
    words = ["compare", "--points", "cells.csv", "--epsilon", "1", "--builders", "exponential", "-o", "cells.html"]
    assert main(words) == 0
    assert Path("cells.html").exists()
    assert "cells.csv is there and stays as it is" in capsys.readouterr().err
    assert main([*words, "--overwrite"]) == 0
    assert Path("cells.csv").read_text() == before
    assert main([*words, "--overwrite", "-o", "cells.csv"]) == 2  # asked for by name: the source is never replaced
    assert Path("cells.csv").read_text() == before


def test_cells_of_a_map_are_not_compared_as_if_positions_needed_no_snapping(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "compare --grid 41.0,-8.8,41.1,-8.7 --cell {} --epsilon 2/km --builders exponential,laplace -o {}"
    assert main(line.format("4km", "wide.html").split()) == 0
    printed = capsys.readouterr().out
    page = Path("wide.html").read_text(encoding="utf-8")
    slack = 2.0 * 2.0 * math.hypot(2.0, 2.0)  # epsilon times twice half a diagonal
    said = float(re.search(r"adds a slack of ([0-9.]+) at epsilon 2", printed)[1])
    assert slack <= said <= 1.01 * slack
    for shown in (printed, page):
        assert "Noise on coordinates needs no snapping" in shown
        assert "Warning: moving positions to places alone allows a factor of" in shown
    own = "compare --points cells.csv --metric l2 --epsilon 1 --builders exponential -o own.html"
    assert main(own.split()) == 0
    assert "snapping" not in capsys.readouterr().out
