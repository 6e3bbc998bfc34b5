"""Distances never lie above the true ones of the stored points: judged by interval arithmetic and exact fractions."""

import itertools
import math
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricdp as mdp
from metricdp.errors import InvalidInput
from metricdp.metrics import KM_PER_DEGREE, StreetPath, is_proven, pairwise, precision_note

BITS = 500
UNIT = 2.0**-53
RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def many_bits():
    before = flint.ctx.prec
    flint.ctx.prec = BITS
    yield
    flint.ctx.prec = before


def ball(value):
    """Return a stored double, or a fraction, as a ball of many bits."""
    exact = Fraction(value) if isinstance(value, Fraction) else Fraction(float(value))
    return flint.arb(flint.fmpq(exact.numerator, exact.denominator))


def assert_floor(found, true, *, relative, absolute=0.0):
    found = float(found)
    assert bool(ball(found) <= true), (found, true)
    if np.isfinite(found):
        assert bool(ball(found) >= true * (1 - ball(relative)) - ball(absolute)), (found, true)


def true_lp(a, b, p):
    gaps = [abs(ball(x) - ball(y)) for x, y in zip(a, b, strict=True)]
    if math.isinf(p):
        return max(
            (abs(Fraction(float(x)) - Fraction(float(y))) for x, y in zip(a, b, strict=True)), key=float, default=0
        )
    used = [g for g in gaps if not bool(g == 0)]
    return sum((g ** ball(p) for g in used), flint.arb(0)) ** (1 / ball(p)) if used else flint.arb(0)


numbers = st.one_of(
    st.floats(-1e3, 1e3),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300),
    st.sampled_from([0.0, 1.0, 3.0, 4.0, 0.1, 0.1 + 2**-55, 1e200, -1e200, 1e-200, 5e-324, 1e-160, 1 + 2**-52]),
)
rows = st.lists(numbers, min_size=3, max_size=3).map(np.array)


@given(rows, rows, st.sampled_from([1.0, 1.5, 2.0, 3.0, 100.0, np.inf]))
def test_lp_is_a_floor_for_huge_small_and_close_numbers(a, b, p):
    metric = mdp.Lp(p)
    with flint.ctx.workprec(4500):  # 1e300 and 5e-324 in one sum
        true = true_lp(a, b, p)
        true = ball(true) if isinstance(true, Fraction | int) else true
        for found in (metric(a, b), pairwise(metric, a[None], b[None])[0, 0]):
            assert np.isfinite(found)
            tiny = 2.0**-1000  # below, only the largest gap counts
            assert_floor(found, true, relative=60 * UNIT, absolute=tiny)
            assert (found == 0) == np.array_equal(a, b)


@pytest.mark.parametrize("p", [1, 2, 3, 100, np.inf])
def test_lp_rows_and_matrices_give_the_same_floors(p):
    points = np.concatenate(
        [RNG.normal(size=(12, 2)), RNG.normal(size=(6, 2)) * 1e200, RNG.normal(size=(6, 2)) * 1e-200]
    )
    full = pairwise(mdp.Lp(p), points, points)
    np.testing.assert_allclose(full, mdp.Lp(p)(points[:, None], points[None]), rtol=1e-14)
    assert np.all(np.isfinite(full))
    assert np.all(full[~np.eye(len(full), dtype=bool)] > 0)


def test_lp_of_whole_numbers_is_exact_where_a_double_can_hold_it():
    grid = np.array(list(itertools.product(range(-3, 4), repeat=2)), dtype=float)
    for i, j in itertools.product(range(len(grid)), repeat=2):
        gaps = np.abs(grid[i] - grid[j])
        assert mdp.Lp(1)(grid[i], grid[j]) == gaps.sum()
        assert mdp.Lp(np.inf)(grid[i], grid[j]) == gaps.max()
        square = int(gaps @ gaps)
        if math.isqrt(square) ** 2 == square:
            assert mdp.Lp(2)(grid[i], grid[j]) == math.isqrt(square)
    assert pairwise(mdp.Lp(2), grid, grid)[0, 1] == 1.0
    assert mdp.Lp(2)(np.array([0.5, 0.25]), np.array([2.0, 2.25])) == 2.5


