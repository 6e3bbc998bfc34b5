"""One judge for every kind of mechanism: it says what a second, exact one says, and nothing holds by default."""

import json
import math
from dataclasses import replace

import flint
import numpy as np
import pytest

import exactly
import metricdp as mdp
from forging import rewritten
from metricdp.artifacts import load, save
from metricdp.auditing import AuditReport, Claim, audit_matrix, float_leakage, verify_claim
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.mechanisms import Certificate, Guarantee
from scripts import main

LINE = mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(1))
EDGES = ([[0, 1], [1, 2], [2, 0]], [1.0, 1.5, 2.0])


def on_streets():
    crossings = mdp.FiniteSpace([[0], [1], [2]], mdp.ShortestPath(*EDGES, unit="km"))
    return mdp.interpolated(crossings, crossings, 0.7, anchors=2)


def on_a_box(rule="exact"):
    box = mdp.Box([0.0, 0.0], [2.0, 3.0], mdp.Lp(2))
    reports = mdp.FiniteSpace([[0.0, 0.0], [1.0, 2.0], [2.0, 3.0]], mdp.Lp(2))
    return mdp.interpolated(box, reports, 0.8, anchors=(2, 2), rule=rule, split="even")


KINDS = {
    "matrix": lambda: mdp.exponential(LINE, 1.0),
    "radius": lambda: mdp.optimal(mdp.Problem(LINE, 1.0, radius=1.0)),
    "vectors": lambda: mdp.laplace(mdp.Lp(2), 1.0),
    "earth": lambda: mdp.laplace(mdp.Haversine(), 10.0),
    "words": lambda: mdp.madlib(mdp.FiniteSpace([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], mdp.Lp(2)), 2.0),
    "box": on_a_box,
    "streets": on_streets,
    "product": lambda: mdp.product(mdp.laplace(mdp.Lp(2), 1.0), mdp.exponential(LINE, 1.0)),
}
BASES = {"vectors": "theorem", "earth": "theorem", "words": "theorem"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_mechanism_its_file_and_the_command_get_the_same_report(kind, tmp_path, capsys):
    mechanism, path = KINDS[kind](), tmp_path / "some.mdp"
    save(mechanism, path)
    report = mdp.audit(mechanism)
    assert (report.verdict, report.basis) == ("holds", BASES.get(kind, "proof"))
    assert report == mdp.audit(load(path))
    assert main(["audit", str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["basis"], said["method"]) == (report.verdict, report.basis, report.method)
    assert (said["epsilon"], said["pairs"], said["slack"]) == (report.epsilon, report.pairs, report.slack)


@pytest.mark.parametrize("kind", KINDS)
def test_half_of_what_is_promised_is_never_called_kept(kind):
    mechanism = KINDS[kind]()
    half = mdp.audit(mechanism, epsilon=mechanism.guarantee.epsilon / 2)
    # the nearest word may hide some of what the noise shows; for all others the leak is there to be seen
    assert half.verdict == ("cannot judge" if kind == "words" else "violated")
    assert not half.holds
    assert mdp.audit(mechanism, epsilon=2 * mechanism.guarantee.epsilon).verdict == "holds"


def test_a_theorem_says_what_it_rests_on():
    report = mdp.audit(mdp.laplace(mdp.Haversine(), 10.0))
    assert report.verdict == "holds"
    assert "density proportional to exp(-10 d)" in report.method
    assert "pitch 5e-06" in report.method


def test_noise_needs_no_slack_and_that_of_another_metric_is_not_called_private():
    noise = mdp.laplace(mdp.Lp(2), 1.0)
    promise = noise.guarantee
    assert promise.slack == 0.0
    older = mdp.audit(replace(noise, guarantee=replace(promise, slack=0.0142)))  # as files used to promise
    assert (older.verdict, older.epsilon) == ("holds", 1.0)
    other = mdp.audit(replace(noise, guarantee=replace(promise, metric=mdp.Lp(1))))
    assert other.verdict == "cannot judge"
    assert "another metric" in other.reason


def test_a_product_promises_the_sum_of_its_parts_or_nothing():
    made = KINDS["product"]()
    part = made.parts[0]  # a part that promises less than it keeps
    older = replace(made, parts=(replace(part, guarantee=part.guarantee.with_slack(0.01)), *made.parts[1:]))
    assert mdp.audit(older).verdict == "cannot judge"
    assert mdp.audit(replace(older, guarantee=made.guarantee.with_slack(0.01))).verdict == "holds"
    cheaper = mdp.Weighted([(part, columns, 0.5 * rate) for part, columns, rate in made.guarantee.metric.parts])
    report = mdp.audit(replace(made, guarantee=replace(made.guarantee, metric=cheaper)))
    assert report.verdict == "cannot judge"
    assert "not the sum" in report.reason


def test_a_product_of_a_part_that_protects_close_pairs_alone_does_not_hold_for_all():
    apart = mdp.FiniteSpace([[0.0], [1.0], [9.0]], mdp.Lp(2))
    matrix = [[0.6, 0.4, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]]  # the third place is told with certainty
    close = mdp.from_matrix(apart, matrix, epsilon=1.0, radius=1.0)
    assert mdp.audit(close).verdict == "holds"
    made = mdp.product(replace(close, guarantee=replace(close.guarantee, radius=None)), mdp.laplace(mdp.Lp(2), 1.0))
    assert mdp.audit(made).verdict != "holds"
    report = mdp.audit(replace(made, parts=(close, *made.parts[1:])))
    assert report.verdict == "cannot judge"
    assert "close ones alone" in report.reason


def test_a_new_kind_brings_its_own_judgement():
    class Constant:
        inputs = outputs = LINE
        guarantee = Guarantee(1.0, LINE.metric)
        certificate = Certificate(loss=1.0, lower_bound=0.0, method="constant", epsilon=0.0)

        def sample(self, secrets, /, *, rng=None):
            return np.zeros(len(secrets), dtype=np.int64)

        def log_density(self, secrets, reports, /):
            return np.zeros(len(secrets))

    stranger = mdp.audit(Constant())
    assert stranger.verdict == "cannot judge"
    assert "audit_sampler" in stranger.reason

    def judge_constant(mechanism, claim: Claim):
        return AuditReport(claimed=claim.epsilon, epsilon=0.0, basis="theorem", method="says nothing")

    verify_claim.register(Constant, judge_constant)
    assert mdp.audit(Constant()).verdict == "holds"
    assert mdp.audit(mdp.product(Constant(), KINDS["matrix"]())).verdict == "holds"


def said(**values):
    return AuditReport(**({"claimed": 1.0, "epsilon": 0.5, "basis": "proof", "method": "test", "pairs": 3} | values))


@pytest.mark.parametrize(
    "values",
    [
        {"claimed": None},
        {"claimed": math.nan},
        {"claimed": math.inf},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"epsilon": 1.1},
        {"pairs": 0},
        {"obstacle": "Something stands in the way."},
        {"basis": "samples", "pairs": 0},
        {"basis": "theorem", "epsilon": math.nan},
    ],
)
def test_nothing_holds_by_default(values):
    report = said(**values)
    assert report.verdict == "cannot judge"
    assert report.reason.endswith(".")
    assert report.reason in str(report)
    assert not report.holds


def test_what_holds_and_what_does_not():
    assert said().verdict == "holds"
    assert said(basis="theorem", pairs=0).verdict == "holds"
    assert said(basis="samples").verdict == "not refuted"
    assert said(refuted=True).verdict == "violated"
    assert said(refuted=True, obstacle="Some pairs were not judged.").verdict == "violated"


def test_a_promise_about_a_single_secret_is_kept_and_the_report_says_why(tmp_path):
    alone = mdp.FiniteSpace([[1.0, 2.0]], mdp.Lp(2))
    for build in (mdp.exponential, mdp.tight_constraints, mdp.truncated_exponential):
        made = build(alone, 1.0)
        report = mdp.audit(made)
        assert (report.verdict, report.vacuous, report.pairs) == ("cannot judge", True, 0)
        assert "only one secret" in report.reason
        assert report.holds
        save(made, tmp_path / "one.mdp")
        assert load(tmp_path / "one.mdp").certificate.witness is None
    assert main(["audit", str(tmp_path / "one.mdp")]) == 2


def test_a_radius_that_covers_no_pair_is_no_promise():
    with pytest.raises(InvalidInput, match="covers no two secrets"):
        mdp.optimal(mdp.Problem(LINE, 1.0, radius=0.5))
    with pytest.raises(InvalidInput, match="radius"):
        mdp.mechanisms.MatrixMechanism(
            LINE, LINE, np.eye(3), Guarantee(1.0, LINE.metric, radius=math.nan), KINDS["matrix"]()
        )


def test_no_claim_is_no_verdict():
    report = mdp.audit([[0.6, 0.4], [0.4, 0.6]], metric=mdp.Lp(2), points=[[0.0], [1.0]])
    assert report.verdict == "cannot judge"
    assert report.epsilon == pytest.approx(math.log(1.5))
    assert "name" in report.reason


def test_distances_that_overflow_are_not_passed_over():
    matrix, points = [[0.5, 0.5], [0.9, 0.1]], [[0.0, 0.0], [1e200, 1e200]]
    report = mdp.audit(matrix, metric=mdp.Lp(100), points=points, epsilon=1.0)
    assert report.verdict == "cannot judge" or report.pairs == 1
    apart = np.array([[0.0, np.inf], [np.inf, 0.0]])
    report = audit_matrix(np.array(matrix), apart, 1.0)
    assert report.verdict == "cannot judge"
    assert "infinite" in report.reason
    with pytest.raises(InvalidInput, match="at least 0"):
        audit_matrix(np.array(matrix), np.array([[0.0, np.nan], [np.nan, 0.0]]), 1.0)


def test_equal_rows_with_a_shared_zero_are_answered():
    roads = mdp.ShortestPath([[0, 1], [2, 3]], [1.0, 1.0])
    report = mdp.audit([[1, 0], [1, 0], [0, 1]], metric=roads, points=[[0], [1], [2]], epsilon=1.0)
    assert (report.epsilon, report.pairs, report.verdict) == (0.0, 1, "cannot judge")
    torn = mdp.audit([[1, 0], [0, 1], [0, 1]], metric=roads, points=[[0], [1], [2]], epsilon=1.0)
    assert (torn.epsilon, torn.verdict) == (math.inf, "violated")


def test_builders_with_a_radius_are_answered_where_groups_share_no_report():
    points = np.array([[0.0], [1.0], [50.0], [51.0], [120.0]])
    problem = mdp.Problem(mdp.FiniteSpace(points, mdp.Lp(1)), 1.0, radius=2.0)
    for made in (mdp.optimal(problem), mdp.decomposed(problem, blocks=2)):
        assert exactly.verdict(made.matrix, np.abs(points - points.T), 1.0, radius=2.0) == "holds"
        assert mdp.audit(made).verdict == "holds"


def test_proportional_rows_at_distance_zero_are_one_law():
    row = np.array([0.1, 0.2, 0.7])
    matrix = np.array([row, row * 0.9995, row[::-1]])  # the second is not a rounding of the first times anything
    matrix[1] = np.array([0.125, 0.25, 0.625])
    matrix[0] = matrix[1] * (1 + 2.0**-11)
    points = [[0.0], [0.0], [1.0]]
    assert exactly.verdict(matrix, np.abs(np.subtract.outer([0, 0, 1], [0, 0, 1])), 99.0) == "holds"
    assert mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=99.0).verdict == "holds"
    matrix[0, 0] = np.nextafter(matrix[0, 0], 1.0)
    assert mdp.audit(matrix, metric=mdp.Lp(2), points=points, epsilon=99.0).verdict == "violated"


