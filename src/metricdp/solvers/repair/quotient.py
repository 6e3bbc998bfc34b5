"""Rows that are (almost) one: classes of them, the program over classes, and proofs taken back to the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path

from metricdp.arrays import Floats, Integers
from metricdp.solvers.bounds import signed_multipliers
from metricdp.solvers.edges import graph_of
from metricdp.solvers.program import Edges

SAME = 1e-9  # rows joined by a log ratio at most this large become one row


def classes_of(log_ratios: Floats, threshold: float = SAME) -> Integers:
    """Return for every row the class it falls into when rows closer than `threshold` become one."""
    _, labels = connected_components(sparse.csr_matrix(log_ratios <= threshold), directed=False)
    return np.asarray(labels, dtype=np.int64)


def quotient(log_ratios: Floats, cost: Floats, labels: Integers) -> tuple[Floats, Floats]:
    """Return log ratios and costs when the rows of one class share one row.

    Q(C, C') = the least W between members, closed by shortest paths; costs add up. Rows of a matrix for the
    quotient serve every member: Q <= W, so all ratios hold.
    """
    count = int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    rows = np.minimum.reduceat(log_ratios[order], starts, axis=0)
    between = np.minimum.reduceat(rows[:, order], starts, axis=1)
    np.fill_diagonal(between, 0.0)
    paths = shortest_path(graph_of(between), method="FW", directed=False)
    np.fill_diagonal(paths, 0.0)
    return np.asarray(paths), np.add.reduceat(cost[order], starts, axis=0)


def merge_rows(log_ratios: Floats, cost: Floats) -> tuple[Integers, Floats, Floats] | None:
    """Return classes, log ratios and costs where some rows are almost one, None where all are apart."""
    labels = classes_of(log_ratios)
    if int(labels.max()) + 1 == len(labels):
        return None
    return labels, *quotient(log_ratios, cost, labels)


def class_means(matrix: Floats, labels: Integers) -> Floats:
    """Return one row for each class, the mean of its members'."""
    total = np.zeros((int(labels.max()) + 1, matrix.shape[1]))
    np.add.at(total, labels, np.maximum(matrix, 0.0))
    return np.asarray(total / np.bincount(labels)[:, None])


def lift_proof(
    cost: Floats, log_ratios: Floats, labels: Integers, matrix: Floats, edges: Edges, dual: NDArray[Any]
) -> tuple[Edges, Floats]:
    """Return the pairs of rows, and their multipliers, that prove for the rows what `dual` proves for the classes.

    Classes bind more than the program they stand for, so that their bound is none of it. A pair of classes becomes the
    pair of their first members, at its own log ratio. Every other member i is tied to the first, r, by
    lam = level_i - c_ik of z_ik <= e^w z_rk (or of the reverse, where that is negative): its own reduced cost becomes
    level_i and r bears the rest, so that min_k over r is that over the class but for e^w - 1 of the differences.
    """
    first = np.unique(labels, return_index=True)[1]
    pairs = first[edges.pairs]
    rest = np.setdiff1d(np.arange(len(labels)), first)
    tied = np.stack([rest, first[labels[rest]]], axis=1)
    level = (matrix[labels[rest]] * cost[rest]).sum(axis=1, keepdims=True)
    flow = level - cost[rest]
    back = np.exp(-log_ratios[tied[:, 0], tied[:, 1]])[:, None]
    joined = np.concatenate([pairs, tied])
    multipliers = np.concatenate([signed_multipliers(dual), np.where(flow > 0.0, flow, flow * back)])
    return Edges(joined, log_ratios[joined[:, 0], joined[:, 1]]), multipliers
