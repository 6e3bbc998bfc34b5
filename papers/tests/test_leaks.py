"""The leak board: defects are what they are said to be, rows say what happened, packages that are missing say so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.samplers import CommandSampler
from metricdp_papers.leaks import packages, published
from metricdp_papers.leaks.board import BoardEntry, audit_entry
from metricdp_papers.leaks.study import STUDY, entries

BOARD = {entry.key: (number, entry) for number, some in entries().items() for entry in some}
QUICK = ["android", "mldp-vickrey", "mldp-unknown", "geopriv4j", "privkit", "geoprivacy", "doubles", "pglp", "argmax"]


@pytest.mark.parametrize("key", QUICK)
def test_published_defects_are_refuted_with_few_draws(key: str) -> None:
    (row,) = audit_entry(BOARD[key][1], 0.2)
    assert row["verdict"] == ("would not keep it" if key == "android" else "violated")  # Android claims nothing
    assert 0 < row["draws"] < 20_000
    assert row["leaks_at_least"] >= BOARD[key][1].epsilon
    assert " against " in row["witness"]
    assert row["claim"]


def test_what_keeps_its_promise_is_not_refuted() -> None:
    for key in ("our-plane", "our-exponential"):
        (row,) = audit_entry(BOARD[key][1], 0.05)
        assert (row["verdict"], row["witness"]) == ("not refuted", "")


def test_a_matrix_is_judged_exactly_with_rows_divided_by_their_sums() -> None:
    matrix = np.array([[0.5, 0.25], [0.1, 0.9]])
    entry = BoardEntry("m", "who", "what", "1", 1.0, lambda: mdp.Lp(2), lambda: [[0.0], [1.0]], matrix=lambda: matrix)
    (row,) = audit_entry(entry, 1.0)
    assert row["leaks_at_least"] == pytest.approx(np.log((0.5 / 0.75) / 0.1), abs=1e-9)
    assert "Rows sum to 1 only within 0.25" in row["note"]
    assert row["draws"] is None


def test_a_solver_returns_zeros_where_the_promise_needs_digits() -> None:
    matrix = published.vertex_of_solver()
    assert matrix[0, 0] > 0.5  # what the first place reports of itself
    assert matrix[17, 0] == 0.0  # and what another reports never
    assert np.allclose(matrix.sum(axis=1), 1.0, atol=1e-9)


def test_the_true_point_comes_back_in_one_of_four() -> None:
    drawn = published.true_point_of_geopriv4j()((3.0, 4.0), 40_000)
    assert abs((drawn == (3.0, 4.0)).all(axis=1).mean() - (1.0 - 2.0 / np.e)) < 0.01
    radii = np.linalg.norm(drawn - (3.0, 4.0), axis=1)
    assert np.allclose(radii, np.round(radii), atol=1e-9)


def test_nothing_moves_north_at_the_equator() -> None:
    drawn = published.equator_of_privkit()((0.0, 103.8), 1000)
    assert np.abs(drawn[:, 0]).max() == 0.0
    assert np.std(drawn[:, 1]) > 1e-4


def test_without_the_half_nearly_twice_epsilon_leaks() -> None:
    law = np.exp(-published.star_distances())
    law /= law.sum(axis=1, keepdims=True)
    assert 1.7 < np.log(law[1, 1] / law[0, 1]) < 2.0  # a leaf against the hub, one hop apart
    drawn = published.policy_graph_without_half()([1.0], 20_000)[:, 0]
    assert abs((drawn == 1.0).mean() - law[1, 1]) < 0.02


def test_far_words_of_the_truncated_mechanism_get_more_than_near_ones() -> None:
    words = published.VOCABULARY
    apart = np.linalg.norm(words - words[3], axis=1)
    limit = 0.5 * np.log(0.999 * 119 / 0.001)
    drawn = published.truncated_of_mldp()(words[3], 40_000)
    far = np.linalg.norm(drawn - words[3], axis=1) > limit
    weights, beyond = np.exp(-2.0 * apart[apart <= limit]).sum(), 120 / (apart <= limit).sum()
    assert abs(far.mean() - beyond / (weights + beyond)) < 0.01
    assert far.mean() > 0.2  # the paper's score gives these less than one in a thousand


def test_a_package_that_cannot_be_installed_is_a_row_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    offline = tmp_path / "python"
    offline.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found' >&2\nexit 1\n")
    offline.chmod(0o700)
    monkeypatch.setattr(packages.venv, "create", lambda place, **unused: Path(place).mkdir())
    monkeypatch.setattr(packages, "python", lambda place: str(offline))
    (row,) = audit_entry(BOARD["opendp-laplace"][1], 1.0)
    assert row["verdict"] == "not run"
    assert "could not be installed here: ERROR: No matching" in row["note"]
    assert not list((tmp_path / "metricdp" / "leaks").rglob("versions.json"))


def test_a_package_answers_through_its_small_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "environment", lambda name: tmp_path)
    monkeypatch.setattr(packages, "python", lambda place: sys.executable)
    (tmp_path / "versions.json").write_text('{"diffprivlib": "0.6.6", "scikit-learn": "1.6.1"}')
    (tmp_path / "diffprivlib").mkdir()
    (tmp_path / "diffprivlib" / "__init__.py").write_text("")
    (tmp_path / "diffprivlib" / "mechanisms.py").write_text(
        "class Laplace:\n    def __init__(self, **options): assert options == {'epsilon': 1.0, 'sensitivity': 1.0}\n"
        "    def randomise(self, value): return value + 0.5\n"
    )
    (row,) = audit_entry(BOARD["diffprivlib-laplace"][1], 0.1)
    assert row["version"] == "diffprivlib 0.6.6, scikit-learn 1.6.1"
    assert row["verdict"] == "violated"


def test_a_fixed_seed_is_seen_at_the_second_start(tmp_path: Path) -> None:
    script = tmp_path / "seeded.py"
    script.write_text("import random, sys\nrandom.seed(1)\nfor line in sys.stdin: print(random.random())\n")

    def asked() -> Any:
        return CommandSampler([sys.executable, "-S", str(script)])

    entry = BoardEntry("s", "who", "what", "1", 1.0, lambda: mdp.Lp(2), lambda: [[0.0], [1.0]], asked, draws=1000)
    assert "Two fresh starts gave the same draws" in audit_entry(entry, 1.0)[0]["note"]


def test_the_study_lists_every_entry_once() -> None:
    for full in (False, True):
        keys = [piece.key for piece in STUDY.pieces(full)]
        assert len(set(keys)) == len(keys) == len(BOARD)
    for _, entry in BOARD.values():
        assert (entry.draw is None) != (entry.matrix is None)
