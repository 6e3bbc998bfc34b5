"""Audits of samplers by betting: what is refuted, what is not, and what cannot be judged."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import metricdp as mdp
from metricdp.auditing.betting.wealth import Wealth
from metricdp.errors import InvalidInput

LINE = mdp.Lp(1)


def on_lattice(values):
    """Rounded to a public lattice, as a careful sampler does: sums of doubles betray the secret by their low bits."""
    return np.round(np.asarray(values) * 2.0**20) / 2.0**20


def laplace(rate, seed=0):
    rng = np.random.default_rng(seed)
    return lambda x, count: on_lattice(x + rng.laplace(scale=1.0 / rate, size=count))


def judged(draw, seed=1, **options):
    asked = {"secrets": [0.0, 1.0, 3.0], "metric": LINE, "epsilon": 1.0, "draws": 20_000} | options
    return mdp.audit_sampler(draw, rng=np.random.default_rng(seed), **asked)


def test_bets_refute_a_broken_sampler_and_not_a_right_one():
    report = judged(laplace(1.0))
    assert report.verdict == "not refuted"
    assert 0.85 < report.epsilon <= 1.0
    assert report.draws == 20_000
    report = judged(laplace(2.5))
    assert report.verdict == "violated"
    assert 1.0 <= report.epsilon <= 2.5
    assert report.draws < 1000
    assert {report.witness.secret_at, report.witness.other_at} < {(0.0,), (1.0,), (3.0,)}


def test_slack_is_part_of_the_promise():
    assert judged(laplace(2.0), secrets=[0.0, 1.0], slack=1.0).verdict == "not refuted"
    assert judged(laplace(2.0), secrets=[0.0, 1.0], slack=0.5).verdict == "violated"


def test_words_are_compared_word_by_word():
    rng = np.random.default_rng(1)
    space = mdp.FiniteSpace(["aa", "ab", "bb", "zz"], mdp.Levenshtein())
    mechanism = mdp.exponential(space, 0.7)

    def sampler(word, count):
        return space.decode(mechanism.sample(np.full(count, space.encode([word])[0]), rng=rng))[:, 0]

    asked = {"secrets": ["aa", "ab", "zz"], "metric": mdp.Levenshtein(), "epsilon": 0.7}
    assert judged(sampler, **asked).verdict == "not refuted"

    def shifting(word, count):  # which words come out depends on the secret: nothing in common
        return np.where(rng.random(count) < 0.5, word + "1", word + "2")

    assert judged(shifting, **asked).verdict == "violated"


def test_madlib_is_not_refuted():
    points = np.random.default_rng(0).normal(size=(12, 2))
    space = mdp.FiniteSpace(points, mdp.Lp(2))
    mechanism = mdp.madlib(space, 1.0)
    rng = np.random.default_rng(2)
    report = judged(
        lambda code, count: mechanism.sample(np.full(count, int(code)), rng=rng),
        secrets=[0, 1, 2, 5],
        metric=mdp.Precomputed(space.distances),
    )
    assert report.verdict == "not refuted"


@pytest.mark.parametrize(
    "twist",
    [
        lambda rows, rng: rows[: len(rows) // 2],
        lambda rows, rng: rows[: max(1, len(rows) - 1)],
        lambda rows, rng: np.sort(rows),
        lambda rows, rng: np.sort(rows)[::-1],
        lambda rows, rng: rows[rng.random(len(rows)) < 0.3],
    ],
)
@pytest.mark.parametrize("more", [0, 500])
def test_a_right_sampler_may_give_fewer_or_more_rows_in_any_order(twist, more):
    draw, rng = laplace(1.0), np.random.default_rng(3)
    report = judged(lambda x, count: twist(draw(x, count + more), rng), draws=3000)
    assert report.verdict == "not refuted"


def test_how_many_rows_come_may_depend_on_the_secret():
    draw = laplace(1.0)
    report = judged(lambda x, count: draw(x, count + int(100 * x)), draws=10_000)
    assert report.verdict == "not refuted"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x, count: np.full(count, math.nan), "24 of 24|of .* are not finite"),
        (lambda x, count: np.where(np.arange(count) % 7, x, math.inf), "are not finite"),
        (lambda x, count: np.zeros((count, 1 + int(x))), "keep their shape"),
        (lambda x, count: np.zeros((0,)), "no report"),
    ],
)
def test_samplers_that_cannot_be_judged_are_refused(answer, message):
    with pytest.raises(InvalidInput, match=message):
        judged(answer, secrets=[0.0, 1.0])


@pytest.mark.parametrize(
    "options",
    [
        {"draws": 2000.5},
        {"draws": 0},
        {"confidence": 1.0},
        {"confidence": math.nan},
        {"slack": -1.0},
        {"slack": math.inf},
        {"secrets": [0.0]},
        {"secrets": [0.0, 0.0]},
        {"secrets": [0.0, math.nan]},
        {"pairs": []},
        {"pairs": [(0, 3)]},
        {"pairs": [(1, 1)]},
        {"epsilon": math.nan},
    ],
)
def test_questions_that_mean_nothing_are_refused(options):
    with pytest.raises(InvalidInput):
        judged(lambda x, count: np.zeros(count), **options)


@pytest.mark.parametrize("rate", [1.0, 3.0])
@pytest.mark.parametrize("kind", ["few", "once"])
def test_recorded_rows_are_judged_in_any_order(rate, kind):
    rng = np.random.default_rng(5)
    secrets = rng.choice([0.0, 1.0, 2.5], p=[0.2, 0.5, 0.3], size=6000) if kind == "few" else rng.uniform(0, 8, 6000)
    reports = on_lattice(secrets + rng.laplace(scale=1.0 / rate, size=6000))
    order = np.argsort(reports)
    report = mdp.audit_samples(secrets[order], reports[order], metric=LINE, epsilon=1.0, rng=rng)
    assert report.verdict == ("not refuted" if rate == 1.0 else "violated")
    assert 0.5 < report.epsilon <= rate
    assert 0.9 * 6000 < report.draws <= 6000 or kind == "few"


def test_the_witness_of_recorded_rows_is_a_row():
    secrets = np.array([f"w{number}" for number in range(400)])
    report = mdp.audit_samples(secrets, secrets, metric=mdp.Levenshtein(), epsilon=0.3)
    assert report.verdict == "violated"
    assert "true point" in {finding.kind for finding in report.findings}
    assert report.witness.secret_at == (secrets[report.witness.secret],)
    two = mdp.audit_samples([0.0, 1.0], [0.3, 0.7], metric=LINE, epsilon=1.0)
    assert (two.verdict, two.draws) == ("not refuted", 1)


def test_recorded_rows_that_cannot_be_judged_are_refused():
    with pytest.raises(InvalidInput, match="audit_sampler"):
        mdp.audit_samples(lambda x, count: x, [(0, 1)], metric=LINE, epsilon=1.0)
    with pytest.raises(InvalidInput, match=r"2 of 4 reports are not finite"):
        mdp.audit_samples([0.0, 1.0, 2.0, 3.0], [0.0, math.nan, math.inf, 1.0], metric=LINE, epsilon=1.0)
    with pytest.raises(InvalidInput, match="one row per secret"):
        mdp.audit_samples([0.0, 1.0], [0.0], metric=LINE, epsilon=1.0)
    with pytest.raises(InvalidInput, match="two different"):
        mdp.audit_samples([1.0, 1.0], [0.0, 1.0], metric=LINE, epsilon=1.0)


@pytest.mark.parametrize("draws", [6000, 20_000])
def test_the_leak_that_would_have_been_found_is_found(draws):
    power = judged(laplace(1.0), secrets=[0.0, 1.0], draws=draws).power
    found = re.findall(r"makes up (\d+)% of the reports and leaks epsilon ([\d.]+)", power)
    assert [share for share, _ in found] == ["10", "1"][: len(found)]
    assert found
    for percent, epsilon in found:
        likely = 1.0 / (1.0 + math.exp(-float(epsilon)))
        rng, mass = np.random.default_rng(8), 0.01 * float(percent)

        def draw(x, count, rng=rng, mass=mass, likely=likely):
            share = 2.0 * mass * (likely if x == 0.0 else 1.0 - likely)
            return np.where(rng.random(count) < share, 7.0, on_lattice(rng.laplace(size=count)))

        verdicts = [judged(draw, seed, secrets=[0.0, 1.0], draws=draws).verdict for seed in range(8)]
        assert verdicts.count("violated") >= 6  # 95 % each: fewer have a probability of 0.6 %


def test_the_leak_is_found_at_whichever_pair_it_is():
    """Rounds go to pairs that have won: an audit of several pairs says nothing about the one that luck favoured."""
    ways = {"secrets": [*range(7)], "pairs": [(k, k + 1) for k in range(6)], "draws": 20_000, "independent": True}
    power = judged(laplace(1.0), **ways).power
    (rounds,) = re.findall(r"asked least, in ([\d,]+) rounds", power)
    assert int(rounds.replace(",", "")) <= 20_000 / 6
    percent, epsilon = re.findall(r"makes up (\d+)% of the reports and leaks epsilon ([\d.]+)", power)[0]
    likely, mass, rng = 1.0 / (1.0 + math.exp(-float(epsilon))), 0.01 * float(percent), np.random.default_rng(8)

    def draw(x, count):
        share = 2.0 * mass * (likely if x == 0.0 else 1.0 - likely)
        return np.where(rng.random(count) < share, 9.5, on_lattice(x + rng.laplace(size=count)))

    verdicts = [judged(draw, seed, **ways).verdict for seed in range(12)]
    assert verdicts.count("violated") >= 9  # 95 % each: fewer have a probability of 0.02 %


def test_true_values_among_recorded_rows_would_have_been_found():
    rng = np.random.default_rng(6)
    secrets = rng.uniform(0, 8, 5000)
    reports = on_lattice(secrets + rng.laplace(size=5000))
    power = mdp.audit_samples(secrets, reports, metric=LINE, epsilon=1.0, rng=rng).power
    (percent,) = re.findall(r"(\d+)% of the reports are the true value", power)
    verdicts = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        told = np.where(rng.random(5000) < 0.01 * float(percent), secrets, reports)
        verdicts.append(mdp.audit_samples(secrets, told, metric=LINE, epsilon=1.0, rng=rng).verdict)
    assert verdicts.count("violated") >= 4


def test_few_draws_claim_no_power():
    assert "makes up" not in judged(laplace(1.0), draws=50).power


def test_only_a_refutation_has_a_witness_and_no_ratio_is_made_of_what_was_chosen():
    assert judged(laplace(1.0), draws=2000).witness is None
    refuted = judged(laplace(3.0))
    assert math.isnan(refuted.witness.ratio)
    assert "ratio" not in str(refuted)


def test_the_sentence_says_that_epsilon_is_a_lower_bound():
    kept, refuted = judged(laplace(1.0), draws=2000), judged(laplace(3.0))
    assert kept.is_lower_bound
    assert str(kept).startswith(f"not refuted: leaks at least epsilon {kept.epsilon:.12g} (99 %) (claimed 1)")
    assert str(refuted).startswith(f"violated: leaks at least epsilon {refuted.epsilon:.12g} (99 %) (claimed 1)")
    assert "asking stopped there" in str(refuted)
    assert "asking stopped there" not in str(kept)


def test_an_excess_that_is_rounding_is_said_to_be_rounding():
    matrix = np.array([[math.e, 1.0], [1.0, math.e]]) / (1.0 + math.e)
    points = np.array([[0.0], [1.0]])
    found = mdp.audit(matrix, metric=LINE, points=points).epsilon
    claimed = found * (1.0 - 2e-16)
    report = mdp.audit(matrix, metric=LINE, points=points, epsilon=claimed)
    assert (report.verdict, bool(report.rounding)) == ("violated", True)
    assert report.rounding in str(report)
    assert mdp.audit(matrix, metric=LINE, points=points, epsilon=0.999).rounding == ""
    assert mdp.audit(matrix, metric=LINE, points=points, epsilon=1.001).rounding == ""


def test_the_wealth_is_a_fair_game_by_brute_force():
    """Over all outcomes of a mechanism that is exactly at its limit, no bet wins on average."""
    for epsilon, slack, apart in ((1.0, 0.0, 1.0), (0.5, 0.3, 2.0), (3.0, 0.0, 0.01)):
        limit = 1.0 / (1.0 + math.exp(-epsilon * apart - slack))
        wealth = Wealth(epsilon, slack, np.array([apart]), np.ones(1))
        for q in np.linspace(0.01, 0.99, 50):
            values = []
            for zeros, ones in ((1.0, 0.0), (0.0, 1.0)):
                wealth.logs[:] = 0.0
                seen = (np.array([zeros]), np.array([ones]))
                wealth.bet(0, np.zeros(1, dtype=int), (np.array([q]), np.array([1.0 - q])), seen)
                values.append(math.exp(wealth.logs[0, wealth.claim]))
            for chance in np.linspace(1.0 - limit, limit, 11):  # what the claim allows
                assert chance * values[0] + (1.0 - chance) * values[1] <= 1.0 + 1e-12


def test_false_alarms_stay_below_the_stated_rate():
    """Stopped at the worst moment, on a law that is exactly at its limit everywhere."""
    rng = np.random.default_rng(12)
    table = np.array([[math.e, 1.0], [1.0, math.e]]) / (1.0 + math.e)

    def draw(x, count):
        return (rng.random(count) < table[int(x), 1]).astype(int)

    alarms = sum(
        judged(draw, seed, secrets=[0, 1], confidence=0.8, draws=200).verdict == "violated" for seed in range(40)
    )
    assert alarms <= 14  # 8 are allowed on average; more than 14 of 40 has probability below 2 %


def test_reports_as_large_as_doubles_get_are_judged():
    rng = np.random.default_rng(13)

    def draw(x, count):
        return rng.choice([-1.7e308, 1.7e308, 0.0, 5e-324], size=count)

    assert judged(draw, secrets=[0.0, 1e300], epsilon=1e-300, draws=2000).verdict == "not refuted"


def test_of_many_secrets_the_one_that_leaks_is_found():
    honest = laplace(1.0)

    def draw(x, count):
        return np.full(count, x) if x == 37.0 else honest(x, count)

    report = judged(draw, secrets=np.arange(60.0), draws=40_000)
    assert report.verdict == "violated"
    assert 37.0 in (*report.witness.secret_at, *report.witness.other_at)


def test_secrets_so_far_apart_that_nothing_is_promised_are_judged_without_a_warning():
    rng = np.random.default_rng(3)
    report = mdp.audit_sampler(
        lambda x, count: on_lattice(x + rng.laplace(size=count)),
        secrets=[0.0, 1.0, 1e3, 1e6],
        metric=mdp.Lp(1),
        epsilon=1.0,
        draws=3_000,
    )
    assert report.verdict == "not refuted"


@pytest.mark.parametrize("independent", [False, True])
def test_a_sampler_that_keeps_silent_sometimes_is_not_judged_by_what_comes(independent):
    # report 0, report 1 or none: every ratio is at most e, but of the reports that come one is 4.2 times as frequent
    laws = {0.0: (0.2, 0.2), 1.0: (0.2 / math.e, 0.2 * math.e)}
    alarms = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)

        def draw(x, count, rng=rng):
            chances = (*laws[x], 1.0 - sum(laws[x]))
            return np.array([answer for answer in rng.choice(3, size=count, p=chances) if answer < 2], dtype=float)

        report = judged(draw, seed + 50, secrets=[0.0, 1.0], draws=1000, confidence=0.9, independent=independent)
        alarms += report.verdict == "violated"
        assert any(finding.kind == "rows" for finding in report.findings)
    assert alarms <= 3