def test_numbers_whose_distance_would_overflow_are_refused():
    with pytest.raises(InvalidInput, match="overflow"):
        mdp.FiniteSpace([[1.7e308], [-1.7e308]], mdp.Lp(2))


def true_haversine(a, b, radius):
    (lat_a, lon_a), (lat_b, lon_b) = ([Fraction(float(x)) for x in place] for place in (a, b))
    parallels = sine(90 - abs(lat_a)) * sine(90 - abs(lat_b))
    around = abs(lon_a - lon_b) % 360
    half = square(sine((lat_a - lat_b) / 2)) + parallels * square(sine(around / 2))
    other = square(sine((lat_a + lat_b) / 2)) + parallels * square(sine((180 - around) / 2))
    return 2 * radius * flint.arb.atan2(root(half), root(other))


def sine(degrees):
    return (ball(degrees) * flint.arb.pi() / 180).sin()


def square(value):
    return value * value


def root(value):
    return value.sqrt() if bool(value > 0) else flint.arb(0)


PLACES = [
    (0.0, 0.0), (41.1579438, -8.6291053), (-33.9, 151.2), (90.0, 17.0), (-90.0, 3.0), (89.9999999, 40.0), (60.0, 180.0),
    (-17.8, 179.99999999), (45.0, -180.0), (10.0, 359.999999), (1e-9, -1e-12), (89.99999999999, -120.0),
]  # fmt: skip


def awkward_pairs():
    rng = np.random.default_rng(3)
    for place in PLACES:
        here = np.array(place)
        yield here, np.array([-here[0], here[1] - 180.0 if here[1] > 0 else here[1] + 180.0])  # the antipode
        yield here, np.array([here[0], here[1] - 360.0 if here[1] > 0 else here[1] + 360.0])  # the same meridian
        for metres in (1e-6, 0.013, 0.84, 30.0, 2e3, 1e6, 1.9e7):
            for _ in range(4):
                step = rng.normal(size=2)
                step *= metres / 1000.0 / KM_PER_DEGREE / np.linalg.norm(step)
                there = here + step * [1.0, 1.0 / max(math.cos(math.radians(here[0])), 1e-6)]
                there = np.clip(there, [-90, -360], [90, 360])
                yield here, there
                across = np.array([there[0], there[1] - 360.0 if there[1] > 0 else there[1] + 360.0])
                yield here, across
                yield (
                    here,
                    np.clip(np.array([-there[0], there[1] - 180.0 if there[1] > 0 else there[1] + 180.0]), -360, 360),
                )
    for _ in range(200):
        yield tuple(rng.uniform([-90, -360], [90, 360], size=(2, 2)))


def test_haversine_is_a_floor_at_millimetres_poles_antipodes_and_the_date_line():
    for unit, factor in (("km", 1), ("mi", Fraction(1000000, 1609344)), ("m", 1000)):
        metric = mdp.Haversine(unit=unit)
        radius = ball(Fraction("6371.009") * factor)
        for a, b in awkward_pairs() if unit == "km" else itertools.islice(awkward_pairs(), 60):
            found = metric(a, b)
            assert_floor(found, true_haversine(a, b, radius), relative=1e-14)
            assert found == metric(b, a)


@given(st.tuples(st.floats(-90, 90), st.floats(-360, 360)), st.tuples(st.floats(-90, 90), st.floats(-360, 360)))
def test_haversine_is_a_floor_anywhere(a, b):
    found = mdp.Haversine()(np.array(a), np.array(b))
    with flint.ctx.workprec(2500):
        assert_floor(found, true_haversine(a, b, ball(Fraction("6371.009"))), relative=1e-14, absolute=1e-120)


