"""Sparse rows over a background near their threshold: the verdict against fractions and 400-bit intervals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import metricdp as mdp
from attacks import exact
from attacks.audits import METRICS, near_claim
from metricdp.mechanisms import Certificate, Guarantee, LocalMechanism


def attack(number: int) -> tuple[str, str]:
    """Judge one local mechanism whose claim lies within a few units in the last place of the truth, or far from it."""
    rng = np.random.default_rng([5, number])
    space, apart, exactly = _streets(rng) if rng.random() < 0.6 else _places(rng)
    rows = len(space)
    table, background, stored = _weights(rng, rows, int(rng.integers(1, 30)))
    slack = float(rng.exponential(0.5)) if rng.random() < 0.2 else 0.0
    radius = None
    if rng.random() < 0.2:
        radius = float(rng.uniform(0, 1.2)) * max(
            float(cell.mid()) for row in apart for cell in row if cell is not None
        )
        radius = radius or 1.0
    judged = [[cell if radius is None or cell is None or cell <= radius else None for cell in row] for row in apart]
    truth = exact.leakage(table, judged, slack=slack)
    claim = near_claim(rng, truth)
    report = mdp.audit(
        _mechanism(space, table, background, stored, Guarantee(claim, space.metric, slack, radius=radius))
    )
    said = f"{report.verdict} {report.epsilon!r} for claim {claim!r}, truth {truth}, {report.method}"
    if report.verdict == "holds":
        sound = truth is not None and bool(truth <= exact.ball(report.epsilon)) and report.epsilon <= claim
        return ("held", "holds") if sound else ("unsound", said)
    if report.verdict == "violated":
        # Distances are rounded down where a metric has to be computed: a violation may then be a hair early.
        near = exact.ball(claim) * exact.ball(1.0 if exactly and slack == 0 else 1.0 - 1e-6)
        return ("held", "violated") if truth is None or bool(truth > near) else ("unsound", said)
    pairs = [judged[i][j] for i in range(rows) for j in range(i)]
    unlinked = radius is None and any(cell is None for cell in pairs)
    nothing = all(cell is None for cell in pairs)
    return ("held", report.verdict) if (unlinked or nothing) and report.reason else ("unsound", said)


def _mechanism(space: Any, table: Any, background: Any, stored: Any, promise: Guarantee) -> LocalMechanism:
    starts = np.append(0, np.cumsum(stored.sum(axis=1)))
    reports = mdp.FiniteSpace(np.arange(float(len(background)))[:, None], mdp.Lp(1))
    paper = Certificate(loss=0.0, lower_bound=0.0, method="drawn", epsilon=promise.epsilon)
    return LocalMechanism(space, reports, starts, np.nonzero(stored)[1], table[stored], background, promise, paper)


def _weights(rng: np.random.Generator, rows: int, reports: int) -> tuple[Any, Any, Any]:
    """Return weights as float32, the background and which cells are stored; anything else is the background."""
    scale = 10.0 ** rng.uniform(-6, 1)
    background = np.exp(rng.normal(-3, scale / 2, reports)).astype(np.float32)
    stored = rng.random((rows, reports)) < rng.choice([0.0, 0.1, 0.5, 1.0])
    kind = rng.integers(0, 7)
    if kind == 1:  # a row that stores everything, and one that stores nothing
        stored[0], stored[-1] = True, False
    logs = rng.normal(0, scale, (rows, reports)) + (2.0 * scale if rng.random() < 0.5 else 0.0)
    table = (background * np.exp(np.clip(logs, -60, 60))).astype(np.float32)
    if kind == 2:  # proportional rows: one law
        stored[:] = True
        table[1:] = table[0] * np.float32(2.0) ** rng.integers(-3, 4, (rows - 1, 1)).astype(np.float32)
    elif kind == 3:  # impossible reports, for some or for all
        chosen = rng.random(reports) < 0.3
        background[chosen] = 0.0
        if rng.random() < 0.5:
            table[:, chosen] = 0.0
    elif kind == 4:  # weights that are stored as 0
        table[rng.random(table.shape) < 0.1] = 0.0
    elif kind == 5:  # the smallest floats there are, and a background that cancels
        table *= (2.0 ** -rng.integers(0, 130, table.shape).astype(float)).astype(np.float32)
    elif kind == 6:
        background *= np.float32(1e30)
        stored[:] = True
        stored[-1] = rng.random(reports) < 0.5
    table = np.where(stored, table, background).astype(np.float32)
    empty = table.sum(axis=1, dtype=np.float64) == 0
    table[empty], stored[empty] = 1.0, True
    return table, background, stored


def _streets(rng: np.random.Generator) -> tuple[Any, Any, bool]:
    """Return some or all nodes of a network with the exact lengths of its shortest paths."""
    nodes = int(rng.integers(2, 8))
    pairs = [(int(rng.integers(node)), node) for node in range(1, nodes) if rng.random() < 0.95]
    pairs += [tuple(rng.choice(nodes, 2, replace=False).tolist()) for _ in range(int(rng.integers(1, nodes + 1)))]
    lengths = rng.uniform(0.1, 1.0, len(pairs)) * 10.0 ** rng.uniform(-6, 2)
    one_way = "open" if rng.random() < 0.7 else "longer"
    there: list[list[Any]] = [[Fraction(0) if i == j else None for j in range(nodes)] for i in range(nodes)]
    for (i, j), length in zip(pairs, lengths.tolist(), strict=True):
        for a, b in ((i, j), (j, i)) if one_way == "open" else ((i, j),):
            there[a][b] = _least(there[a][b], Fraction(length))
    for k in range(nodes):
        for i in range(nodes):
            for j in range(nodes):
                if there[i][k] is not None and there[k][j] is not None:
                    there[i][j] = _least(there[i][j], there[i][k] + there[k][j])
    everybody = bool(rng.random() < 0.7)
    chosen = rng.permutation(nodes)[: nodes if everybody else int(rng.integers(2, nodes + 1))]
    apart = [
        [
            None if there[i][j] is None or there[j][i] is None else exact.ball(max(there[i][j], there[j][i]))
            for j in chosen
        ]
        for i in chosen
    ]
    metric = mdp.ShortestPath(pairs, lengths, nodes, one_way=one_way)
    space = mdp.FiniteSpace(chosen.astype(float)[:, None], metric)
    return space, apart, one_way == "open" and len(chosen) == nodes


def _least(one: Any, two: Fraction) -> Fraction:
    return two if one is None else min(one, two)


def _places(rng: np.random.Generator) -> tuple[Any, Any, bool]:
    count = int(rng.integers(2, 8))
    name = str(rng.choice([name for name in METRICS if name != "angular"]))
    scale = 10.0 ** rng.uniform(-6, 2)
    if name == "haversine":
        middle = np.array([rng.uniform(-89, 89), rng.uniform(-179, 179)])
        points = np.clip(middle + rng.normal(0, min(scale, 20.0), (count, 2)), [-90, -180], [90, 180])
    else:
        points = rng.normal(0, scale, (count, 2))
    return mdp.FiniteSpace(points, METRICS[name]), exact.measured(name, points), False
