"""What `design` and `inspect` say of positions that are put on cells before anything is drawn."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import metricdp as mdp
from metricdp.artifacts import load
from metricdp.errors import InvalidInput
from scripts import main

WIDE = "design --grid 41.0,-8.8,41.2,-8.5 --cell 4km --epsilon 2/km --builder exponential -o cells.mdp"


def run(line: str) -> int:
    return main(line.split())


def test_tables_of_cells_state_factors_and_losses_of_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(WIDE) == 0
    designed = capsys.readouterr().out
    made = load("cells.mdp")
    # two neighbours across a border of two cells, as they are really told apart
    distribution = made.matrix / made.matrix.sum(axis=1, keepdims=True)
    size = len(distribution)
    near = [(i, j) for i in range(size) for j in range(size) if 0 < made.inputs.distances[i, j] < 6.0]
    truth = max(float((distribution[i] / distribution[j]).max()) for i, j in near)
    snap = float(re.search(r"--snap ([\d.]+)km", designed)[1])
    assert run("inspect cells.mdp") == 0
    for said in (designed, capsys.readouterr().out):
        factors = [float(row) for row in re.findall(r"apart: factor +(\d\S*) ", said)]
        assert factors, said
        assert min(factors) >= truth  # it was 1.05
        assert "Warning: moving positions to places alone allows a factor of" in said
        assert f"{100 * float(distribution.diagonal().mean()):.4g} % of the time" in said
        assert "farther" in said
    # perturb takes the snap that is printed for every position inside the map
    corners = np.array([[41.0001, -8.7999], [41.1999, -8.5001], [41.0001, -8.5001], [41.1, -8.65]])
    assert made.inputs.admit(corners, snap=snap)[0].all()
    assert run(f"{WIDE} --overwrite --json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["positions"]["slack"] == pytest.approx(4 * made.inputs.cell_radius)
    assert "slack alone" in told["in_short"]


def test_a_snap_says_its_unit_and_one_of_programs_is_in_the_unit_of_the_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trips.csv").write_text("lat,lon\n41.01,-8.79\n41.05,-8.71\n")
    line = "design --grid 41.0,-8.8,41.1,-8.7 --cell 1km --epsilon 2/km --builder exponential -o cells.mdp"
    assert run(line) == 0
    capsys.readouterr()
    assert run("perturb trips.csv --mechanism cells.mdp --snap 800 -o out.csv") == 2
    words = "--snap 800 has no unit, and distances here are in km: write 800m or 0.8km."
    assert words in capsys.readouterr().err
    assert not Path("out.csv").exists()
    made, table = load("cells.mdp"), pa.table({"lat": [41.01, 41.05], "lon": [-8.79, -8.71]})
    with pytest.raises(InvalidInput, match=re.escape(words)):
        mdp.perturb(table, made, snap="800")
    for snap in (0.8, "800m", "0.8km"):
        assert mdp.tables.task_for(["lat", "lon"], made, snap=snap).snap == 0.8
    assert run("perturb trips.csv --mechanism cells.mdp --snap 800m -o out.csv") == 0
    product = mdp.product(mdp.laplace(mdp.Lp(2), 1.0), made)
    four = table.append_column("x", [[0.0, 1.0]]).append_column("y", [[0.0, 1.0]]).select(["x", "y", "lat", "lon"])
    with pytest.raises(InvalidInput, match=re.escape(words)):  # the part with places has the unit
        mdp.perturb(four, product, columns=["x", "y", "lat", "lon"], snap="800")


def test_a_wish_on_cells_is_kept_for_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "design --grid 41.0,-8.8,41.1,-8.7 --cell 1km --protect 2x@200m --builder exponential -o cells.mdp"
    assert run(line) == 0
    made = load("cells.mdp")
    reached = 0.2 + 2 * made.inputs.cell_radius
    assert 0.999 * math.log(2) < made.guarantee.epsilon * reached <= math.log(2)
    assert "Guaranteed: at most a factor of 2 there, slack included" in capsys.readouterr().out


def test_tables_of_listed_points_begin_where_two_of_them_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("points.csv").write_text("x,y\n0,0\n3,0\n3,4\n9,9\n")
    assert run("design --points points.csv --metric l2 --epsilon 2 --builder exponential -o points.mdp") == 0
    said = capsys.readouterr().out
    assert min(float(row) for row in re.findall(r"(\S+) apart: factor", said)) == 3
    assert "No two of them are closer than 3" in said
    assert "A snap of 0.1733 alone allows a factor of two" in said


def test_finer_reports_are_offered_and_lose_less_under_the_same_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space = mdp.grid((6, 6), spacing=0.2)
    Path("grid.csv").write_text("x,y\n" + "".join(f"{x:.17g},{y:.17g}\n" for x, y in space.points))
    line = f"design --points grid.csv --metric l2 --epsilon {mdp.epsilon_for(2, 0.4)!r} --builder optimal"
    assert run(f"{line} -o same.mdp") == 0
    said = capsys.readouterr().out
    assert "no mechanism with this guarantee that gives these reports can go below" in said
    assert run("inspect same.mdp --json") == 0
    stated = json.loads(capsys.readouterr().out)["certificate"]["lower_bound_says"]
    assert stated == "no mechanism with this guarantee that gives these reports can go below lower_bound"
    assert run(f"{line} --reports finer -o finer.mdp") == 0
    same, finer = load("same.mdp"), load("finer.mdp")
    assert len(finer.outputs) == 121
    assert finer.certificate.loss < 0.41059 < 0.41381 < same.certificate.lower_bound
    assert mdp.audit(finer).verdict == "holds"
    assert finer.guarantee.epsilon == same.guarantee.epsilon


def test_tables_of_roads_speak_of_crossings_and_not_of_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("design --roads porto --nodes 30 --epsilon 10/km --builder exponential -o porto.mdp") == 0
    designed = capsys.readouterr().out
    assert run("inspect porto.mdp") == 0
    for said in (designed, capsys.readouterr().out):
        assert "between listed places along the roads, not between positions" in said
        assert "may then move to places far apart along the roads" in said


def test_the_share_of_places_reported_themselves_is_that_of_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space = mdp.grid((2, 2))
    others = mdp.FiniteSpace(space.points + 0.25, mdp.Lp(2))  # as many reports, and none of them a place
    finer = mdp.optimal(mdp.Problem(space, 1.0, outputs="finer"))
    mdp.save(mdp.optimal(mdp.Problem(space, 1.0, outputs=others)), "others.mdp")
    mdp.save(finer, "finer.mdp")
    assert run("inspect others.mdp") == 0
    assert "is the place that the position was moved to" not in capsys.readouterr().out
    assert run("inspect finer.mdp") == 0
    same = (space.points[:, None] == finer.outputs.points[None]).all(axis=2)
    share = float((finer.matrix / finer.matrix.sum(axis=1, keepdims=True))[same].mean())
    assert f"is the place that the position was moved to {100 * share:.4g} % of the time" in capsys.readouterr().out


def test_a_tree_of_cells_states_what_is_kept_for_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "design --grid 41.14,-8.65,41.17,-8.60 --cell 1km --levels 1 --builder exponential"
    assert run(f"{line} --protect 2x@200m -o wish") == 0
    assert "Guaranteed: at most a factor of 2 there, slack included" in capsys.readouterr().out
    assert run(f"{line} --epsilon 10/km -o sharp") == 0
    said = capsys.readouterr().out
    assert "Warning: moving positions to places alone allows a factor of" in said


@pytest.mark.parametrize("metric", ["l1", "l2", "linf"])
def test_cells_of_the_size_that_a_warning_names_allow_a_factor_of_two(
    metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = f"design --grid 0,0,12,12 --metric {metric} --epsilon 0.3 --builder exponential"
    assert run(f"{line} --cell 4 -o wide.mdp") == 0
    cell = float(re.search(r"\(cells of ([\d.]+)\)", capsys.readouterr().out)[1])
    space = mdp.grid((4, 4), spacing=cell, metric={"l1": mdp.Lp(1), "l2": mdp.Lp(2), "linf": mdp.Lp(math.inf)}[metric])
    slack = 0.3 * space.charge(space.cell_radius)
    assert 0.99 * math.log(2) < slack <= math.log(2)


@pytest.mark.parametrize(
    ("corners", "options"),
    [
        ("0,0,30,4", "--metric l1 --cell 4"),
        ("41.0,-8.8,41.005,-8.5", "--cell 4km"),
        ("41.0,-8.8,41.2,-8.79", "--cell 4km"),
        ("-60,-170,60,170", "--cell 6000km"),
    ],
)
def test_a_map_of_one_row_or_column_has_cells_too(
    corners: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    per = "" if "l1" in options else "/km"
    assert run(f"design --grid={corners} {options} --epsilon 2{per} --builder exponential -o row.mdp") == 0
    said = capsys.readouterr().out
    assert "Warning: moving positions to places alone allows a factor of" in said
    south, west, north, east = (float(part) for part in corners.split(","))
    inside = np.random.default_rng(4).uniform([south, west], [north, east], (500, 2))
    assert load("row.mdp").inputs.admit(inside, snap=float(re.search(r"--snap ([\d.]+)", said)[1]))[0].all()
