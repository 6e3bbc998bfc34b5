"""More coordinates: word vectors cut to their first principal components, one to six of them."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from metricdp import interpolated, laplace
from metricdp.arrays import Floats
from metricdp.auditing import distribution_violations, representative_lower_bound
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Rule
from metricdp.metrics import Lp, pairwise
from metricdp.places import data_folder
from metricdp.spaces import Box, FiniteSpace
from metricdp_papers.common import Row

WORDS = 5_000
CELLS = {1: 16, 2: 8, 3: 5, 4: 4, 5: 2, 6: 2}  # along each axis: 17 to 729 anchors
DRAWS = 4


@lru_cache(maxsize=1)
def components() -> Floats:
    """Return the most frequent words along their first principal components, the strongest first."""
    path = data_folder() / "glove_6b_100d" / "vectors.npz"
    if not path.is_file():
        raise InvalidInput("the word vectors are not in the data folder (`glove_6b_100d`): set METRICDP_DATA.")
    with np.load(path, allow_pickle=False) as data:
        vectors = np.asarray(data["vectors"][:WORDS], dtype=float)
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
    rules: tuple[tuple[str, Rule], ...] = (("AIPO", "log"), ("exact", "exact"))
    for method, rule in rules:
        began = time.perf_counter()
        made: Any = interpolated(
            box, outputs, epsilon, loss=(points, losses), anchors=cells, rule=rule, split="even", bound=False
        )
        seconds = time.perf_counter() - began
        worst = distribution_violations(
            made.probabilities, box, epsilon, axes=made.axes, pairs=20_000, adversarial=5_000
        ).worst
        column = "as_published" if rule == "log" else "corrected"
        shared = {**start, "method": method, "repetition": repetition}
        rows.append({**shared, "measure": "loss", column: made.certificate.loss, "bound": bound, "seconds": seconds})
        rows.append({**shared, "measure": "worst ratio (epsilon)", column: worst})
    apart = pairwise(metric, points, places)
    masses = np.exp(-0.5 * epsilon * (apart - apart.min(axis=1, keepdims=True)))
    plain = float((masses / masses.sum(axis=1, keepdims=True) * losses).sum() / len(points))
    rows.append(
        {**start, "method": "EM", "repetition": repetition, "measure": "loss", "as_published": plain, "bound": bound}
    )
    noise, tree = laplace(metric, epsilon, dimension=n), cKDTree(places)
    drawn = [tree.query(noise.sample(points, rng=rng))[1] for _ in range(DRAWS)]
    noisy = float(np.mean([losses[np.arange(len(points)), row].mean() for row in drawn]))
    rows.append(
        {**start, "method": "Laplace", "repetition": repetition, "measure": "loss", "as_published": noisy,
         "bound": bound}
    )  # fmt: skip
    return rows
