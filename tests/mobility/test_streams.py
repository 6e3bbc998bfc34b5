"""Endless streams: no window of steps costs more than its total, whatever the tests say."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.mobility import Absorption, Distribution, StepCost, TraceRun, audit_runs, predictive, window_costs

BUDGETS = [Distribution, Absorption]


def exact_costs(run):
    return [
        Fraction(step.test) + (Fraction(step.noise) if fresh else 0)
        for step, fresh in zip(run.steps, run.fresh, strict=True)
    ]


def follow(budget, answers):
    """Let a budget meet given answers of its tests: True is far, a fresh report."""
    run = TraceRun()
    for far in answers:
        step = budget(run)
        run.add(0, step, fresh=step.noise > 0 and (step.test == 0 or far))
    return run


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_every_window_of_every_sequence_of_answers_stays_within_its_total(kind, window):
    budget = kind(window, 1.7, share=0.3)
    for answers in itertools.product([False, True], repeat=7):
        costs = exact_costs(follow(budget, answers))
        sums = [sum(costs[start : start + window]) for start in range(len(costs))]
        assert max(sums) <= Fraction(1.7)


@pytest.mark.parametrize("kind", BUDGETS)
def test_every_window_of_long_random_streams_stays_within_its_total(kind):
    rng = np.random.default_rng(6)
    for window in (7, 40):
        budget = kind(window, 3.0)
        for rate in (0.02, 0.3, 1.0):
            costs = exact_costs(follow(budget, rng.random(150) < rate))
            assert max(sum(costs[start : start + window]) for start in range(len(costs))) <= 3
            floats = [float(cost) for cost in costs]
            expected = [sum(floats[start : start + window]) for start in range(150 - window + 1)]
            assert np.allclose(window_costs(floats, window), expected)


def test_distribution_halves_what_is_left_and_gets_it_back():
    budget = Distribution(3, 2.0)  # 1 for tests, 1 for reports
    run = follow(budget, [True, True, True, False, False, True])
    noises = [step.noise for step in run.steps]
    assert noises == pytest.approx([0.5, 0.25, 0.125, 0.3125, 0.4375, 0.5])
    assert [step.test for step in run.steps[1:]] == pytest.approx([1 / 3] * 5)
    assert run.steps[1].threshold == pytest.approx(2 / 0.25)


def test_absorption_takes_the_shares_of_skipped_steps_and_gives_up_those_after():
    budget = Absorption(4, 8.0)  # 1 a step for reports
    run = follow(budget, [True, False, False, True, True, True, True, True])
    assert [step.noise for step in run.steps] == pytest.approx([1, 1, 2, 3, 0, 0, 1, 1])
    assert run.fresh == [True, False, False, True, False, False, True, True]


@pytest.mark.parametrize("kind", BUDGETS)
def test_a_stream_is_proven_run_by_run_and_goes_on_for_ever(kind):
    corners = mdp.FiniteSpace(np.array([[0.0, 0], [1, 0], [0, 2]]), mdp.Lp(2))
    assert audit_runs(predictive(corners, budget=kind(2, 3.0)), 4).verdict == "holds"
    stream, run = predictive(mdp.Lp(2), budget=kind(10, 20.0)), TraceRun()
    for place in np.random.default_rng(2).normal(size=(60, 2)).cumsum(axis=0):
        assert stream.advance(run, place, rng=np.random.default_rng(3))
    assert window_costs(run.costs, 10).max() <= 20


@pytest.mark.parametrize(
    "call",
    [
        lambda: Distribution(0, 1.0),
        lambda: Distribution(2.5, 1.0),
        lambda: Absorption(3, -1.0),
        lambda: Distribution(3, 1.0, share=1.0),
        lambda: window_costs([1.0], 0),
    ],
)
def test_what_cannot_be_is_refused(call):
    with pytest.raises(InvalidInput):
        call()


def test_a_budget_of_ones_own_is_any_function_of_the_run():
    every_third = predictive(mdp.Lp(2), budget=lambda run: StepCost(0.0, 1.0 if len(run) % 3 == 0 else 0.0))
    run = every_third.release(np.zeros((7, 2)), rng=np.random.default_rng(0))
    assert run.fresh == [True, False, False, True, False, False, True]
    assert run.spent == 3.0


def test_a_total_is_compared_as_real_numbers():
    spending = predictive(mdp.Lp(2), budget=lambda run: step if run.fits(step := StepCost(0.0, 0.1), 1.0) else None)
    run = spending.release(np.zeros((20, 2)), rng=np.random.default_rng(0))
    assert len(run) == 9  # ten times the double 0.1 is above 1
    assert run.spent <= 1.0
