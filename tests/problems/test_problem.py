"""Problems say what is asked, in words and without arrays."""

import math

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput


def test_a_problem_shows_itself_without_arrays():
    space = mdp.grid((3, 3), spacing=0.2)
    problem = mdp.Problem(space, 2.0, prior=[0.2, *[0.1] * 8], radius=0.5)
    for text in (repr(problem), problem._repr_html_()):
        for fact in ("9", "the same", "Lp", "0.1 to 0.2", "pairs within 0.5"):
            assert fact in text
        assert len(text) < 1500
    assert "uniform" in repr(mdp.Problem(space, 2.0))
    big = mdp.Problem(mdp.FiniteSpace(np.arange(300.0)[:, None], mdp.Lp(1)), 1.0)
    assert len(big._repr_html_()) < 1500


def test_what_a_card_shows_is_escaped():
    from metricdp.rendering import card

    assert "<script>" not in card("<script>", [("<script>", "<script>")])


def test_a_problem_of_a_whole_city_is_stated_without_a_matrix():
    space = mdp.FiniteSpace(np.random.default_rng(0).uniform(0, 100, (60_000, 2)), mdp.Lp(2))
    problem = mdp.Problem(space, 1.0)
    assert "60,000" in repr(problem)
    assert "loss: the distance" in repr(problem)
    for name in ("loss", "cost", "log_ratios"):
        with pytest.raises(InvalidInput, match="would take 29 GB"):
            getattr(problem, name)


def test_what_does_not_fit_is_refused_at_once():
    space = mdp.grid((3, 3))
    with pytest.raises(InvalidInput, match=r"`loss` must be a matrix of shape 9 x 9, got shape \(9, 8\)"):
        mdp.Problem(space, 1.0, loss=np.zeros((9, 8)))
    with pytest.raises(InvalidInput, match="coordinates like the inputs"):
        mdp.Problem(space, 1.0, outputs=mdp.grid(4))


def test_the_loss_is_the_distance_unless_given():
    space, reports = mdp.grid((3, 2)), mdp.FiniteSpace([[0.3, 0.2], [1.0, 1.0]], mdp.Lp(2))
    expected = [[math.dist(a, b) for b in reports.points] for a in space.points]
    np.testing.assert_allclose(mdp.Problem(space, 1.0, outputs=reports).loss, expected, rtol=1e-14)
    assert mdp.Problem(space, 1.0).loss is space.distances
    given = np.arange(12.0).reshape(6, 2)
    problem = mdp.Problem(space, 1.0, outputs=reports, loss=given, prior=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    np.testing.assert_array_equal(problem.loss, given)
    np.testing.assert_allclose(problem.cost, given * problem.prior[:, None])
