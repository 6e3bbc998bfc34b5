"""Matrices near their threshold: the verdict of the audit against fractions and 400-bit intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

import metricdp as mdp
from attacks import exact

METRICS = {
    "l1": mdp.Lp(1),
    "l2": mdp.Lp(2),
    "linf": mdp.Lp(np.inf),
    "haversine": mdp.Haversine(),
    "angular": mdp.Angular(),
}


def attack(number: int) -> tuple[str, str]:
    """Judge one matrix whose claim lies within a few units in the last place of the truth, or far from it."""
    rng = np.random.default_rng([1, number])
    count = int(rng.integers(2, 7))
    matrix = _matrix(rng, count, int(rng.integers(1, 6)))
    by_distances = bool(rng.random() < 0.5)
    if by_distances:
        options, apart = _distances(rng, count)
    else:
        options, apart = _points(rng, count)
    truth = exact.leakage(matrix, apart)
    claim = near_claim(rng, truth)
    try:
        report = mdp.audit(matrix, epsilon=claim, **options)
    except mdp.MetricdpError as error:
        return "refused", type(error).__name__
    said = f"{report.verdict} {report.epsilon!r} for claim {claim!r}, truth {truth}"
    if report.verdict == "holds":
        sound = truth is not None and bool(truth <= exact.ball(claim)) and np.isfinite(report.epsilon)
        return ("held", "holds") if sound and report.epsilon <= claim else ("unsound", said)
    if report.verdict == "violated":
        # Distances are rounded down where a metric has to be computed: a violation may then be a hair early.
        near = exact.ball(claim) * exact.ball(1.0 if by_distances else 1.0 - 1e-6)
        return ("held", "violated") if truth is None or bool(truth > near) else ("unsound", said)
    # Nobody can tell where nothing is to be judged, or where some pairs are infinitely far apart.
    unlinked = any(cell is None for row in apart for cell in row)
    return ("held", report.verdict) if unlinked and report.reason else ("unsound", said)


def _matrix(rng: np.random.Generator, count: int, width: int) -> Any:
    kind = rng.integers(0, 6)
    logs = rng.normal(0, 10.0 ** rng.uniform(-8, 1.5), (count, width))
    matrix = np.exp(logs - logs.max(axis=1, keepdims=True))
    if kind == 1:  # the same zeros in every row
        matrix[:, rng.random(width) < 0.4] = 0.0
    elif kind == 2:  # zeros anywhere
        matrix[rng.random(matrix.shape) < 0.2] = 0.0
    elif kind == 3:  # equal and proportional rows
        matrix[1:] = matrix[0] * 2.0 ** rng.integers(-3, 4, (count - 1, 1))
    elif kind == 4:  # denormal numbers
        matrix *= 2.0 ** -rng.integers(0, 1070, matrix.shape).astype(float)
    matrix[matrix.sum(axis=1) == 0] = 1.0
    return matrix / matrix.sum(axis=1, keepdims=True) if kind != 3 else matrix / matrix.sum()


def _distances(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Any]:
    points = rng.uniform(0, 1, (count, 2)) * 10.0 ** rng.uniform(-6, 6)
    apart = np.abs(points[:, None] - points[None]).sum(axis=-1)
    apart = np.minimum(apart, apart.T)
    if rng.random() < 0.2:
        apart[0, 1] = apart[1, 0] = 0.0
        apart[:, 1] = apart[:, 0]
        apart[1, :] = apart[0, :]
        apart[0, 1] = apart[1, 0] = 0.0
    return {"distances": apart}, exact.given(apart)


def _points(rng: np.random.Generator, count: int) -> tuple[dict[str, Any], Any]:
    if rng.random() < 0.2:  # parts of a network that no street joins
        edges = [[i, i + 1] for i in range(count - 1) if i != count // 2 - 1]
        lengths = rng.uniform(0.1, 5.0, len(edges))
        apart = np.full((count, count), np.inf)
        np.fill_diagonal(apart, 0.0)
        for (i, j), length in zip(edges, lengths.tolist(), strict=True):
            apart[i, j] = apart[j, i] = length
        for k in range(count):  # a path: sums of doubles, so the judge adds fractions along it
            apart = np.minimum(apart, apart[:, k : k + 1] + apart[k])
        if not edges:
            return _distances(rng, count)
        metric = mdp.ShortestPath(edges, lengths, count)
        return {"metric": metric, "points": np.arange(count)[:, None]}, _along(edges, lengths, count)
    name = str(rng.choice(list(METRICS)))
    scale = 10.0 ** rng.uniform(-8, 3)
    if name == "haversine":
        middle = np.array([rng.uniform(-89, 89), rng.uniform(-179, 179)])
        points = np.clip(middle + rng.normal(0, min(scale, 20.0), (count, 2)), [-90, -180], [90, 180])
    else:
        points = rng.normal(0, 1, (1, 2)) * 10.0 ** rng.uniform(0, 4) + rng.normal(0, scale, (count, 2))
    return {"metric": METRICS[name], "points": points}, exact.measured(name, points)


def _along(edges: list[list[int]], lengths: Any, count: int) -> Any:
    """Return exact distances along the pieces of a path."""
    apart: list[list[Any]] = [[None] * count for _ in range(count)]
    for i in range(count):
        apart[i][i] = exact.ball(0.0)
    for (i, j), length in zip(edges, lengths.tolist(), strict=True):
        for start in range(j):
            if apart[start][i] is not None:
                apart[start][j] = apart[j][start] = apart[start][i] + exact.ball(length)
    return apart


def near_claim(rng: np.random.Generator, truth: Any) -> float:
    if truth is None or rng.random() < 0.1:
        return float(10.0 ** rng.uniform(-6, 6))
    value = float(truth.mid())
    if not 1e-300 < value < 1e300:
        return float(10.0 ** rng.uniform(-3, 3))
    if rng.random() < 0.8:
        for _ in range(int(rng.integers(0, 6))):
            value = float(np.nextafter(value, np.inf if rng.random() < 0.5 else 0.0))
        return value
    return value * float(10.0 ** rng.uniform(-0.5, 0.5))
