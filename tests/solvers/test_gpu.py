"""The GPU's kernels and the code around them, run on the CPU with one thread a block."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import fake_cupy
from metricdp.solvers import edges, solve_ratio
from metricdp.solvers.backends.first_order import FirstOrder
from metricdp.solvers.bounds import lower_bound
from metricdp.solvers.program import RatioProgram
from metricdp.solvers.repair.closure import excess, upper_closure
from programs import scattered, square, worst_excess

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return fake_cupy.build(tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def gpu(library, monkeypatch):
    from metricdp.solvers.backends import cuda, gpu

    fake_cupy.install(library, monkeypatch)
    yield gpu
    cuda.kernels.cache_clear()


def program(width=5, reports=None):
    distances = square(width)
    pairs = edges.lattice(width, width, 2)
    cost = distances / len(distances)
    if reports is not None:
        cost = cost[:, reports]
    return RatioProgram(cost, pairs, distances[pairs[:, 0], pairs[:, 1]]), distances


def test_iterates_like_the_cores(gpu):
    pytest.importorskip("numba")
    task, _ = program(5, reports=np.arange(0, 25, 2))
    from metricdp.solvers.backends.first_order import Cores

    host = Cores(task, None, np.dtype("float32"))
    device = gpu.Device(task, None)
    for count in (1, 30, 30):
        assert device.advance(count, 1.0) == pytest.approx(host.advance(count, 1.0), rel=1e-3)
        np.testing.assert_allclose(device.primal(), host.primal(), atol=2e-5)
        assert device.lower() == pytest.approx(host.lower(), abs=2e-4)
        assert device.objective() == pytest.approx(host.objective(), abs=1e-5)
        assert device.restart() == pytest.approx(host.restart(), rel=1e-3)


def test_own_bound_is_the_bound_of_its_multipliers(gpu):
    task, _ = program()
    answer = gpu.Gpu(gap=1e-9, iterations=400).solve(task)
    again = lower_bound(task.cost, task.edges, task.log_ratios, answer.dual)
    assert answer.bound == pytest.approx(again, abs=1e-6)


def test_closure_and_check_agree_with_the_host(gpu):
    rng = np.random.default_rng(1)
    distances = scattered(70, 3)
    matrix = rng.uniform(0, 1, (70, 9))
    repair = gpu.GpuRepair(rng.uniform(size=(70, 9)), distances)
    np.testing.assert_allclose(repair.close(matrix), upper_closure(matrix, np.asarray(repair.shrunk)), rtol=1e-15)
    assert repair.excess(matrix) == pytest.approx(excess(matrix, distances), abs=1e-12)
    assert repair.excess(matrix) == pytest.approx(worst_excess(matrix, distances), abs=1e-12)


@pytest.mark.parametrize("points", ["grid", "scattered"])
def test_whole_run(gpu, points):
    distances = square(5) if points == "grid" else scattered(26, 5)
    answer = solve_ratio(distances / len(distances), distances, gap=0.02, solver=gpu.Gpu())
    assert worst_excess(answer.matrix, distances) <= 0.0
    assert answer.gap <= 0.02
    if points == "grid":
        assert answer.lower_bound <= 1.228677 * (1 + 1e-6)
        assert answer.objective >= 1.228677 * (1 - 1e-6)


def test_agrees_with_the_first_order_solver(gpu):
    pytest.importorskip("numba")
    task, _ = program(4)
    host = FirstOrder(gap=1e-9, iterations=800).solve(task)
    device = gpu.Gpu(gap=1e-9, iterations=800).solve(task)
    assert device.bound == pytest.approx(host.bound, rel=2e-3)
