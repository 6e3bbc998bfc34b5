"""Steps down a tree of places: sound in the metric itself, where the published steps between cells are not."""

import numpy as np
import pytest

import metricdp as mdp
from brute import euclid, grid, leakage
from metricdp.errors import InvalidInput


def test_the_published_steps_between_cells_do_not_keep_the_distance():
    """Four cells of four places, half of epsilon each: a step between centres, then one within the chosen cell.

    The corners of a square see the same distances, so exp(-epsilon d) is private there with the whole budget.
    """
    places, epsilon = grid(4), 1.0
    cell = (places[:, 0] // 2 * 2 + places[:, 1] // 2).astype(int)
    centres = np.array([places[cell == one].mean(axis=0) for one in range(4)])
    first = np.exp(-epsilon / 2 * euclid(centres))
    first /= first.sum(axis=1, keepdims=True)
    assert leakage(first, euclid(centres))[0] == pytest.approx(epsilon / 2)
    distribution = np.zeros((16, 16))
    for chosen in range(4):
        inside = np.flatnonzero(cell == chosen)
        second = np.exp(-epsilon / 2 * euclid(places[inside]))
        second /= second.sum(axis=1, keepdims=True)
        for place in range(16):  # from outside the cell, as from a random place of it
            within = second[inside == place][0] if cell[place] == chosen else second.mean(axis=0)
            distribution[place, inside] = first[cell[place], chosen] * within
    report = mdp.audit(distribution, metric=mdp.Lp(2), points=places, epsilon=epsilon)
    assert report.verdict == "violated"
    assert report.epsilon == pytest.approx(leakage(distribution, euclid(places))[0], rel=1e-9)
    assert report.epsilon > 1.39
    assert cell[report.witness.secret] != cell[report.witness.other]  # neighbours on either side of a border


@pytest.mark.parametrize("branching", [2, 4, 16])
def test_steps_from_all_secrets_keep_the_distance_and_spend_what_is_left(branching):
    space = mdp.grid((4, 4))
    made = mdp.hierarchical(mdp.Problem(space, 1.0), branching=branching)
    leaked = leakage(made.matrix, euclid(space.points))[0]
    assert 0.9 < leaked <= 1.0
    np.testing.assert_allclose(made.matrix.sum(axis=1), 1.0)
    assert np.all(made.matrix > 0)


def test_one_level_of_all_places_is_the_exponential_mechanism():
    space = mdp.grid((3, 3))
    made = mdp.hierarchical(mdp.Problem(space, 1.0), branching=9)
    np.testing.assert_allclose(made.matrix, mdp.exponential(space, 1.0).matrix, rtol=2e-3)


def test_what_it_cannot_walk_is_refused():
    space = mdp.grid((3, 3))
    with pytest.raises(InvalidInput, match="`branching` must be at least 2"):
        mdp.hierarchical(mdp.Problem(space, 1.0), branching=1)
    with pytest.raises(InvalidInput, match="protects all pairs"):
        mdp.hierarchical(mdp.Problem(space, 1.0, radius=1.0))
    with pytest.raises(InvalidInput, match="`growth`"):
        mdp.hierarchical(mdp.Problem(space, 1.0), growth=0.0)
    alone = mdp.FiniteSpace([[0.0]], mdp.Lp(2))
    assert mdp.hierarchical(mdp.Problem(alone, 1.0)).matrix.tolist() == [[1.0]]
