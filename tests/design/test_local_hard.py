"""Optimal mechanisms on windows, hard inputs: each gets an audited answer between valid bounds, or one sentence."""

import numpy as np
import pytest
from scipy import sparse

import metricdp as mdp
from brute import leakage, least_loss
from metricdp.design.local import build, edges
from metricdp.errors import InvalidInput, SolverFailure

pytest.importorskip("numba", reason="windows take the extra `fast`")

GRID = mdp.grid((5, 5))


def plane(points):
    return mdp.FiniteSpace(np.asarray(points, dtype=float), mdp.Lp(2))


def network(pairs, lengths, nodes, *, one_way="open", kept=None):
    metric = mdp.ShortestPath(np.array(pairs), np.array(lengths, dtype=float), nodes, one_way=one_way)
    points = np.arange(nodes) if kept is None else np.asarray(kept)
    angle = 2.0 * np.pi * points / nodes
    return mdp.FiniteSpace(points, metric, coordinates=np.stack([np.cos(angle), np.sin(angle)], 1), ground=mdp.Lp(2))


def ring(nodes, **others):
    """Return the streets of a ring and their lengths; `others` are lengths of single streets, by number."""
    lengths = [0.3 + 0.1 * ((7 * i) % 5) for i in range(nodes)]
    for name, length in others.items():
        lengths[int(name[1:])] = length
    return [(i, (i + 1) % nodes) for i in range(nodes)], lengths


def judged(problem, *, window, loss=None, seconds=0.6):
    """Return the certificate of the optimum on windows, after everything in it was compared with brute force."""
    table = problem.loss if loss is None else loss
    mechanism = mdp.optimal(problem, window=window, gap=0.05, seconds=seconds)
    found = mechanism.certificate
    best = least_loss(table, problem.prior, problem.epsilon * problem.inputs.distances)
    true = float((problem.prior[:, None] * table * mechanism.matrix).sum())
    size = 1e-8 * float(np.abs(table).max()) * problem.prior.max()
    assert leakage(mechanism.matrix, problem.inputs.distances)[0] <= problem.epsilon * (1 + 1e-9)
    assert found.lower_bound <= best + size
    assert best - size <= true <= found.loss + 1e-12 * abs(found.loss)
    assert found.loss <= true + size
    # of a single secret there is no pair to judge
    assert mdp.audit(mechanism).verdict == ("holds" if len(problem.inputs) > 1 else "cannot judge")
    return found


def clusters():
    near = np.random.default_rng(0).uniform(0, 3, (15, 2))
    return plane(np.concatenate([near, near[:5] + 3000.0, near[5:8] - 4000.0, [[9e3, 9e3]]]))


def crossings(**kind):
    pairs, lengths = ring(12)
    return network([*pairs, (5, 1), (9, 3), (0, 6)], [*lengths, 0.4, 0.6, 1.1], 12, **kind)


ROME = np.stack(np.meshgrid(41.9 + 0.01 * np.arange(4), 12.4 + 0.01 * np.arange(4)), -1).reshape(-1, 2)