def test_angles_are_floors_even_between_vectors_almost_on_one_ray():
    rng = np.random.default_rng(4)
    for n in (2, 3, 50):
        for scale, turn in itertools.product((1.0, 1e-200, 1e200), (0.0, 1e-15, 1e-9, 1e-3, 1.0)):
            a = rng.normal(size=n)
            b = (a + turn * rng.normal(size=n)) * rng.uniform(0.1, 10.0)
            for v, w in ((a * scale, b), (a, -b * scale)):
                u, x = ([ball(c) for c in vector] for vector in (v, w))
                size_u, size_x = (sum((c * c for c in vector), flint.arb(0)).sqrt() for vector in (u, x))
                u, x = [c / size_u for c in u], [c / size_x for c in x]
                apart = root(sum((square(c - d) for c, d in zip(u, x, strict=True)), flint.arb(0)))
                total = root(sum((square(c + d) for c, d in zip(u, x, strict=True)), flint.arb(0)))
                true = 2 * flint.arb.atan2(apart, total)
                for found in (mdp.Angular()(v, w), pairwise(mdp.Angular(), v[None], w[None])[0, 0]):
                    assert_floor(found, true, relative=(n + 60) * UNIT, absolute=(8 * n + 80) * UNIT)
    right = mdp.Angular(unit="deg")(np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    assert right == pytest.approx(90.0)
    assert right <= 90.0


def test_hyperbolic_distances_are_floors_up_to_the_rim():
    rng = np.random.default_rng(5)
    for n, rim in itertools.product((1, 2, 30), (0.5, 1e-3, 1e-8, 1e-13)):
        for near in (1.0, 1e-6, 1e-12):
            a = rng.normal(size=n)
            a *= (1.0 - rim) / np.linalg.norm(a)
            b = a * (1.0 - near * rim) + near * rim * 0.1 * rng.normal(size=n) / n
            mdp.Hyperbolic().check(np.stack([a, b]))
            x, y = [ball(c) for c in a], [ball(c) for c in b]
            room = (1 - sum((c * c for c in x), flint.arb(0))) * (1 - sum((c * c for c in y), flint.arb(0)))
            apart = sum((square(c - d) for c, d in zip(x, y, strict=True)), flint.arb(0))
            true = (1 + 2 * apart / room).acosh() if bool(apart > 0) else flint.arb(0)
            for found in (mdp.Hyperbolic()(a, b), pairwise(mdp.Hyperbolic(), a[None], b[None])[0, 0]):
                assert_floor(found, true, relative=(n + 60) * UNIT + 4 * n * n * UNIT**2 / rim, absolute=1e-140)


def test_a_point_on_the_rim_is_refused_though_its_norm_rounds_below_one():
    a = np.array([0.6, 0.8])  # stored, their squares add up to a little more than one
    assert Fraction(a[0]) ** 2 + Fraction(a[1]) ** 2 > 1
    with pytest.raises(InvalidInput, match="inside the unit ball"):
        mdp.Hyperbolic().check(a[None])


def test_mahalanobis_is_a_floor_for_ill_conditioned_covariances_and_near_points():
    rng = np.random.default_rng(6)
    for n, spread in itertools.product((1, 2, 5), (1.0, 1e3, 1e5)):
        basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
        covariance = basis @ np.diag(np.geomspace(1.0, spread, n)) @ basis.T
        metric = mdp.Mahalanobis((covariance + covariance.T) / 2)
        inverse = flint.arb_mat([[ball(c) for c in row] for row in metric.covariance]).inv()
        for near in (1.0, 1e-5, 1e-11):
            a = rng.normal(size=n) * 100
            b = a + near * rng.normal(size=n)
            gap = flint.arb_mat([[ball(x) - ball(y)] for x, y in zip(a, b, strict=True)])
            true = (gap.transpose() * inverse * gap)[0, 0].sqrt()
            for found in (metric(a, b), pairwise(metric, a[None], b[None])[0, 0]):
                assert_floor(found, true, relative=2e-12 + 50 * n * n * spread * UNIT)


def test_a_covariance_that_doubles_cannot_invert_is_refused():
    with pytest.raises(InvalidInput, match="close to singular"):
        mdp.Mahalanobis([[1.0, 1.0 - 1e-16], [1.0 - 1e-16, 1.0]])


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.sampled_from([None, 24.0, 7.3, 86400.0, 1e-3]))
def test_times_are_floors_also_around_the_clock(a, b, period):
    gap = abs(Fraction(a) - Fraction(b))
    if period is not None:
        gap %= Fraction(period)
        gap = min(gap, Fraction(period) - gap)
    found = float(mdp.Temporal(period)(np.array([a]), np.array([b])))
    assert Fraction(found) <= gap
    assert Fraction(found) >= gap * (1 - Fraction(2) ** -50)


