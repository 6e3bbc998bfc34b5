"""More coordinates: word vectors cut to their first principal components, one to six of them."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import softmax

from metricdp import interpolated
from metricdp.arrays import Floats
from metricdp.auditing import distribution_violations, representative_lower_bound
from metricdp.mechanisms import Rule
from metricdp.metrics import Lp, pairwise
from metricdp.spaces import Box, FiniteSpace
from metricdp_papers.aipo.measures import WORST
from metricdp_papers.aipo.rivals import drawn_loss, noisy_reports
from metricdp_papers.common import Row, glove, row

WORDS = 5_000
CELLS = {1: 16, 2: 8, 3: 5, 4: 4, 5: 2, 6: 2}  # along each axis: 17 to 729 anchors


@lru_cache(maxsize=1)
def components() -> Floats:
    """Return the most frequent words along their first principal components, the strongest first."""
    vectors = glove("vectors").array[:WORDS].astype(float)
    centred = vectors - vectors.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ directions[: max(CELLS)].T)


def dimension(n: int, epsilon: float, repetition: int, reports: int) -> list[Row]:
    """Return loss and worst ratio of the rules in n coordinates under l_2, the loss being the distance."""
    points = components()[:, :n]
    return compare_points(points, CELLS[n], epsilon, repetition, reports)


def compare_points(points: Floats, cells: int, epsilon: float, repetition: int, reports: int) -> list[Row]:
    """Do so for any points."""
    n = points.shape[1]
    rng = np.random.default_rng(repetition)
    places = points[rng.choice(len(points), reports, replace=False)]
    metric = Lp(2)
    box, outputs = Box(points.min(axis=0), points.max(axis=0), metric), FiniteSpace(places, metric)
    losses = pairwise(metric, points, places)
    bound = representative_lower_bound(points, losses, metric, epsilon, representatives=196, gap=3e-3, seconds=60)
    start: Row = {"dimension": n, "cells": f"{cells} each way", "epsilon": epsilon}
    rows = []

    def about(method: str) -> Row:
        return {**start, "method": method, "repetition": repetition}

    rules: tuple[tuple[str, str, Rule], ...] = (("AIPO", "as_published", "log"), ("exact", "corrected", "exact"))
    for method, column, rule in rules:
        began = time.perf_counter()
        made: Any = interpolated(
            box, outputs, epsilon, loss=(points, losses), anchors=cells, rule=rule, split="even", bound=False
        )
        seconds = time.perf_counter() - began
        worst = distribution_violations(
            made.probabilities, box, epsilon, axes=made.axes, pairs=20_000, adversarial=5_000
        ).worst
        rows.append(row(about(method), "loss", bound=bound, seconds=seconds, **{column: made.certificate.loss}))
        rows.append(row(about(method), WORST, **{column: worst}))
    plain = float((softmax(-0.5 * epsilon * losses, axis=1) * losses).sum() / len(points))
    noisy = drawn_loss(losses, noisy_reports(points, places, metric, epsilon, rng))
    return [*rows, row(about("EM"), "loss", plain, bound=bound), row(about("Laplace"), "loss", noisy, bound=bound)]
