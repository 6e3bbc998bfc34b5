"""The leaks of a distribution between places: all pairs of a sample as in the paper, random pairs, hard pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metricdp.arrays import Floats
from metricdp.auditing import COUNT_TOLERANCE, ApproximateDistribution, distribution_violations, log_ratios
from metricdp.metrics import Metric, pairwise
from metricdp.spaces import Box

ReportDistribution = Callable[[Floats], Floats]
ADDITIVE = 0.01  # what the paper's public code lets pass: z(x) - e^(epsilon d) z(x') up to this counts as kept
ROWS = 64


PAIRS, TRIPLES, BEYOND = "violating pairs (%)", "violating triples (%)", "violating triples beyond 0.01 (%)"
WORST, RANDOM, HARD = "worst ratio (epsilon)", "violating random triples (%)", "worst adversarial ratio (epsilon)"
MEASURES = (PAIRS, TRIPLES, BEYOND, WORST, RANDOM, HARD)


def leaks(
    distribution: ReportDistribution,
    box: Box,
    epsilon: float,
    points: Floats,
    *,
    sample: Floats,
    axes: tuple[Floats, ...],
    count: int = 100_000,
) -> dict[str, float]:
    """Measure a distribution at all pairs of `sample`, `count` random pairs of `points` and `count` / 10 hard pairs.

    Shares are in percent: of pairs of places with any report that breaks the guarantee, of (pair, report), and of
    (pair, report) by more than 0.01 as the public code counts them. Ratios are |ln z - ln z'| / (epsilon d).

    Of an `ApproximateDistribution` distribution, what its error explains is no leak.
    """
    error = distribution.error if isinstance(distribution, ApproximateDistribution) else 0.0
    counted = all_pairs(distribution(sample), sample, box.metric, epsilon, error)
    loose = distribution_violations(distribution, box, epsilon, points=points, pairs=count, adversarial=0)
    hard = distribution_violations(
        distribution, box, epsilon, axes=axes, points=points, pairs=1, adversarial=count // 10
    )
    return dict(zip(MEASURES, (*counted, 100.0 * loose.share, hard.worst), strict=True))


def all_pairs(
    distributions: Floats, places: Floats, metric: Metric, epsilon: float, error: float = 0.0
) -> tuple[float, float, float, float]:
    """Return the shares in percent of pairs, of triples and of triples beyond 0.01, and the worst ratio.

    The public code looks at both directions of every ordered pair and divides by the ordered pairs. So the share beyond
    0.01 is that of unordered pairs times the directions that break it: up to 200 %.

    PPR(x, x', k) = |ln z(k|x) - ln z(k|x')| / d(x, x'), Eq. (42); places at distance zero are no pair.
    """
    count = broken_pairs = broken_triples = beyond = 0
    worst = 0.0
    for start in range(0, len(places), ROWS):
        rows = slice(start, start + ROWS)
        apart = pairwise(metric, places[rows], places[start:])
        use = np.triu(np.ones(apart.shape, dtype=bool), 1) & (apart > 0)
        first, second = np.nonzero(use)
        one, two, limit = first + start, second + start, epsilon * apart[use]
        level = log_ratios(distributions[one], distributions[two], error) / limit[:, None]
        broken = level > 1.0 + COUNT_TOLERANCE
        count += len(limit)
        broken_pairs += int(broken.any(axis=1).sum())
        broken_triples += int(broken.sum())
        factor = np.exp(np.minimum(limit, 700.0))[:, None]
        beyond += int((distributions[one] - factor * distributions[two] > ADDITIVE).sum())
        beyond += int((distributions[two] - factor * distributions[one] > ADDITIVE).sum())
        worst = max(worst, float(level.max(initial=0.0)))
    reports = distributions.shape[1]
    total = max(1, count)
    return (
        100.0 * broken_pairs / total,
        100.0 * broken_triples / (total * reports),
        100.0 * beyond / (total * reports),
        worst,
    )
