"""The audit of sparse rows over a background against a dense table, fractions and 400-bit intervals."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute
import exactly
import metricdp as mdp
from metricdp.auditing import Claim, SparseDistribution, audit_local, verify_claim
from metricdp.auditing import pairs as pair_audit
from metricdp.auditing import sparse as sparse_audit
from metricdp.mechanisms import Certificate, Guarantee, LocalMechanism


def sparse(table, background, stored):
    """Return the law of a dense table of weights that stores only some cells; the others must be the background."""
    starts = np.append(0, np.cumsum(stored.sum(axis=1)))
    return SparseDistribution(starts, np.nonzero(stored)[1], table[stored], background)


def drawn(rng, rows, reports):
    """Return weights (rows x reports) as float32, the background, and which cells are stored.

    Windows have holes, values lie above and below the background, one row may store everything and one nothing.
    """
    background = np.exp(rng.normal(-3, 1, reports)).astype(np.float32)
    stored = rng.random((rows, reports)) < rng.choice([0.2, 0.5, 0.8])
    if rng.random() < 0.3:
        stored[rng.integers(rows)] = True
    if rng.random() < 0.3:
        stored[rng.integers(rows)] = False
    table = np.where(stored, np.exp(rng.normal(-2, 1.5, (rows, reports))), background).astype(np.float32)
    if rng.random() < 0.2:  # impossible reports, for all or for some
        column = rng.integers(reports)
        background[column] = 0.0
        table[~stored[:, column], column] = 0.0
        if rng.random() < 0.5:
            table[:, column] = 0.0
    table[table.sum(axis=1) == 0] = 1.0
    stored |= table != background
    return table, background, stored


def streets(rng, nodes, *, connected=True):
    """Return a network with lengths that doubles add up exactly, and all its distances."""
    pairs = [(int(rng.integers(node)), node) for node in range(1, nodes)] if connected else []
    pairs += [tuple(rng.choice(nodes, 2, replace=False).tolist()) for _ in range(nodes)]
    lengths = rng.integers(1, 200, len(pairs)) / 64.0
    apart = np.full((nodes, nodes), np.inf)
    np.fill_diagonal(apart, 0.0)
    for (i, j), length in zip(pairs, lengths, strict=True):
        apart[i, j] = apart[j, i] = min(apart[i, j], length)
    for k in range(nodes):
        apart = np.minimum(apart, apart[:, k : k + 1] + apart[k])
    order = rng.permutation(nodes)  # secrets need not be in the order of the nodes
    space = mdp.FiniteSpace(order.astype(float)[:, None], mdp.ShortestPath(pairs, lengths, nodes))
    return space, apart[np.ix_(order, order)]


def checked(space, distribution, table, apart, *, slack=0.0, radius=None):
    """Audit at the last claims that hold and break, and hold both verdicts against the second judge."""
    truth = exactly.smallest_epsilon(table, apart, radius=radius)
    finite = bool(truth.is_finite())
    middle = float(truth.mid()) if finite and float(truth.mid()) > 0 else 1.0
    for claim in (middle * 0.9, math.nextafter(middle, 0), middle, math.nextafter(middle, math.inf), middle * 1.1):
        report = audit_local(space, distribution, Claim(claim, slack, radius))
        expected = exactly.verdict(table, apart, claim, slack=slack, radius=radius)
        assert report.verdict == expected, (claim, middle, str(report))
        if expected == "violated" and not finite:
            assert report.epsilon == math.inf
        if slack == 0 and finite and report.pairs:
            assert report.epsilon == pytest.approx(float(truth.mid()), rel=1e-12, abs=1e-300)
        if report.witness is not None and report.refuted:
            i, j, k = report.witness
            one, two = exactly.laws(table)[i][k], exactly.laws(table)[j][k]
            assert one > 0
            assert two == 0 or math.log(one / two) > claim * apart[i, j] * (1 - 1e-12)
            assert report.witness.ratio == (math.inf if two == 0 else pytest.approx(float(one / two)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 7), st.integers(1, 8))
def test_the_streets_decide_what_all_pairs_decide(seed, rows, reports):
    rng = np.random.default_rng(seed)
    space, apart = streets(rng, rows)
    table, background, stored = drawn(rng, rows, reports)
    checked(space, sparse(table, background, stored), table, apart)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 7), st.floats(0.05, 4.0))
def test_a_radius_is_decided_by_the_streets_up_to_it(seed, rows, radius):
    rng = np.random.default_rng(seed)
    space, apart = streets(rng, rows)
    table, background, stored = drawn(rng, rows, 5)
    checked(space, sparse(table, background, stored), table, apart, radius=radius)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6), st.floats(0.01, 2.0))
def test_slack_is_counted_once_a_pair_and_not_once_a_street(seed, rows, slack):
    rng = np.random.default_rng(seed)
    space, apart = streets(rng, rows)
    table, background, stored = drawn(rng, rows, 5)
    checked(space, sparse(table, background, stored), table, apart, slack=slack)


def drawn_windows(rng, rows, reports):
    """Return weights with few stored cells a row, as for windows in a city; most above the background, some below."""
    background = np.exp(rng.normal(-4, 0.3, reports)).astype(np.float32)
    stored = rng.random((rows, reports)) < 0.12
    stored[rng.integers(rows)] = False
    heights = rng.exponential(1.5, (rows, reports)) - rng.choice([0.0, 0.8])
    table = np.where(stored, background * np.exp(heights), background).astype(np.float32)
    if rng.random() < 0.2:
        table[rng.integers(rows), rng.integers(reports)] = 0.0
    return table, background, stored | (table != background)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([None, 0.5, 3.0]), st.sampled_from([0.0, 0.3]))
def test_near_pairs_decide_what_all_pairs_decide(seed, numbers, radius, slack):
    rng = np.random.default_rng(seed)
    rows, reports = (int(rng.integers(2, 7)), 6) if numbers else (9, 26)
    table, background, stored = drawn(rng, rows, reports) if numbers else drawn_windows(rng, rows, reports)
    cells = rng.choice(400, rows, replace=False)
    points = np.column_stack([cells // 20, cells % 20]) / 4.0
    apart = np.abs(points[:, None] - points).sum(axis=-1)  # exact: multiples of a quarter
    space = mdp.FiniteSpace(points, mdp.Lp(1))
    checked(space, sparse(table, background, stored), table, apart, slack=slack, radius=radius)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["open", "longer"]))
def test_some_nodes_of_a_network_are_judged_pair_by_pair(seed, one_way):
    rng = np.random.default_rng(seed)
    nodes, rows = 12, 8
    ring = [(node, (node + 1) % nodes) for node in range(nodes)] + [(0, 5), (7, 2)]
    lengths = rng.integers(1, 200, len(ring)) / 64.0
    there = np.full((nodes, nodes), np.inf)
    np.fill_diagonal(there, 0.0)
    for (i, j), length in zip(ring, lengths, strict=True):
        there[i, j] = min(there[i, j], length)
        if one_way == "open":
            there[j, i] = there[i, j]
    for k in range(nodes):
        there = np.minimum(there, there[:, k : k + 1] + there[k])
    chosen = rng.choice(nodes, rows, replace=False)
    apart = np.maximum(there, there.T)[np.ix_(chosen, chosen)]
    space = mdp.FiniteSpace(chosen.astype(float)[:, None], mdp.ShortestPath(ring, lengths, nodes, one_way=one_way))
    table, background, stored = drawn_windows(rng, rows, 20)
    checked(space, sparse(table, background, stored), table, apart)


@pytest.mark.parametrize("metric", [mdp.Lp(2), mdp.Lp(np.inf), mdp.Haversine()])
def test_windows_on_a_grid_leak_what_their_table_leaks(metric, monkeypatch):
    rng = np.random.default_rng(5)
    points = brute.grid(9) * 0.01 + [41.0, 12.0]
    space = mdp.FiniteSpace(points, metric)
    apart = metric(points[:, None], points[None])
    rate = 8.0 / apart.max()
    table = np.maximum(np.exp(-rate * apart), math.exp(-3.0)) * rng.uniform(0.99, 1.0, apart.shape)
    stored = table > math.exp(-3.0)
    background = np.full(81, math.exp(-3.0), np.float32)
    table = np.where(stored, table, background).astype(np.float32)
    distribution = sparse(table, background, stored)
    epsilon, *_ = brute.leakage(table.astype(float), apart)
    report = audit_local(space, distribution, Claim(epsilon * 1.01))
    assert report.verdict == "holds"
    assert report.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert report.pairs < 81 * 80 / 2  # what is too far to matter is not looked at
    assert audit_local(space, distribution, Claim(epsilon * 0.99)).verdict == "violated"
    monkeypatch.setattr(sparse_audit, "compiled", lambda: None)
    monkeypatch.setattr(pair_audit, "compiled", lambda: None)
    monkeypatch.setattr(pair_audit, "BATCH", 300)
    seen = []
    assert audit_local(space, distribution, Claim(epsilon * 1.01, progress=seen.append)) == report
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    monkeypatch.setattr(pair_audit, "SMALL", 10)  # in large spaces half the claim is fine enough
    coarse = audit_local(space, distribution, Claim(epsilon * 4.0))
    assert coarse.verdict == "holds"
    assert epsilon <= coarse.epsilon <= epsilon * 2.0 * (1 + 1e-12)
    monkeypatch.setattr(pair_audit, "MOST_STEPS", 1e3)
    assert "audit a region" in audit_local(space, distribution, Claim(epsilon * 1.01)).reason


def test_secrets_at_distance_zero_need_one_law():
    space = mdp.FiniteSpace(np.array([[90.0, 0.0], [90.0, 50.0], [80.0, 0.0]]), mdp.Haversine())
    table = np.array([[1.0, 2.0], [2.0, 4.0], [1.0, 2.0]], np.float32)
    background, stored = np.ones(2, np.float32), np.ones((3, 2), dtype=bool)
    assert audit_local(space, sparse(table, background, stored), Claim(1.0)).verdict == "holds"
    table[1, 0] = 2.1
    distribution = sparse(table, background, stored)
    report = audit_local(space, distribution, Claim(1.0))
    assert report.verdict == "violated"
    assert report.epsilon == math.inf
    assert {report.witness.secret, report.witness.other} == {0, 1}
    assert audit_local(space, distribution, Claim(1.0, slack=0.1)).verdict == "holds"
    table[1, 0] = 0.0
    assert audit_local(space, sparse(table, background, stored), Claim(1.0, slack=9.0)).witness.ratio == math.inf


def test_a_report_that_a_far_secret_never_gives_is_found_however_far_it_is():
    points = np.append(np.arange(50.0), 1e6)[:, None]
    background = np.full(51, 1e-3, np.float32)
    starts = np.append(np.zeros(51, dtype=int), 1)
    distribution = SparseDistribution(starts, [7], [0.0], background)
    report = audit_local(mdp.FiniteSpace(points, mdp.Lp(2)), distribution, Claim(1.0))
    assert report.verdict == "violated"
    assert (report.witness.other, report.witness.report) == (50, 7)
    assert audit_local(mdp.FiniteSpace(points, mdp.Lp(2)), distribution, Claim(1.0, radius=100.0)).verdict == "holds"


def test_one_law_for_all_is_judged_without_a_near_pair(monkeypatch):
    monkeypatch.setattr(pair_audit, "SMALL", 10)
    space = mdp.FiniteSpace(100.0 * np.arange(40.0)[:, None], mdp.Lp(2))
    distribution = SparseDistribution(np.zeros(41, dtype=int), [], [], np.full(5, 0.2))
    report = audit_local(space, distribution, Claim(1.0))
    assert report.verdict == "holds"
    assert (report.pairs, report.epsilon) == (1, 0.5)
    assert tuple(report.witness)[:2] == (0, 1)
    assert audit_local(space, distribution, Claim(1.0, radius=150.0)).verdict == "holds"
    assert audit_local(space, distribution, Claim(1.0, radius=50.0)).verdict == "cannot judge"


@pytest.mark.parametrize("loops", [True, False])
def test_a_report_that_nobody_gives_is_compared_with_nothing(loops, monkeypatch):
    if not loops:
        monkeypatch.setattr(pair_audit, "compiled", lambda: None)
    space = mdp.FiniteSpace(np.arange(3.0)[:, None], mdp.Lp(2))
    distribution = SparseDistribution(
        [0, 2, 3, 4], [0, 1, 0, 0], [0.0, 2.0, 0.0, 0.0], np.ones(9)
    )  # all store a 0 over a background
    report = audit_local(space, distribution, Claim(1.0))
    assert report.verdict == "holds"
    assert report.epsilon == pytest.approx(
        brute.leakage(np.array([[0, 2] + [1] * 7] + [[0] + [1] * 8] * 2), brute.euclid(space.points))[0]
    )


def test_secrets_that_no_street_joins_cannot_be_judged_unless_a_radius_says_so():
    rng = np.random.default_rng(1)
    space = mdp.FiniteSpace(np.arange(4.0)[:, None], mdp.ShortestPath([[0, 1], [2, 3]], [1.0, 2.0], 4))
    table, background, stored = np.ones((4, 3), np.float32), np.ones(3, np.float32), rng.random((4, 3)) < 0.5
    distribution = sparse(table, background, stored)
    report = audit_local(space, distribution, Claim(1.0))
    assert report.verdict == "cannot judge"
    assert "4 pairs" in report.reason
    assert audit_local(space, distribution, Claim(1.0, radius=2.0)).verdict == "holds"
    table[0, 0] = 30.0  # what one street shows is a violation all the same
    assert audit_local(space, sparse(table, background, table != background), Claim(1.0)).verdict == "violated"


def test_one_secret_has_nothing_to_tell_apart():
    space = mdp.FiniteSpace(np.zeros((1, 1)), mdp.Lp(2))
    report = audit_local(space, SparseDistribution([0, 1], [0], [1.0], [0.5, 0.5]), Claim(1.0))
    assert report.vacuous
    assert report.holds


def test_both_ways_through_sparse_rows_find_the_same_quotients(monkeypatch):
    rng = np.random.default_rng(3)
    for reports in (1, 4, 30):
        table, background, stored = drawn(rng, 12, reports)
        distribution = sparse(table, background, stored)
        pairs = np.array(list(itertools.permutations(range(12), 2)))
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = table.astype(float)[pairs[:, 0]] / table.astype(float)[pairs[:, 1]]
        expected = np.nanmax(quotients, axis=1), np.nanmin(quotients, axis=1)
        fast = sparse_audit.extremes(distribution, pairs)
        monkeypatch.setattr(sparse_audit, "compiled", lambda: None)
        monkeypatch.setattr(sparse_audit, "CHUNK", 50)
        seen = []
        plain = sparse_audit.extremes(distribution, pairs, progress=seen.append)
        monkeypatch.undo()
        assert seen[-1] == 1.0
        assert len(seen) > 1
        for one, two, three in zip(fast, plain, expected, strict=True):
            np.testing.assert_array_equal(one, two)
            np.testing.assert_array_equal(one, three)


def test_both_ways_to_rank_entries_are_one(monkeypatch):
    rng = np.random.default_rng(8)
    for reports in (3, 25):
        table, background, stored = drawn(rng, 15, reports)
        distribution = sparse(table, background, stored)
        fast = pair_audit.EntryWindows(distribution)
        both = fast.range, (fast.high, fast.deep)
        monkeypatch.setattr(pair_audit, "compiled", lambda: None)
        plain = pair_audit.EntryWindows(distribution)
        np.testing.assert_array_equal(both[0], plain.range)
        for one, two in zip(both[1], (plain.high, plain.deep), strict=True):
            assert one.step == two.step
            for name in ("starts", "columns", "values", "counts"):
                np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        monkeypatch.undo()
        taken = table[stored]
        assert len(fast.high.values) == np.count_nonzero(taken > 0)
        assert len(fast.deep.values) == np.count_nonzero(taken < np.broadcast_to(background, table.shape)[stored])


def test_sums_of_rows_are_exact_where_the_background_cancels():
    background = np.full(1000, 3e30, np.float32)
    values = np.full(1000, 1e-30, np.float32)
    distribution = SparseDistribution([0, 1000, 1000], np.arange(1000), values, background)
    logs, errors = distribution.log_totals
    exact = [math.log(1000 * float(values[0])), math.log(1000 * float(background[0]))]
    assert np.all(np.abs(logs - exact) <= errors)
    assert errors.max() < 1e-10
    for secret, weights in enumerate((values, background)):
        total, power = distribution.total(secret)
        assert total * 2.0**power == pytest.approx(math.fsum(weights.tolist()), rel=1e-15)


def test_the_judge_of_mechanisms_locates_the_witness():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    space, reports = mdp.FiniteSpace(points, mdp.Lp(2)), mdp.FiniteSpace(points[:2] + 5.0, mdp.Lp(2))
    mechanism = LocalMechanism(
        space, reports, [0, 1, 1, 1], [0], [4.0], [1.0, 1.0],
        Guarantee(1.0, space.metric), Certificate(loss=1.0, lower_bound=0.0, method="by hand", epsilon=1.0),
    )  # fmt: skip
    report = verify_claim(mechanism, Claim.of(mechanism.guarantee, None))
    assert report.verdict == "holds"
    epsilon, secret, other, seen = brute.leakage(mechanism.matrix, brute.euclid(points))
    assert report.epsilon == pytest.approx(epsilon)
    assert tuple(report.witness) == (secret, other, seen)
    assert report.witness.report_at == tuple(reports.points[seen])
    strict = verify_claim(mechanism, replace(Claim.of(mechanism.guarantee, None), epsilon=0.5))
    assert strict.verdict == "violated"
