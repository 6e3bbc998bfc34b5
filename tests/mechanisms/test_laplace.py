"""Laplace noise: its law in metres anywhere on Earth, its lattice, its promise, no low bits."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain

RADIUS = 6371.009
PLACES = {
    "equator": (0.0, 0.0),
    "Singapore": (1.3521, 103.8198),
    "Porto": (41.1579, -8.6291),
    "Helsinki": (60.1699, 24.9384),
    "Fiji": (-17.7134, 179.9995),
    "north pole": (90.0, 0.0),
    "south pole": (-90.0, 50.0),
}
DRAWS = 40_000


def unit(place):
    lat, lon = np.radians(place[..., 0]), np.radians(place[..., 1])
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def away_and_bearing(start, ends):
    """Kilometres and bearing from `start`, by vectors."""
    lat, lon = np.radians(start)
    centre = unit(np.asarray(start))
    north = np.array([-math.sin(lat) * math.cos(lon), -math.sin(lat) * math.sin(lon), math.cos(lat)])
    east = np.array([-math.sin(lon), math.cos(lon), 0.0])
    v = unit(ends)
    x, y = v @ north, v @ east
    return RADIUS * np.arctan2(np.hypot(x, y), v @ centre), np.arctan2(y, x)


def radius_law(epsilon):
    """The distribution function of the density exp(-epsilon r) sin(r / R), in closed form."""
    a = epsilon * RADIUS

    def cdf(r):
        t = np.asarray(r) / RADIUS
        return (1 - np.exp(-a * t) * (np.cos(t) + a * np.sin(t))) / (1 + np.exp(-a * np.pi))

    return cdf


def on_lattice(values, pitch):
    cells = np.rint(values / pitch)
    return np.max(np.abs(values - cells * pitch)) <= 1e-12 * max(1.0, np.abs(values).max())


def blurred(values, rng, pitch):
    """Undo the lattice for a test of continuity: spread every report over its cell."""
    return values + rng.uniform(-pitch / 2, pitch / 2, size=values.shape)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("epsilon", [10.0, 0.5])
def test_radius_and_direction_in_metres(place, epsilon):
    start = np.array(PLACES[place])
    mechanism = mdp.laplace(mdp.Haversine(), epsilon)
    reports = mechanism.sample(np.tile(start, (DRAWS, 1)), rng=np.random.default_rng(11))
    pitch = mechanism.lattice.pitch
    assert pitch * math.radians(1) * RADIUS <= 1 / (100 * epsilon)
    assert on_lattice(reports, pitch)
    assert np.all(np.abs(reports[:, 0]) <= 90)
    assert np.all((reports[:, 1] >= -180) & (reports[:, 1] < 180))
    away, bearing = away_and_bearing(start, reports)
    # The lattice moves a radius by at most half a diagonal of a cell: shift the law by that on both sides.
    reach = pitch * math.radians(1) * RADIUS * math.sqrt(0.5)
    cdf = radius_law(epsilon)
    ordered = np.sort(away)
    share = np.arange(1, DRAWS + 1) / DRAWS
    allowed = math.sqrt(math.log(2 / 1e-6) / (2 * DRAWS))  # Dvoretzky-Kiefer-Wolfowitz at one in a million
    assert np.all(share <= cdf(ordered + reach) + allowed)
    assert np.all(share - 1 / DRAWS >= cdf(np.maximum(ordered - reach, 0)) - allowed)
    assert away.mean() * 1000 == pytest.approx(2000 / epsilon, rel=0.025)
    if abs(start[0]) < 90:
        far = away > 20 * reach  # near reports show the lattice
        assert stats.kstest(bearing[far], stats.uniform(-np.pi, 2 * np.pi).cdf).statistic < 0.015
        assert np.std(away * np.cos(bearing)) == pytest.approx(np.std(away * np.sin(bearing)), rel=0.03)
    else:
        longitudes = reports[np.abs(reports[:, 0]) < 90, 1]
        assert stats.kstest(longitudes, stats.uniform(-180, 360).cdf).pvalue > 1e-6


def test_fiji_reports_cross_the_antimeridian():
    mechanism = mdp.laplace(mdp.Haversine(), 1.0)
    reports = mechanism.sample(np.tile(PLACES["Fiji"], (2000, 1)), rng=np.random.default_rng(0))
    east = np.mean(reports[:, 1] < 0)
    assert 0.4 < east < 0.6


@pytest.mark.parametrize("epsilon", [1e-5, 2e-4, 1e-3])
def test_noise_as_wide_as_the_earth(epsilon):
    mechanism = mdp.laplace(mdp.Haversine(), epsilon, pitch=0.01)
    reports = mechanism.sample(np.tile([30.0, 40.0], (DRAWS, 1)), rng=np.random.default_rng(2))
    away, _ = away_and_bearing((30.0, 40.0), reports)
    assert stats.kstest(away, radius_law(epsilon)).pvalue > 1e-6
    assert mechanism.certificate.loss == pytest.approx(
        integrate.quad(lambda t: t * np.exp(-epsilon * RADIUS * t) * np.sin(t), 0, np.pi)[0]
        / integrate.quad(lambda t: np.exp(-epsilon * RADIUS * t) * np.sin(t), 0, np.pi)[0]
        * RADIUS,
        rel=1e-6,
    )


def test_system_randomness_follows_the_law():
    mechanism = mdp.laplace(mdp.Haversine(), 1.0)
    start = np.array([41.15, -8.62])
    reports = mechanism.sample(np.tile(start, (100_000, 1)))  # several batches, two threads
    away, bearing = away_and_bearing(start, reports)
    rng = np.random.default_rng(0)
    cell = mechanism.lattice.pitch * math.radians(1) * RADIUS
    assert stats.kstest(blurred(away, rng, cell / 2), radius_law(1.0)).statistic < 0.0105  # DKW at 1e-6 is 0.0085
    assert stats.kstest(bearing[away > 0.2], stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-6
    plane = mdp.laplace(mdp.Lp(2), 1.0).sample(np.zeros((100_000, 2)))
    assert stats.kstest(np.hypot(*plane.T), stats.gamma(2).cdf).statistic < 0.0105


@pytest.mark.parametrize("p", [1, 1.5, 2, 5, np.inf])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_lp_law(p, dimension):
    mechanism = mdp.laplace(mdp.Lp(p), 2.0, dimension=dimension)
    start = np.full(dimension, 7.0)
    reports = mechanism.sample(np.tile(start, (DRAWS, 1)), rng=np.random.default_rng(8))
    pitch = mechanism.lattice.pitch
    assert pitch <= 1 / 200
    assert on_lattice(reports, pitch)
    gaps = np.abs(reports - start)
    size = gaps.max(axis=1) if np.isinf(p) else (gaps**p).sum(axis=1) ** (1 / p)
    assert size.mean() == pytest.approx(dimension / 2.0, rel=0.025)
    assert stats.kstest(size, stats.gamma(dimension, scale=0.5).cdf).statistic < 0.015
    assert mechanism.certificate.loss == dimension / 2.0
    assert np.all(np.abs(np.mean(reports > start, axis=0) + np.mean(reports == start, axis=0) / 2 - 0.5) < 0.014)
    if p == 1:
        one = blurred(reports[:, 0] - 7.0, np.random.default_rng(0), pitch)
        scale = 0.5
        if dimension == 1:
            assert stats.kstest(one, stats.laplace(scale=scale).cdf).pvalue > 1e-6
        else:
            assert np.corrcoef(reports.T)[0, 1] == pytest.approx(0, abs=0.03)


def test_mahalanobis_law():
    covariance = np.array([[4.0, 1.0], [1.0, 0.5]])
    mechanism = mdp.laplace(mdp.Mahalanobis(covariance), 1.0)
    noise = mechanism.sample(np.zeros((DRAWS, 2)), rng=np.random.default_rng(1))
    size = np.sqrt(np.einsum("ni,ij,nj->n", noise, np.linalg.inv(covariance), noise))
    assert stats.kstest(size, stats.gamma(2).cdf).statistic < 0.015
    # E[r^2] / 2 = 3 in each white direction
    np.testing.assert_allclose(noise.T @ noise / DRAWS, 3 * covariance, rtol=0.06)


@pytest.mark.parametrize("metric", [mdp.Lp(1), mdp.Lp(2), mdp.Lp(np.inf), mdp.Mahalanobis([[1.0, 0.4], [0.4, 0.8]])])
def test_lattice_masses_sum_to_one(metric):
    mechanism = mdp.laplace(metric, 1.0, pitch=0.25)
    cells = np.arange(-72, 73) * 0.25
    reports = np.stack(np.meshgrid(cells, cells), axis=-1).reshape(-1, 2)
    mass = np.exp(mechanism.log_density(np.tile([0.1, -0.05], (len(reports), 1)), reports))
    # On this coarse lattice the kinks inside of cells cost the quadrature a digit.
    assert mass.sum() == pytest.approx(1.0, abs=1e-4)


def test_lattice_masses_agree_with_frequencies():
    mechanism = mdp.laplace(mdp.Lp(2), 1.0, pitch=0.5)
    drawn = mechanism.sample(np.zeros((200_000, 2)), rng=np.random.default_rng(0))
    for report in ([0.0, 0.0], [0.5, 0.0], [1.0, -1.5], [2.5, 2.0]):
        mass = math.exp(mechanism.log_density([[0.0, 0.0]], [report])[0])
        seen = np.mean(np.all(drawn == report, axis=1))
        assert seen == pytest.approx(mass, abs=5 * math.sqrt(mass / 200_000))


@pytest.mark.parametrize("place", ["equator", "Porto", "Fiji", "north pole"])
def test_masses_on_earth_sum_to_one(place):
    mechanism = mdp.laplace(mdp.Haversine(), 0.1, pitch=0.05)
    start = np.array(PLACES[place])
    reach = 250 / (math.radians(1) * RADIUS)
    lat = np.arange(-int(reach / 0.05), int(reach / 0.05) + 1) * 0.05 + np.rint(start[0] / 0.05) * 0.05
    lat = lat[np.abs(lat) <= 90 + 1e-9]
    if abs(start[0]) == 90:
        lon = np.arange(-3600, 3600, 40) * 0.05  # a sample of the meridians: the law is the same along each
        weight = 7200 / len(lon)
    else:
        width = reach / math.cos(math.radians(abs(start[0]) + reach))
        lon = np.arange(-int(width / 0.05), int(width / 0.05) + 1) * 0.05 + np.rint(start[1] / 0.05) * 0.05
        weight = 1.0
    total = 0.0
    for row in lat:
        row = min(90.0, round(float(row) / 0.05) / 20)
        at = np.array([0.0]) if abs(row) == 90 else lon
        reports = np.stack([np.full(len(at), row), at], axis=1)
        mass = np.exp(mechanism.log_density(np.tile(start, (len(at), 1)), reports)).sum()
        total += mass * (1.0 if abs(row) == 90 else weight)
    assert total == pytest.approx(1.0, abs=1e-4)


def test_masses_near_the_pole_agree_with_frequencies():
    mechanism = mdp.laplace(mdp.Haversine(), 0.05, pitch=0.5)
    start = np.array([89.5, 90.0])
    drawn = mechanism.sample(np.tile(start, (200_000, 1)), rng=np.random.default_rng(3))
    for report in ([90.0, 0.0], [89.5, 90.0], [89.0, 90.0]):
        mass = math.exp(mechanism.log_density([start], [report])[0])
        seen = np.mean(np.all(drawn == report, axis=1))
        assert seen == pytest.approx(mass, abs=5 * math.sqrt(mass / 200_000))


@pytest.mark.parametrize(
    "metric",
    [mdp.Lp(1), mdp.Lp(2), mdp.Lp(np.inf), mdp.Mahalanobis([[1.0, 0.4], [0.4, 0.8]]), mdp.Haversine()],
    ids=["l1", "l2", "linf", "mahalanobis", "haversine"],
)
def test_the_promise_has_no_slack(metric):
    mechanism = mdp.laplace(metric, 2.0)
    promise = mechanism.guarantee
    assert promise.epsilon == 2.0
    assert promise.basis == "theorem"
    assert promise.slack == 0.0
    rng = np.random.default_rng(6)
    count = 3000
    spread = 0.02 if isinstance(metric, mdp.Haversine) else 1.0
    centre = np.array([-17.7, 180.0]) if isinstance(metric, mdp.Haversine) else np.zeros(2)
    one, two, reports = (centre + spread * rng.normal(size=(count, 2)) for _ in range(3))
    two[: count // 2] = one[: count // 2] + 1e-3 * spread * rng.normal(size=(count // 2, 2))
    ratio = mechanism.log_density(one, reports) - mechanism.log_density(two, reports)
    assert np.all(np.abs(ratio) <= promise.epsilon * metric(one, two) * (1 + 1e-9) + 1e-12)
    report = mdp.audit(mechanism)
    assert (report.verdict, report.basis, report.epsilon) == ("holds", "theorem", 2.0)
    assert mdp.audit(mechanism, epsilon=1.9).verdict == "violated"


def test_low_bits_carry_nothing():
    """The event of the classic attack: y in [0.25, 0.5) with y * 2**54 odd happens at x=0 and never at x=1."""
    mechanism = mdp.laplace(mdp.Lp(2), 1.0)
    pitch = mechanism.lattice.pitch
    sets = []
    for x in (0.0, 1.0):
        drawn = mechanism.sample(np.tile([x, 0.0], (300_000, 1)), rng=np.random.default_rng(5))[:, 0]
        window = drawn[(drawn >= 0.25) & (drawn < 0.5)]
        assert window.size > 10_000
        assert np.all(window == np.rint(window / pitch) / np.rint(1 / pitch))  # correctly rounded multiples, no other
        sets.append(set(window.tolist()))
    assert sets[0] == sets[1]


def test_coordinates_too_far_for_the_lattice_are_refused():
    with pytest.raises(OutOfDomain, match=r"row 1.*larger `pitch`"):
        mdp.laplace(mdp.Lp(2), 1.0).sample([[0.0, 0.0], [1e18, 0.0]])


def test_refusals():
    with pytest.raises(InvalidInput, match=r"mdp\.exponential"):
        mdp.laplace(mdp.Hamming(), 1.0)
    with pytest.raises(InvalidInput, match="divide 90"):
        mdp.laplace(mdp.Haversine(), 1.0, pitch=0.96)
    for epsilon in (0, -1, np.nan, np.inf, "a"):
        with pytest.raises(InvalidInput, match="epsilon"):
            mdp.laplace(mdp.Lp(2), epsilon)
    with pytest.raises(InvalidInput, match="dimension"):
        mdp.laplace(mdp.Mahalanobis(np.eye(2)), 1.0, dimension=3)
    with pytest.raises(InvalidInput, match="latitude"):
        mdp.laplace(mdp.Haversine(), 1.0).sample([[95.0, 0.0]])


def test_madlib_is_noise_and_the_nearest_word():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(25, 3))
    for metric in (mdp.Lp(2), mdp.Lp(1), mdp.Mahalanobis(np.diag([1.0, 2.0, 3.0]))):
        mechanism = mdp.madlib(mdp.FiniteSpace(points, metric), 4.0)
        drawn = mechanism.sample(np.full(20_000, 3), rng=np.random.default_rng(1))
        noise = mdp.laplace(metric, 4.0, dimension=3, pitch=1e-9)
        places = noise.sample(np.tile(points[3], (20_000, 1)), rng=np.random.default_rng(2))
        nearest = np.array([[float(x) for x in metric(places, point)] for point in points]).argmin(axis=0)
        table = np.stack([np.bincount(c, minlength=25) for c in (drawn, nearest)])
        table = table[:, table.sum(axis=0) > 20]
        assert stats.chi2_contingency(table).pvalue > 1e-6
        with pytest.raises(InvalidInput, match="audit_sampler"):
            mechanism.log_density([0], [0])


@pytest.mark.parametrize(
    ("metric", "pitch"),
    [
        (mdp.Lp(1), 1e-14),
        (mdp.Lp(2), 1e-12),
        (mdp.Lp(np.inf), 1e-300),
        (mdp.Haversine(), 1e-12),
        (mdp.Mahalanobis(np.eye(2) * 1e20), 1e-3),
    ],
)
def test_a_lattice_finer_than_the_doubles_of_the_noise_is_refused(metric, pitch):
    # At pitch 1e-14 neighbouring cells used to differ by 0.029 where 2e-14 was promised.
    with pytest.raises(InvalidInput, match="finer than noise in doubles can decide"):
        mdp.laplace(metric, 1.0, pitch=pitch)


@pytest.mark.parametrize("unit", ["m", "mi", "ft"])
def test_noise_on_the_earth_is_the_same_in_every_unit(unit):
    metric = mdp.Haversine(unit=unit)
    ours, theirs = (
        mdp.laplace(mdp.Haversine(), 2.0, pitch=1e-4),
        mdp.laplace(metric, 2.0 / metric.per_kilometre, pitch=1e-4),
    )
    places = np.array([[41.1, -8.6], [60.0, 179.999], [-90.0, 0.0]] * 50)
    drawn = [m.sample(places, rng=np.random.default_rng(3)) for m in (ours, theirs)]
    assert np.mean(np.all(np.abs(drawn[0] - drawn[1]) < 1e-9, axis=1)) > 0.99
    assert theirs.guarantee.slack == ours.guarantee.slack == 0.0
    assert theirs.certificate.loss == pytest.approx(ours.certificate.loss * metric.per_kilometre, rel=1e-9)
    np.testing.assert_allclose(*(m.log_density(places, drawn[0]) for m in (ours, theirs)), rtol=1e-9)
    assert theirs.guarantee.unit == unit
