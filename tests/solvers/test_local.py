"""The parts of the solver on windows: bounds that nothing goes below, laws that keep every ratio, the GPU's text."""

from __future__ import annotations

import itertools
import shutil

import numpy as np
import pytest

import fake_cupy
import metricdp as mdp
from brute import euclid, least_loss
from metricdp.metrics import NeighbourRows

pytest.importorskip("numba", reason="windows take the extra `fast`")

from metricdp.solvers.local.cores import LocalCores
from metricdp.solvers.local.program import LocalProgram, bound_of
from metricdp.solvers.local.repair import HostClosing, Polish, repair_columns
from metricdp.solvers.local.windows import RatioGraph, SecretWindows


def rows_of(mask, distances):
    starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int64)
    return NeighbourRows(starts, np.nonzero(mask)[1].astype(np.int32), distances[mask])


def drawn(seed, size=None):
    """Return a drawn problem: distances, which entries windows hold (some per row), loss and prior."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8)) if size is None else size
    m = n if seed % 3 else int(rng.integers(2, n + 1))
    points = rng.uniform(0, 3, (n, 2))
    away = euclid(points, points[:m])
    mask = away <= np.maximum(rng.uniform(0.3, 2.0), away.min(axis=1, keepdims=True))
    loss = away if seed % 2 else rng.normal(size=(n, m))
    prior = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8)
    prior = prior / prior.sum() if prior.sum() else np.full(n, 1.0 / n)
    return rng, euclid(points), away, mask, loss, prior


def graph_of(distances, epsilon):
    pairs = np.array(list(itertools.combinations(range(len(distances)), 2)))
    return RatioGraph(len(distances), pairs, epsilon * distances[pairs[:, 0], pairs[:, 1]])


def program_of(distances, away, mask, cost, epsilon):
    beyond = np.where(mask, np.inf, cost).min(axis=1)
    windows = SecretWindows(rows_of(mask, away), mask.shape[1])
    return LocalProgram(windows, graph_of(distances, epsilon), cost[mask], beyond)


def start_of(mask):
    return (mask / mask.sum(axis=1, keepdims=True))[mask].astype(np.float32)


@pytest.mark.parametrize("seed", range(30))
def test_no_multipliers_prove_more_than_the_optimum_of_all_mechanisms(seed):
    rng, distances, away, mask, loss, prior = drawn(seed)
    epsilon = float(rng.choice([0.3, 1.0, 4.0]))
    best = least_loss(loss, prior, epsilon * distances)
    state = LocalCores(program_of(distances, away, mask, prior[:, None] * loss, epsilon), start_of(mask))
    room = 1e-8 * np.abs(loss).max()
    for size in (0.0, 1e-3, 1.0, 1e3, np.nan):
        assert bound_of(state.program, (size * rng.normal(size=len(state.dual))).astype(np.float32)) <= best + room
    for _ in range(4):
        state.advance(60, 1.0)
        assert state.lower() <= best + room
        state.restart()


def dense(distribution, mask):
    table = np.tile(distribution.background.astype(np.float64), (len(mask), 1))
    table[mask] = distribution.values.astype(np.float64)
    return table


def worst(table, graph, log_ratios):
    """Return how far |ln p_ik - ln p_jk| lies above the log ratio of an edge at most."""
    logs = np.log(table / table.sum(axis=1, keepdims=True))
    first, second = graph.pairs.T
    return float((np.abs(logs[first] - logs[second]).max(axis=1) - log_ratios).max())


def closing_of(seed, size=14, epsilon=2.0):
    rng, distances, away, mask, loss, _ = drawn(seed, size)
    windows, graph = SecretWindows(rows_of(mask, away), mask.shape[1]), graph_of(distances, epsilon)
    positions = np.arange(windows.size)
    return rng, HostClosing(windows, graph, np.ascontiguousarray(loss[mask]), positions), mask


@pytest.mark.parametrize("seed", range(8))
def test_any_point_is_repaired_to_a_law_that_keeps_every_ratio_as_stored(seed):
    rng, closing, mask = closing_of(seed)
    point = (rng.random(closing.windows.size) ** 4 * (rng.random(closing.windows.size) < 0.6)).astype(np.float32)
    log_ratios = closing.graph.log_ratios * (1.0 if seed % 2 else 0.9)
    distribution = repair_columns(closing, point, closing.windows, closing.graph, log_ratios)
    assert worst(dense(distribution, mask), closing.graph, log_ratios) <= 0.0


@pytest.mark.parametrize("room", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_balancing_brings_sums_together_and_breaks_no_ratio(seed, room):
    rng, closing, mask = closing_of(seed)
    decay = np.exp(-closing.graph.log_ratios)
    closing.load(rng.random(closing.windows.size).astype(np.float32))
    closing.close(decay ** (1.0 - room), None)
    sums = closing.sums()[0]
    target = float(np.median(sums))
    before = np.abs(sums - target)
    closing.balance(decay, target, 20, None)
    after = np.abs(closing.sums()[0] - target)
    table = np.tile(closing.background, (len(mask), 1))
    table[mask] = closing.values
    logs = np.log(table)
    first, second = closing.graph.pairs.T
    assert (np.abs(logs[first] - logs[second]).max(axis=1) - closing.graph.log_ratios).max() <= 1e-12
    np.testing.assert_allclose(closing.sums()[0], table.sum(axis=1), rtol=1e-12)
    assert np.all(after <= before + 1e-12)
    if room:  # what ratios allow is used
        assert after.sum() < 0.5 * before.sum()


@pytest.mark.parametrize("seed", range(6))
def test_columns_closed_again_from_changed_edges_are_those_closed_from_scratch(seed):
    rng, closing, mask = closing_of(seed, size=24)
    decay = np.exp(-closing.graph.log_ratios)
    closing.load(rng.random(closing.windows.size) ** 3)
    closing.close(decay, None)
    again = closing_of(seed, size=24)[1]
    again.load(closing.values.copy())
    changed = rng.choice(len(decay), 2, replace=False)
    decay[changed] **= 0.4
    touched = np.zeros(len(mask), dtype=np.bool_)
    touched[closing.graph.pairs[changed]] = True
    assert 4 * touched.sum() <= len(mask)  # or everything is closed again
    closing.close(decay, touched)
    again.close(decay, None)
    np.testing.assert_allclose(closing.values, again.values, rtol=1e-14)
    np.testing.assert_allclose(closing.background, again.background, rtol=1e-14)


def test_a_street_of_no_length_to_speak_of_ends_in_equal_rows():
    rng, closing, mask = closing_of(1)
    log_ratios = closing.graph.log_ratios.copy()
    log_ratios[5] = 1e-14
    distribution = repair_columns(closing, rng.random(closing.windows.size), closing.windows, closing.graph, log_ratios)
    i, j = closing.graph.pairs[5]
    table = dense(distribution, mask)
    np.testing.assert_array_equal(table[i], table[j])
    assert worst(table, closing.graph, log_ratios) <= 1e-15


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler")
    return fake_cupy.build(tmp_path_factory.mktemp("kernels"), "local")


@pytest.fixture
def device(library, monkeypatch):
    from metricdp.solvers.local import device

    fake_cupy.install(library, monkeypatch, device)
    yield device
    device.kernels.cache_clear()


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_iterates_on_the_gpu_are_those_of_the_cores(device, seed):
    _, distances, away, mask, loss, prior = drawn(seed, 12)
    program = program_of(distances, away, mask, prior[:, None] * loss, 1.5)
    host, other = LocalCores(program, start_of(mask)), device.LocalDevice(program, start_of(mask))
    for count in (1, 20, 20):
        assert other.advance(count, 1.0) == pytest.approx(host.advance(count, 1.0), rel=1e-2, abs=1e-6)
        np.testing.assert_allclose(other.primal(), host.primal(), atol=1e-4)
        assert other.lower() == pytest.approx(host.lower(), abs=1e-4)
        assert other.objective() == pytest.approx(host.objective(), abs=1e-4)
        assert other.restart() == pytest.approx(host.restart(), rel=1e-2, abs=1e-4)
    other.keep()
    # the same multipliers prove the same, whoever computes it
    assert other.lower() == pytest.approx(bound_of(host.program, other.kept()), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_repair_on_the_gpu_is_that_of_the_host(device, seed):
    rng, host, mask = closing_of(seed)
    other = device.DeviceClosing(host.windows, host.graph, host.loss, host.positions)
    point = rng.random(host.windows.size).astype(np.float32)
    decay = np.exp(-host.graph.log_ratios)
    for closing in (host, other):
        closing.load(point)
        closing.close(decay, None)
    np.testing.assert_allclose(other.values, host.values, rtol=1e-14)
    np.testing.assert_allclose(other.background, host.background, rtol=1e-14)
    for closing in (host, other):
        closing.balance(decay, 1.0, 3, None)
    np.testing.assert_allclose(other.values, host.values, rtol=1e-9)
    for mine, theirs in zip(other.sums(), host.sums(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    distribution = repair_columns(other, point, host.windows, host.graph, host.graph.log_ratios)
    assert worst(dense(distribution, mask), host.graph, host.graph.log_ratios) <= 0.0


def test_a_whole_run_on_the_gpu_ends_between_the_bounds_of_brute_force(device):
    space = mdp.grid((5, 5))
    problem = mdp.Problem(space, 1.5)
    mechanism = mdp.optimal(problem, window=4.5, gap=0.1, seconds=120, solver=mdp.solvers.Gpu())
    best = least_loss(problem.loss, problem.prior, 1.5 * space.distances)
    found = mechanism.certificate
    assert found.lower_bound <= best * (1 + 1e-9) <= found.loss * (1 + 1e-8)
    assert found.gap <= 0.15
    assert mdp.audit(mechanism).verdict == "holds"


def test_windows_wider_than_the_fast_memory_of_a_block_lie_in_arrays(device, monkeypatch):
    _, distances, away, mask, loss, prior = drawn(3, 12)
    program = program_of(distances, away, mask, prior[:, None] * loss, 1.5)
    rng, host, _ = closing_of(1)
    point = rng.random(host.windows.size).astype(np.float32)
    found = []
    for shared in (device.SHARED, 1):
        iterates = device.LocalDevice(program, start_of(mask))
        iterates.advance(20, 1.0)
        closing = device.DeviceClosing(host.windows, host.graph, host.loss, host.positions)
        monkeypatch.setattr(device, "SHARED", shared)
        closing.load(point)
        closing.close(np.exp(-host.graph.log_ratios), None)
        found.append((iterates.lower(), closing.values.copy(), closing.background.copy()))
    for wide, narrow in zip(*found, strict=True):
        np.testing.assert_array_equal(wide, narrow)


def test_a_reach_wider_than_the_fast_memory_of_a_block_is_refused(device, monkeypatch):
    monkeypatch.setattr(device, "SHARED", 32)
    with pytest.raises(mdp.errors.InvalidInput, match="raise epsilon, allow a larger `gap`"):
        mdp.optimal(mdp.Problem(mdp.grid((5, 5)), 1.5), window=4.5, solver=mdp.solvers.Gpu())


def street_program(seed, size=40, epsilon=2.0):
    """Return a program on a line of streets, some of them very short, and the closing of all its entries."""
    rng = np.random.default_rng(seed)
    lengths = rng.choice([0.001, 0.01, 0.1, 0.3], size - 1)
    places = np.concatenate([[0.0], np.cumsum(lengths)])
    distances = np.abs(places[:, None] - places)
    pairs = np.stack([np.arange(size - 1), np.arange(1, size)], axis=1)
    mask = np.ones((size, size), dtype=bool)
    windows = SecretWindows(rows_of(mask, distances), size)
    graph = RatioGraph(size, pairs, epsilon * lengths)
    cost = rng.dirichlet(np.ones(size))[:, None] * distances
    program = LocalProgram(windows, graph, cost.ravel(), np.full(size, np.inf))
    closing = HostClosing(windows, graph, distances.ravel(), np.arange(windows.size))
    return program, closing, mask


def loss_of(program, distribution, mask):
    table = dense(distribution, mask)
    return float((program.cost.reshape(mask.shape) * table / table.sum(axis=1, keepdims=True)).sum())


@pytest.mark.parametrize("seed", range(4))
def test_a_polished_distribution_keeps_all_ratios_and_costs_little_more_than_the_bound(seed):
    program, closing, mask = street_program(seed)
    state = LocalCores(program, start_of(mask))
    for _ in range(30):
        state.advance(100, 10.0)
        state.restart()
    point, dual = state.point.copy(), state.dual_point.copy()
    graph = closing.graph
    distribution = Polish(state, closing, graph, np.full(graph.size, 4e-3)).distribution()
    assert worst(dense(distribution, mask), graph, graph.log_ratios) <= 0.0
    loss = loss_of(program, distribution, mask)
    charged = repair_columns(closing, state.point, closing.windows, graph, graph.log_ratios)
    assert loss <= 1.02 * loss_of(program, charged, mask)
    assert loss <= 1.03 * state.lower()
    np.testing.assert_array_equal(state.point, point)  # the search goes on where it was
    np.testing.assert_array_equal(state.dual_point, dual)


def test_a_polished_distribution_on_the_gpu_is_about_that_of_the_cores(device):
    program, closing, mask = street_program(5, size=25)
    losses = []
    for build in (LocalCores, device.LocalDevice):
        state = build(program, start_of(mask))
        for _ in range(10):
            state.advance(50, 10.0)
            state.restart()
        polish = Polish(state, closing, closing.graph, np.full(closing.graph.size, 4e-3))
        distribution = polish.distribution()
        assert worst(dense(distribution, mask), closing.graph, closing.graph.log_ratios) <= 0.0
        losses.append(loss_of(program, distribution, mask))
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
