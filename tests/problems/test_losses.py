"""Losses of pairs, and bounds of all that is not near, held against loops over all pairs."""

import math

import numpy as np
import pytest
from scipy import sparse

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.problems import LossSpec, losses


def squared(a, b):
    return ((np.asarray(a) - np.asarray(b)) ** 2).sum(axis=-1) - 0.25  # losses below 0 are losses too


def road(n, rng, parts=1):
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    edges = np.concatenate([ring, rng.integers(0, n, (n // 2, 2))])
    edges = edges[(edges[:, 0] != edges[:, 1]) & (edges[:, 0] * parts // n == edges[:, 1] * parts // n)]
    return mdp.FiniteSpace(np.arange(n), mdp.ShortestPath(edges, rng.uniform(0.3, 2.0, len(edges)), n))


def spaces(rng):
    """Return secrets and reports: the same, others, on the plane, on the Earth, along roads."""
    plane = mdp.FiniteSpace(rng.uniform(0, 5, (31, 2)), mdp.Lp(2))
    earth = mdp.FiniteSpace(rng.uniform([41.0, 12.0], [41.1, 12.1], (25, 2)), mdp.Haversine())
    roads = road(40, rng)
    return [
        (plane, plane),
        (plane, mdp.FiniteSpace(rng.uniform(0, 5, (18, 2)), mdp.Lp(1))),
        (earth, earth),
        (roads, roads),
        (roads, mdp.FiniteSpace(rng.permutation(40)[:22], roads.metric)),
    ]


def kinds(inputs, outputs, rng):
    """Return (what to give as loss, all losses, which of them are known exactly)."""
    n, m = len(inputs), len(outputs)
    apart = np.array([[float(inputs.metric(a, b)) for b in outputs.points] for a in inputs.points])
    if inputs is outputs:
        apart = np.minimum(apart, apart.T)
    known = np.ones((n, m), dtype=bool)
    yield None, apart, known
    table = rng.normal(size=(n, m))
    yield table, table, known
    drawn = np.array([[float(squared(a, b)) for b in outputs.points] for a in inputs.points])
    yield squared, drawn, known
    if inputs is outputs:  # another metric of the same places
        line = rng.permutation(n).astype(float)
        yield mdp.FiniteSpace(line[:, None], mdp.Lp(1)), np.abs(line[:, None] - line), known
    stored = (rng.random((n, m)) < 0.6) | (apart <= np.quantile(apart, 0.4))
    yield (
        mdp.problems.NearLoss(sparse.coo_array((table[stored], np.nonzero(stored)), (n, m)), table[~stored].min(), 5.0),
        table,
        stored,
    )


@pytest.mark.parametrize("seed", range(3))
def test_every_kind_of_loss_against_all_pairs(seed):
    rng = np.random.default_rng(seed)
    for inputs, outputs in spaces(rng):
        apart = inputs.distances_to(outputs)
        distribution = rng.random(len(outputs)) * (rng.random(len(outputs)) < 0.7)
        for given, truth, known in kinds(inputs, outputs, rng):
            problem = mdp.Problem(inputs, 1.0, outputs=outputs, loss=given)
            assert problem.loss_is_distance == (given is None)
            rows, columns = np.nonzero(known)
            np.testing.assert_allclose(problem.losses(rows, columns), truth[known], rtol=1e-13)
            most = problem.most_beyond(distribution)
            dearest = np.where(known, truth, 5.0) @ distribution
            assert np.all(most >= dearest - 1e-300)
            np.testing.assert_allclose(most, dearest, rtol=1e-9, atol=1e-12)
            for share in (0.1, 0.4, 1.0):
                near = inputs.near(float(np.quantile(apart[apart > 0], share)), outputs)
                listed = apart <= near.radius
                least = problem.least_beyond(near)
                for i in range(len(inputs)):
                    outside = truth[i][~listed[i]]
                    assert least[i] <= outside.min(initial=math.inf)
                    if isinstance(given, np.ndarray | mdp.FiniteSpace) or callable(given):
                        assert least[i] == pytest.approx(outside.min(initial=math.inf), rel=1e-13)
                    elif given is None:
                        assert least[i] == (near.radius if len(outside) else math.inf)
                    else:
                        assert least[i] >= min(given.least, outside.min(initial=math.inf))
                if known[listed].all():
                    np.testing.assert_allclose(problem.near_losses(near), truth[listed], rtol=1e-13)


@pytest.mark.parametrize("count", [1, 3, 20])
def test_landmarks_bound_what_a_law_costs(count, monkeypatch):
    monkeypatch.setattr(losses, "WORTH_LANDMARKS", 0)
    monkeypatch.setattr(losses.landmark_bound, "__kwdefaults__", {"count": count})
    rng = np.random.default_rng(count)
    for inputs, outputs in spaces(rng):
        apart = inputs.distances_to(outputs)
        problem = mdp.Problem(inputs, 1.0, outputs=outputs)
        for distribution in (np.ones(len(outputs)), rng.random(len(outputs)) ** 9, np.eye(len(outputs))[3]):
            true = np.array([math.fsum(row) for row in apart * distribution])
            bound = problem.most_beyond(distribution)
            assert np.all(bound >= true)
            assert np.all(bound <= true + 2.0 * distribution.sum() * apart.max() * (1 + 1e-6))
        one = np.eye(len(outputs))[5]
        np.testing.assert_allclose(problem.most_beyond(one), apart[:, 5], rtol=1e-7, atol=1e-7)
        assert np.all(problem.most_beyond(np.zeros(len(outputs))) == 0.0)


def test_the_loss_of_another_metric_is_bounded_without_all_pairs(monkeypatch):
    monkeypatch.setattr(losses, "WORTH_LANDMARKS", 0)
    monkeypatch.setattr(losses, "BLOCK_PAIRS", 500)
    rng = np.random.default_rng(2)
    points = rng.uniform(0, 10, (80, 2))
    plane, other = mdp.FiniteSpace(points, mdp.Lp(2)), mdp.FiniteSpace(points * [1.0, 3.0], mdp.Lp(1))
    problem = mdp.Problem(plane, 1.0, loss=other)
    assert not problem.loss_is_distance
    assert "another metric" in repr(problem)
    for radius in (0.5, 3.0, 20.0):
        near, listed = plane.near(radius), plane.distances <= radius
        least = problem.least_beyond(near)
        outside = np.where(listed, np.inf, other.distances).min(axis=1)
        assert np.all(least <= outside)
        assert np.all((least > 0) | np.isinf(outside))
        assert np.isinf(least[np.isinf(outside)]).all()
        np.testing.assert_array_equal(problem.near_losses(near), other.distances[listed])
    with pytest.raises(InvalidInput, match="it has 80 places"):
        mdp.Problem(mdp.grid((3, 3)), 1.0, loss=other)


def test_many_landmarks_come_close(monkeypatch):
    monkeypatch.setattr(losses, "WORTH_LANDMARKS", 0)
    space = mdp.FiniteSpace(np.random.default_rng(1).uniform(0, 10, (900, 2)), mdp.Lp(2))
    distribution = np.full(900, 1 / 900)
    mean = space.distances.mean(axis=1)
    bound = mdp.Problem(space, 1.0).most_beyond(distribution)
    assert np.all(bound >= mean)
    assert np.all(bound <= 1.25 * mean)


def test_a_law_on_a_part_that_no_road_reaches_costs_without_end(monkeypatch):
    monkeypatch.setattr(losses, "WORTH_LANDMARKS", 0)
    space = road(40, np.random.default_rng(0), parts=2)
    problem = mdp.Problem(space, 1.0)
    assert np.all(np.isinf(problem.most_beyond(np.ones(40))))
    first = (np.arange(40) < 20).astype(float)
    bound = problem.most_beyond(first)
    assert np.all(np.isfinite(bound[:20]))
    assert np.all(np.isinf(bound[20:]))


def test_a_function_is_evaluated_in_blocks(monkeypatch):
    space = mdp.FiniteSpace(np.random.default_rng(0).uniform(0, 5, (30, 2)), mdp.Lp(2))
    whole = mdp.Problem(space, 1.0, loss=squared)
    near, distribution = space.near(1.0), np.random.default_rng(1).random(30)
    found = [whole.loss, whole.most_beyond(distribution), whole.least_beyond(near)]
    monkeypatch.setattr(losses, "BLOCK_PAIRS", 70)
    again = mdp.Problem(space, 1.0, loss=squared)
    for one, other in zip(found, [again.loss, again.most_beyond(distribution), again.least_beyond(near)], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    assert "squared" in repr(again)
    monkeypatch.setattr(losses, "MOST_EVALUATED", 899)
    with pytest.raises(InvalidInput, match=r"mdp\.problems\.NearLoss"):
        again.most_beyond(distribution)
    monkeypatch.setattr(losses, "MOST_CELLS", 899)
    with pytest.raises(InvalidInput, match=r"would take 0 GB.*problem\.losses"):
        _ = mdp.Problem(space, 1.0, loss=squared).loss


def test_a_function_that_returns_something_else_is_told_what_to_return():
    space = mdp.grid((3, 3))
    with pytest.raises(InvalidInput, match="one number per pair"):
        mdp.Problem(space, 1.0, loss=lambda a, b: np.abs(a - b)).losses([0, 1], [1, 2])
    with pytest.raises(InvalidInput, match="finite"):
        mdp.Problem(space, 1.0, loss=lambda a, b: np.full(len(a), np.nan)).losses([0], [1])


def test_builders_take_a_function():
    space = mdp.grid((2, 3))
    table = np.array([[float(squared(a, b)) for b in space.points] for a in space.points])
    made = mdp.optimal(mdp.Problem(space, 1.0, loss=squared), gap=1e-3)
    again = mdp.optimal(mdp.Problem(space, 1.0, loss=table), gap=1e-3)
    assert made.certificate.loss == pytest.approx(again.certificate.loss, rel=2e-3)


def test_a_table_of_near_losses_says_what_it_lacks():
    space = mdp.grid((2, 2))
    table = sparse.csr_array(np.array([[0.5, 1, 0, 0], [1, 0.5, 0, 1], [1, 0, 0.5, 1], [0, 1, 1, 0.5]], dtype=float))
    problem = mdp.Problem(space, 1.0, loss=mdp.problems.NearLoss(table, 1.2, 3.0))
    assert "others from 1.2 to 3" in repr(problem)
    assert problem.losses([0, 1], [1, 3]).tolist() == [1.0, 1.0]
    with pytest.raises(InvalidInput, match=r"secret 0 and report 2 \(1 such pairs\).*those of loss 0"):
        problem.losses([0, 0], [1, 2])
    with pytest.raises(InvalidInput, match="near pairs only"):
        _ = problem.loss
    zero = sparse.coo_array(([0.0, 1.0], ([0, 0], [0, 1])), shape=(4, 4))
    assert mdp.Problem(space, 1.0, loss=mdp.problems.NearLoss(zero, 1.0, 2.0)).losses([0], [0]).tolist() == [0.0]
    with pytest.raises(InvalidInput, match="shape 4 x 4"):
        mdp.Problem(space, 1.0, loss=mdp.problems.NearLoss(table[:3], 1.0, 2.0))
    with pytest.raises(InvalidInput, match="not be above"):
        mdp.problems.NearLoss(table, 3.0, 2.0)
    with pytest.raises(InvalidInput, match=r"scipy\.sparse"):
        mdp.problems.NearLoss(table.toarray(), 1.0, 2.0)
    with pytest.raises(InvalidInput, match="finite"):
        mdp.problems.NearLoss(table, 1.0, math.inf)


def test_pairs_laws_and_near_lists_that_do_not_fit_are_refused():
    space = mdp.grid((3, 3))
    problem = mdp.Problem(space, 1.0)
    for rows, columns in (([0, 1], [0]), ([[0]], [[1]])):
        with pytest.raises(InvalidInput, match="equal length"):
            problem.losses(rows, columns)
    with pytest.raises(InvalidInput, match="rows"):
        problem.losses([9], [0])
    for distribution in (np.ones(8), -np.ones(9)):
        with pytest.raises(InvalidInput, match="`distribution` must be 9"):
            problem.most_beyond(distribution)
    with pytest.raises(InvalidInput, match="`near` must be the near pairs of this problem"):
        problem.least_beyond(mdp.grid((2, 2)).near(1.0))


def test_losses_have_names() -> None:
    towns = mdp.FiniteSpace(np.array([[41.1, -8.6], [41.2, -8.6], [41.2, -8.5]]), mdp.Haversine())
    hops = mdp.policy(towns, [[0, 1], [1, 2]])
    assert LossSpec.named("distance", towns).is_distance
    squared = LossSpec.named("squared", towns)
    assert (squared.unit, squared.is_distance) == ("km²", False)
    np.testing.assert_array_equal(squared.matrix(towns), towns.distances**2)
    ground = LossSpec.named("ground", hops)
    assert ground.unit == "km"
    np.testing.assert_allclose(ground.matrix(hops), towns.distances)
    kept = LossSpec.named("distance", hops, before=towns)  # the promise is in hops, the loss in kilometres
    np.testing.assert_array_equal(kept.matrix(hops), towns.distances)


def test_losses_of_many_places_are_functions_of_pairs() -> None:
    line = mdp.FiniteSpace(np.arange(5_000.0)[:, None], mdp.Lp(2))
    squared = LossSpec.named("squared", line).loss
    assert squared(line.points[[0, 7]], line.points[[3, 7]]).tolist() == [9.0, 0.0]
    streets = mdp.ShortestPath(np.column_stack([np.arange(4_999), np.arange(1, 5_000)]), np.ones(4_999), 5_000)
    roads = mdp.FiniteSpace(np.arange(5_000), streets, coordinates=line.points * 2.0, ground=mdp.Lp(2))
    ground = LossSpec.named("ground", roads).loss
    assert ground(np.array([[0], [7]]), np.array([[3], [8]])).tolist() == [6.0, 2.0]
