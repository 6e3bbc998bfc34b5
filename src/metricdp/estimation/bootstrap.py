"""Intervals from tables drawn anew of the likeliest masses: the distribution of an estimate without its moments.

Every drawn table is decoded with the same weights, and its estimates are set against the masses it was drawn from, in
errors that are estimated as for the table itself: t = (T - m) / sqrt(V(m) / N), V(m) = V + s (m - T) as in `moments`.
The interval of the table holds every m with a t between the quantiles of those that were drawn; for all cells at once,
of the largest |t| of any cell.

References: Hall, "The bootstrap and Edgeworth expansion", 1992; Efron, Tibshirani, "An introduction to the bootstrap",
1993 (12.5).
"""

from __future__ import annotations

import zlib

import numpy as np

from metricdp.arrays import Floats
from metricdp.estimation.decoders import DenseDecoder
from metricdp.estimation.moments import Statistic

REPLICATES = 999


def bootstrap_ends(
    decoder: DenseDecoder, sums: Floats | None, confidence: float, *, simultaneous: bool
) -> tuple[Floats, Floats]:
    """Return lower and upper ends of sums of masses (of every cell where `sums` is None)."""
    weights, sums, found = decoder.weigh(sums)
    tables, truth = _tables(decoder)
    drawn = tables @ weights
    masses = truth @ sums
    variance = tables @ weights**2 - (drawn**2 if decoder.evidence.target == "population" else drawn)
    away = (drawn - masses) / _errors(found, variance, masses - drawn)
    tail = 0.5 * (1.0 - confidence)
    if simultaneous:
        reach = np.quantile(np.abs(away).max(axis=1), confidence, method="higher")
        low, high = np.full(away.shape[1], -reach), np.full(away.shape[1], reach)
    else:
        low = np.quantile(away, tail, axis=0, method="lower")
        high = np.quantile(away, 1.0 - tail, axis=0, method="higher")
    return _end(found, high, -1.0), _end(found, low, 1.0)


def _errors(found: Statistic, variance: Floats, moved: Floats) -> Floats:
    least = np.maximum(found.floor, 1e-300)
    return np.asarray(np.sqrt(np.maximum(np.maximum(variance, least) + found.slope * moved, least) / found.total))


def _end(found: Statistic, quantile: Floats, side: float) -> Floats:
    """Return the m on one side of T with T - m = quantile sqrt(V(m) / N): a root of a quadratic in m - T."""
    square = quantile**2 / found.total
    slope, spread = square * found.slope, square * np.maximum(found.variance, found.floor)
    root = 0.5 * (slope + side * np.sqrt(slope**2 + 4.0 * spread))
    wanted = np.sign(-quantile) == side  # quantiles may lie on one side both, then the interval leaves T out
    other = 0.5 * (slope - side * np.sqrt(slope**2 + 4.0 * spread))
    return np.asarray(found.values + np.where(wanted | (quantile == 0), root, other))


def _tables(decoder: DenseDecoder) -> tuple[Floats, Floats]:
    """Return shares of reports, one row a table drawn anew, and the masses behind each."""
    evidence = decoder.evidence
    rng = np.random.default_rng(zlib.crc32(np.ascontiguousarray(evidence.counts).tobytes()))  # nothing private is drawn
    matrix, total = decoder.operator.matrix, int(evidence.total)
    masses = evidence.masses / evidence.masses.sum()
    sizes = [round(float(evidence.counts[part].sum())) for part in evidence.parts]
    found = np.zeros((REPLICATES, matrix.shape[1]))
    truth = np.broadcast_to(masses, (REPLICATES, len(masses))).copy()
    if evidence.target == "table":
        truth = np.zeros((REPLICATES, len(masses)))
    for part, size in zip(evidence.parts, sizes, strict=True):
        rows = matrix[:, part] / matrix[:, part].sum(axis=1, keepdims=True)
        if evidence.target == "population":
            probabilities = masses @ rows
            found[:, part] = rng.multinomial(size, probabilities / probabilities.sum(), size=REPLICATES)
            continue
        secrets = rng.multinomial(size, masses, size=REPLICATES)
        truth += secrets
        for row in np.flatnonzero(masses > 0).tolist():
            found[:, part] += rng.multinomial(secrets[:, row], rows[row])
    return found / total, truth / total if evidence.target == "table" else truth