SPACES = {
    "a few points a thousand times farther": (clusters(), 1.5, 20.0),
    "streets of a millimetre": (network(*ring(14, s2=1e-6, s5=1e-6, s9=1e-6), 14), 2.0, 3.0),
    "streets of a nanometre": (network(*ring(14, s3=1e-12, s7=1e-9), 14), 2.0, 3.0),
    "crossings that almost coincide": (plane([[0, 0], [1e-9, 0], [1, 0], [2, 1], [2, 1 + 1e-13]]), 1.0, 3.0),
    "one-way streets by the longer way": (crossings(one_way="longer"), 1.0, 3.0),
    "some nodes of a network": (crossings(kept=[0, 2, 3, 7, 8, 11]), 1.0, 3.0),
    "the Earth": (mdp.FiniteSpace(ROME, mdp.Haversine()), 1.0, 4.0),
    "city blocks": (mdp.FiniteSpace(GRID.points, mdp.Lp(1)), 1.0, 3.0),
    "the larger coordinate": (mdp.FiniteSpace(GRID.points, mdp.Lp(np.inf)), 1.0, 2.0),
    "one coordinate": (mdp.FiniteSpace(np.arange(20.0)[:, None], mdp.Lp(2)), 1.0, 8.0),
    "words": (mdp.FiniteSpace(["a", "ab", "abc", "b", "bc", "xyz"], mdp.Levenshtein()), 1.0, 2.0),
    "one secret": (plane([[3, 4]]), 1.0, 1.0),
    "two secrets": (plane([[0, 0], [1, 1]]), 1.0, 3.0),
    "two secrets a thousand apart": (plane([[0, 0], [1000, 1]]), 1.0, 3.0),
    "rows that are almost equal": (GRID, 0.01, 3.0),
    "ratios beyond the range of doubles": (GRID, 1000.0, 2.0),
    "a window of everything": (GRID, 1.0, 1e9),
    "a window below the spacing": (GRID, 1.0, 0.4),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_hard_space_gets_an_audited_answer_between_valid_bounds(name):
    space, epsilon, window = SPACES[name]
    judged(mdp.Problem(space, epsilon), window=window)


def squares(a, b):
    return ((a - b) ** 2).sum(axis=-1)


LOSSES = {
    "a table": np.random.default_rng(1).uniform(0, 3, (25, 25)),
    "a function": squares,
    "gains and losses": GRID.distances - 2.0,
    "gains only": GRID.distances - 20.0,
    "nothing": np.zeros((25, 25)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_any_loss_is_stated_as_it_is(name):
    judged(mdp.Problem(GRID, 1.0, loss=LOSSES[name]), window=2.5)


def test_a_loss_of_near_pairs_is_stated_with_what_the_rest_may_cost():
    near = GRID.distances <= 2.6
    table = np.where(near, GRID.distances**1.5, 6.0)
    places = np.nonzero(near)
    stored = sparse.coo_array((table[places], places), shape=near.shape)
    judged(mdp.Problem(GRID, 1.0, loss=mdp.problems.NearLoss(stored, 6.0, 6.0)), window=2.5, loss=table)
    with pytest.raises(InvalidInput, match="must store every pair"):
        mdp.optimal(mdp.Problem(GRID, 1.0, loss=mdp.problems.NearLoss(stored, 2.6, 6.0)), window=3.0)


def test_most_of_the_prior_is_zero():
    prior = np.zeros(25)
    prior[[3, 7, 19]] = 0.2, 0.3, 0.5
    judged(mdp.Problem(GRID, 1.0, prior=prior), window=4.5)


REPORTS = {
    "four reports": ([[1, 1], [3, 3], [1, 3], [3, 1]], 3.5),
    "one report": ([[1, 1]], 4.5),
    "a report that nobody needs": ([[0, 0], [1, 1], [3, 3], [100, 100]], 6.0),
    "reports beyond the variables of some secrets": ([[0, 0], [0, 1], [1, 0]], 7.0),
}


@pytest.mark.parametrize("name", REPORTS)
def test_other_reports_than_secrets(name):
    reports, window = REPORTS[name]
    epsilon = 4.0 if "variables" in name else 1.0
    judged(mdp.Problem(GRID, epsilon, outputs=plane(reports)), window=window)


def test_a_secret_without_a_report_in_its_window_is_named():
    with pytest.raises(InvalidInput, match=r"secret 3 has no report within 2: .* a larger `window`"):
        mdp.optimal(mdp.Problem(GRID, 1.0, outputs=plane([[0, 0], [1, 1]])), window=2.0)


def test_a_small_window_says_what_it_costs_and_what_to_do():
    note = judged(mdp.Problem(GRID, 1.0), window=1.0, seconds=20.0).note
    assert "of all draws" in note
    assert "a larger `window` makes that less" in note
    assert "time or iterations" not in note  # neither was up


def test_a_disconnected_network_is_refused():
    pairs, lengths = ring(8)
    with pytest.raises(InvalidInput, match="one connected part"):
        mdp.optimal(mdp.Problem(network([*pairs, (8, 9)], [*lengths, 1.0], 10), 1.0), window=3.0)


def test_crossings_at_one_place_are_refused():
    with pytest.raises(InvalidInput, match="distinct"):
        plane([[0, 0], [1, 0], [0, 0]])
    with pytest.raises(InvalidInput):
        mdp.optimal(mdp.Problem(network(*ring(6, s2=0.0), 6), 1.0), window=1.0)


@pytest.mark.parametrize("window", [0.0, -1.0, np.nan, np.inf, "1km"])
def test_a_window_must_be_a_length(window):
    with pytest.raises(InvalidInput, match="`window` must be a positive"):
        mdp.optimal(mdp.Problem(GRID, 1.0), window=window)


@pytest.mark.parametrize("gap", [-1.0, np.nan])
def test_a_gap_must_not_be_negative(gap):
    with pytest.raises(InvalidInput, match="`gap` must be"):
        mdp.optimal(mdp.Problem(GRID, 1.0), window=1.0, gap=gap)


def test_what_does_not_fit_into_memory_is_refused_with_what_it_would_take(monkeypatch):
    monkeypatch.setattr(build, "free_memory", lambda: 20_000.0)
    with pytest.raises(InvalidInput, match=r"25 secrets with about \d+ reports within 3 .* GB .* hours .* districts"):
        mdp.optimal(mdp.Problem(GRID, 1.0), window=3.0)


def test_a_million_crossings_are_judged_in_seconds(monkeypatch):
    side = 1000
    codes = np.arange(side * side).reshape(side, side)
    pairs = np.concatenate(
        [
            np.stack([codes[:, :-1].ravel(), codes[:, 1:].ravel()], 1),
            np.stack([codes[:-1].ravel(), codes[1:].ravel()], 1),
        ]
    )
    places = np.stack(np.divmod(codes.ravel(), side), 1) / 10.0
    metric = mdp.ShortestPath(pairs, np.full(len(pairs), 0.1), side * side)
    space = mdp.FiniteSpace(codes.ravel(), metric, coordinates=places, ground=mdp.Lp(2))
    monkeypatch.setattr(build, "free_memory", lambda: 20e9)
    with pytest.raises(InvalidInput, match=r"1,000,000 secrets .* GB .* hours .* Raise epsilon"):
        mdp.optimal(mdp.Problem(space, 10.0), gap=0.05)


def test_memory_that_runs_out_in_the_middle_ends_in_a_sentence(monkeypatch):
    def full(task, options):
        raise MemoryError

    monkeypatch.setattr(build, "solve_local", full)
    with pytest.raises(SolverFailure, match="do not fit into memory"):
        mdp.optimal(mdp.Problem(GRID, 1.0), window=3.0)


def test_a_crowd_beside_scattered_and_far_points_is_joined_by_few_edges():
    rng = np.random.default_rng(2)
    parts = [rng.uniform(0, 1, (350, 2)), rng.uniform(0, 60, (100, 2)), rng.uniform(0, 60, (3, 2)) + 1e5]
    space = plane(np.concatenate(parts))
    pairs, lengths, _ = edges.spanner_of(space, 1.03, 4.0)
    assert len(np.unique(np.sort(pairs, axis=1), axis=0)) == len(pairs) < 20 * len(space)
    np.testing.assert_allclose(lengths, np.linalg.norm(np.diff(space.points[pairs], axis=1)[:, 0], axis=1), rtol=1e-12)
    links = sparse.coo_array((lengths, tuple(pairs.T)), shape=(len(space), len(space)))
    assert sparse.csgraph.connected_components(links, directed=False)[0] == 1


def test_ways_along_edges_between_scattered_points_are_as_short_as_asked_for():
    space = plane(np.random.default_rng(4).uniform(0, 17, (290, 2)))
    pairs, lengths, stretch = edges.spanner_of(space, 1.03, 6.0)
    links = sparse.coo_array((lengths, tuple(pairs.T)), shape=(len(space), len(space)))
    ways = sparse.csgraph.shortest_path(links, directed=False)
    near = (space.distances > 0) & (space.distances <= 6.0)
    assert (ways[near] / space.distances[near]).max() <= 1.04
    assert stretch <= 1.04


def test_a_few_points_of_their_own_far_away_cost_the_city_nothing():
    city = mdp.grid((12, 12)).points
    apart = np.random.default_rng(3).uniform(0, 5, (6, 2)) + 12_000.0
    rounds = mdp.solvers.FirstOrder(iterations=2_000)
    alone, joined = (
        mdp.optimal(mdp.Problem(plane(points), 3.0), window=9.0, gap=0.05, solver=rounds).certificate
        for points in (city, np.concatenate([city, apart]))
    )
    assert joined.gap <= alone.gap + 0.03


@pytest.mark.parametrize("seed", [32, 35, 71, 107, 256, 1, 2, 3])  # of the first five the edges left detours uncharged
def test_drawn_clusters_of_all_scales_are_protected_at_every_pair(seed):
    rng = np.random.default_rng(seed)
    count, scale = int(rng.integers(1, 4)), 10.0 ** rng.integers(-1, 4)
    parts = [
        rng.normal(size=(int(rng.integers(1, 9)), 2)) * 10.0 ** rng.uniform(-2, 0.5) + rng.normal(size=2) * scale
        for _ in range(count)
    ]
    space = mdp.FiniteSpace(np.concatenate(parts), mdp.Lp([2, 1, np.inf, 3][seed % 4]))
    epsilon, away = 10.0 ** rng.uniform(-2, 1.5), space.distances[space.distances > 0]
    window = float(rng.choice([0.5, 1, 2])) * np.quantile(away, rng.uniform(0.05, 1))
    loss = None if seed % 3 else rng.normal(size=space.distances.shape) * 10.0 ** rng.uniform(-3, 3)
    prior = rng.dirichlet(np.full(len(space), 0.5))
    judged(mdp.Problem(space, epsilon, prior=prior, loss=loss), window=window, seconds=0.3)
