"""What a test of the law is blind to, planted: what convicts, and what is only said beside the verdict."""

from __future__ import annotations

import numpy as np
import pytest

import metricdp as mdp

PLANE = mdp.Lp(2)


def planar(rng, x, count, rate=1.0):
    radius, angle = rng.gamma(2.0, 1.0 / rate, count), rng.uniform(0, 2 * np.pi, count)
    return np.asarray(x) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def on_lattice(values, pitch=2.0**-20):
    return np.round(np.asarray(values) / pitch) * pitch


def true_point(rng, x, count):
    rows = on_lattice(planar(rng, x, count))
    return np.where(rng.random((count, 1)) < 0.05, np.asarray(x), rows)


def no_noise_along_one_axis(rng, x, count):
    rows = on_lattice(planar(rng, x, count))
    rows[:, 0] = np.asarray(x)[0]
    return rows


def low_bits(rng, x, count):
    return planar(rng, x, count)  # the sum of two doubles


def lattice_around_the_secret(rng, x, count):
    return np.asarray(x) + on_lattice(planar(rng, x, count), 2.0**-7)


def decimals_around_the_secret(rng, x, count):
    return np.asarray(x) + np.round(planar(rng, (0.0, 0.0), count), 3)


def atom(rng, x, count):
    rows = on_lattice(planar(rng, x, count))
    rows[rng.random(count) < 0.04] = on_lattice(0.37 * np.asarray(x) + 5.0)
    return rows


@pytest.mark.parametrize(
    ("leak", "secrets", "kinds"),
    [
        (true_point, [(0.25, 0.5), (1.25, 0.5)], {"true point"}),
        (no_noise_along_one_axis, [(0.25, 0.5), (0.35, 0.5)], {"axis", "law", "low bits"}),
        (low_bits, [(0.0, 0.0), (1.0, 0.0)], {"low bits"}),
        (lattice_around_the_secret, [(0.1, 0.5), (1.2, 0.5)], {"lattice", "low bits", "atom"}),
        (decimals_around_the_secret, [(0.12345, 0.5), (1.02468, 0.5)], {"lattice"}),
        (atom, [(0.25, 0.5), (1.25, 0.5)], {"atom"}),
    ],
)
def test_planted_leaks_convict_and_are_named(leak, secrets, kinds):
    rng = np.random.default_rng(4)
    report = mdp.audit_sampler(
        lambda x, count: leak(rng, x, count), secrets=secrets, metric=PLANE, epsilon=1.0, draws=50_000, rng=rng
    )
    assert report.verdict == "violated"
    convicting = [finding for finding in report.findings if finding.convicts]
    assert convicting[0].kind in kinds
    assert report.draws < 20_000
    assert {report.witness.secret_at, report.witness.other_at} == set(secrets)


def test_unknown_words_that_pass_through_convict():
    rng = np.random.default_rng(5)
    known = ["pizza", "pasta", "bread", "wine"]

    def draw(word, count):
        return rng.choice(known, size=count) if word in known else np.full(count, word)

    asked = {"metric": mdp.Levenshtein(), "epsilon": 0.2, "draws": 5000, "rng": rng}
    assert mdp.audit_sampler(draw, secrets=["pizza", "pasta"], **asked).verdict == "not refuted"
    report = mdp.audit_sampler(draw, secrets=["pizza", "John"], **asked)
    assert report.verdict == "violated"
    assert {finding.kind for finding in report.findings} & {"true point", "atom", "report set"}


def test_a_report_set_that_depends_on_the_secret_convicts():
    rng = np.random.default_rng(6)

    def draw(code, count):  # a word is never replaced by itself
        others = np.setdiff1d(np.arange(5), [int(code)])
        return rng.choice(others, size=count)

    report = mdp.audit_sampler(
        draw, secrets=[0, 1, 2], metric=mdp.Precomputed(1.0 - np.eye(5)), epsilon=3.0, draws=20_000, rng=rng
    )
    assert report.verdict == "violated"


def test_a_deterministic_snap_convicts():
    report = mdp.audit_sampler(
        lambda x, count: np.tile(np.round(x), (count, 1)),
        secrets=[(0.4, 0.0), (0.6, 0.0)],
        metric=PLANE,
        epsilon=1.0,
        draws=5000,
    )
    assert report.verdict == "violated"
    assert report.draws < 500


def kinds_of(draw, epsilon=1.0, draws=6000, seed=0, secrets=(0.0, 1.0), **options):
    rng = np.random.default_rng(seed)
    report = mdp.audit_sampler(
        draw, secrets=list(secrets), metric=PLANE, epsilon=epsilon, draws=draws, rng=rng, **options
    )
    return report.verdict, {finding.kind for finding in report.findings if not finding.convicts}


