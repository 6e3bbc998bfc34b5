"""Noise in hyperbolic space: its law, its promise, and that doubles and arbitrary precision draw one report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import metricdp as mdp
from metricdp.auditing.distributions import describe_distribution
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.mechanisms import HyperbolicLaplace
from metricdp.mechanisms.kinds import hyperbolic
from metricdp.mechanisms.noise import distributions, vectors
from metricdp.randomness import GeneratorSource, row_words

RNG = np.random.default_rng(5)


def noise(epsilon: float, n: int, **options: Any) -> HyperbolicLaplace:
    made = mdp.laplace(mdp.Hyperbolic(), epsilon, dimension=n, **options)
    assert isinstance(made, HyperbolicLaplace)
    return made


def in_ball(rows: int, n: int, farthest: float = 3.0, rng: np.random.Generator = RNG) -> Any:
    found = rng.normal(size=(rows, n))
    return found / np.linalg.norm(found, axis=1, keepdims=True) * np.tanh(rng.uniform(0, farthest / 2, size=(rows, 1)))


def apart(a: Any, b: Any) -> Any:
    """The distance of the ball, written down again."""
    rooms = (1 - np.square(a).sum(axis=1)) * (1 - np.square(b).sum(axis=1))
    return np.arccosh(1 + 2 * np.square(a - b).sum(axis=1) / rooms)


def added(x: Any, y: Any) -> Any:
    """Moebius addition: the isometry that takes zero to x, applied to y."""
    s, p, q = 2 * (x * y).sum(axis=1, keepdims=True), (x * x).sum(axis=1)[:, None], (y * y).sum(axis=1)[:, None]
    return ((1 + s + q) * x + (1 - p) * y) / (1 + s + p * q)


@pytest.mark.parametrize(("n", "epsilon"), [(1, 0.4), (2, 1.3), (3, 2.5), (5, 40.0), (10, 12.0)])
def test_distances_have_the_law_of_the_density_and_no_direction_is_preferred(n: int, epsilon: float) -> None:
    mechanism, count = noise(epsilon, n), 3000
    x = np.repeat(in_ball(1, n), count, axis=0)
    reports = mechanism.sample(x, rng=np.random.default_rng(3))
    away = apart(x, reports)
    grid = np.linspace(1e-9, 60.0 / (epsilon - n + 1), 400_001)
    logs = -epsilon * grid + (n - 1) * (grid + np.log1p(-np.exp(-2 * grid)))  # sinh(r) e^-eps r without overflow
    weights = np.exp(logs - logs.max())
    below = np.cumsum(weights) / weights.sum()
    ranks = np.sort(np.interp(away, grid, below))
    assert np.abs(ranks - (np.arange(count) + 0.5) / count).max() < 1.95 / math.sqrt(count)  # one in a thousand
    seen = added(-x, reports)  # from where the secret is the centre, all directions are alike
    seen /= np.linalg.norm(seen, axis=1, keepdims=True)
    assert np.abs(seen.mean(axis=0)).max() < 4.5 / math.sqrt(count)
    assert mechanism.certificate.loss == pytest.approx(float((weights * grid).sum() / weights.sum()), rel=1e-4)
    assert abs(np.mean(away <= mdp.accuracy_radius(mechanism, 0.9)) - 0.9) < 0.03


@pytest.mark.parametrize(("n", "epsilon"), [(1, 3.0), (2, 1.6), (6, 30.0)])
def test_doubles_and_arbitrary_precision_draw_the_same_and_fine_lattices_need_more_bits(n: int, epsilon: float) -> None:
    distribution = noise(epsilon, n).distribution
    rows = in_ball(60, n, 12.0, np.random.default_rng(2))
    words = row_words(GeneratorSource(np.random.default_rng(7)), distribution.width)
    with np.errstate(all="ignore"):
        cells, sure = distribution.doubles(rows, lambda attempt: words.first(attempt, 0, 60))
    assert sure.mean() > 0.85
    for row in np.flatnonzero(sure)[::6]:
        assert distribution.exactly(rows[row], words.digits(int(row))) == tuple(int(cell) for cell in cells[row])
    fine = hyperbolic.HyperbolicDistribution(n, epsilon, (2.0**44, 1.0))
    with np.errstate(all="ignore"):
        _, decided = fine.doubles(rows, lambda attempt: words.first(attempt, 0, 60))
    assert 0 < decided.sum() < 60
    close = distributions.draw_cells(rows, fine, words) * 2.0**-44
    coarse = distributions.draw_cells(rows, distribution, words) * distribution.lattice[1] / distribution.lattice[0]
    assert np.abs(close - coarse).max() <= 0.5 * distribution.lattice[1] / distribution.lattice[0] * (1 + 1e-6)


def test_errors_of_doubles_are_within_their_bounds() -> None:
    for n, epsilon in ((1, 0.5), (4, 3.4), (8, 90.0)):
        distribution = noise(epsilon, n).distribution
        rows = in_ball(40, n, 9.0)
        words = row_words(GeneratorSource(np.random.default_rng(2)), distribution.width)
        first = words.first(0, 0, 40)
        with np.errstate(all="ignore"):
            way = distribution.distances(first[:, :n])
            places, error = hyperbolic.walk_hyperboloid(rows, vectors.normal(first[:, n:], n), way)
        fine = hyperbolic.HyperbolicDistribution(n, epsilon, (2.0**150, 1.0))
        for row in range(0, 40, 3):
            cells = fine.exactly(rows[row], words.digits(row))
            exact = np.array([cell / 2**150 for cell in cells])
            assert (np.abs(exact - places[row]) <= error[row] + 2.0**-52 * np.abs(exact)).all()
            assert (error[row] < 1e-10 * (1 + np.abs(exact).max()) / (1 - np.square(rows[row]).sum())).all()


def test_the_promise_is_kept_with_the_whole_epsilon_and_is_tight() -> None:
    for n, epsilon in ((1, 1.0), (3, 2.2), (20, 25.0)):
        mechanism = noise(epsilon, n)
        x, other, reports = in_ball(300, n), in_ball(300, n), in_ball(300, n, 8.0)
        other[:150] = x[:150] + 0.05 * (1 - np.square(x[:150]).sum(axis=1, keepdims=True)) * RNG.normal(size=(150, n))
        inside = np.square(other).sum(axis=1) < 0.999
        x, other, reports = x[inside], other[inside], reports[inside]
        logs = mechanism.log_density(x, reports) - mechanism.log_density(other, reports)
        assert (np.abs(logs) <= epsilon * apart(x, other) * (1 + 1e-9) + 1e-9).all()
        centre, beyond = np.zeros_like(x), -0.9 * x / np.linalg.norm(x, axis=1, keepdims=True)
        shown = mechanism.log_density(centre, beyond) - mechanism.log_density(x, beyond)  # on the line through both
        assert shown == pytest.approx(epsilon * apart(centre, x), rel=1e-6)
        assert mdp.audit(mechanism).verdict == "holds"
        assert mdp.audit(mechanism, epsilon=0.99 * epsilon).verdict == "violated"


def test_the_normaliser_is_one_for_all_secrets_under_volume_and_not_under_lebesgue() -> None:
    """With the flat measure of the ball, as the published density has it, more than epsilon leaks."""
    epsilon, line = 2.0, np.tanh(np.linspace(-15, 15, 200_001))  # a fine grid of the ball of one dimension
    flat = np.gradient(line)

    def mass(x: float, weights: Any) -> float:
        away = np.abs(2 * np.arctanh(x) - 2 * np.arctanh(line))
        return float((np.exp(-epsilon * away) * weights).sum())

    volume = flat * 2 / (1 - line**2)
    places = [0.0, 0.5, 0.9]
    masses = [mass(x, volume) for x in places]
    assert masses == pytest.approx([math.exp(noise(epsilon, 1).log_mass)] * 3, rel=1e-6)
    # at a report beyond 0.99 the densities differ by exp(epsilon d) times the ratio of the normalisers
    leaked = epsilon + math.log(mass(0.9, flat) / mass(0.99, flat)) / (2 * np.arctanh(0.99) - 2 * np.arctanh(0.9))
    assert 1.45 * epsilon < leaked < epsilon + 1


def test_densities_integrate_to_one_over_the_ball() -> None:
    mechanism, x = noise(2.6, 2), np.array([[0.3, -0.5]])
    sides = np.linspace(-1, 1, 801)
    flat = np.stack(np.meshgrid(sides, sides), axis=-1).reshape(-1, 2)
    flat = flat[np.square(flat).sum(axis=1) < 0.9999]
    volume = (sides[1] - sides[0]) ** 2 * (2 / (1 - np.square(flat).sum(axis=1))) ** 2
    values = np.exp(mechanism.log_density(np.repeat(x, len(flat), axis=0), flat))
    assert float((values * volume).sum()) == pytest.approx(1.0, abs=0.02)


def test_reports_far_out_stay_in_the_ball_and_move_less_than_the_lattice_says() -> None:
    wild = noise(1.05, 2)
    reports = wild.sample(in_ball(400, 2, 14.0), rng=np.random.default_rng(1))
    assert (np.square(reports).sum(axis=1) < 1.0).all()
    mdp.Hyperbolic().check(reports)
    places = RNG.normal(size=(200, 3)) * 10.0 ** RNG.uniform(-2, 3, size=(200, 1))
    moved = places + RNG.uniform(-0.5, 0.5, size=places.shape)
    high = [np.sqrt(1 + np.square(one).sum(axis=1)) for one in (places, moved)]
    away = np.arccosh(np.maximum(1.0, high[0] * high[1] - (places * moved).sum(axis=1)))
    assert (away <= np.linalg.norm(places - moved, axis=1) + 1e-6).all()


def test_words_of_a_hierarchy_are_replaced_by_the_nearest() -> None:
    words = mdp.FiniteSpace(in_ball(40, 3), mdp.Hyperbolic())
    mechanism = mdp.madlib(words, 6.0)
    assert mechanism.guarantee.epsilon == 6.0
    assert mdp.audit(mechanism).verdict == "holds"
    codes = np.repeat(np.arange(40), 200)
    found = mechanism.sample(codes, rng=np.random.default_rng(2))
    away = apart(words.points[codes], words.points[found] + 1e-15)
    assert away.mean() <= mechanism.certificate.loss
    assert np.mean(away <= mdp.accuracy_radius(mechanism, 0.9)) >= 0.9
    assert 0.05 < np.mean(found == codes) < 0.9
    with pytest.raises(InvalidInput, match=r"must be at least 2\.05 in 3 dimensions"):
        mdp.madlib(words, 2.0)


def test_files_hold_it_and_bring_back_the_same_draws(tmp_path: Path) -> None:
    mechanism = noise(12.0, 5)
    mdp.save(mechanism, tmp_path / "ball.mdp")
    again = mdp.load(tmp_path / "ball.mdp")
    x = in_ball(4, 5)
    one, two = (m.sample(x, rng=np.random.default_rng(1)) for m in (mechanism, again))
    assert np.array_equal(one, two)
    assert (again.certificate.stated, again.guarantee) == ((), mechanism.guarantee)
    assert describe_distribution(again)["density"]["distance"] == "exp(-2 d) has the distribution Beta(4, 5)"


def test_what_cannot_be_built_is_said() -> None:
    for call, words in [
        (lambda: mdp.laplace(mdp.Hyperbolic(), 3.0), "`dimension` must say how many"),
        (lambda: noise(1.0, 2), "must be at least 1.05 in 2 dimensions"),
        (lambda: noise(5.0, 2, pitch=1e-14), "finer than noise in doubles can decide"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            call()
    with pytest.raises(OutOfDomain, match="row 1 lies at the border of the ball"):
        noise(5.0, 2).sample([[0.1, 0.2], [0.9999999, 0.0]])


def test_rows_at_the_border_are_left_out_of_a_table_where_that_is_asked_for() -> None:
    """Noise has limits of its own: what it cannot be added to is a bad row like any other, before anything is drawn."""
    import pyarrow as pa

    table = pa.table({"a": [0.1, 0.9999999, 0.2, 2.0], "b": [0.2, 0.0, 0.3, 0.0]})
    far = pa.table({"a": [0.1, 1e19, 0.2], "b": [0.2, 0.0, 0.3]})
    matrix = np.eye(2)[:1]
    for rows, bad, mechanism in (
        (table, [1, 3], noise(3.0, 2)),
        (table, [1, 3], mdp.laplace(mdp.metrics.Bags(mdp.Hyperbolic(), 2), 3.0, dimension=2)),
        (far, [1], mdp.laplace(mdp.Lp(2), 3.0)),
        (far, [1], mdp.gaussian(mdp.Lp(2), 3.0)),
        (far, [1], mdp.laplace(mdp.Frechet(mdp.Lp(1), 1), 3.0, dimension=2)),
        (far, [1], mdp.laplace(mdp.Lp(2), 3.0, projection=matrix)),
    ):
        with pytest.raises(OutOfDomain, match=r"row 1 \(the first is row 0\).*(Shorten such|larger `pitch`)") as found:
            mdp.perturb(rows, mechanism, columns=["a", "b"])
        assert list(found.value.rows) == bad
        kept = mdp.perturb(rows, mechanism, columns=["a", "b"], on_error="drop")
        assert kept.num_rows == len(rows) - len(bad)
        emptied = mdp.perturb(rows, mechanism, columns=["a", "b"], on_error="null")
        assert np.flatnonzero([value is None for value in emptied.column(0).to_pylist()]).tolist() == bad


def test_the_service_refuses_a_secret_at_the_border_before_anybody_is_charged() -> None:
    import pyarrow as pa

    from metricdp.service import Refused, ServedMechanism

    served = ServedMechanism("ball", noise(3.0, 2))
    served.check([pa.array([0.1]), pa.array([0.2])])
    with pytest.raises(Refused) as refused:
        served.check([pa.array([0.1, 0.9999999]), pa.array([0.2, 0.0])])
    assert "Shorten such vectors" in refused.value.sentence
