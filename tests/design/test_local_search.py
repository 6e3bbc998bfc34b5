"""The search on windows as its caller sees it: time, progress, Ctrl-C, and bounds that cannot lie."""

import time
from dataclasses import replace

import numpy as np
import pytest

import metricdp as mdp
from brute import leakage, least_loss
from metricdp import deadlines
from metricdp.design.local.order import spatial_order

pytest.importorskip("numba", reason="windows take the extra `fast`")

from metricdp.solvers.local.cores import LocalCores


@pytest.fixture(scope="module")
def lattice():
    """A grid in no order at all, with a prior and losses that no symmetry hides a wrong order behind."""
    rng = np.random.default_rng(5)
    space = mdp.FiniteSpace(rng.permutation(mdp.grid((6, 6)).points), mdp.Lp(2))
    loss = space.distances * rng.uniform(0.8, 1.2, (36, 36))
    problem = mdp.Problem(space, 1.5, prior=rng.dirichlet(np.ones(36)), loss=loss)
    return problem, least_loss(loss, problem.prior, 1.5 * space.distances)


def test_progress_rises_from_below_and_falls_from_above(lattice):
    problem, best = lattice
    seen = []
    solver = mdp.solvers.FirstOrder(iterations=3_000)  # looks are counted in iterations: a loaded machine has as many
    mdp.optimal(problem, window=9.0, gap=1e-3, solver=solver, progress=lambda *figures: seen.append(figures))
    lower, upper, seconds, iterations = np.array(seen).T
    assert len(seen) > 2
    for rising in (lower, -upper, seconds, iterations):
        assert np.all(np.diff(rising) >= 0)
    assert np.all(lower <= best * (1 + 1e-9))
    assert np.all(upper >= best * (1 - 1e-9))


def test_time_that_is_up_at_once_leaves_no_more_loss_than_the_kernel_of_the_start(lattice):
    problem, _ = lattice
    mechanism = mdp.optimal(problem, window=9.0, gap=1e-6, seconds=1e-3)
    kernel = np.exp(-1.5 * problem.inputs.distances)
    kernel /= kernel.sum(axis=1, keepdims=True)
    loss = float(problem.prior @ (kernel * problem.loss).sum(axis=1))
    assert mechanism.certificate.loss <= 1.5 * loss  # its rows had to be brought within the promise


def test_an_interrupted_search_returns_the_best_certified_mechanism_so_far(lattice):
    problem, best = lattice

    def impatient(lower, upper, seconds, iterations):
        raise KeyboardInterrupt

    mechanism = mdp.optimal(problem, window=9.0, gap=1e-6, seconds=60, progress=impatient)
    found = mechanism.certificate
    assert "it was interrupted" in found.note
    assert found.lower_bound <= best * (1 + 1e-9) <= found.loss * (1 + 1e-8)
    assert leakage(mechanism.matrix, problem.inputs.distances)[0] <= 1.5 * (1 + 1e-9)


def test_an_interrupt_before_the_first_repair_still_ends_in_a_certified_mechanism(lattice, monkeypatch):
    def interrupted(self, count, weight):
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalCores, "advance", interrupted)
    mechanism = mdp.optimal(lattice[0], window=9.0, gap=1e-6)
    assert "it was interrupted" in mechanism.certificate.note
    assert mdp.audit(mechanism).verdict == "holds"


def test_repairs_that_fail_at_first_end_no_search(lattice, monkeypatch):
    from metricdp.solvers.local import repair, solve

    failures = []

    def failing(*arguments, **options):
        if len(failures) < 2:
            failures.append("a repair")
            raise mdp.errors.SolverFailure("the rows still change too much")
        return repair.repair_columns(*arguments, **options)

    monkeypatch.setattr(solve, "repair_columns", failing)
    monkeypatch.setattr(repair.Polish, "distribution", lambda self: None)
    solver = mdp.solvers.FirstOrder(iterations=3_000)
    mechanism = mdp.optimal(lattice[0], window=9.0, gap=1e-6, solver=solver)
    assert len(failures) == 2
    assert mdp.audit(mechanism).verdict == "holds"


