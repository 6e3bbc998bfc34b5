"""Columns against the whole program, solved as it is written."""

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage, least_loss
from metricdp.errors import InvalidInput
from metricdp_papers.columns import dantzig_wolfe
from scripts import command


@pytest.fixture(scope="module")
def roads():
    return mdp.road_network("porto", nodes=14)


def test_columns_reach_the_optimum_of_the_whole_program(roads):
    prior = np.random.default_rng(0).dirichlet(np.ones(14))
    problem = mdp.Problem(roads, 8.0, prior=prior)
    told = []
    made = dantzig_wolfe(problem, gap=1e-4, progress=lambda *figures: told.append(figures))
    best = least_loss(problem.loss, prior, 8.0 * roads.distances)
    found = made.certificate
    assert found.lower_bound <= best * (1 + 1e-7)
    assert best * (1 - 1e-7) <= found.loss <= best * (1 + 1e-4)
    assert found.gap <= 1e-4
    assert leakage(made.matrix, roads.distances)[0] <= 8.0
    assert found.method.startswith("Dantzig-Wolfe, ")
    uppers = [upper for _, upper, _, _ in told]
    assert uppers == sorted(uppers, reverse=True)  # columns are only ever added
    assert all(lower <= best * (1 + 1e-6) for lower, _, _, _ in told)


def test_a_search_that_is_cut_short_says_so_and_keeps_its_promise(roads):
    made = dantzig_wolfe(mdp.Problem(roads, 8.0), gap=0.0, seconds=1e-9)
    assert leakage(made.matrix, roads.distances)[0] <= 8.0
    assert "asked for a gap of 0" in made.certificate.note
    with pytest.raises(InvalidInput, match="`gap`"):
        dantzig_wolfe(mdp.Problem(roads, 8.0), gap=-1.0)


def test_an_interrupted_search_returns_what_it_has(roads):
    def stop(*_):
        raise KeyboardInterrupt

    made = dantzig_wolfe(mdp.Problem(roads, 8.0), progress=stop)
    assert leakage(made.matrix, roads.distances)[0] <= 8.0
    assert "interrupted" in made.certificate.note.lower()


def test_ratios_beyond_what_a_solver_holds_are_left_out_of_the_proof():
    """Secrets 50 / epsilon apart: the bound then rests on the others."""
    space = mdp.FiniteSpace(np.array([[0.0], [1.0], [50.0], [51.5]]), mdp.Lp(1))
    problem = mdp.Problem(space, 1.0)
    made = dantzig_wolfe(problem, gap=1e-3)
    best = least_loss(problem.loss, problem.prior, space.distances)
    assert made.certificate.lower_bound <= best * (1 + 1e-9)
    assert made.certificate.loss == pytest.approx(best, rel=1e-3)


def test_there_is_a_bound_even_where_no_round_of_prices_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metricdp.design.time_limits.pace", lambda: 0.0)
    monkeypatch.setattr("metricdp.deadlines.LARGE", 0)
    monkeypatch.setattr("metricdp_papers.columns._Pricing.best", lambda self, reduced: None)
    monkeypatch.setattr("metricdp.deadlines.clock", lambda: 0.0)
    space = mdp.FiniteSpace(np.random.default_rng(2).random((20, 2)), mdp.Lp(2))
    made = dantzig_wolfe(mdp.Problem(space, 3.0), seconds=100.0)
    assert 0.0 < made.certificate.lower_bound <= made.certificate.loss


def test_a_radius_is_refused(roads):
    with pytest.raises(InvalidInput, match="`dantzig_wolfe` protects all pairs"):
        dantzig_wolfe(mdp.Problem(roads, 8.0, radius=0.2))


def test_the_plugin_declares_it(tmp_path):
    (tmp_path / "cells.csv").write_text("x,y\n0,0\n0,1\n1,0\n1,1\n")
    words = "design --plugin metricdp_papers.builders --points cells.csv --metric l2 --epsilon 1.0"
    said = command([*words.split(), "--builder", "dantzig_wolfe", "-o", "cells.mdp", "--verbose"], tmp_path)
    assert "Dantzig-Wolfe" in said
    assert mdp.audit(mdp.load(tmp_path / "cells.mdp")).verdict == "holds"
