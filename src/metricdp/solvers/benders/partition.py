"""Ways to cut a graph of rows into blocks, and how balanced the result is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput, MissingExtra, import_extra

PartitionName: TypeAlias = Literal["balanced", "distances", "records", "neighbours", "spectral"]
PARTITIONS: tuple[PartitionName, ...] = ("balanced", "distances", "records", "neighbours", "spectral")


@dataclass(frozen=True)
class PartitionBalance:
    """Sizes after a partition: records and inner records of every block, and components of the boundary's graph.

    A record is on the boundary when it has a neighbour in another block; the others are inner records.
    """

    records: Integers
    inner: Integers
    components: Integers

    @property
    def boundary(self) -> int:
        """How many records the master decides."""
        return int(self.records.sum() - self.inner.sum())

    def __str__(self) -> str:
        def mean_and_most(sizes: Integers) -> str:
            return f"{sizes.mean():.1f} (largest {sizes.max()})" if sizes.size else "none"

        return (
            f"{len(self.records)} blocks, inner records {mean_and_most(self.inner)}, {self.boundary} boundary "
            f"records in components of {mean_and_most(self.components)}"
        )


def boundary_of(labels: Integers, adjacency: Booleans) -> Booleans:
    """Return which rows have a neighbour in another block."""
    rows, columns = np.nonzero(adjacency)
    mark = np.zeros(len(labels), dtype=bool)
    mark[rows[labels[rows] != labels[columns]]] = True
    return mark


def balance(labels: Integers, adjacency: Booleans) -> PartitionBalance:
    """Measure a partition."""
    edge = boundary_of(labels, adjacency)
    count = int(labels.max()) + 1
    records = np.bincount(labels, minlength=count)
    inner = np.bincount(labels[~edge], minlength=count)
    chosen = np.flatnonzero(edge)
    sizes = np.empty(0, dtype=np.int64)
    if chosen.size:
        _, part = connected_components(sparse.csr_array(adjacency[np.ix_(chosen, chosen)]), directed=False)
        sizes = np.bincount(part)
    return PartitionBalance(records.astype(np.int64), inner.astype(np.int64), sizes.astype(np.int64))


def partition(
    adjacency: Booleans,
    blocks: int,
    *,
    method: PartitionName = "balanced",
    distances: Floats | None = None,
    records: Floats | None = None,
    seed: int = 0,
) -> Integers:
    """Return a block number for every row.

    "distances" clusters the rows of the distance matrix (k-m-DV), "records" the points themselves (k-m-rec),
    "neighbours" the rows of the adjacency matrix (k-m-adj), all by k-means; "spectral" clusters the first
    eigenvectors of the graph Laplacian (BSC, a relaxation that does not balance); "balanced" cuts the graph by
    multilevel partitioning into parts of equal size. Connected components are never mixed with parts of others:
    each is cut alone, and small ones share a block.
    """
    size = len(adjacency)
    if not 1 <= blocks <= size:
        raise InvalidInput(f"`blocks` must be from 1 to the {size} rows there are, got {blocks}.")
    if method not in PARTITIONS:
        raise InvalidInput(f"`partition` must be one of {', '.join(PARTITIONS)}, got {method!r}.")
    _, component = connected_components(sparse.csr_array(adjacency), directed=False)
    labels = np.full(size, -1, dtype=np.int64)
    used = 0
    small: list[Integers] = []
    for number in range(int(component.max()) + 1):
        rows = np.flatnonzero(component == number)
        share = max(1, round(blocks * len(rows) / size))
        if share == 1:
            small.append(rows)
            continue
        inside = np.ix_(rows, rows)
        part = cluster_rows(
            adjacency[inside],
            share,
            method=method,
            distances=None if distances is None else distances[inside],
            records=None if records is None else records[rows],
            seed=seed,
        )
        labels[rows] = part + used
        used += int(part.max()) + 1
    # first-fit decreasing: whole components share blocks of about size / blocks rows
    capacity = max(1, round(size / blocks))
    loads: list[int] = []
    for rows in sorted(small, key=len, reverse=True):
        fit = next((b for b, load in enumerate(loads) if load + len(rows) <= capacity), len(loads))
        if fit == len(loads):
            loads.append(0)
        loads[fit] += len(rows)
        labels[rows] = used + fit
    return labels


def cluster_rows(
    adjacency: Booleans,
    blocks: int,
    *,
    method: PartitionName,
    distances: Floats | None = None,
    records: Floats | None = None,
    seed: int = 0,
) -> Integers:
    """Return block numbers as `partition` does, of all rows at once, connected or not: as published."""
    if method == "balanced":
        part = _balanced_parts(adjacency, blocks)
    elif method == "neighbours":
        part = _k_means(adjacency.astype(np.float64), blocks, seed)
    elif method == "spectral":
        part = _k_means(_laplacian_vectors(adjacency, blocks), blocks, seed)
    elif method == "distances":
        if distances is None:
            raise InvalidInput("the partition 'distances' needs `distances`.")
        part = _k_means(distances, blocks, seed)
    else:
        if records is None:
            raise InvalidInput("the partition 'records' needs `records`: points with numeric coordinates.")
        part = _k_means(records, blocks, seed)
    return np.unique(part, return_inverse=True)[1].astype(np.int64)


def _k_means(vectors: Floats, blocks: int, seed: int) -> Integers:
    """Lloyd's iterations from k-means++ starts (squared norms, so that means are centroids)."""
    cluster = import_extra("sklearn.cluster", "decompose")
    found = cluster.KMeans(blocks, n_init=4, random_state=seed).fit(vectors)
    return np.asarray(found.labels_, dtype=np.int64)


def _laplacian_vectors(adjacency: Booleans, count: int) -> Floats:
    """Return the eigenvectors of the `count` least eigenvalues of Deg - A: the relaxed ratio cut."""
    from scipy.linalg import eigh

    near = adjacency.astype(np.float64)
    np.fill_diagonal(near, 0.0)
    laplacian = np.diag(near.sum(axis=1)) - near
    _, vectors = eigh(laplacian, subset_by_index=[0, min(count, len(near)) - 1])
    return np.asarray(vectors)


def _balanced_parts(adjacency: Booleans, blocks: int) -> Integers:
    """Parts of equal size with few edges cut: METIS where it is installed, otherwise recursive bisection."""
    try:
        pymetis = import_extra("pymetis", "decompose")
    except MissingExtra:
        return _bisect(adjacency, blocks)
    graph = sparse.csr_array(adjacency & ~np.eye(len(adjacency), dtype=bool))
    options = pymetis.Options()
    options.seed = 0
    answer = pymetis.part_graph(
        blocks,
        pymetis.CSRAdjacency(adj_starts=graph.indptr.tolist(), adjacent=graph.indices.tolist()),
        options=options,
    )
    return np.asarray(answer[1], dtype=np.int64)


def _bisect(adjacency: Booleans, blocks: int) -> Integers:
    """Split along the second eigenvector of the Laplacian at the share of blocks on each side, and so on."""
    size = len(adjacency)
    if blocks == 1 or size == 1:
        return np.zeros(size, dtype=np.int64)
    left = blocks // 2
    order = np.argsort(_laplacian_vectors(adjacency, 2)[:, -1], kind="stable")
    near, far = order[: max(1, round(size * left / blocks))], order[max(1, round(size * left / blocks)) :]
    labels = np.empty(size, dtype=np.int64)
    labels[near] = _bisect(adjacency[np.ix_(near, near)], left)
    labels[far] = left + _bisect(adjacency[np.ix_(far, far)], blocks - left)
    return labels
