"""The study: simulated trips say so, six methods in one table, train and test apart."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from metricdp.experiments.contextual import study
from metricdp.experiments.contextual.blankets import study_blankets
from metricdp.experiments.contextual.cities import simulated_city
from metricdp.experiments.contextual.dependence import study_dependence
from metricdp.experiments.contextual.figures import draw
from metricdp.experiments.contextual.windows import Bins
from metricdp.mobility import Scores


@pytest.fixture(scope="module")
def city():
    return simulated_city(places=6, trips=150)


def test_trips_are_disjoint_and_labelled(city):
    assert city.simulated
    assert "simulated" in str(city)
    assert not set(city.train.owner) & set(city.test.owner)


def test_six_methods_one_line_each(city):
    setting = study.setting_of(city)
    sizes = np.where(setting.augmented.histories[:, 0] % 2, 1, 2)
    rows = list(study.compare(setting, 0.5, predicted=sizes, discovered=sizes))
    assert [row.method for row in rows] == ["C-mDP", "LP", "LP+Markov1", "LP+TrueMB", "ConstOPT", "ExpMech"]
    found = {row.method: row for row in rows}
    for row in rows:
        assert row.kept
        assert row.audited <= 0.5
        assert row.lower <= row.loss == row.upper
        assert row.draw_milliseconds < 5.0
    assert found["C-mDP"].loss <= found["LP+Markov1"].loss * 1.006 <= found["LP"].loss * 1.012
    assert found["LP"].loss <= found["ExpMech"].loss
    assert {(row.places, row.secrets) for row in rows} == {(len(city.places), len(setting.augmented))}
    found_promises = study.promises(setting, 0.5, sizes)
    assert found_promises.published > 0.5
    assert "violated" in found_promises.lines()[0]
    assert found_promises.trajectory == pytest.approx(1.25)


def test_the_full_program_bounds_every_row_with_context(city):
    setting = study.setting_of(city)
    full = study.full_program(setting, 0.5)
    assert full.audited <= 0.5
    assert full.lower <= full.loss
    assert full.pairs == len(setting.augmented) * (len(setting.augmented) - 1) // 2
    one = np.ones(len(setting.augmented), dtype=int)
    (row,) = study.compare(setting, 0.5, predicted=one, discovered=one, full=full, methods=["LP+Markov1"])
    assert full.lower == row.lower <= row.loss
    assert "augmented secrets" in str(full)


def test_held_out_loss_by_hand(city):
    setting = study.setting_of(city)
    matrix = np.random.default_rng(0).dirichlet(np.ones(len(city.places)), size=len(setting.augmented))
    rows, _ = city.test.windows(4)
    known = {tuple(row): code for code, row in enumerate(setting.augmented.histories.tolist())}
    by_hand = [matrix[known[tuple(row[1:])]] @ city.detours[row[0]] for row in rows.tolist()]
    assert setting.held_out(matrix) == pytest.approx(np.mean(by_hand))


def test_cross_validation_halves_are_disjoint_and_pooled(city, monkeypatch):
    from metricdp.experiments.contextual import blankets

    halves = []
    original = blankets._groups

    def watched(town, owners, *rest):
        halves.append(set(owners.tolist()))
        return original(town, owners, *rest)

    monkeypatch.setattr(blankets, "_groups", watched)
    bins = Bins(hours=24.0, speed_mph=60.0, regions=(1, 1), cell_km=0.3, least=30)
    found = blankets.cross_validate(city, bins, rounds=2, permutations=39, seed=0)
    assert len(halves) == 4
    for first, second in (halves[:2], halves[2:]):
        assert not first & second
        assert abs(len(first) - len(second)) <= 1
    assert halves[0] != halves[2]
    assert found.scores.examples == sum(found.scores.confusion) == 4 * 3  # four evaluations of one group, three m
    assert found.lowest <= found.scores.accuracy <= found.highest


def test_slices_state_every_question_for_every_bin_with_enough_windows(city):
    slices = study_dependence(city, samples=60, draws=1)
    assert {part.feature for part in slices} <= {"region", "speed", "hour"}
    assert {part.m for part in slices} == {0, 1, 2, 3}
    for part in slices:
        assert part.windows >= 60
        assert 0.0 <= part.analytic <= 1.0
    nothing_known = [part.analytic for part in slices if part.m == 0]
    assert np.median(nothing_known) < 0.05  # where a vehicle goes depends on where it is


def test_a_run_writes_every_table_and_picture(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(study, "simulated_city", lambda places: simulated_city(places=places, trips=150))
    lines: list[str] = []
    outcome = study.run(cities=["simulated"], places=[4, 5], epsilons=[0.5], folder=tmp_path, say=lines.append)
    assert "The trips are SIMULATED on a real road network; nobody drove them." in lines
    assert [row.method for row in outcome.rows] == list(study.METHODS) * 2
    assert len(outcome.programs) == len(outcome.promises) == 2
    tables = {path.stem for path in tmp_path.glob("*.csv")}
    assert {"losses", "programs", "promises", "p_values", "blankets", "blanket_sizes", "prediction_times"} <= tables
    with (tmp_path / "losses.csv").open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in written] == [row.loss for row in outcome.rows]
    pictures = {path.stem for path in tmp_path.glob("*.png")}
    assert {"p_values_speed_hour", "prediction_times", "blanket_sizes"} <= pictures
    assert {"losses", "times"} <= pictures
    (tmp_path / "losses.png").unlink()
    study.main("--redraw", "--folder", str(tmp_path))
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_of_the_predictor_and_of_correlations(tmp_path):
    pytest.importorskip("matplotlib")
    scores = Scores.of((6, 1, 2, 3), 0.4)
    assert (scores.accuracy, scores.majority) == (9 / 12, 7 / 12)
    assert (scores.precision, scores.recall) == (6 / 8, 6 / 7)
    assert (scores.negative_precision, scores.negative_recall) == (3 / 4, 3 / 5)
    (tmp_path / "classifier.csv").write_text(
        "city,evaluation,ceiling,accuracy,f1,negative_f1,yes_yes,no_yes,yes_no,no_no\nx,y,0.8,0.75,0.8,0.6,6,1,2,3\n"
    )
    (tmp_path / "correlations.csv").write_text(
        "city,feature,pearson,spearman,kendall,spearman_p\nx,speed,-0.4,-0.5,-0.4,0.04\n"
    )
    (tmp_path / "p_values.csv").write_text("city,feature,low,high,m,analytic\nx,region,0.0,1.0,0,0.3\n")
    names = {"classifier", "correlations", "p_values_regions"}
    assert {path.stem for path in draw(tmp_path)} == names


def test_blankets_are_studied_on_both_sets(city):
    found = study_blankets(
        city, bins=Bins(hours=24.0, speed_mph=60.0, regions=(1, 1), cell_km=0.3, least=50), quick=True, rounds=1
    )
    assert len(found.train) >= 1
    assert found.scores is not None
    assert np.median(found.milliseconds) < 2.0
    assert sum(found.shares) == pytest.approx(1.0)
    assert len(found.sizes) == len(found.size_regions) > 0
    assert found.lines()
