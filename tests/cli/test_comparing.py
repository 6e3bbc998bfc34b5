"""Comparisons: every bound belongs to the loss beside it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import metricdp as mdp
from metricdp import cli
from metricdp.cli import building, comparing

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


def losses(mechanism: mdp.MatrixMechanism, objective: str, prior: np.ndarray | None) -> float:
    apart = np.linalg.norm(POINTS[:, None] - POINTS[None], axis=2)
    rows = (mechanism.matrix / mechanism.matrix.sum(axis=1, keepdims=True) * apart).sum(axis=1)
    return float(rows.max() if objective == "worst" else (np.full(11, 1 / 11) if prior is None else prior) @ rows)


@pytest.mark.parametrize("objective", ["expected", "worst"])
@pytest.mark.parametrize("with_prior", [False, True])
def test_no_printed_bound_lies_above_an_optimum(here: Path, capsys, objective: str, with_prior: bool) -> None:
    names = "exponential,constopt,optimal,spanner,truncated_exponential"
    line = f"compare --points cells.csv --metric l2 --epsilon 0.5,2 --builders {names} --objective {objective} -o c.png"
    assert cli.main((line + (" --prior prior.csv" if with_prior else "")).split()) == 0
    said = capsys.readouterr().out
    assert {"expected": "the expected loss", "worst": "the worst loss"}[objective] in said
    with open("c.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    prior = PRIOR if with_prior else None
    for row in rows:
        best = optimum(float(row["epsilon"]), objective, prior)
        assert row["objective"] == objective
        assert float(row["lower_bound"]) <= best * (1 + 1e-7)
        assert float(row["loss"]) >= best * (1 - 1e-7)
        if row["builder"] == "optimal":
            assert float(row["loss"]) <= best * 1.002
            assert float(row["lower_bound"]) >= best * 0.998  # the bound of this objective is used
        if row["builder"] == "exponential":  # the loss beside the bound counts the same thing
            mechanism = mdp.exponential(mdp.FiniteSpace(POINTS, mdp.Lp(2)), float(row["epsilon"]))
            assert float(row["loss"]) == pytest.approx(losses(mechanism, objective, prior))


def test_the_bound_of_another_objective_is_not_used(here: Path) -> None:
    space = mdp.FiniteSpace(POINTS, mdp.Lp(2))
    worst = mdp.constopt(mdp.Problem(space, 2.0), nearest=3)
    assert worst.certificate.objective == "worst"
    question = comparing.Question(space, "expected", None, 1e-3)
    assert not question.bounds(worst, "constopt", 2.0)
    assert comparing.Question(space, "worst", None, 1e-3).bounds(worst, "constopt", 2.0)
    near = mdp.optimal(mdp.Problem(space, 2.0, radius=1.0))
    assert not question.bounds(near, "optimal", 2.0)  # another promise: only near pairs
    other = mdp.optimal(mdp.Problem(space, 1.0))
    assert not question.bounds(other, "optimal", 2.0)  # a stronger promise costs more
    assert question.bounds(other, "optimal", 1.0)


def test_design_does_not_call_the_worst_loss_an_average(here: Path, capsys) -> None:
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder constopt --nearest 3 -o c.mdp"
    assert cli.main(line.split()) == 0
    text = capsys.readouterr().out
    assert "worst loss of any secret" in text
    assert "On average a report lies" not in text
    assert "For the secret that fares worst" in text
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder optimal --objective worst -o w.mdp"
    assert cli.main(line.split()) == 0
    assert "fares worst" in capsys.readouterr().out
    assert cli.main(line.replace("worst -o w", "expected -o e").split()) == 0
    assert "On average a report lies" in capsys.readouterr().out
    assert cli.main(["inspect", "w.mdp"]) == 0
    assert "fares worst" in capsys.readouterr().out


def test_an_objective_is_refused_where_the_builder_has_none(here: Path, capsys) -> None:
    line = "design --points cells.csv --metric l2 --epsilon 1 --builder exponential --objective worst -o w.mdp"
    assert cli.main(line.split()) == 2
    assert "--objective is not an option of exponential" in capsys.readouterr().err
    assert building.builder_named("optimal").options.count("objective") == 1
