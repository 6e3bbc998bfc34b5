"""Judges of kinds without a table: probabilities by formulas of their own, from stored numbers, in 400-bit intervals.

Kinds in `JUDGES` and `CONCENTRATED` are judged so, those in `EXACT` by fractions. A kind that is declared and stands
nowhere is an error, and so is a metric without a formula here. Nearest words have no formula: their noise is judged by
one, what follows the noise cannot tell more, and what is drawn is compared with draws by brute force.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from attacks import exact

ROOM = 1e-12  # relative, and in logarithms: what the lattice and the secrets as doubles may add


FORMULAS = ("Lp", "Haversine", "Angular", "Hyperbolic", "Mahalanobis", "Bags", "Frechet")
METRES = {"km": 1_000, "m": 1, "mi": Fraction(1_609_344, 1_000), "ft": Fraction(3_048, 10_000)}
ABSENT = -1_000_000  # the logarithm that a geometric mean takes for a probability of 0
DRAWS, ALARM = 4_000, 1e-9  # draws of a secret by brute force, and how often they may accuse what is right


def distance(metric: Any, a: Any, b: Any) -> Any:
    """Return the true distance of two rows of doubles as an interval."""
    flint.ctx.prec = exact.BITS
    name = type(metric).__name__
    if name not in FORMULAS:
        raise LookupError(f"no formula for the metric {name}, {metric!r}")
    one, two = ([exact.ball(float(value)) for value in row] for row in (a, b))
    if name == "Lp" and metric.p in (1.0, 2.0, math.inf):
        return exact.METRICS[{1.0: "l1", 2.0: "l2"}.get(metric.p, "linf")](one, two)
    if name == "Lp":
        power, gaps = exact.ball(metric.p), [abs(gap) for gap in _minus(one, two) if not gap.is_zero()]
        if not gaps:
            return flint.arb(0)
        largest = -_least([-gap for gap in gaps])  # divided by, since powers of large orders overflow
        if metric.p > 1e9:  # between the largest and n^(1/p) times it
            return largest * flint.arb(1, len(gaps) / metric.p)
        return largest * sum(((gap / largest) ** power for gap in gaps), flint.arb(0)) ** (1 / power)
    if name == "Haversine":
        return exact.METRICS["haversine"](one, two) * exact.ball(Fraction(1_000) / METRES[metric.unit])
    if name == "Angular":
        angle = exact.METRICS["angular"](one, two)
        return angle * 180 / flint.arb.pi() if metric.unit == "deg" else angle
    if name == "Hyperbolic":
        gap, left, right = (sum((x * x for x in row), flint.arb(0)) for row in (_minus(one, two), one, two))
        # acosh(1 + 2 x) = 2 asinh(sqrt(x)), which is a number where the interval of x holds 0 too
        return 2 * (gap / ((1 - left) * (1 - right))).nonnegative_part().sqrt().asinh()
    if name == "Mahalanobis":
        gaps = _minus(one, two)
        covariance = flint.arb_mat([[exact.ball(float(x)) for x in row] for row in np.asarray(metric.covariance)])
        solved = covariance.solve(flint.arb_mat([[gap] for gap in gaps]))
        return sum((gap * solved[k, 0] for k, gap in enumerate(gaps)), flint.arb(0)).nonnegative_part().sqrt()
    between = [[distance(metric.ground, x, y) for y in _cut(b, metric)] for x in _cut(a, metric)]
    return _paired(between) if name == "Bags" else _leash(between)


def _cut(row: Any, metric: Any) -> Any:
    """Return the vectors of a bag, or the vertices of a curve."""
    return np.asarray(row, dtype=np.float64).reshape(-1, metric.dimension)


def _paired(between: list[list[Any]]) -> Any:
    """Return the least total of a pairing, of all there are."""
    orders = itertools.permutations(range(len(between)))
    return _least([sum((between[i][j] for i, j in enumerate(order)), flint.arb(0)) for order in orders])


def _leash(between: list[list[Any]]) -> Any:
    """Return the least leash of two walkers who never turn back, step by step."""
    walked: dict[tuple[int, int], Any] = {}
    for i, row in enumerate(between):
        for j, apart in enumerate(row):
            before = [walked[at] for at in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if at in walked]
            walked[i, j] = apart.max(_least(before)) if before else apart
    return walked[len(between) - 1, len(between[0]) - 1]


def _least(values: list[Any]) -> Any:
    found = values[0]
    for value in values[1:]:
        found = found.min(value)
    return found


def _minus(a: list[Any], b: list[Any]) -> list[Any]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _kernel(made: Any, secrets: Any, others: Any) -> str:
    """Compare w_k exp(-a min(d_ik, cap)) / N_i of all reports, for pairs of secrets."""
    space = made.space
    logs = np.zeros(len(space)) if made.log_weights is None else made.log_weights

    def row(code: int) -> list[Any]:
        away = [distance(space.metric, space.points[code], point) for point in space.points]
        away = [flint.arb(0) if k == code else d for k, d in enumerate(away)]
        if math.isfinite(made.cap):
            away = [d.min(exact.ball(made.cap)) for d in away]
        found = [exact.ball(float(w)) - exact.ball(made.inner) * d for w, d in zip(logs, away, strict=True)]
        total = sum((one.exp() for one in found), flint.arb(0)).log()
        return [one - total for one in found]

    for i, j in zip(secrets[:4].tolist(), others[:4].tolist(), strict=True):
        gaps = [abs(a - b) for a, b in zip(row(i), row(j), strict=True)]
        if wrong := _over(made, gaps, space.metric, space.points[i], space.points[j]):
            return wrong
    return ""


def _noise(made: Any, secrets: Any, others: Any) -> str:
    """Compare exp(-rate d(x, y)): the spaces look alike everywhere, so that its integral does not depend on x."""
    metric = made.inputs.metric
    rate = exact.ball(float(made.epsilon))
    for x, other in zip(secrets[:10], others[:10], strict=True):
        for y in (x, other, *secrets[:3]):
            gap = rate * (distance(metric, other, y) - distance(metric, x, y))
            if wrong := _over(made, [gap], metric, x, other):
                return wrong
    return ""


def _projected(made: Any, secrets: Any, others: Any) -> str:
    """Compare exp(-rate |A x - y|) at y = A x, where it differs most; also along what A stretches most."""
    rows = [[exact.ball(float(value)) for value in row] for row in np.asarray(made.matrix)]
    longest = np.linalg.svd(np.asarray(made.matrix, dtype=np.float64))[2][0]
    origin = np.zeros_like(longest)
    for x, other in [
        *zip(secrets[:10], others[:10], strict=True),
        (origin, longest),
        (secrets[0], secrets[0] + longest),
    ]:
        flint.ctx.prec = exact.BITS
        step = _minus(*([exact.ball(float(value)) for value in place] for place in (x, other)))
        moved = [sum((a * v for a, v in zip(row, step, strict=True)), flint.arb(0)) for row in rows]
        length = sum((v * v for v in moved), flint.arb(0)).nonnegative_part().sqrt()
        if wrong := _over(made, [exact.ball(float(made.epsilon)) * length], made.inputs.metric, x, other):
            return wrong
    return ""


def _bag(made: Any, secrets: Any, others: Any) -> str:
    """Compare sums over all orders of the vectors' exp(-rate d); in large bags all vectors are one."""
    metric, rate = made.inputs.metric, exact.ball(float(made.epsilon))
    count = made.inputs.dimension // metric.dimension

    def log(bag: Any, report: Any) -> Any:
        near = [
            [(-rate * distance(metric.ground, x, y)).exp() for y in _cut(report, metric)] for x in _cut(bag, metric)
        ]
        orders = itertools.permutations(range(count))
        ways = (math.prod((near[i][j] for i, j in enumerate(order)), start=flint.arb(1)) for order in orders)
        return sum(ways, flint.arb(0)).log()

    for x, other in zip(secrets[:6], others[:6], strict=True):
        if count <= 4:
            gaps = [log(x, y) - log(other, y) for y in (x, other, secrets[0])]
            if wrong := _over(made, gaps, metric, x, other):
                return wrong
        # All orders are alike at y = x, and so are all pairings.
        apart = count * distance(metric.ground, _cut(x, metric)[0], _cut(other, metric)[0])
        if wrong := _beyond(made, [rate * apart], apart):
            return wrong
    return ""


