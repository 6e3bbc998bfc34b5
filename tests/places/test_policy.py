"""Policy graphs: hops by brute force, promises inside the parts, what falls out is repaired, refused or disclosed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metricdp as mdp
from browsers import in_node as ask
from brute import leakage, least_loss, softmax_rows
from metricdp import messages
from metricdp.errors import InvalidInput, NotPrivate

CELLS = mdp.grid((4, 4))
EARTH = mdp.grid((4, 4), spacing=0.5, origin=(41.1, -8.7), metric=mdp.Haversine())
TOWNS = np.repeat([0, 1, 2], [6, 6, 4])


def hops(size: int, edges: Any, lengths: Any = None) -> np.ndarray:
    """All shortest paths by Floyd and Warshall; infinite where there is none."""
    found = np.full((size, size), np.inf)
    np.fill_diagonal(found, 0.0)
    for (one, two), length in zip(edges, itertools.repeat(1.0) if lengths is None else lengths, strict=False):
        found[one, two] = found[two, one] = min(found[one, two], length)
    for middle in range(size):
        found = np.minimum(found, found[:, middle, None] + found[middle])
    return found


def towns(places: mdp.FiniteSpace = CELLS) -> mdp.FiniteSpace:
    return mdp.policy(places, mdp.policy_graphs.areas(TOWNS), parts="disclose")


@settings(max_examples=40, deadline=None)
@given(size=st.integers(2, 12), seed=st.integers(0, 10**6))
def test_distances_are_the_fewest_edges_and_parts_are_farther_than_any_way(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(size), 2)))
    edges = pairs[rng.random(len(pairs)) < rng.uniform(0.05, 0.6)]
    edges = edges if len(edges) else pairs[:1]
    lengths = None if seed % 2 else rng.uniform(0.1, 3.0, len(edges))
    places = mdp.FiniteSpace(rng.normal(size=(size, 2)), mdp.Lp(2))
    space = mdp.policy(places, edges, lengths=lengths, isolated="disclose", parts="disclose")
    true, found = hops(size, edges, lengths), space.distances
    inside = np.isfinite(true)
    assert np.allclose(found[inside], true[inside], rtol=1e-12)
    assert np.all(found <= np.where(inside, true, np.inf))  # never above the true one
    assert np.all(found[~inside] > true[inside].max())
    assert np.all(found[:, None, :] <= found[:, :, None] + found[None] + 1e-9)
    problem = mdp.Problem(space, 1.0)
    covered = found <= (np.inf if problem.radius is None else problem.radius)
    assert np.array_equal(covered, inside)
    labels = np.empty(size, dtype=int)
    for number, codes in enumerate(mdp.policy_graphs.parts(space)):
        labels[codes] = number
    assert np.array_equal(labels[:, None] == labels[None], inside)


def test_usual_policies_are_what_their_names_say() -> None:
    four, eight = mdp.policy_graphs.grid_neighbours((4, 4)), mdp.policy_graphs.grid_neighbours((4, 4), diagonal=True)
    apart = np.abs(CELLS.points[:, None] - CELLS.points[None])
    for edges, near in ((four, apart.sum(axis=2) == 1), (eight, apart.max(axis=2) == 1)):
        assert {tuple(sorted(edge)) for edge in edges.tolist()} == {(i, j) for i, j in np.argwhere(near) if i < j}
        assert len(edges) == near.sum() / 2
    assert len(mdp.policy_graphs.grid_neighbours((3, 4, 5))) == 2 * 4 * 5 + 3 * 3 * 5 + 3 * 4 * 4
    rng = np.random.default_rng(1)
    places = mdp.FiniteSpace(rng.normal(size=(40, 2)), mdp.Lp(2))
    order = np.argsort(places.distances, axis=1)
    pairs = {tuple(sorted((i, int(j)))) for i in range(40) for j in order[i, 1:4]}
    assert {tuple(edge) for edge in mdp.policy_graphs.nearest(places, 3).tolist()} == pairs
    near = {(i, j) for i, j in itertools.combinations(range(40), 2) if places.distances[i, j] <= 0.7}
    assert {tuple(edge) for edge in mdp.policy_graphs.within(places, 0.7).tolist()} == near
    inside = {(i, j) for i, j in itertools.combinations(range(16), 2) if TOWNS[i] == TOWNS[j]}
    assert {tuple(edge) for edge in mdp.policy_graphs.areas(TOWNS).tolist()} == inside
    beside = mdp.policy_graphs.areas(TOWNS, neighbours=[(2, 1), (1, 2)])
    joined = {
        (i, j) for i, j in itertools.combinations(range(16), 2) if TOWNS[i] == TOWNS[j] or min(TOWNS[i], TOWNS[j])
    }
    assert {tuple(sorted(edge)) for edge in beside.tolist()} == joined
    assert len(beside) == len(joined)
    names = np.array(["c", "a", "b"])[TOWNS]
    gaps = {(a, b): apart[names == a][:, names == b].sum(axis=2).min() for a, b in itertools.combinations("abc", 2)}
    for radius in (0.5, 1.0, 2.5):
        near_by = {pair for pair, gap in gaps.items() if gap <= radius}  # on a grid the nearest lie along an axis
        assert set(mdp.policy_graphs.bordering(CELLS, names, radius)) == near_by
    kept = mdp.policy_graphs.disclosing(four, [0, 5])
    assert {tuple(edge) for edge in kept.tolist()} == {tuple(e) for e in four.tolist() if not {0, 5} & set(e)}
    few = mdp.policy_graphs.feasible(four, [4, 5, 6, 15])
    assert {tuple(sorted(edge)) for edge in few.tolist()} == {(0, 1), (1, 2)}


def test_neighbouring_areas_that_are_no_areas_are_refused() -> None:
    for pairs, said in (
        ([("a", "x")], "`neighbours` 0 names the area 'x', and no place lies in it"),
        ([(1, 2)], "names the area 1"),
        ([("a", "b"), ("b", "b")], "`neighbours` 1 names an area twice"),
        (["a"], "pairs of names of areas"),
    ):
        with pytest.raises(InvalidInput, match=said):
            mdp.policy_graphs.areas(["a", "b", "a"], neighbours=pairs)
    with pytest.raises(InvalidInput, match="16 names, one a place, got 3"):
        mdp.policy_graphs.bordering(CELLS, ["a", "b", "a"], 1.0)


def test_many_places_have_the_same_nearest_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    places = mdp.FiniteSpace(np.random.default_rng(2).normal(size=(60, 2)), mdp.Lp(2))
    few = mdp.policy_graphs.nearest(places, 2)
    monkeypatch.setattr(mdp.policy_graphs, "NEAR", 10)
    assert np.array_equal(mdp.policy_graphs.nearest(places, 2), few)


def test_an_isolated_place_is_refused_joined_to_the_nearest_or_told() -> None:
    edges = mdp.policy_graphs.disclosing(mdp.policy_graphs.grid_neighbours((4, 4)), [5, 15])
    with pytest.raises(InvalidInput, match=r"places 5, 15 have no edge .* would tell them exactly"):
        mdp.policy(CELLS, edges)
    assert mdp.policy_graphs.repairs(CELLS, edges).tolist() == [[1, 5], [11, 15]]
    repaired = mdp.policy(CELLS, edges, isolated="join")
    assert np.array_equal(repaired.distances, hops(16, [*edges, (1, 5), (11, 15)]))
    told = mdp.exponential(mdp.policy(CELLS, edges, isolated="disclose"), 1.0)
    assert told.matrix[5, 5] == told.matrix[15, 15] == 1.0
    assert not told.matrix[np.ix_([0, 1, 2], [5, 15])].any()
    assert mdp.audit(told).verdict == "holds"


def test_parts_are_refused_joined_by_their_nearest_places_or_told_apart() -> None:
    edges = mdp.policy_graphs.areas(TOWNS)
    with pytest.raises(InvalidInput, match="3 parts that no edge joins, the smallest of 4 places"):
        mdp.policy(CELLS, edges)
    added = mdp.policy_graphs.repairs(CELLS, edges, parts="join")
    assert len(added) == 2
    assert all(np.linalg.norm(CELLS.points[one] - CELLS.points[two]) == 1.0 for one, two in added.tolist())
    joined = mdp.policy(CELLS, edges, parts="join")
    assert np.array_equal(joined.distances, hops(16, [*edges, *added]))
    assert mdp.Problem(joined, 1.0).radius is None
    words = mdp.vocabulary(["cat", "dog", "car", "bus"], np.array([[0.0, 0], [1, 0], [5, 1], [6, 0]]))
    assert mdp.policy_graphs.repairs(words, [[0, 1], [2, 3]], parts="join").tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("edges", "options", "said"),
    [
        ([[0, 16]], {}, "edge 0 of the policy leads to a place that is not there: places are numbered from 0 to 15"),
        ([[0, 1], [-1, 2]], {}, "edge 1 of the policy"),
        ([["a", "b"]], {}, "edge 0 of the policy"),
        ([[0, 1], [3, 3]], {}, "edge 1 of the policy joins a place to itself"),
        ([[0, 1], [2, 3], [1, 0]], {}, "edges 0 and 2 of the policy join the same two places"),
        ([], {}, "at least one"),
        ([[0, 1, 2]], {}, "pairs of codes"),
        ([[0, 1]], {"lengths": [1.0, 2.0]}, "1 positive numbers"),
        ([[0, 1]], {"lengths": [0.0]}, "1 positive numbers"),
        ([[0, 1]], {"lengths": "road"}, "or 'distance'"),
        ([[0, 1]], {"isolated": "drop"}, "`isolated` must be one of refuse, join, disclose"),
        ([[0, 1]], {"parts": None}, "`parts` must be one of"),
    ],
    ids=str,
)
def test_what_is_no_policy_is_refused_with_a_sentence(edges: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        mdp.policy(CELLS, edges, **options)


def test_the_exponential_mechanism_without_the_half_is_refuted() -> None:
    """exp(-epsilon d) instead of exp(-epsilon d / 2): the normaliser leaks as well, at the rim of the graph."""
    edges = mdp.policy_graphs.grid_neighbours((4, 4))
    space, epsilon = mdp.policy(CELLS, edges), 0.5
    apart = hops(16, edges)
    published, half = softmax_rows(-epsilon * apart), softmax_rows(-epsilon / 2 * apart)
    report = mdp.audit(published, distances=apart, epsilon=epsilon)
    assert report.verdict == "violated"
    assert report.epsilon == pytest.approx(leakage(published, apart)[0], rel=1e-9)
    assert report.epsilon > 1.3 * epsilon
    with pytest.raises(NotPrivate):
        mdp.from_matrix(space, published, epsilon)
    assert mdp.audit(half, distances=apart, epsilon=epsilon).verdict == "holds"
    assert np.allclose(mdp.exponential(space, epsilon, budget="half").matrix, half)
    # between the half and the whole lies what the audit allows: here three quarters of the budget and more
    assert "inner budget 0.7" in mdp.exponential(space, epsilon).certificate.method
    streets = mdp.road_network("porto", nodes=40)
    distribution = softmax_rows(-4.0 * streets.distances)
    assert mdp.audit(distribution, distances=streets.distances, epsilon=4.0).verdict == "violated"


def test_the_optimum_over_several_parts_is_that_of_the_program_as_written() -> None:
    rng = np.random.default_rng(4)
    places = mdp.FiniteSpace(rng.uniform(0, 4, (9, 2)), mdp.Lp(2))
    edges = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [5, 6]]
    space = mdp.policy(places, edges, isolated="disclose", parts="disclose")
    prior, apart = rng.dirichlet(np.ones(9)), hops(9, edges)
    for loss in (None, places.distances):  # reports of another part may be nearer than one's own
        costs = space.distances if loss is None else places.distances
        for objective in ("expected", "worst"):
            problem = mdp.Problem(space, 0.8, loss=loss, prior=prior)
            found = mdp.optimal(problem, objective=objective, gap=1e-4)  # type: ignore[arg-type]
            best = least_loss(costs, prior, 0.8 * apart, objective)
            assert found.certificate.lower_bound <= best * (1 + 1e-9) <= found.certificate.loss * (1 + 1e-9)
            assert found.certificate.gap <= 1e-4
            assert leakage(found.matrix, apart)[0] <= 0.8 * (1 + 1e-12)
            if loss is None:
                assert not found.matrix[:3, 3:].any()


def test_other_reports_and_weights_stay_in_their_part() -> None:
    space = towns()
    few = space.part(np.array([0, 3, 7, 13, 15]))
    weights = np.array([1.0, 2.0, 1.0, 1.0, 3.0])
    distribution = mdp.weighted_exponential(space, 1.0, outputs=few, weights=weights)
    belongs = TOWNS[[0, 3, 7, 13, 15]]
    assert np.array_equal(distribution.matrix > 0, TOWNS[:, None] == belongs[None])
    assert mdp.audit(distribution).verdict == "holds"
    with pytest.raises(InvalidInput, match="has no report among `outputs`"):
        mdp.exponential(space, 1.0, outputs=space.part(np.array([0, 7])))
    with pytest.raises(InvalidInput, match="leave `radius` out"):
        mdp.optimal(mdp.Problem(mdp.policy(CELLS, [[0, 1], [1, 2], [4, 5]], isolated="disclose", parts="disclose"),
                                1.0, radius=1.0))  # fmt: skip
    with pytest.raises(InvalidInput, match=r"mdp\.policy_graphs\.parts"):
        mdp.optimal(mdp.Problem(space, 1.0), window=2.0)


def test_the_promise_says_that_the_part_may_be_revealed(tmp_path: Path) -> None:
    mechanism = mdp.exponential(towns(EARTH), 1.0)
    said = messages.short_sentence(mechanism.guarantee)
    assert "a report may reveal the part of a secret" in said
    assert "two neighbours in the policy by at most a factor of 2.72" in said
    assert "only between secrets of one part of the policy" in str(mechanism.guarantee)
    assert "(PolicyGraph)" in repr(mechanism)
    file = tmp_path / "towns.mdp"
    mdp.save(mechanism, file)
    again = mdp.load(file)
    assert mdp.audit(again).verdict == "holds"
    assert mdp.audit(again).pairs == 15 + 15 + 6
    script = """const m = await open(given.path);
        answer = [m.explain(), m.audit(), m.slack(0.3), m.sample([41.1, -8.7]).code];"""
    explained, judged, slack, report = ask(script, path=str(file))
    assert explained["short"] == said
    lines = [said, *messages.meaning_lines(mechanism.guarantee), f"{mechanism.guarantee}."]
    assert explained["lines"][: len(lines)] == lines
    assert judged["verdict"] == "holds"
    assert judged["pairs"] == 36
    assert slack == pytest.approx(1.0 * again.inputs.charge(0.3)) == 1.0  # one hop; parts have no promise to add to
    assert report in range(6)


def test_places_of_a_table_keep_to_their_town() -> None:
    import pandas as pd

    mechanism = mdp.exponential(towns(EARTH), 0.1)
    frame = pd.DataFrame(np.repeat(EARTH.points, 5, axis=0) + 1e-4, columns=["lat", "lon"])
    with pytest.raises(mdp.MetricdpError):
        mdp.perturb(frame, mechanism, columns=["lat", "lon"])
    moved = mdp.perturb(frame, mechanism, columns=["lat", "lon"], snap=0.05)
    codes, _ = EARTH.nearest(moved[["lat", "lon"]].to_numpy())
    assert np.array_equal(TOWNS[codes], np.repeat(TOWNS, 5))


def test_a_part_alone_is_a_connected_graph_with_the_same_distances() -> None:
    edges = [[0, 1], [1, 2], [2, 5], [9, 10], [10, 14]]
    space = mdp.policy(CELLS, edges, lengths="distance", isolated="disclose", parts="disclose")
    for codes in mdp.policy_graphs.parts(space):
        part = mdp.policy_graphs.component_space(space, codes)
        assert mdp.Problem(part, 1.0).radius is None
        assert np.allclose(part.distances, space.distances[np.ix_(codes, codes)], rtol=1e-14)
        assert np.array_equal(part.coordinates, CELLS.points[codes])
    joined = mdp.policy(CELLS, mdp.policy_graphs.grid_neighbours((4, 4)))
    assert len(mdp.policy_graphs.component_space(joined, np.array([0, 1]))) == 2
    assert len(mdp.policy_graphs.parts(joined)) == 1


def test_a_packing_bound_counts_pairs_of_one_part_alone() -> None:
    space = mdp.policy(CELLS, [[0, 1]], isolated="disclose")
    assert mdp.packing_lower_bound(space.part(np.arange(2, 16)), 1e-3) == 0.0  # nobody hides from anybody
    inside = mdp.packing_lower_bound(space, 1e-3)
    assert 0.0 < inside <= mdp.optimal(mdp.Problem(space, 1e-3), objective="worst").certificate.loss


def test_windows_carry_a_policy_of_many_places_and_parts_are_asked_for_one_by_one() -> None:
    steps = mdp.policy(mdp.grid((8, 8)), mdp.policy_graphs.grid_neighbours((8, 8)))
    local = mdp.optimal(mdp.Problem(steps, 1.5), window=5.0, gap=0.2)
    assert isinstance(local, mdp.mechanisms.LocalMechanism)
    assert mdp.audit(local).verdict == "holds"
    assert 0.9 * local.certificate.loss <= local.certificate.lower_bound <= local.certificate.loss


def test_the_old_names_of_policy_graphs_warn_and_work() -> None:
    with pytest.warns(DeprecationWarning, match="policy_graphs"):
        old = mdp.policies
    assert old is mdp.policy_graphs
    with pytest.warns(DeprecationWarning, match="component_space"):
        assert old.alone is mdp.policy_graphs.component_space