def test_slack_counts_at_distance_zero_too():
    matrix = np.array([[0.5, 0.5], [0.6, 0.4]])
    apart = np.zeros((2, 2))
    assert audit_matrix(matrix, apart, 1.0, slack=0.3).verdict == "holds"
    assert audit_matrix(matrix, apart, 1.0, slack=0.2).verdict == "violated"


def attack(seed):
    """Return a small matrix of a nasty kind with distances of a nasty kind."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    base = rng.dirichlet(np.ones(m), size=n)
    kind = seed % 6
    if kind == 1:
        base[rng.random((n, m)) < 0.4] = 0.0
    elif kind == 2:
        base = np.repeat(base[:1], n, axis=0) * (1 + rng.integers(0, 3, (n, 1)) * 2.0**-11)
        base[:, rng.integers(m)] = 0.0
    elif kind == 3:
        base *= 10.0 ** -rng.integers(0, 320, (n, m)).astype(float)
    elif kind == 4:
        base = np.repeat(base[:1], n, axis=0) * np.exp(rng.integers(-2, 3, (n, m)) * 0.5)
    base[base.sum(axis=1) <= 0, 0] = 1.0
    matrix = base / base.sum(axis=1, keepdims=True)
    points = np.cumsum(rng.choice([0.0, 1e-300, 1e-9, 0.5, 1.0, 1e9], n)) if seed % 4 else np.arange(n, dtype=float)
    apart = np.abs(np.subtract.outer(points, points))
    if seed % 5 == 0:
        apart[0, 1:] = apart[1:, 0] = np.inf
    return matrix, apart, rng


NEARLY_EQUAL = [764, 1472, 6344, 7514]  # ln((1 + x) / (1 - x)) = 2 x + 2 x^3 / 3: 128 bits do not part it from 2 x


@pytest.mark.parametrize("seeds", [*(range(start, start + 60) for start in range(0, 600, 60)), NEARLY_EQUAL], ids=str)
def test_the_verdict_is_that_of_fractions_and_400_bits(seeds):
    for seed in seeds:
        matrix, apart, rng = attack(seed)
        slack = float(rng.choice([0.0, 0.0, 0.5]))
        radius = float(rng.choice([0.6, 2.0])) if seed % 3 == 0 else None
        ball = exactly.smallest_epsilon(matrix, apart, radius=radius)
        claims = [1e-3, 1.0, 1e6]
        if slack == 0 and 0 < float(ball) < 1e300:
            claims += [float(ball), float(np.nextafter(float(ball), 0)), float(np.nextafter(float(ball), np.inf))]
        for claim in claims:
            report = audit_matrix(matrix, apart, claim, slack=slack, radius=radius)
            assert report.verdict == exactly.verdict(matrix, apart, claim, slack=slack, radius=radius), (seed, claim)
            if slack == 0 and math.isfinite(report.epsilon):
                assert flint.arb(report.epsilon) >= ball.lower()
        assert not math.isnan(float_leakage(matrix, apart))


@pytest.mark.parametrize("kind", ["box", "streets"])
@pytest.mark.parametrize("value", [1e308, 1e7, -1.0, math.nan])
def test_forged_curves_are_refused(kind, value, tmp_path):
    path = tmp_path / "some.mdp"
    save(KINDS[kind](), path)

    def forge(manifest, tensors):
        names = [name for name in tensors if "ratio" in name]
        assert names
        for name in names:
            tensors[name].fill(value)

    rewritten(path, forge)
    with pytest.raises(CorruptFile):
        load(path)


def test_an_interpolated_promise_that_is_broken_shows_two_points():
    made = on_a_box()
    report = mdp.audit(made, epsilon=0.4)
    assert report.verdict == "violated"
    one, two = (np.array([place]) for place in (report.witness.secret_at, report.witness.other_at))
    distribution = [made.probabilities(point)[0, report.witness.report] for point in (one, two)]
    assert distribution[0] / distribution[1] == pytest.approx(report.witness.ratio, rel=1e-9)
    assert math.log(distribution[0] / distribution[1]) > 0.4 * float(np.linalg.norm(one - two))


def test_what_the_log_rule_does_not_prove_is_not_called_broken():
    made = on_a_box("log")
    proven = mdp.audit(made).epsilon
    shown = mdp.audit(made, epsilon=proven * 0.999)
    assert shown.verdict == "cannot judge"
    assert "nothing shows a leak" in shown.reason