def _outline(made: Any, secrets: Any, others: Any) -> str:
    """Compare exp(-rate max|o(x) - y|) at y = o(x): start, end, least, largest of x; also of shifted curves."""
    metric, rate = made.inputs.metric, exact.ball(float(made.epsilon))
    shift = np.tile(np.eye(metric.dimension)[0], made.inputs.dimension // metric.dimension)

    def outline(row: Any) -> list[Any]:
        vertices = _cut(row, metric).tolist()
        axes = list(zip(*vertices, strict=True))
        numbers = [*vertices[0], *vertices[-1], *map(min, axes), *map(max, axes)]
        return [exact.ball(value) for value in numbers]

    for x, other in [*zip(secrets[:8], others[:8], strict=True), (secrets[0], secrets[0] + shift)]:
        flint.ctx.prec = exact.BITS
        if len(shift) > 30 * metric.dimension:  # every step of two long walks takes too long: both stand still
            one, two = x[: metric.dimension], other[: metric.dimension]
            gap = rate * exact.METRICS["linf"](outline(one), outline(two))
            if wrong := _beyond(made, [gap], distance(metric.ground, one, two)):
                return wrong
            continue
        gap = rate * exact.METRICS["linf"](outline(x), outline(other))
        if wrong := _over(made, [gap], metric, x, other):
            return wrong
    return ""


def _nearest(made: Any, secrets: Any, others: Any) -> str:
    """Judge the noise, which is all that the report is made of, and compare draws with draws by brute force."""
    points = np.asarray(made.inputs.points, dtype=np.float64)
    if wrong := _noise(made, points[secrets], points[others]):
        return wrong
    if type(made.inputs.metric).__name__ == "Hyperbolic":  # its noise is judged above; nobody draws it here
        return ""
    from scipy.stats import chi2_contingency

    rng = np.random.default_rng([6, len(points)])
    for code in secrets[:2].tolist():
        noisy = points[code] + _drawn(rng, made.inputs.metric, float(made.epsilon), points.shape[1])
        words = np.asarray(made.outputs.points, dtype=np.float64)
        ours = np.bincount(_closest(made.inputs.metric, noisy, words), minlength=len(words))
        theirs = np.bincount(made.sample(np.full(DRAWS, code), rng=rng), minlength=len(words))
        first = _alike(words)  # of words that rounding cannot tell apart either may be the nearest
        counts = np.array([np.bincount(first, found, minlength=len(words)) for found in (ours, theirs)])
        few = counts.sum(axis=0) < 20  # together, so that the statistic is what it is taken for
        counts = np.column_stack([counts[:, ~few], counts[:, few].sum(axis=1)])
        counts = counts[:, counts.sum(axis=0) > 0]
        if counts.shape[1] > 1 and chi2_contingency(counts).pvalue < ALARM:
            return f"draws {theirs.tolist()} at word {code} where brute force draws {ours.tolist()}"
    return ""


def _drawn(rng: np.random.Generator, metric: Any, rate: float, size: int) -> Any:
    """Draw noise of density exp(-rate |z|): a length that is Gamma(size), a place on the norm's sphere."""
    p = getattr(metric, "p", 2.0)
    if p == 1.0:
        shape = rng.exponential(size=(DRAWS, size)) * rng.choice([-1.0, 1.0], size=(DRAWS, size))
        shape /= np.abs(shape).sum(axis=1, keepdims=True)
    elif p == 2.0:
        shape = rng.normal(size=(DRAWS, size))
        shape /= np.linalg.norm(shape, axis=1, keepdims=True)
    elif p == math.inf:  # a side of the cube, and anywhere on it
        shape = rng.uniform(-1.0, 1.0, size=(DRAWS, size))
        shape[np.arange(DRAWS), rng.integers(0, size, DRAWS)] = rng.choice([-1.0, 1.0], size=DRAWS)
    else:  # numbers of density exp(-|t|^p), on their sphere: Gamma(1/p)^(1/p) is Gamma(1 + 1/p)^(1/p) U
        shape = rng.gamma(1.0 + 1.0 / p, size=(DRAWS, size)) ** (1.0 / p) * rng.uniform(-1.0, 1.0, size=(DRAWS, size))
        shape /= _norm(shape, p)[:, None]
    if hasattr(metric, "covariance"):
        shape = shape @ np.linalg.cholesky(np.asarray(metric.covariance)).T
    return shape * rng.gamma(size, 1.0 / rate, size=(DRAWS, 1))


def _closest(metric: Any, places: Any, words: Any) -> Any:
    if hasattr(metric, "covariance"):
        white = np.linalg.inv(np.linalg.cholesky(np.asarray(metric.covariance))).T
        places, words = places @ white, words @ white
    order = getattr(metric, "p", 2.0)
    if (
        order == 2.0
    ):  # |y - w|^2 without |y|^2, which hides the words where the noise is far larger than their distances
        around, shifted = words - words[0], places - words[0]
        return np.argmin((around**2).sum(axis=1) - 2.0 * shifted @ around.T, axis=1)
    found = [_norm(places - word, order) for word in words]
    return np.argmin(found, axis=0)


def _alike(words: Any) -> Any:
    """Return for every word the first one that is the same but for roundings."""
    apart = np.abs(words[:, None] - words[None]).max(axis=2)
    return (apart <= 1e-12 * np.abs(words).max()).argmax(axis=1)


def _norm(rows: Any, order: float) -> Any:
    """Return l_p norms, scaled by the largest entry: powers of large orders overflow."""
    largest = np.abs(rows).max(axis=1)
    shares = np.abs(rows) / np.where(largest > 0, largest, 1.0)[:, None]
    return largest if order == math.inf else largest * (shares**order).sum(axis=1) ** (1.0 / order)


def _share(position: Fraction, ratio: float) -> Any:
    """Return theta = (e^(L t) - 1) / (e^a - 1) with L = 2 ln((1 + e^a) / 2), mirrored beyond the middle."""
    t = exact.ball(min(position, 1 - position))
    if ratio > 0:
        a = exact.ball(ratio)
        t = ((2 * ((1 + a.exp()) / 2).log() * t).exp() - 1) / (a.exp() - 1)
    return t if 2 * position <= 1 else 1 - t


def _row(matrix: Any, at: int) -> list[Any]:
    flint.ctx.prec = exact.BITS
    law = [Fraction(float(value)) for value in matrix[at]]
    return [exact.ball(value / sum(law)) for value in law]


def _mixed(matrix: Any, corners: list[tuple[int, Any]]) -> list[Any]:
    rows = [(share, _row(matrix, at)) for at, share in corners]
    return [sum((share * row[k] for share, row in rows), flint.arb(0)) for k in range(matrix.shape[1])]


def _geometric(matrix: Any, corners: list[tuple[int, Any]]) -> list[Any]:
    """Return the normalised geometric mean of laws; what no anchor ever reports has probability 0."""
    rows = [(share, _row(matrix, at)) for at, share in corners if not share.is_zero()]
    used = (np.asarray(matrix) > 0).any(axis=0)
    terms = []
    for k in range(matrix.shape[1]):
        logs = (share * (ABSENT if row[k].is_zero() else row[k].log()) for share, row in rows)
        terms.append(sum(logs, flint.arb(0)).exp() if used[k] else flint.arb(0))
    total = sum(terms, flint.arb(0))
    return [term / total for term in terms]


def _box(made: Any, secrets: Any, others: Any) -> str:
    """Compare mixtures of the laws of the corners, by the rounding rules' own curve, or their geometric means."""
    rounding = made.rule in ("exact", "direction")

    def law(point: Any) -> list[Any]:
        flint.ctx.prec = exact.BITS
        corners = [(0, flint.arb(1))]
        for axis, ratios, x in zip(made.axes, made.ratios, point.tolist(), strict=True):
            cell = min(max(int(np.searchsorted(axis, x, side="right")) - 1, 0), len(axis) - 2)
            low, high = Fraction(float(axis[cell])), Fraction(float(axis[cell + 1]))
            along = (Fraction(x) - low) / (high - low)
            far = _share(along, float(ratios[cell])) if rounding else exact.ball(along)
            sides = ((cell, 1 - far), (cell + 1, far))
            corners = [(at * len(axis) + side, share * part) for at, share in corners for side, part in sides]
        return _mixed(made.matrix, corners) if rounding else _geometric(made.matrix, corners)

    # Also places close together: far ones may be told apart by less than the steepest place allows.
    near = [
        np.clip(x + 1e-3 * (other - x), made.inputs.lower, made.inputs.upper)
        for x, other in zip(secrets, others, strict=True)
    ]
    return _mixtures(made, law, [*secrets[:8], *secrets[:4]], [*others[:8], *near[:4]])


def _streets(made: Any, secrets: Any, others: Any) -> str:
    """Compare places of one street: ways are sums of such pieces, and no way between two of them is longer."""
    network = made.inputs.network

    def law(street: int, offset: float) -> list[Any]:
        flint.ctx.prec = exact.BITS
        count = int(made.counts[street])
        steps = Fraction(offset) * count / Fraction(float(network.lengths[street]))
        step = min(int(steps), count - 1)
        first = network.nodes + int((made.counts[:street] - 1).sum()) - 1
        ends = [first + at if 0 < at < count else int(network.edges[street][int(at > 0)]) for at in (step, step + 1)]
        far = _share(steps - step, float(made.ratios[street]))
        return _mixed(made.matrix, [(ends[0], 1 - far), (ends[1], far)])

    promise = made.guarantee
    for (street, offset), (_, other) in zip(secrets[:10].tolist(), others[:10].tolist(), strict=True):
        there = min(other, float(network.lengths[int(street)]))
        allowed = exact.ball(promise.epsilon) * abs(exact.ball(offset) - exact.ball(there)) * (1 + ROOM)
        for a, b in zip(law(int(street), offset), law(int(street), there), strict=True):
            if a.is_zero() and b.is_zero():
                continue
            if a.is_zero() or b.is_zero() or abs(a.log() - b.log()) > allowed + exact.ball(promise.slack) + ROOM:
                return f"more than promised between {offset!r} and {there!r} along street {int(street)}"
    return ""


def _mixtures(made: Any, law: Callable[[Any], list[Any]], secrets: Any, others: Any) -> str:
    for x, other in zip(secrets, others, strict=True):
        gaps = []
        for a, b in zip(law(x), law(other), strict=True):
            if a.is_zero() and b.is_zero():
                continue
            if a.is_zero() or b.is_zero():
                return f"a report comes from one of {x}, {other} only"
            gaps.append(abs(a.log() - b.log()))
        if wrong := _over(made, gaps, made.inputs.metric, x, other):
            return wrong
    return ""


def concentrated(made: Any) -> str:
    """Return what is wrong with normal noise: its divergence of order a is a d^2 / (2 sigma^2), and a rho d^2 is said.

    On a sphere that is what it is for places close to each other, so that less cannot be true.
    """
    rho, sigma = made.guarantee.rho, float(made.sigma)
    if not (math.isfinite(rho) and rho > 0 and math.isfinite(sigma) and sigma > 0):
        return f"promises rho {rho!r} with sigma {sigma!r}"
    if Fraction(rho) * 2 * Fraction(sigma) ** 2 < 1 - Fraction(ROOM):
        return f"promises rho {rho!r} where normal noise of sigma {sigma!r} needs {0.5 / sigma**2!r}"
    return ""


def _over(made: Any, gaps: list[Any], metric: Any, x: Any, other: Any) -> str:
    return _beyond(made, gaps, distance(metric, x, other))


def _beyond(made: Any, gaps: list[Any], apart: Any) -> str:
    promise = made.guarantee
    if promise.radius is not None and apart > exact.ball(promise.radius):
        return ""
    # A mechanism that says that it is not private states, in its certificate, the epsilon that it keeps.
    epsilon = made.certificate.epsilon if promise.basis == "none" else promise.epsilon
    allowed = exact.ball(epsilon) * apart * (1 + ROOM) + exact.ball(promise.slack) + ROOM
    if not all(gap.is_finite() for gap in (*gaps, allowed)):
        raise ArithmeticError(f"the judge has no number for what is leaked or allowed: {gaps}, {allowed}")
    return next((f"leaks {gap.str(8)} where {allowed.str(8)} is promised" for gap in gaps if gap > allowed), "")


JUDGES: dict[str, Callable[[Any, Any, Any], str]] = {
    "kernel": _kernel,
    "vector-laplace": _noise,
    "spherical-laplace": _noise,
    "direction-noise": _noise,
    "hyperbolic-laplace": _noise,
    "interpolated": _box,
    "streets": _streets,
    "projected-laplace": _projected,
    "bag-laplace": _bag,
    "outline-laplace": _outline,
    "nearest": _nearest,
}
CONCENTRATED = ("gaussian-noise", "spherical-gaussian")
EXACT = ("matrix", "local", "product")  # by `exact.leakage`; a product part by part


def kinds() -> dict[str, str]:
    """Return how every declared kind is judged; one that nobody judges is an error."""
    from metricdp.mechanisms import MECHANISMS

    how = dict.fromkeys(EXACT, "exact") | dict.fromkeys((*JUDGES, *CONCENTRATED), "formula")
    if missing := {entry.name for entry in MECHANISMS} ^ set(how):
        raise LookupError(f"no judge for, or no longer a kind: {', '.join(sorted(missing))}")
    return how


def judged(made: Any, secrets: Any, others: Any) -> str:
    """Return what is wrong about a mechanism without a table; nothing where all is right."""
    from metricdp.mechanisms import MECHANISMS

    entry = MECHANISMS.of(made)
    if entry is None:
        raise LookupError(f"no judge for {type(made).__name__}")
    return JUDGES[entry.name](made, np.asarray(secrets), np.asarray(others))
