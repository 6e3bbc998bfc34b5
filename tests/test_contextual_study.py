"""The study: simulated trips say so, six methods in one table, train and test apart."""

from __future__ import annotations

import numpy as np
import pytest

from metricdp.experiments import contextual as study
from metricdp.experiments._blankets import Bins, study_blankets
from metricdp.experiments._cities import simulated_city


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
    lines = study.promises(setting, 0.5, sizes)
    assert "violated" in lines[0]


def test_held_out_loss_by_hand(city):
    setting = study.setting_of(city)
    matrix = np.random.default_rng(0).dirichlet(np.ones(len(city.places)), size=len(setting.augmented))
    rows, _ = city.test.windows(4)
    known = {tuple(row): code for code, row in enumerate(setting.augmented.histories.tolist())}
    by_hand = [matrix[known[tuple(row[1:])]] @ city.detours[row[0]] for row in rows.tolist()]
    assert setting.held_out(matrix) == pytest.approx(np.mean(by_hand))


def test_blankets_are_studied_on_both_sets(city, tmp_path):
    found = study_blankets(
        city, bins=Bins(hours=24.0, speed_mph=60.0, regions=(1, 1), cell_km=0.3, least=50), quick=True
    )
    assert len(found.train) >= 1
    assert found.scores is not None
    assert found.milliseconds < 2.0
    assert found.lines()
    from metricdp.experiments._contextual_figures import write

    setting = study.setting_of(city)
    one = np.ones(len(setting.augmented), dtype=int)
    rows = list(study.compare(setting, 0.5, predicted=one, discovered=one, methods=["LP", "ExpMech"]))
    names = {path.name for path in write(rows, {city.name: found}, tmp_path)}
    assert {"losses.csv", "blankets.csv"} <= names
