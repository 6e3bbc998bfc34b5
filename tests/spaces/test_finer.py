"""Candidate reports between the places."""

from __future__ import annotations

import numpy as np
import pytest

import metricdp as mdp


@pytest.mark.parametrize("shape", [(7,), (4, 3), (2, 3, 2)])
@pytest.mark.parametrize("times", [2, 3])
def test_finer_reports_of_a_grid_cut_its_steps(shape: tuple[int, ...], times: int) -> None:
    space = mdp.grid(shape, spacing=0.2)
    finer = space.finer(times)
    assert len(finer) == np.prod([times * (side - 1) + 1 for side in shape])
    held = {tuple(point) for point in finer.points.tolist()}
    assert {tuple(point) for point in space.points.tolist()} <= held
    assert finer.distances[~np.eye(len(finer), dtype=bool)].min() == pytest.approx(0.2 / times)


def test_finer_reports_of_scattered_points_are_the_points_and_middles_between_neighbours() -> None:
    points = np.random.default_rng(4).random((20, 2))
    finer = mdp.FiniteSpace(points, mdp.Lp(2)).finer()
    middles = {tuple(row) for row in ((points[:, None] + points[None]) / 2).reshape(-1, 2).tolist()}
    assert {tuple(row) for row in finer.points.tolist()} <= middles  # a point is the middle of itself
    assert 40 < len(finer) <= 20 + 3 * 20 - 6


def test_points_on_a_line_have_one_report_between_neighbours() -> None:
    points = np.outer([0.0, 1.0, 3.0, 7.0], [1.0, 1.0])
    finer = mdp.FiniteSpace(points, mdp.Lp(2)).finer()
    assert finer.points[:, 0].tolist() == [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0]


def test_other_words_than_finer_and_spaces_without_a_between_are_refused() -> None:
    with pytest.raises(mdp.MetricdpError, match="finer"):
        mdp.Problem(mdp.grid((2, 2)), 1.0, outputs="coarser")
    with pytest.raises(mdp.MetricdpError, match="space of your own"):
        mdp.Problem(mdp.FiniteSpace(["a", "b"], mdp.Levenshtein()), 1.0, outputs="finer")
