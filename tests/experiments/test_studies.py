"""The studies of the papers run at a tiny setting."""

import csv

import numpy as np
import pytest

from metricdp.experiments.constopt import study as constopt
from metricdp.experiments.constopt import vocabularies

pytest.importorskip("matplotlib")

TINY = constopt.Plan(
    sizes=(12,),
    epsilons=(1.0,),
    cell_epsilons=(0.8,),
    road_epsilons=(10.0,),
    scaling_sizes=(12,),
    ablation_size=12,
    penalties=(1.0,),
    nearest=(1, 5),
    draws=20,
)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_constopt_on_the_bundled_roads(tmp_path, monkeypatch):
    empty = tmp_path / "data"
    empty.mkdir()
    monkeypatch.setenv("METRICDP_DATA", str(empty))
    lines = []
    table, picture = constopt.main(folder=tmp_path / "out", plan=TINY, report=lines.append)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert any("Skipped: no word vectors" in line for line in lines)
    assert any("Skipped: no check-ins" in line for line in lines)
    rows = read(table)
    assert {row["domain"] for row in rows} == {"roads"}
    assert {row["part"] for row in rows} == {"figure", "promised", "scaling", "ablation"}
    figure = {row["mechanism"]: float(row["loss"]) for row in rows if row["part"] == "figure"}
    assert figure["ConstOPT 10"] <= figure["EXPMECH"] < figure["uniform"]
    for row in rows:
        if row["epsilon_tight"]:
            assert float(row["epsilon_tight"]) <= float(row["epsilon"]) * (1 + 1e-9)


def test_a_vocabulary_is_clustered():
    vectors = np.random.default_rng(0).normal(size=(400, 8))
    chosen = vocabularies.clustered(vectors, 60, seed=1)
    assert len(np.unique(chosen, axis=0)) == 60
    np.testing.assert_array_equal(chosen, vocabularies.clustered(vectors, 60, seed=1))
    apart = np.linalg.norm(chosen[:, None] - chosen[None], axis=2) + np.diag(np.full(60, np.inf))
    random = np.random.default_rng(2).choice(vectors, 60, replace=False)
    plain = np.linalg.norm(random[:, None] - random[None], axis=2) + np.diag(np.full(60, np.inf))
    assert apart.min(axis=1).mean() < plain.min(axis=1).mean()


def test_non_zeros_at_one_nearest_are_those_of_the_paper():
    # Table 3: 200 words, r = 1, where every word only keeps itself
    distances = np.abs(np.arange(200.0)[:, None] - np.arange(200.0))
    assert constopt.constopt_nonzeros(distances, 1) == 81_000
