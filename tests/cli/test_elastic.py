"""Elastic metrics and scales by category at the command line, and what people get wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import metricdp as mdp
from scripts import main

PLACES = [
    (41.15, -8.61, 40, "home"),
    (41.16, -8.62, 90, "clinic"),
    (41.14, -8.60, 10, "shop"),
    (41.17, -8.60, 30, "home"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("towns.csv").write_text("lat,lon,people,kind\n" + "".join(",".join(map(str, one)) + "\n" for one in PLACES))
    Path("kinds.csv").write_text("category,scale\nclinic,0.2\n")
    return tmp_path


def design(line: str) -> int:
    return main(f"design --builder exponential {line} -o out.mdp --overwrite".split())


def kilometres() -> np.ndarray:
    where = np.array([place[:2] for place in PLACES])
    return mdp.Haversine()(where[:, None], where[None])


def told(distribution: mdp.mechanisms.MatrixMechanism) -> np.ndarray:
    """The largest log ratio of every two rows."""
    logs = np.log(distribution.matrix / distribution.matrix.sum(axis=1, keepdims=True))
    return np.abs(logs[:, None] - logs[None]).max(axis=2)


@pytest.mark.parametrize("mass", ["column:people", "mass.csv", "counts.csv"])
def test_levels_grow_until_the_mass_of_a_column_is_inside(mass: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mass.csv").write_text("people\n40\n90\n10\n30\n")
    Path("counts.csv").write_text("lat,lon,people,area\n" + "".join(f"{a},{b},{c},1\n" for a, b, c, _ in PLACES))
    more = " --elastic-column people" if mass == "counts.csv" else ""
    assert design(f"--points towns.csv --elastic {mass}{more} --requirement 50 --epsilon 1/level") == 0
    said = capsys.readouterr()
    assert "Promise: epsilon 1 per level" in said.out
    assert "in km" in said.out  # the loss stays what it was
    assert "level 1 holds a mass of at least 50, level 2 170" in said.err
    distribution, weights, apart = mdp.load("out.mdp"), np.array([place[2] for place in PLACES]), kilometres()
    nearer = np.array([[weights[row < length].sum() for length in row] for row in apart])
    steps = np.minimum(np.sqrt(nearer / 50.0), np.sqrt(nearer / 50.0).T)
    for middle in range(4):
        steps = np.minimum(steps, steps[:, middle, None] + steps[middle])
    assert np.allclose(distribution.inputs.distances, steps, rtol=1e-9)
    assert np.all(told(distribution) <= steps * (1 + 1e-9))
    assert distribution.certificate.loss == pytest.approx((distribution.matrix * apart).sum() / 4, rel=1e-6)
    assert main(["audit", "out.mdp"]) == 0
    Path("table.csv").write_text("lat,lon\n41.15,-8.61\n41.17,-8.60\n")
    assert main(["perturb", "table.csv", "--mechanism", "out.mdp", "-o", "hidden.csv"]) == 0


def test_every_crossing_may_count_one_and_builders_are_compared_in_kilometres(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "--roads porto --nodes 20 --elastic one --requirement 3,12 --epsilon"
    assert design(f"{line} 1/level --loss squared") == 0
    assert "km²" in capsys.readouterr().out
    assert main(f"compare {line} 1/level --builders exponential,optimal -o table.csv".split()) == 0
    assert "the distance from the truth to the report, in km" in capsys.readouterr().out


def test_places_of_a_sensitive_category_are_told_apart_less(capsys: pytest.CaptureFixture[str]) -> None:
    Path("found.csv").write_text("lat,lon,category\n41.1601,-8.6201,clinic\n41.1602,-8.6201,school\n41.15,-8.61,shop\n")
    Path("rows.csv").write_text("category\nhome\nclinic\nshop\nhome\n")
    for categories in ("column:kind", "found.csv", "rows.csv"):
        assert design(f"--points towns.csv --epsilon 1/km --sensitivity kinds.csv --categories {categories}") == 0
        assert "1 of 4 places lie in regions of their own scale, from 0.2." in capsys.readouterr().err
        assert np.all(told(mdp.load("out.mdp"))[1] <= 0.2 * kilometres()[1] * (1 + 1e-9))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--elastic column:people --epsilon 1/level", "--elastic needs --requirement"),
        ("--requirement 50 --epsilon 1/km", "--requirement says more about --elastic"),
        ("--elastic-column people --epsilon 1/km", "--elastic-column says more about --elastic"),
        ("--elastic one --elastic-column people --requirement 2 --epsilon 1/level", "with --elastic one there is none"),
        ("--elastic column:folk --requirement 50 --epsilon 1/level", "no column 'folk'"),
        ("--elastic column:kind --requirement 50 --epsilon 1/level", "kind"),
        ("--elastic nowhere.csv --requirement 50 --epsilon 1/level", "nowhere.csv"),
        ("--elastic one --requirement many --epsilon 1/level", "one or two numbers above 0"),
        ("--elastic one --requirement 5,2 --epsilon 1/level", "ends at 2, below the 5 of level 1"),
        ("--elastic one --requirement 2 --epsilon 1/km", "unknown unit 'km'"),
        ("--elastic one --requirement 2 --policy nearest:2 --epsilon 1/hop", "a promise is in one of them"),
        ("--elastic one --requirement 2 --epsilon 1/level --sensitivity kinds.csv", "a promise is in one of them"),
        ("--epsilon 1/km --sensitivity kinds.csv", "the categories of places (--categories"),
        ("--epsilon 1/km --categories column:kind", "--categories says more about --sensitivity"),
        ("--epsilon 1/km --reach 2km", "--reach says more about --sensitivity"),
        ("--epsilon 1/km --sensitivity wrong.csv --categories column:kind", "no place has the category 'clinc'"),
        ("--epsilon 1/km --sensitivity kinds.csv --categories kinds.csv", "has 1 row, and there are 4 places"),
        ("--epsilon 1/km --sensitivity kinds.csv --categories towns.csv", "no column 'category'"),
    ],
)
def test_what_is_missing_or_misspelt_is_said(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.csv").write_text("category,scale\nclinc,0.2\n")
    assert design(f"--points towns.csv {line}") == 2
    assert words in capsys.readouterr().err
    assert not Path("out.mdp").exists()