def road_lengths(nodes, edges, lengths):
    best = [[Fraction(0) if i == j else None for j in range(nodes)] for i in range(nodes)]
    for (u, v), w in zip(edges.tolist(), lengths.tolist(), strict=True):
        for i, j in ((u, v), (v, u)):
            if best[i][j] is None or Fraction(w) < best[i][j]:
                best[i][j] = Fraction(w)
    for k, i, j in itertools.product(range(nodes), repeat=3):
        if best[i][k] is not None and best[k][j] is not None:
            way = best[i][k] + best[k][j]
            if best[i][j] is None or way < best[i][j]:
                best[i][j] = way
    return best


@pytest.mark.parametrize("seed", range(4))
def test_paths_along_roads_and_streets_are_floors(seed):
    rng = np.random.default_rng(seed)
    nodes = 9
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], axis=1)
    edges = np.concatenate([ring, [[0, 4], [2, 7]]])
    lengths = rng.uniform(0.1, 3.0, len(edges)) if seed else np.arange(1.0, len(edges) + 1)
    metric = mdp.ShortestPath(edges, lengths)
    true = road_lengths(nodes, edges, lengths)
    found = pairwise(metric, np.arange(nodes)[:, None], np.arange(nodes)[:, None])
    for i, j in itertools.product(range(nodes), repeat=2):
        assert true[i][j] * (1 - Fraction(2) ** -48) <= Fraction(float(found[i, j])) <= true[i][j]
        assert seed or Fraction(float(found[i, j])) == true[i][j]  # whole lengths add up exactly
    streets = StreetPath(metric)
    for _ in range(60):
        (s, t), share = rng.integers(0, len(edges), 2), rng.uniform(size=2)
        x, y = share * lengths[[s, t]]
        ways = [abs(Fraction(x) - Fraction(y))] if s == t else []
        for end, other in itertools.product((0, 1), repeat=2):
            walk = Fraction(x) if end == 0 else Fraction(lengths[s]) - Fraction(x)
            last = Fraction(y) if other == 0 else Fraction(lengths[t]) - Fraction(y)
            ways.append(walk + true[edges[s, end]][edges[t, other]] + last)
        value = Fraction(float(streets(np.array([s, x]), np.array([t, y]))))
        assert min(ways) * (1 - Fraction(2) ** -48) <= value <= min(ways)


@pytest.mark.parametrize("seed", range(4))
def test_moving_mass_costs_no_more_than_the_best_plan(seed):
    rng = np.random.default_rng(seed)
    bins, units = 6, 8
    places = np.cumsum(rng.uniform(0.1, 2.0, bins))
    line = mdp.Wasserstein(places)
    plane = rng.normal(size=(bins, 2))
    ground = pairwise(mdp.Lp(2), plane, plane)
    matrix = mdp.Wasserstein(ground)
    for _ in range(6):
        left, right = (np.sort(rng.integers(0, bins, units)) for _ in range(2))
        a, b = (np.bincount(side, minlength=bins) / units for side in (left, right))
        flow = np.cumsum([Fraction(float(x)) - Fraction(float(y)) for x, y in zip(a, b, strict=True)])
        true = sum(abs(f) * (Fraction(q) - Fraction(p)) for f, p, q in zip(flow, places, places[1:], strict=False))
        value = Fraction(float(line(a, b)))
        assert true - Fraction(1, 10**13) <= value <= true
        best = best_assignment(ground, left[:7], right[:7])
        c, d = (np.bincount(side[:7], minlength=bins) / 7 for side in (left, right))
        value = Fraction(float(matrix(c, d)))
        true = best / 7
        # The stored sevenths are rounded: they stand for row / sum(row), as near to sevenths as doubles come.
        assert value <= true * (1 + Fraction(2) ** -45) + Fraction(2) ** -48
        assert value >= true * (1 - Fraction(1, 10**6)) - Fraction(1, 10**12)


