"""Losses of predicted traces beside their bounds: exact by brute force, and never below what anything could reach."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.mobility import (
    Absorption,
    Distribution,
    FixedRate,
    FixedUtility,
    TraceRun,
    predictive,
    step_loss,
    trace_loss,
    zones,
)

PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
TRIANGLE = mdp.FiniteSpace(PLACES, mdp.Lp(2))
APART = np.linalg.norm(PLACES[:, None] - PLACES[None], axis=-1)
START = np.array([0.5, 0.3, 0.2])
MOVES = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])


def least(prior, losses, ratios):
    """The least mean loss of any table whose rows keep ln p(y | i) - ln p(y | j) <= ratios[i, j]: a linear program."""
    n, m = losses.shape
    rows = []
    for i, j in itertools.permutations(range(n), 2):
        for y in range(m):
            row = np.zeros((n, m))
            row[i, y], row[j, y] = 1.0, -np.exp(ratios[i, j])
            rows.append(row.ravel())
    sums = np.kron(np.eye(n), np.ones(m))
    done = linprog((prior[:, None] * losses).ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(n))
    assert done.status == 0
    return done.fun


def runs_of(mechanism, steps):
    """Every run of the mechanism, as lists of (report, fresh, step)."""

    def go_on(run):
        if len(run) == steps:
            yield run
            return
        step = mechanism.budget(run)
        prediction = mechanism.predict(run, step)
        near = mechanism.finite.outcome_probabilities(prediction, step)[0]
        ways = [(prediction, False)] if near.any() else []
        ways += [(report, True) for report in range(3) if step.noise]
        for report, fresh in ways:
            longer = run.copy()
            longer.add(report, step, fresh=fresh)
            yield from go_on(longer)

    return list(go_on(TraceRun()))


@pytest.mark.parametrize("budget", [FixedUtility(3.0), FixedRate(1.0), Distribution(2, 4.0), Absorption(2, 4.0)])
def test_the_loss_of_whole_traces_is_that_of_brute_force_and_its_bound_that_of_a_linear_program(budget):
    mechanism, steps = predictive(TRIANGLE, budget=budget), 2
    loss = cost = 0.0
    most, whole = np.zeros(steps), 0.0
    for run in runs_of(mechanism, steps):
        table = mechanism.likelihoods(run)
        whole = max(whole, run.spent)
        most = np.maximum(most, [step.most for step in run.steps])
        for trace in itertools.product(range(3), repeat=steps):
            chance = START[trace[0]] * MOVES[trace[0], trace[1]] * table[0, trace[0]] * table[1, trace[1]]
            loss += chance * sum(APART[x, y] for x, y in zip(trace, run.reports, strict=True)) / steps
            cost += chance * run.spent / steps
    found = trace_loss(mechanism, steps, start=START, transitions=MOVES, gap=1e-4)
    assert found.loss == pytest.approx(loss, rel=1e-9)
    assert found.spent == pytest.approx(cost, rel=1e-9)
    traces = list(itertools.product(range(3), repeat=steps))
    parts = np.array([[[APART[a[t], b[t]] for b in traces] for a in traces] for t in range(steps)])
    ratios = np.minimum(most @ parts.reshape(steps, -1), whole * parts.max(axis=0).ravel()).reshape(9, 9)
    prior = np.array([START[a] * MOVES[a, b] for a, b in traces])
    assert found.lower_bound == pytest.approx(least(prior, parts.mean(axis=0), ratios), rel=1e-3)
    assert found.lower_bound <= found.loss
    assert found.above == pytest.approx(found.loss / found.lower_bound - 1)


def test_the_loss_of_a_step_after_its_past_is_that_of_the_posterior_and_its_bound_that_of_a_linear_program():
    mechanism = predictive(TRIANGLE, budget=FixedUtility(3.0))
    run = mechanism.release([0, 0, 1], rng=np.random.default_rng(3))
    found = step_loss(mechanism, [run], start=START, transitions=MOVES, gap=1e-4)
    losses, bounds, distribution, last = [], [], START, None
    for report, step, fresh in zip(run.reports, run.steps, run.fresh, strict=True):
        near, far = mechanism.finite.outcome_probabilities(last, step)
        mean = sum(
            distribution[x] * (near[x] * (0 if last is None else APART[x, last]) + far[x] @ APART[x]) for x in range(3)
        )
        losses.append(mean)
        bounds.append(least(distribution, APART, (step.test + step.noise) * APART))
        distribution = distribution * (far[:, report] if fresh else near)
        distribution, last = distribution / distribution.sum() @ MOVES, report
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-9)
    assert found.lower_bound == pytest.approx(np.mean(bounds), rel=1e-3)
    assert found.steps == 3
    assert "above it" in str(found)


@pytest.mark.parametrize("seed", range(6))
def test_no_release_of_traces_or_zones_loses_less_than_its_bound_on_random_spaces(seed):
    rng = np.random.default_rng(seed)
    space = mdp.FiniteSpace(rng.uniform(0, 4, (4, 2)), mdp.Lp((1, 2, np.inf)[seed % 3]))
    size = float(np.median(space.distances[space.distances > 0])) * rng.uniform(0.3, 4.0)
    budgets = (FixedUtility(size), FixedRate(2.0 / size), Distribution(2, 4.0 / size), Absorption(2, 4.0 / size))
    found = trace_loss(predictive(space, budget=budgets[seed % 4]), 2)
    assert 0 < found.lower_bound <= found.loss
    zone = zones(space, [0], radius=size / 2, scale=rng.uniform(0.05, 1.0))
    best = mdp.optimal(mdp.Problem(zone.space, 2.0 / size, loss=space.distances), gap=1e-3).certificate
    plain = mdp.expected_loss(mdp.exponential(zone.space, 2.0 / size), loss=space.distances)
    assert best.lower_bound <= min(best.loss, plain)
    # Distances only shrink in a zone, so its optimum cannot do better than that of the places themselves.
    assert best.loss >= mdp.optimal(mdp.Problem(space, 2.0 / size), gap=1e-3).certificate.lower_bound


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: trace_loss(predictive(TRIANGLE, budget=FixedUtility(1.0)), 9), "at most 512"),
        (lambda: trace_loss(predictive(TRIANGLE, budget=FixedUtility(1.0, total=4.0)), 3), "ends before"),
        (lambda: trace_loss(predictive(mdp.Lp(2), budget=FixedUtility(1.0)), 2), "FiniteSpace"),
        (lambda: step_loss(predictive(TRIANGLE, budget=FixedUtility(1.0)), [], start=START, transitions=MOVES), "one"),
        (
            lambda: step_loss(predictive(TRIANGLE, budget=FixedUtility(1.0)), [], start=START, transitions=np.eye(2)),
            "3 x 3",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        call()
