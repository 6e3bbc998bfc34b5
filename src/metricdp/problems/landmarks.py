"""How much a law of reports can cost anywhere in a city, by a hundred landmarks and the triangle inequality."""

from __future__ import annotations

import numpy as np

from metricdp.arrays import Floats
from metricdp.metrics import pairwise
from metricdp.spaces import FiniteSpace

COUNT = 100
ROUNDING = 1e-8  # more than computed distances lie below the true ones, and than given ones break the triangle


def landmark_bound(inputs: FiniteSpace, outputs: FiniteSpace, distribution: Floats, *, count: int = COUNT) -> Floats:
    """Return for every secret i an upper bound of sum_k law_k d(i, k).

    Every report k has a landmark a(k), and d(i, k) <= d(i, a) + d(a, k). So the sum is at most
    sum_a (law(a) d(i, a) + sum of law_k d(a, k) over the reports of a), with law(a) the law of a's reports.
    Landmarks are drawn where they shorten the second part most: each next one with a chance in proportion to
    law_k d(k, nearest landmark) (Arthur and Vassilvitskii 2007), from a fixed seed.
    """
    used = np.flatnonzero(distribution > 0)
    if not used.size:
        return np.zeros(len(inputs))
    reports, weights = outputs.points[used], distribution[used]
    same = inputs is outputs and len(used) == len(outputs)
    generator = np.random.default_rng(0)
    chosen, rows = [int(weights.argmax())], []
    nearest, away = np.zeros(len(used), dtype=np.int64), np.full(len(used), np.inf)
    while True:
        new = pairwise(inputs.metric, reports[chosen[-1:]], reports)[0]
        closer = new < away
        nearest[closer], away[closer] = len(chosen) - 1, new[closer]
        rows.append(new if same else pairwise(inputs.metric, reports[chosen[-1:]], inputs.points)[0])
        unreached = np.isinf(away)  # a part of the network without a landmark comes first
        share = weights * (unreached if unreached.any() else away)
        if len(chosen) == min(count, len(used)) or not share.sum() > 0:
            break
        chosen.append(int(generator.choice(len(used), p=share / share.sum())))
    masses = np.bincount(nearest, weights, minlength=len(chosen))
    to_landmarks = np.array([row for row, mass in zip(rows, masses, strict=True) if mass > 0])
    masses = masses[masses > 0]
    total = masses @ to_landmarks + float(weights @ away)
    farthest = to_landmarks[np.isfinite(to_landmarks)].max(initial=0.0) + away.max()
    # Sums of so many terms round by less than ROUNDING too.
    return np.asarray(total * (1.0 + ROUNDING) + ROUNDING * masses.sum() * farthest)
