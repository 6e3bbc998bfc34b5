"""Location trees: areas that nest, pruning and coarser reports that keep the promise, by brute force over all sets."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from browsers import in_node as ask
from brute import euclid, leakage
from metricdp.design import prunable, prune_reports, pruned_leakage, pruning_cost
from metricdp.errors import InvalidInput, NotPrivate

CELLS = mdp.grid((4, 4))
TREE = mdp.places.location_tree(CELLS, 3)
APART = euclid(CELLS.points)


@pytest.fixture(scope="module")
def best() -> Any:
    return mdp.optimal(mdp.Problem(CELLS, 1.0), gap=0.01)


def renormalised(matrix: np.ndarray, gone: Any) -> np.ndarray:
    left = np.delete(matrix, gone, axis=1)
    return np.asarray(left / left.sum(axis=1, keepdims=True))


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 40), seed=st.integers(0, 10**6), levels=st.integers(1, 6))
def test_areas_lie_whole_in_larger_ones_and_the_last_is_one(size: int, seed: int, levels: int) -> None:
    places = np.random.default_rng(seed).normal(size=(size, 1 + seed % 3))
    tree = mdp.places.location_tree(mdp.FiniteSpace(places, mdp.Lp(2)), levels)
    assert tree.height == levels
    assert set(tree.labels[-1]) == {0}
    for level in range(levels):
        inside = {(int(a), int(b)) for a, b in zip(tree.labels[level], tree.labels[level + 1], strict=True)}
        assert len(inside) == len(set(tree.labels[level].tolist()))  # every area has one parent
        assert sorted(set(tree.labels[level].tolist())) == list(range(int(tree.labels[level].max()) + 1))
    together = [tree.members(1, area).tolist() for area in range(int(tree.labels[1].max()) + 1)]
    assert sorted(itertools.chain.from_iterable(together)) == list(range(size))


def test_a_grid_is_halved_and_own_areas_are_taken_by_name() -> None:
    assert TREE.labels[2].tolist() == [0, 0, 1, 1] * 2 + [2, 2, 3, 3] * 2
    assert repr(TREE) == "LocationTree(16 in 16 in 4 in 1 areas)"
    cities = mdp.places.location_tree(CELLS, [["a"] * 4 + ["b"] * 4 + ["c"] * 8, ["west"] * 8 + ["east"] * 8])
    assert repr(cities) == "LocationTree(16 in 3 in 2 areas)"
    with pytest.raises(InvalidInput, match="place 0 at level 1 lies in several areas of level 2"):
        mdp.places.location_tree(CELLS, [["a"] * 16, ["west"] * 8 + ["east"] * 8])
    with pytest.raises(InvalidInput, match="level 1 must name the area of each of the 16 places"):
        mdp.places.location_tree(CELLS, [["a"] * 15])
    with pytest.raises(InvalidInput, match="from 1 to 30"):
        mdp.places.location_tree(CELLS, 0)
    with pytest.raises(InvalidInput, match="at least one level"):
        mdp.places.location_tree(CELLS, [])
    with pytest.raises(InvalidInput, match="words have no box"):
        mdp.places.location_tree(mdp.FiniteSpace(["a", "b"], mdp.Levenshtein()), 2)
    with pytest.raises(InvalidInput, match=r"`level` must be from 0 \(the places\) to 3"):
        TREE.at_level(4)


def test_areas_are_as_far_apart_as_their_nearest_places_by_way_of_others() -> None:
    rng = np.random.default_rng(3)
    places, labels = rng.normal(size=(14, 2)), np.arange(14) % 5
    space = mdp.places.location_tree(mdp.FiniteSpace(places, mdp.Lp(2)), [labels]).at_level(1)
    near = np.array([[euclid(places[labels == a], places[labels == b]).min() for b in range(5)] for a in range(5)])
    for middle in range(5):
        near = np.minimum(near, near[:, middle, None] + near[middle])
    assert np.allclose(space.distances, near, rtol=1e-12)


def test_a_mechanism_on_areas_keeps_its_promise_for_places_and_one_between_middles_does_not() -> None:
    level = TREE.at_level(2)
    lifted = TREE.for_places(mdp.exponential(level, 1.0), 2)
    assert leakage(lifted.matrix, APART)[0] <= 1.0 + 1e-12
    assert mdp.audit(lifted).verdict == "holds"
    assert np.array_equal(lifted.matrix[0], lifted.matrix[5])  # one area, one law
    middles = TREE.space.points[[places[0] for places in (TREE.members(2, area) for area in range(4))]]
    between = mdp.exponential(mdp.FiniteSpace(middles, mdp.Lp(2)), 1.0)
    assert mdp.audit(between.matrix[TREE.labels[2]], distances=APART, epsilon=1.0).verdict == "violated"
    with pytest.raises(NotPrivate):
        TREE.for_places(between, 2)
    with pytest.raises(InvalidInput, match="on the 4 areas of level 2"):
        TREE.for_places(mdp.exponential(CELLS, 1.0), 2)


def test_coarser_reports_are_post_processing(best: Any) -> None:
    coarse = TREE.coarsen(best, 2)
    for secret, area in itertools.product(range(16), range(4)):
        together = math.fsum(best.matrix[secret, TREE.labels[2] == area])
        assert coarse.matrix[secret, area] == pytest.approx(together, rel=1e-12)
    assert mdp.audit(coarse).verdict == "holds"
    assert coarse.certificate.loss >= best.certificate.lower_bound
    assert all(TREE.labels[2][CELLS.encode(place[None])[0]] == area for area, place in enumerate(coarse.outputs.points))


@pytest.mark.parametrize("rule", ["cheapest", "nearest"])
def test_pruned_reports_go_to_others_by_a_map_and_never_come(best: Any, rule: Any) -> None:
    distribution = TREE.prune(best, [0], level=2, rule=rule)
    gone, kept = [0, 1, 4, 5], [k for k in range(16) if k not in (0, 1, 4, 5)]
    assert not distribution.matrix[:, gone].any()
    cost = np.array([[math.fsum(best.matrix[:, k] * APART[:, t] / 16) for t in kept] for k in gone])
    target = [kept[int(row.argmin())] for row in (cost if rule == "cheapest" else APART[np.ix_(gone, kept)])]
    moved = best.matrix[:, kept].copy()
    for k, t in zip(gone, target, strict=True):
        moved[:, kept.index(t)] += best.matrix[:, k]
    assert np.allclose(distribution.matrix[:, kept], moved, rtol=1e-12)
    assert leakage(distribution.matrix, APART)[0] <= 1.0 + 1e-12
    assert mdp.audit(distribution).verdict == "holds"
    redesigned = mdp.optimal(mdp.Problem(CELLS, 1.0, outputs=CELLS.part(np.array(kept))), gap=0.01)
    assert redesigned.certificate.lower_bound <= distribution.certificate.loss <= 1.15 * redesigned.certificate.loss


def test_renormalising_a_pruned_optimum_breaks_its_promise_and_is_refused(best: Any) -> None:
    """Published: 3 to 19 % of all pairs and reports end above epsilon. Half of epsilon pays for any pruning."""
    gone = [5, 6, 9]
    distribution = renormalised(best.matrix, gone)
    report = mdp.audit(distribution, distances=APART, epsilon=1.0)
    assert report.verdict == "violated"
    assert report.epsilon == pytest.approx(leakage(distribution, APART)[0], rel=1e-9)
    one, two = np.triu_indices(16, 1)
    broken = float(np.mean(np.abs(np.log(distribution[one] / distribution[two])) > APART[one, two, None] * (1 + 1e-9)))
    assert 0.03 < broken < 0.5
    with pytest.raises(NotPrivate, match="3 of 16 reports pruned"):
        TREE.prune(best, gone, rule="renormalise")
    half = mdp.optimal(mdp.Problem(CELLS, 0.5), gap=0.01)
    for seed in range(20):
        some = np.random.default_rng(seed).permutation(16)[: 1 + seed % 15]
        assert leakage(renormalised(half.matrix, some), APART)[0] <= 1.0


@settings(max_examples=25, deadline=None)
@given(secrets=st.integers(2, 5), reports=st.integers(2, 7), count=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_what_any_pruning_costs_is_found_exactly(secrets: int, reports: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    distribution = rng.dirichlet(np.full(reports, 0.5), secrets) + 1e-6
    distribution /= distribution.sum(axis=1, keepdims=True)
    apart, count = euclid(rng.normal(size=(secrets, 2))), min(count, reports - 1)
    sets = [gone for size in range(count + 1) for gone in itertools.combinations(range(reports), size)]
    left = np.array([np.log(1.0 - distribution[:, list(gone)].sum(axis=1)) for gone in sets])
    brute = np.abs(left[:, :, None] - left[:, None]).max(axis=0)
    assert np.allclose(pruning_cost(distribution, np.arange(secrets), count), brute, rtol=1e-7, atol=1e-9)
    worst = max(leakage(renormalised(distribution, list(gone)), apart)[0] for gone in sets)
    assert pruned_leakage(distribution, apart, count) >= worst * (1 - 1e-9)


def test_a_prunable_mechanism_keeps_its_promise_whatever_is_left_out() -> None:
    cells, apart = mdp.grid((3, 3)), euclid(mdp.grid((3, 3)).points)
    tree = mdp.places.location_tree(cells, 2)
    distribution = tree.prunable(1.5, 2)
    assert mdp.audit(distribution).verdict == "holds"
    for gone in itertools.combinations(range(9), 2):
        assert leakage(renormalised(distribution.matrix, gone), apart)[0] <= 1.5
    left = tree.prune(distribution, [4, 8], rule="renormalise")
    assert np.allclose(np.delete(left.matrix, [4, 8], axis=1), renormalised(distribution.matrix, [4, 8]))
    assert mdp.audit(left).verdict == "holds"
    half = mdp.optimal(mdp.Problem(cells, 0.75), gap=0.01)
    assert (
        distribution.certificate.lower_bound < distribution.certificate.loss < half.certificate.loss
    )  # less than half is reserved
    with pytest.raises(InvalidInput, match="from 1 to 8"):
        tree.prunable(1.0, 9)
    with pytest.raises(InvalidInput, match="protects all pairs"):
        prunable(mdp.Problem(cells, 1.0, radius=1.0), 1)


def test_pruning_by_the_secret_gives_it_away_and_is_refused(best: Any) -> None:
    """Everybody leaves out what is far from where they are: now reports tell who cannot have sent them."""
    own = np.where(APART <= 2.0, best.matrix, 0.0)
    report = mdp.audit(own / own.sum(axis=1, keepdims=True), distances=APART, epsilon=1.0)
    assert report.verdict == "violated"
    assert math.isinf(report.epsilon)
    for sets in ({0: [1]}, lambda secret: [secret], [[0], [1]]):
        with pytest.raises(InvalidInput, match="a set that depends on the secret would give it away"):
            TREE.prune(best, sets)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least one report must be pruned and one kept"):
        TREE.prune(best, np.arange(16))
    with pytest.raises(InvalidInput, match="`rule` must be one of"):
        prune_reports(best, [1], rule="drop")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must report the 16 places"):
        TREE.prune(mdp.exponential(mdp.grid((3, 3)), 1.0), [0])


def test_areas_that_may_be_told_are_a_policy_and_may_be_pruned_too() -> None:
    inside = TREE.disclosing(2)
    distribution = mdp.exponential(inside, 1.0)
    assert np.array_equal(distribution.matrix > 0, TREE.labels[2][:, None] == TREE.labels[2][None])
    less = TREE.prune(distribution, [0, 3, 15])
    assert mdp.audit(less).verdict == "holds"
    assert mdp.audit(less).pairs == 4 * 6
    assert "only between secrets of one part of the policy" in str(less.guarantee)


def test_a_browser_draws_from_the_pruned_file(best: Any, tmp_path: Path) -> None:
    distribution = TREE.coarsen(TREE.prune(best, [5, 6]), 1)
    mdp.save(distribution, tmp_path / "mine.mdp")
    script = """const m = await open(given.path);
        const drawn = Array.from({ length: 400 }, () => m.sample([1, 1]).code);
        answer = [m.audit().verdict, drawn, Array.from(m.distribution([1, 1]))];"""
    verdict, drawn, stored = ask(script, path=str(tmp_path / "mine.mdp"))
    assert verdict == "holds"
    assert not {5, 6} & set(drawn)
    assert len(set(drawn)) > 3
    assert np.allclose(stored, distribution.matrix[5])