def laplace(rng, x, count):
    return on_lattice(x + rng.laplace(size=count))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("noise", [laplace, lambda rng, x, count: np.round(x + rng.laplace(size=count))])
def test_a_seed_set_in_every_call_is_a_finding_and_no_conviction(noise, ordered):
    def draw(x, count):
        rows = noise(np.random.default_rng([7, int(10 * x)]), x, count)
        return np.sort(rows) if ordered and noise is laplace else rows

    assert kinds_of(draw) == ("cannot judge", {"memory"})
    assert kinds_of(draw, independent=True) == ("not refuted", {"memory"})


def test_a_seed_set_in_every_call_is_judged_by_one_call_where_reports_are_said_to_be_independent():
    def draw(x, count):
        return on_lattice(x + np.random.default_rng([7, int(10 * x)]).laplace(scale=0.4, size=count))

    assert kinds_of(draw, independent=True) == ("violated", {"memory"})


def test_a_memory_of_batches_is_a_finding_and_no_conviction():
    rng, kept = np.random.default_rng(8), {}

    def draw(x, count):
        if x not in kept or len(kept[x]) < count:
            kept[x] = laplace(rng, x, 2 * count)
        return kept[x][:count]

    assert kinds_of(draw) == ("cannot judge", {"memory"})


def repeated(rng, x, count):
    return np.full(count, laplace(rng, x, 1)[0])


def dithered(rng, x, count):
    """Rounded to a coarse lattice whose offset all reports of one call share."""
    offset = 0.5 * rng.integers(0, 8)
    return 4.0 * np.round((x + rng.laplace(size=count) - offset) / 4.0) + offset


def numbered(rng, x, count):
    """Laplace noise beside a number that all reports of one call share."""
    return np.stack([laplace(rng, x, count), np.full(count, np.round(rng.normal(), 2))], axis=1)


@pytest.mark.parametrize("share", [repeated, dithered, numbered])
def test_what_the_reports_of_one_call_share_convicts_nobody(share):
    """At 90 % confidence more than 4 false alarms in 12 audits have a probability below 1 %."""
    verdicts = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        verdicts.append(
            kinds_of(lambda x, count, rng=rng: share(rng, x, count), draws=1200, seed=seed, confidence=0.9)[0]
        )
    assert verdicts.count("violated") <= 4
    assert set(verdicts) <= {"violated", "not refuted"}


def test_a_sampler_that_answers_many_calls_at_once_is_asked_in_the_order_of_the_coins():
    class Answers:
        def __init__(self):
            self.rng, self.asked = np.random.default_rng(3), []

        def __call__(self, x, count):
            return laplace(self.rng, x, count)

        def each(self, secrets):
            self.asked += secrets
            return laplace(self.rng, np.array(secrets), len(secrets))

    draw = Answers()
    assert kinds_of(draw, draws=2000)[0] == "not refuted"
    assert len(draw.asked) == 2000
    changes = np.count_nonzero(np.diff(draw.asked))
    assert 850 < changes < 1150  # as coins fall: sorted secrets would change once a batch
    draw.each = lambda secrets: laplace(draw.rng, np.array(secrets[1:]), len(secrets) - 1)
    with pytest.raises(mdp.MetricdpError, match="one was due for each"):
        kinds_of(draw)


def test_a_state_that_drifts_is_a_finding_and_no_conviction():
    rng, state = np.random.default_rng(10), [0.0]

    def draw(x, count):
        state[0] += 0.05
        return laplace(rng, x + state[0], count)

    for seed in range(2):
        assert kinds_of(draw, seed=seed) == ("not refuted", {"drift"})


def test_two_fresh_starts_that_give_the_same_draws_are_a_finding():
    class Started:
        def __init__(self, seed):
            self.seed, self.rng = seed, np.random.default_rng(seed)

        def __call__(self, x, count):
            return laplace(self.rng, x, count)

        def fresh(self):
            return Started(self.seed)

    assert kinds_of(Started(3)) == ("not refuted", {"seed"})
    assert kinds_of(Started(None)) == ("not refuted", set())


def test_missing_rows_are_a_finding():
    rng = np.random.default_rng(11)
    verdict, kinds = kinds_of(lambda x, count: laplace(rng, x, count)[: max(1, count - int(3 * x))])
    assert (verdict, kinds) == ("not refuted", {"rows"})


def test_few_words_that_come_again_are_no_repeated_seed() -> None:
    rng = np.random.default_rng(5)
    words, chances = np.array([f"w{number}" for number in range(20)]), 0.8 ** np.arange(20)
    report = mdp.audit_sampler(
        lambda secret, count: rng.choice(words, count, p=chances / chances.sum()),
        secrets=[[float(number)] for number in range(6)],
        metric=mdp.Lp(2),
        epsilon=1.0,
        draws=2000,
    )
    assert not [finding for finding in report.findings if finding.kind == "memory"]