def test_a_small_road_network_is_solved_on_windows_where_these_are_local(monkeypatch):
    monkeypatch.setattr("metricdp.design.local.build.MANY", 100)
    problem = mdp.Problem(mdp.road_network("porto", nodes=150), 30.0)
    made = mdp.optimal(problem, gap=0.05)
    assert isinstance(made, mdp.mechanisms.MatrixMechanism)
    assert "windows" in made.certificate.method
    whole = mdp.optimal(problem, gap=0.02, solver=mdp.solvers.FirstOrder()).certificate
    assert made.certificate.lower_bound <= whole.loss * (1 + 1e-9)
    assert whole.lower_bound <= made.certificate.loss * (1 + 1e-9)
    assert made.certificate.gap <= 0.06
    assert leakage(made.matrix, problem.inputs.distances)[0] <= 30.0 * (1 + 1e-9)


def test_time_is_kept(lattice, monkeypatch):
    mdp.optimal(lattice[0], window=9.0, gap=0.5, seconds=60.0)  # what is compiled for it does not count
    # A busy machine gives this process less of a second: only its own time counts here.
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    monkeypatch.setattr(deadlines, "clock", time.process_time)
    began = time.process_time()
    mechanism = mdp.optimal(lattice[0], window=9.0, gap=1e-9, seconds=2.0)
    assert time.process_time() - began < 5.0  # repair and audit come last
    assert mechanism.certificate.gap < 0.2


@pytest.mark.parametrize("lie", [1.5, 1e9, np.inf, np.nan])
def test_a_bound_that_lies_is_never_certified(lattice, monkeypatch, lie):
    problem, best = lattice
    monkeypatch.setattr(LocalCores, "lower", lambda self: lie * best)
    found = mdp.optimal(problem, window=9.0, gap=0.05, seconds=0.3).certificate
    assert found.lower_bound <= best  # evaluated from the multipliers, whatever was said of them


def test_a_certificate_refuses_a_bound_above_its_loss(lattice):
    found = mdp.optimal(lattice[0], window=9.0, gap=0.5, seconds=0.3).certificate
    with pytest.raises(mdp.MetricdpError):
        replace(found, lower_bound=1.01 * found.loss)


def test_the_spatial_order_is_undone_entry_by_entry(lattice):
    inputs, outputs = lattice[0].inputs, mdp.grid((4, 4), spacing=1.5)
    for reports in (inputs, outputs):
        near = inputs.near(2.5, reports)
        order = spatial_order(inputs, reports, near)
        starts, codes, distances = order.entries
        assert sorted(order.rows) == list(range(len(inputs)))
        assert sorted(order.columns) == list(range(len(reports)))
        assert sorted(order.origin) == list(range(len(near.codes)))
        assert list(order.rows[order.row_rank]) == list(range(len(inputs)))
        for i, row in enumerate(order.rows):
            some = slice(starts[i], starts[i + 1])
            assert np.all(np.diff(codes[some]) > 0)
            for code, away, origin in zip(codes[some], distances[some], order.origin[some], strict=True):
                assert near.starts[row] <= origin < near.starts[row + 1]
                assert near.codes[origin] == order.columns[code]
                assert near.distances[origin] == away


@pytest.mark.parametrize("windows", [{"window": 9.0}, {}])
def test_a_search_goes_on_from_an_earlier_mechanism(lattice, windows):
    problem, best = lattice
    earlier = mdp.optimal(problem, gap=1e-2, **windows)
    hurried = mdp.solvers.FirstOrder(iterations=1)
    cold, warm = (mdp.optimal(problem, gap=1e-6, solver=hurried, start=start, **windows) for start in (None, earlier))
    assert warm.certificate.loss <= 1.002 * earlier.certificate.loss < cold.certificate.loss
    assert warm.certificate.lower_bound <= best * (1 + 1e-9)
    assert leakage(warm.matrix, problem.inputs.distances)[0] <= 1.5 * (1 + 1e-9)


def test_a_start_of_another_shape_is_refused(lattice):
    other = mdp.exponential(mdp.grid((5, 5)), 1.0)
    for windows in ({"window": 9.0}, {}):
        with pytest.raises(mdp.MetricdpError, match="36 secrets and 36 reports, got one for 25 and 25"):
            mdp.optimal(lattice[0], start=other, **windows)
    with pytest.raises(mdp.MetricdpError, match="expected loss"):
        mdp.optimal(lattice[0], objective="worst", start=mdp.exponential(lattice[0].inputs, 1.0))
