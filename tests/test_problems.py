"""Problems say what is asked, in words and without arrays."""

import numpy as np

import metricdp as mdp


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
    from metricdp.cards import card

    assert "<script>" not in card("<script>", [("<script>", "<script>")])
