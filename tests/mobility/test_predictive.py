"""The predictive mechanism against brute force over all runs and traces, its coin against many digits, its books."""

from __future__ import annotations

import decimal
import itertools
import math

import numpy as np
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.ledger import Ledger
from metricdp.mobility import (
    FixedRate,
    FixedUtility,
    PredictionTuning,
    StepCost,
    TraceRun,
    audit_runs,
    flip,
    linear,
    near_table,
    parrot,
    predictive,
    release_adversary,
)
from spaces_drawn import SPACES

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
TRIANGLE = mdp.FiniteSpace(CORNERS, mdp.Lp(2))


class Given:
    """A source that hands out the words it was given."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


# --- brute force ------------------------------------------------------------------------------------------------------


def apart(i, j):
    return math.dist(CORNERS[i], CORNERS[j])


def chance_near(place, prediction, rate, threshold):
    u = rate * (apart(place, prediction) - threshold)
    return 0.5 * math.exp(-u) if u >= 0 else 1.0 - 0.5 * math.exp(u)


def softmax(epsilon):
    rows = [[math.exp(-epsilon / 2 * apart(i, j)) for j in range(3)] for i in range(3)]
    return [[value / sum(row) for value in row] for row in rows]


def runs_by_hand(trace, accuracy, steps):
    """Yield (run, probability, spent) for every run: fresh noise at first, then test and noise as published."""
    noise = 3.8897201698674295 / accuracy  # Pr[Gamma(2) <= c] = 0.9
    test = 0.5 * math.log(5.0) * (1 + 1 / 0.8) / accuracy
    threshold = math.log(5.0) / (0.8 * test)
    rows = softmax(noise)

    def go_on(run, chance, spent):
        at = len(run)
        if at == steps:
            yield tuple(run), chance, spent
            return
        near = 0.0 if at == 0 else chance_near(trace[at], run[-1][0], test, threshold)
        cost = 0.0 if at == 0 else test
        if at:
            yield from go_on([*run, (run[-1][0], False)], chance * near, spent + cost)
        for z in range(3):
            yield from go_on([*run, (z, True)], chance * (1 - near) * rows[trace[at]][z], spent + cost + noise)

    return list(go_on([], 1.0, 0.0))


def own_noise(epsilon):
    return mdp.from_matrix(TRIANGLE, softmax(epsilon), epsilon)


@pytest.mark.parametrize("accuracy", [1.0, 4.0])
def test_every_run_of_every_pair_of_traces_leaks_at_most_what_it_spent(accuracy):
    steps = 3
    traces = list(itertools.product(range(3), repeat=steps))
    laws = {trace: runs_by_hand(trace, accuracy, steps) for trace in traces}
    worst = 0.0
    for one, other in itertools.permutations(traces, 2):
        far = max(apart(i, j) for i, j in zip(one, other, strict=True))
        for (run, p, spent), (_, q, _) in zip(laws[one], laws[other], strict=True):
            assert math.log(p / q) <= spent * far + 1e-9, run
            worst = max(worst, math.log(p / q) / far)
    mechanism = predictive(TRIANGLE, budget=FixedUtility(accuracy), noise=own_noise)
    report = audit_runs(mechanism, steps)
    assert report.verdict == "holds"
    assert report.epsilon == pytest.approx(worst, rel=1e-9)
    assert report.claimed == pytest.approx(max(spent for _, _, spent in laws[traces[0]]))


def test_the_law_of_a_run_is_that_of_brute_force_and_what_is_drawn_follows_it():
    trace, accuracy = (0, 1, 2), 2.0
    mechanism = predictive(TRIANGLE, budget=FixedUtility(accuracy), noise=own_noise)
    expected = {run: (p, spent) for run, p, spent in runs_by_hand(trace, accuracy, 3)}
    assert sum(p for p, _ in expected.values()) == pytest.approx(1.0)
    rng, counts = np.random.default_rng(5), dict.fromkeys(expected, 0)
    for _ in range(500):
        run = mechanism.release(trace, rng=rng)
        drawn = tuple(zip(run.reports, run.fresh, strict=True))
        counts[drawn] += 1
        p, spent = expected[drawn]
        assert run.spent == pytest.approx(spent)
        assert run.costs.sum() == pytest.approx(spent)
    run = mechanism.release(trace, rng=rng)
    p, _ = expected[tuple(zip(run.reports, run.fresh, strict=True))]
    assert mechanism.likelihoods(run)[np.arange(3), trace].prod() == pytest.approx(p, rel=1e-9)
    likely = [(counts[r], 500 * p) for r, (p, _) in expected.items() if 500 * p > 5]
    assert sum((seen - mean) ** 2 / mean for seen, mean in likely) < len(likely) + 5 * math.sqrt(2 * len(likely))


@pytest.mark.parametrize("kind", sorted(SPACES))
def test_tests_and_runs_are_certified_on_spaces_of_every_metric(kind):
    rng = np.random.default_rng(7)
    space = SPACES[kind](4, rng)
    apart = space.distances[np.isfinite(space.distances) & (space.distances > 0)]
    accuracy = 2.0 * float(np.median(apart))
    table = near_table(space, 1, 0.7 / accuracy, accuracy)
    assert mdp.audit(table).verdict == "holds"
    mechanism = predictive(space, budget=FixedUtility(accuracy))
    if kind == "policy in parts":  # where some pairs may be told apart, a run of them is no trace
        with pytest.raises(InvalidInput, match="guarantee all pairs"):
            audit_runs(mechanism, 2)
        return
    assert audit_runs(mechanism, 2).verdict == "holds"


def test_a_prediction_that_looks_at_the_true_trace_gives_it_away():
    # Where the last true place is repeated, the reports that passed are the trace itself, whatever the test costs.
    seen = {}
    for place in (0, 1):
        peeking = predictive(TRIANGLE, budget=FixedUtility(20.0), noise=own_noise, prediction=lambda run, at=place: at)
        runs = [peeking.release([place, place], rng=np.random.default_rng(seed)) for seed in range(40)]
        seen[place] = {run.reports[1] for run in runs if not run.fresh[1]}
    assert seen == {0: {0}, 1: {1}}  # an infinite ratio
    assert audit_runs(predictive(TRIANGLE, budget=FixedUtility(20.0), noise=own_noise), 2).verdict == "holds"


def test_a_test_without_noise_on_its_threshold_is_refuted():
    exact_test = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # near iff d <= 1.5 from corner 0
    assert mdp.audit(exact_test, metric=mdp.Lp(2), points=CORNERS, epsilon=100.0).verdict == "violated"


# --- the coin ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "place"), [(mdp.Lp(2), [3.0, 4.0]), (mdp.Lp(1), [2.0, -3.0]), (mdp.Lp(np.inf), [5.0, 1.0])]
)
@pytest.mark.parametrize("threshold", [1.25, 7.5])
def test_the_coin_is_decided_by_as_many_digits_as_it_takes(metric, place, threshold):
    rate, distance = 0.3, 5.0
    with decimal.localcontext(prec=80):
        u = decimal.Decimal(rate) * (decimal.Decimal(distance) - decimal.Decimal(threshold))
        chance = (-u).exp() / 2 if u >= 0 else 1 - u.exp() / 2
        digits = int(chance * 2**192)
    first, second, third = digits >> 128, digits >> 64 & (2**64 - 1), digits & (2**64 - 1)

    def answer(*words):
        return flip(np.array(place), np.zeros(2), metric, rate, threshold, Given(*words))

    assert answer(first - 2**40)
    assert not answer(first + 2**40)
    assert answer(first, second - 1)
    assert not answer(first, second + 1)
    assert answer(first, second, third - 1)
    assert not answer(first, second, third + 1)


def test_the_coin_knows_the_true_distance_on_the_earth_and_the_same_place_in_two_ways():
    with decimal.localcontext(prec=60):
        pi = decimal.Decimal("3.14159265358979323846264338327950288419716939937510582097494")
        quarter = decimal.Decimal("6371.009") * pi / 2
        chance = (-decimal.Decimal(2.0**-12) * quarter).exp() / 2
        digits = int(chance * 2**128)
    first, second = digits >> 64, digits & (2**64 - 1)
    for goal in ([90.0, 17.0], [0.0, 90.0], [0.0, -270.0]):
        for shift, near in ((-1, True), (1, False)):
            source = Given(first, second + shift)
            assert flip(np.zeros(2), np.array(goal), mdp.Haversine(), 2.0**-12, 0.0, source) is near
    for words, near in (((2**63, 9), False), ((2**63 - 1, 2**64 - 9), True)):  # exactly one half
        assert flip(np.array([5.0, 180.0]), np.array([5.0, -180.0]), mdp.Haversine(), 1.0, 0.0, Given(*words)) is near


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_the_published_formulas_of_both_budgets():
    tuning = PredictionTuning(caution=0.6)
    assert tuning.noise_constant == pytest.approx(3.88972, abs=1e-5)
    assert 1 - (1 + tuning.noise_constant) * math.exp(-tuning.noise_constant) == pytest.approx(0.9)
    share = 0.6 * math.log(5) / 3.88972 * (1 + 1 / 0.8)
    budget, run = FixedRate(0.5, hit=0.8, tuning=tuning), TraceRun()
    assert budget(run) == StepCost(0.0, 0.5)
    run.add(0, StepCost(0.0, 0.5), fresh=True)
    step = budget(run)
    assert step.noise == pytest.approx(0.5 / (0.2 + share), rel=1e-5)
    assert step.test == pytest.approx(share * step.noise, rel=1e-5)
    assert step.test + 0.2 * step.noise == pytest.approx(0.5)  # on average, where the guess is right
    # A place at accuracy / caution passes the test with a chance of 1 - confidence.
    utility = FixedUtility(2.0)(run)
    assert 0.5 * math.exp(-utility.test * (2.0 / 0.5 - utility.threshold)) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "budget",
    [FixedUtility(1.5, total=20.0), FixedRate(1.0, total=7.0), FixedUtility(1.5, 20.0, PredictionTuning(rest=2))],
)
def test_no_run_exceeds_its_total_and_a_run_that_ends_early_says_so(budget):
    mechanism = predictive(mdp.Lp(2), budget=budget)
    rng = np.random.default_rng(3)
    for _ in range(20):
        run = mechanism.release(rng.normal(size=(60, 2)).cumsum(axis=0), rng=rng)
        assert run.spent <= budget.total
        assert math.fsum(run.costs) <= budget.total + 1e-9
        assert len(run) == 60 or not run.fits(budget(run), budget.total) if budget(run) else len(run) <= 60


def test_steps_at_rest_cost_nothing_and_a_line_goes_on():
    budget = FixedUtility(1.0, tuning=PredictionTuning(rest=3))
    run = predictive(mdp.Lp(2), budget=budget).release(np.zeros((9, 2)), rng=np.random.default_rng(0))
    assert run.fresh[0]
    assert not any(run.fresh[1:4])
    assert run.costs[1:4].tolist() == [0.0, 0.0, 0.0]
    past = TraceRun()
    past.add(np.array([1.0, 1.0]), StepCost(0, 1), fresh=True)
    assert linear(past).tolist() == [1.0, 1.0]
    past.add(np.array([2.0, 4.0]), StepCost(0, 1), fresh=True)
    assert linear(past).tolist() == [3.0, 7.0]
    assert parrot(past).tolist() == [2.0, 4.0]
    north = predictive(mdp.Haversine(), budget=budget).ground.tidy([95.0, 190.0])
    assert north.tolist() == [90.0, -170.0]


def test_standing_still_costs_less_than_independent_noise_and_noise_in_the_prediction_more():
    budget, rng = FixedUtility(1.0), np.random.default_rng(1)
    still = predictive(mdp.Lp(2), budget=budget).release(np.zeros((200, 2)), rng=rng)
    assert still.predicted > 0.7
    assert still.spent < 0.8 * 200 * budget.epsilon
    wild = predictive(mdp.Lp(2), budget=budget).release(rng.normal(scale=50, size=(200, 2)), rng=rng)
    assert wild.spent > 200 * budget.epsilon  # every test is paid for and fails


# --- books ------------------------------------------------------------------------------------------------------------


def test_the_ledger_is_charged_what_was_spent_once_and_ends_the_run(tmp_path):
    mechanism = predictive(TRIANGLE, budget=FixedUtility(4.0))
    with Ledger.open(tmp_path / "budget.db", policy="4 ever") as ledger:

        def spend(label, epsilon, draw):
            return ledger.release(
                "anna", f"trip 1 {label}", key="app", metric=mechanism.ground.metric, epsilon=epsilon, draw=draw
            ).report

        run = mechanism.release([0] * 40, spend=spend)
        charged = [one.amount / 1e6 for one in ledger.history("anna")]
        assert len(run) < 40
        assert run.spent == pytest.approx(sum(charged), abs=1e-4)  # a last test that failed is counted too
        assert run.spent <= sum(charged) + 1e-9 <= 4 + 1e-9
        again = mechanism.release([1] * 40, spend=spend)  # a retry: the stored answers, whatever the trace is
        assert (again.reports, again.fresh) == (run.reports, run.fresh)
        assert len(ledger.history("anna")) == len(charged)


def test_an_account_that_refuses_the_first_report_leaves_an_empty_run():
    def nothing_left(label, epsilon, draw):
        raise BudgetExceeded("nothing is left.", asked=1)

    assert len(predictive(TRIANGLE, budget=FixedUtility(1.0)).release([0, 1], spend=nothing_left)) == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: StepCost(1.0, 0.0), "needs `noise`"),
        (lambda: StepCost(-1.0, 0.0), "at least 0"),
        (lambda: FixedUtility(0.0), "`accuracy`"),
        (lambda: FixedUtility(1.0, total=3.0), "pay for one report"),
        (lambda: FixedRate(1.0, hit=2.0), "share between 0 and 1"),
        (lambda: PredictionTuning(confidence=0.4), "between 0.5 and 1"),
        (lambda: predictive(mdp.Angular(), budget=FixedUtility(1.0)), "finite places"),
        (lambda: predictive(TRIANGLE, budget=lambda run: StepCost(1.0, 1.0)).release([0]), "nothing to predict from"),
        (lambda: predictive(TRIANGLE, budget=FixedUtility(1.0)).release([3]), "codes from 0 to 2"),
        (lambda: predictive(TRIANGLE, budget=FixedUtility(9.0), prediction=linear).release([0] * 9), "coordinates"),
        (lambda: audit_runs(predictive(TRIANGLE, budget=FixedUtility(1.0)), 20), "one by one"),
        (lambda: audit_runs(predictive(mdp.Lp(2), budget=FixedUtility(1.0)), 2), "FiniteSpace"),
        (
            lambda: predictive(
                TRIANGLE, budget=FixedUtility(1.0), noise=lambda e: mdp.exponential(TRIANGLE, 2 * e)
            ).release([0]),
            "was asked for",
        ),
        (
            lambda: predictive(mdp.Lp(2), budget=FixedUtility(1.0), noise=lambda e: mdp.laplace(mdp.Lp(1), e)).release(
                [[0, 0]]
            ),
            "was asked for",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        call()


# --- the adversary ----------------------------------------------------------------------------------------------------


def test_the_adversary_over_a_predicted_trace_is_that_of_all_walks_there_are():
    start, moves, steps = np.array([0.5, 0.3, 0.2]), np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]), 3
    mechanism = predictive(TRIANGLE, budget=FixedUtility(3.0), noise=own_noise)
    losses = np.array([[apart(i, j) for j in range(3)] for i in range(3)])
    walk = np.array([0, 0, 1])
    run = mechanism.release(walk, rng=np.random.default_rng(11))
    drawn = tuple(zip(run.reports, run.fresh, strict=True))
    weights = {}
    for trace in itertools.product(range(3), repeat=steps):
        chance = {r: p for r, p, _ in runs_by_hand(trace, 3.0, steps)}[drawn]
        weights[trace] = chance * start[trace[0]] * math.prod(moves[a, b] for a, b in itertools.pairwise(trace))
    total, errors = sum(weights.values()), 0.0
    for t in range(steps):
        posterior = [sum(w for trace, w in weights.items() if trace[t] == place) / total for place in range(3)]
        guess = min(range(3), key=lambda g: sum(posterior[x] * losses[x, g] for x in range(3)))
        errors += losses[walk[t], guess] / steps
    risk = release_adversary(start, moves, [walk], [mechanism.likelihoods(run)], losses)
    assert risk.smoothed == pytest.approx(errors)
    assert risk.steps == 3
    shorter = release_adversary(start, moves, [walk], [mechanism.likelihoods(run)[:1]], losses)
    assert shorter.steps == 3
