"""The study of ConstOPT: its spaces, what it counts, and that it runs with the data that comes with the package."""

import numpy as np
import pytest

from metricdp.errors import InvalidInput
from metricdp_papers.common import StudyRequest, reproduce
from metricdp_papers.constopt import measures, vocabularies
from metricdp_papers.constopt.study import STUDY


@pytest.fixture
def bundled(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICDP_DATA", str(tmp_path))


@pytest.mark.usefixtures("bundled")
def test_without_data_it_runs_on_the_bundled_roads(tmp_path):
    pytest.importorskip("matplotlib")
    outcome = reproduce(
        STUDY, StudyRequest(tables=("figure 3", "4", "figure 4"), folder=tmp_path / "out"), say=lambda line: None
    )
    rows = {(row["method"], row.get("law", "")): row for row in outcome.rows["figure 3"]}
    half, certified = rows["ConstOPT 10", "as published"], rows["ConstOPT 10", "corrected"]
    assert half["tight"] <= certified["tight"] <= 10.0 * (1 + 1e-9)
    assert certified["corrected"] < half["as_published"] < rows["uniform", ""]["as_published"]
    assert rows["OPT", "corrected"]["bound"] <= certified["worst"]
    assert rows["packing bound", ""]["bound"] <= rows["OPT", "corrected"]["worst"]
    figure = {row["method"]: row for row in outcome.rows["figure 4"] if row["measure"] == measures.LOSS}
    for row in figure.values():
        if row.get("tight"):
            assert row["tight"] == pytest.approx(10.0, rel=0.011)
    for stem in ("figure_3", "table_4"):
        assert (tmp_path / "out" / f"{stem}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("bundled")
def test_a_domain_without_its_data_says_which_file_is_missing():
    with pytest.raises(InvalidInput, match=r"glove_6b_100d/vectors\.npz is not in the data folder"):
        vocabularies.words(3, 99)
    assert not vocabularies.DOMAINS["review words"].at_hand


def test_a_vocabulary_is_clustered():
    vectors = np.random.default_rng(0).normal(size=(400, 8))
    chosen = vocabularies.sample_clusters(vectors, 60, seed=1)
    assert len(np.unique(chosen, axis=0)) == 60
    np.testing.assert_array_equal(chosen, vocabularies.sample_clusters(vectors, 60, seed=1))
    apart = np.linalg.norm(chosen[:, None] - chosen[None], axis=2) + np.diag(np.full(60, np.inf))
    random = np.random.default_rng(2).choice(vectors, 60, replace=False)
    plain = np.linalg.norm(random[:, None] - random[None], axis=2) + np.diag(np.full(60, np.inf))
    assert apart.min(axis=1).mean() < plain.min(axis=1).mean()


def test_popular_cells_count_every_person_once():
    # one person goes to a cell a hundred times, two others go to another one once
    places = np.array([[40.7026, -74.0]] * 100 + [[40.7126, -74.0]] * 2)
    user = np.array([1] * 100 + [2, 3])
    first, second = vocabularies.popular(user, places, 2)
    assert first[0] - second[0] == pytest.approx(0.01 * np.pi / 180 * 6371, rel=1e-3)  # the northern cell comes first


def test_non_zeros_at_one_nearest_are_those_of_the_paper():
    # Table 3: 200 words, r = 1, where every word only keeps itself
    distances = np.abs(np.arange(200.0)[:, None] - np.arange(200.0))
    assert measures.constopt_nonzeros(distances, 1) == 81_000
    assert measures.nonzeros_of("OPT", distances[:50, :50]) == 250_000  # Tables 2 and 4
