"""Is X independent of Y given Z, for coordinates? The test with analytic kernel embeddings of Scetbon et al. (2022).

With X'' = (X, Z) and locations t_j = (a_j, b_j), j = 1..J, drawn at random, X is independent of Y given Z exactly if

    D_j = E[ (k(X'', a_j) - E[k(X'', a_j) | Z]) (l(Y, b_j) - E[l(Y, b_j) | Z]) ] = 0      for all j,

almost surely in the locations, since Gaussian kernels are analytic. The conditional means are estimated by kernel ridge
regression on Z, whose widths and ridge are the most likely ones of the matching Gaussian process. One departure from
the paper: every column of Z has its own width, since with one width for all the test rejected true independence three
times too often where only one of two columns mattered, nine times where one of four did. With u_i the vector of
products of the two residuals of sample i and S, V their mean and second moment, n S' V^-1 S is chi-square with J
degrees of freedom under independence, for many samples.
"""

from __future__ import annotations

import importlib
import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Floats, as_floats
from metricdp.errors import InvalidInput, MissingExtra
from metricdp.threads import limit_product_threads


def kernel_independence(x: ArrayLike, y: ArrayLike, given: ArrayLike | None = None, *, method: str = "rcit") -> float:
    """Return the p-value of a kernel test on coordinates ("kci" or "rcit" of causal-learn, the extra `audit`).

    "kci" takes about a second for 500 samples and grows with their cube; "rcit" works with random features and is
    random itself: two calls differ a little. Both are asymptotic; see `analytic_independence` for one of our own.
    """
    if method not in ("kci", "rcit"):
        raise InvalidInput(f"`method` must be 'kci' or 'rcit', got {method!r}.")
    parts = [as_floats(part, name) for part, name in ((x, "x"), (y, "y"), (given, "given")) if part is not None]
    if len({len(part) for part in parts}) != 1 or len(parts[0]) < 20:
        lengths = ", ".join(str(len(part)) for part in parts)
        raise InvalidInput(f"`x`, `y` and `given` must be of one length, at least 20, got {lengths}.")
    try:
        cit = importlib.import_module("causallearn.utils.cit")
    except ImportError as error:
        raise MissingExtra(
            "this needs the package `causallearn`: install it with `pip install 'metricdp-papers[audit]'`"
        ) from error
    columns = [part.reshape(len(part), -1) for part in parts]
    edges = np.cumsum([0] + [part.shape[1] for part in columns]).tolist()
    groups = [list(range(a, b)) for a, b in itertools.pairwise(edges)]
    test = cit.CIT(np.column_stack(columns), method)
    return float(test(groups[0], groups[1], groups[2] if given is not None else None))


LOCATIONS = 5  # J
FIT_SAMPLES = 200  # samples on which width and ridge are chosen, as published
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # times the median distance between samples of Z
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
FACTORS = (0.5, 2.0, np.inf)  # tried on the width of every single column; infinity leaves the column out
ACROSS = 1000  # samples among which medians of distances are taken


@dataclass(frozen=True)
class AnalyticTest:
    """The p-value, the statistic and its degrees of freedom, and the share of variance that Z explains."""

    p_value: float
    statistic: float
    degrees: int
    explained: tuple[float, float]


def analytic_independence(
    x: ArrayLike,
    y: ArrayLike,
    given: ArrayLike | None = None,
    *,
    locations: int = LOCATIONS,
    widths: Literal["own", "common"] = "own",
    seed: int = 0,
) -> AnalyticTest:
    """Test X independent of Y given Z for coordinates; without `given`, plain independence.

    Every column is put on the scale mean 0, deviation 1. Locations are drawn from the normal distribution with the
    data's mean and covariance. Constant columns say nothing and are dropped; if all of X or of Y are constant, p = 1.

    With `widths="common"` all columns of Z share one kernel width, as published: see above for what that costs.

    The level is that of a limit: where the regression cannot follow E[. | Z], what is left over looks like dependence.
    For places with few values use `conditional_independence`, whose level is exact.

    References: Scetbon, Meunier, Romano, "An asymptotic test for conditional independence using analytic kernel
    embeddings", ICML 2022.
    """
    if widths not in ("own", "common"):
        raise InvalidInput(f"`widths` must be 'own' or 'common', got {widths!r}.")
    parts = [_standard(part, name) for part, name in ((x, "x"), (y, "y"))]
    count = len(parts[0])
    condition = np.empty((count, 0)) if given is None else _standard(given, "given")
    if not len(parts[1]) == len(condition) == count or count < 4 * locations or locations < 1:
        raise InvalidInput(
            f"`x`, `y` and `given` must be of one length, at least {4 * locations} for {locations} locations, "
            f"got {count}, {len(parts[1])} and {len(condition)}."
        )
    if parts[0].shape[1] == 0 or parts[1].shape[1] == 0:
        return AnalyticTest(1.0, 0.0, locations, (0.0, 0.0))
    rng = np.random.default_rng(seed)  # which locations are asked is no secret
    left = _at_locations(np.hstack([parts[0], condition]), locations, rng)
    right = _at_locations(parts[1], locations, rng)
    before = np.hstack([left, right])
    with limit_product_threads():  # the matrices are small: threads would only wait for each other
        after = _residuals(before, condition, rng, own=widths == "own")
    products = after[:, :locations] * after[:, locations:]
    mean = products.mean(axis=0)
    spread = products.T @ products / count  # as published, around zero: the distribution under independence
    statistic = float(count * mean @ np.linalg.pinv(spread, hermitian=True) @ mean)
    shares = 1.0 - (after**2).sum(axis=0) / np.maximum(((before - before.mean(axis=0)) ** 2).sum(axis=0), 1e-300)
    from scipy.stats import chi2

    explained = (float(shares[:locations].mean()), float(shares[locations:].mean()))
    return AnalyticTest(float(chi2.sf(statistic, locations)), statistic, locations, explained)