def best_assignment(ground, left, right):
    best = None
    for order in itertools.permutations(range(len(right))):
        cost = sum(Fraction(float(ground[left[i], right[j]])) for i, j in enumerate(order))
        best = cost if best is None or cost < best else best
    return best


def test_moving_mass_is_a_floor_of_the_exact_optimum_for_dyadic_histograms():
    rng = np.random.default_rng(9)
    plane = rng.normal(size=(5, 2))
    ground = pairwise(mdp.Lp(2), plane, plane)
    metric, words = mdp.Wasserstein(ground), mdp.WordMovers(plane)
    for _ in range(25):
        left, right = rng.integers(0, 5, 4), rng.integers(0, 5, 4)
        a, b = (np.bincount(side, minlength=5) / 4 for side in (left, right))
        true = best_assignment(ground, left, right) / 4
        for value in (metric(a, b), words(a, b)):
            assert Fraction(float(value)) <= true
            assert Fraction(float(value)) >= true * (1 - Fraction(1, 10**12)) - Fraction(1, 10**13)


def test_leashes_and_sums_keep_the_floors_of_their_parts():
    rng = np.random.default_rng(10)
    for _ in range(20):
        a, b = rng.normal(size=8), rng.normal(size=8)
        p, q = a.reshape(-1, 2), b.reshape(-1, 2)
        apart = [[true_lp(x, y, 2.0) for y in q] for x in p]
        leash = {}
        for i, j in itertools.product(range(4), repeat=2):
            before = [leash[k] for k in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if k in leash]
            leash[i, j] = apart[i][j].max(_least(before)) if before else apart[i][j]
        assert_floor(mdp.Frechet()(a, b), leash[3, 3], relative=1e-14)
        metric = mdp.Weighted([(mdp.Haversine(), [0, 1], 0.3), (mdp.Temporal(24.0), [2], 0.1), (mdp.Lp(2), [3], 4.0)])
        u, v = (np.array([*rng.uniform([-90, -180], [90, 180]), *rng.uniform(0, 99, 2)]) for _ in range(2))
        clock = abs(Fraction(u[2]) - Fraction(v[2])) % 24
        true = true_haversine(u[:2], v[:2], ball(Fraction("6371.009"))) * ball(0.3)
        true += ball(min(clock, 24 - clock)) * ball(0.1) + 4 * abs(ball(u[3]) - ball(v[3]))
        assert_floor(metric(u, v), true, relative=2e-14)
        assert_floor(pairwise(metric, u[None], v[None])[0, 0], true, relative=2e-14)


def _least(values):
    result = values[0]
    for value in values[1:]:
        result = result.min(value)
    return result


def test_every_metric_of_ours_says_that_it_rounds_down():
    for metric in (
        mdp.Lp(3),
        mdp.Haversine(),
        mdp.Angular(),
        mdp.Frechet(),
        mdp.WordMovers([[0.0], [1.0]]),
        mdp.Hamming(),
    ):
        assert is_proven(metric)
        assert precision_note(metric) == ""


def test_an_audit_of_places_13_millimetres_apart_uses_no_more_than_their_true_distance():
    points = np.array([[41.1579438, -8.6291053], [41.1579438, -8.62910515]])
    true = true_haversine(points[0], points[1], ball(Fraction("6371.009")))
    distribution = np.array([[0.6, 0.4], [0.4, 0.6]])
    needed = (ball(0.6) / ball(0.4)).log() / true
    assert bool(
        ball(mdp.audit(distribution, metric=mdp.Haversine(), points=points, epsilon=1.0).epsilon)
        >= needed * (1 - ball(1e-14))
    )
    space = mdp.FiniteSpace(points, mdp.Haversine())
    assert bool(ball(space.distances[0, 1]) <= true)