def _standard(values: ArrayLike, name: str) -> Floats:
    """Return columns with mean 0 and deviation 1, without the constant ones."""
    array = as_floats(values, name)
    columns = array.reshape(len(array), -1)
    deviation = columns.std(axis=0)
    useful = deviation > 1e-12 * np.maximum(1.0, np.abs(columns).max(axis=0, initial=0.0))
    return np.asarray((columns[:, useful] - columns[:, useful].mean(axis=0)) / deviation[useful])


def _at_locations(points: Floats, locations: int, rng: np.random.Generator) -> Floats:
    """Return exp(-|p - t_j|^2 / (2 s^2)) at random locations t_j, with s the median distance between samples."""
    # The columns have deviation 1, so correlated normals with the data's covariance lie where the data lies.
    covariance = np.atleast_2d(np.cov(points.T, bias=True))
    where = rng.multivariate_normal(np.zeros(points.shape[1]), covariance, size=locations, method="eigh")
    return np.asarray(np.exp(-0.5 * _squares(points, where) / _median_square(points, rng)))


def _residuals(values: Floats, condition: Floats, rng: np.random.Generator, *, own: bool = True) -> Floats:
    """Return values minus their ridge regression on Z; the means alone where there is no Z."""
    if condition.shape[1] == 0:
        return np.asarray(values - values.mean(axis=0))
    count, half = len(values), values.shape[1] // 2
    chosen = rng.choice(count, min(count, FIT_SAMPLES), replace=False)
    scaled = condition / np.sqrt(_median_square(condition, rng))
    result = np.empty_like(values)
    for side in (slice(0, half), slice(half, None)):
        centred = values[:, side] - values[:, side].mean(axis=0)
        widths, ridge = _likeliest(centred[chosen], scaled[chosen], own=own)
        stretched = scaled / widths
        kernel = np.exp(-0.5 * _squares(stretched, stretched))
        # values - K (K + r I)^-1 values = r (K + r I)^-1 values
        kernel.flat[:: count + 1] += ridge
        result[:, side] = ridge * np.linalg.solve(kernel, centred)
    return result


def _likeliest(values: Floats, condition: Floats, *, own: bool = True) -> tuple[Floats, float]:
    """Return a width per column and the ridge of the greatest marginal likelihood found.

    First one width for all columns and every ridge; then, with `own`, every column alone, and the ridge once more.
    """
    columns = [(column[:, None] - column) ** 2 for column in condition.T]
    total = np.sum(columns, axis=0)
    options = [(width, ridge) for width in WIDTHS for ridge in RIDGES]
    scores = [_unlikely(values, np.exp(-0.5 * total / width**2), ridge) for width, ridge in options]
    best = min(scores)
    width, ridge = options[scores.index(best)]
    widths, exponent = np.full(len(columns), width), total / width**2
    for at, column in enumerate(columns if own and len(columns) > 1 else []):
        kept, start = exponent, widths[at]
        for factor in FACTORS:
            changed = kept + column * ((start * factor) ** -2 - start**-2)
            score = _unlikely(values, np.exp(-0.5 * changed), ridge)
            if score < best:
                best, widths[at], exponent = score, start * factor, changed
    kernel = np.exp(-0.5 * exponent)
    return widths, min(RIDGES, key=lambda value: _unlikely(values, kernel, value))


def _unlikely(values: Floats, kernel: Floats, ridge: float) -> float:
    """Return -2 ln L up to a constant, the amplitude of each column of values profiled out.

    For a column v ~ N(0, a (K + r I)): -2 ln L = n ln(v' (K + r I)^-1 v) + ln det(K + r I) + constant.
    """
    from scipy.linalg import solve_triangular

    lower = np.linalg.cholesky(kernel + ridge * np.eye(len(kernel)))
    power = (solve_triangular(lower, values, lower=True, check_finite=False) ** 2).sum(axis=0)
    fit = len(values) * np.log(np.maximum(power, 1e-300)).sum()
    return float(fit + 2.0 * values.shape[1] * np.log(np.diag(lower)).sum())


def _median_square(points: Floats, rng: np.random.Generator) -> float:
    """Return the square of the median distance between samples, over pairs that differ."""
    some = points if len(points) <= ACROSS else points[rng.choice(len(points), ACROSS, replace=False)]
    squares = _squares(some, some)[np.triu_indices(len(some), 1)]
    apart = squares[squares > 0]
    return float(np.median(apart)) if len(apart) else 1.0


def _squares(first: Floats, second: Floats) -> Floats:
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1) - 2.0 * first @ second.T
    return np.asarray(np.maximum(squares, 0.0))
