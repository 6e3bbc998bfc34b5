"""Symmetric systems that share one pattern: orderings into a chain of blocks, and factors that use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import reverse_cuthill_mckee

from metricdp.arrays import Floats, Integers
from metricdp.errors import SolverFailure


@dataclass(frozen=True)
class Chain:
    """A permutation of the rows and cuts such that edges join only equal or neighbouring blocks."""

    order: Integers
    cuts: Integers

    @property
    def blocks(self) -> int:
        """How many blocks the chain has; one block means a dense matrix."""
        return len(self.cuts) - 1

    def work(self) -> float:
        """Return about how many floating-point operations one full inverse takes."""
        sizes = np.diff(self.cuts).astype(np.float64)
        behind = self.cuts[-1] - self.cuts[:-1]
        return float((4.0 * sizes**3).sum() + 2.0 * (sizes[:-1] * sizes[1:] * behind[1:]).sum())


def chain_of_blocks(size: int, edges: Integers) -> Chain:
    """Return the cheapest chain among the natural, the reverse Cuthill-McKee and the dense ordering."""
    dense = Chain(np.arange(size), np.array([0, size]))
    if len(edges) == 0 or size < 64:
        return dense
    ones = np.ones(len(edges))
    pattern = sparse.csr_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(size, size))
    narrow = reverse_cuthill_mckee((pattern + pattern.T).tocsr(), symmetric_mode=True)
    candidates: list[Integers] = [np.arange(size), np.asarray(narrow, dtype=np.int64)]
    chains = [dense] + [Chain(order, _cuts(order, edges)) for order in candidates]
    return min(chains, key=Chain.work)


def _cuts(order: Integers, edges: Integers) -> Integers:
    """Return block boundaries: every block reaches as far as the neighbours of the one before."""
    size = len(order)
    place = np.empty(size, dtype=np.int64)
    place[order] = np.arange(size)
    low = np.minimum(place[edges[:, 0]], place[edges[:, 1]])
    high = np.maximum(place[edges[:, 0]], place[edges[:, 1]])
    reach = np.arange(size)
    np.maximum.at(reach, low, high)
    reach = np.maximum.accumulate(reach)
    width = int((reach - np.arange(size)).max())
    cuts = [0, max(1, width)]
    while cuts[-1] < size:
        cuts.append(max(int(reach[cuts[-1] - 1]) + 1, min(size, cuts[-1] + width // 2)))
    cuts[-1] = size
    return np.array(cuts)


@dataclass
class ChainFactor:
    """Many matrices with one chain pattern: inverse Schur blocks S_t^-1, couplings Q_t = S_t^-1 H_t,t+1."""

    chain: Chain
    inverses: list[Floats]
    couplings: list[Floats]

    def solve(self, right: Floats) -> Floats:
        """Solve for one right-hand side (column) for each matrix: shapes (size, matrices)."""
        cuts = self.chain.cuts
        rows = np.ascontiguousarray(right[self.chain.order].T)[:, :, None]
        last = self.chain.blocks - 1
        forward = [rows[:, cuts[0] : cuts[1]]]
        for t in range(last):
            forward.append(
                rows[:, cuts[t + 1] : cuts[t + 2]] - np.matmul(self.couplings[t].transpose(0, 2, 1), forward[t])
            )
        result = np.empty_like(rows)
        part = np.matmul(self.inverses[last], forward[last])
        result[:, cuts[last] :] = part
        for t in range(last - 1, -1, -1):
            part = np.matmul(self.inverses[t], forward[t]) - np.matmul(self.couplings[t], part)
            result[:, cuts[t] : cuts[t + 1]] = part
        out = np.empty(right.shape)
        out[self.chain.order] = result[:, :, 0].T
        return out

    def add_inverses(self, total: Floats) -> None:
        """Add the upper triangle of every full inverse to `total` (in the chain's order).

        X_TT = S_T^-1;  X_t,s = -Q_t X_t+1,s for s > t;  X_tt = S_t^-1 - Q_t X_t,t+1^T.
        """
        cuts = self.chain.cuts
        last = self.chain.blocks - 1
        for k in range(len(self.inverses[0])):
            below = self.inverses[last][k]
            total[cuts[last] :, cuts[last] :] += below
            for t in range(last - 1, -1, -1):
                coupling = self.couplings[t][k]
                here = np.empty((coupling.shape[0], coupling.shape[0] + below.shape[1]))
                right = here[:, coupling.shape[0] :]
                np.matmul(-coupling, below, out=right)
                here[:, : coupling.shape[0]] = self.inverses[t][k] - coupling @ right[:, : coupling.shape[1]].T
                total[cuts[t] : cuts[t + 1], cuts[t] :] += here
                below = here

    def full_inverses(self) -> Iterator[Floats]:
        """Give every full inverse in turn, in the natural order."""
        size = len(self.chain.order)
        for k in range(len(self.inverses[0])):
            one = ChainFactor(
                self.chain,
                [part[k : k + 1] for part in self.inverses],
                [part[k : k + 1] for part in self.couplings],
            )
            upper = np.zeros((size, size))
            one.add_inverses(upper)
            upper = np.triu(upper)
            full = np.empty((size, size))
            full[np.ix_(self.chain.order, self.chain.order)] = upper + np.triu(upper, 1).T
            yield full


@dataclass(frozen=True)
class Pattern:
    """Where diagonal and edge entries of a matrix with this chain go."""

    chain: Chain
    places: list[tuple[Integers, Integers]]  # for every diagonal block: flat positions (both triangles), edges
    between: list[tuple[Integers, Integers]]  # for every coupling block: flat positions, edges

    @classmethod
    def of(cls, chain: Chain, edges: Integers) -> Pattern:
        """Sort the edges into the blocks of the chain."""
        size = len(chain.order)
        place = np.empty(size, dtype=np.int64)
        place[chain.order] = np.arange(size)
        low = np.minimum(place[edges[:, 0]], place[edges[:, 1]])
        high = np.maximum(place[edges[:, 0]], place[edges[:, 1]])
        block = np.searchsorted(chain.cuts, np.arange(size), side="right") - 1
        places, between = [], []
        for t in range(chain.blocks):
            start, stop = chain.cuts[t], chain.cuts[t + 1]
            width = stop - start
            inside = np.flatnonzero((block[low] == t) & (block[high] == t))
            i, j = low[inside] - start, high[inside] - start
            places.append((np.concatenate([i * width + j, j * width + i]), np.concatenate([inside, inside])))
            if t + 1 < chain.blocks:
                across = np.flatnonzero((block[low] == t) & (block[high] == t + 1))
                next_width = chain.cuts[t + 2] - stop
                between.append(((low[across] - start) * next_width + high[across] - stop, across))
        return cls(chain, places, between)

    def factor(self, diagonal: Floats, off: Floats) -> ChainFactor:
        """Factor many matrices: `diagonal` (size, matrices), `off` (edges, matrices)."""
        count = diagonal.shape[1]
        cuts = self.chain.cuts
        ordered = np.ascontiguousarray(diagonal[self.chain.order].T)
        entries = np.ascontiguousarray(off.T)
        inverses: list[Floats] = []
        couplings: list[Floats] = []
        right: Floats = np.empty((count, 0, 0))
        for t in range(self.chain.blocks):
            width = int(cuts[t + 1] - cuts[t])
            filled = np.zeros((count, width * width))
            flat, source = self.places[t]
            filled[:, flat] = entries[:, source]
            filled[:, :: width + 1] = ordered[:, cuts[t] : cuts[t + 1]]
            here = filled.reshape(count, width, width)
            if t > 0:
                here -= np.matmul(right.transpose(0, 2, 1), couplings[t - 1])
            _invert(here)
            inverses.append(here)
            if t + 1 < self.chain.blocks:
                next_width = int(cuts[t + 2] - cuts[t + 1])
                filled = np.zeros((count, width * next_width))
                flat, source = self.between[t]
                filled[:, flat] = entries[:, source]
                right = filled.reshape(count, width, next_width)
                couplings.append(np.matmul(here, right))
        return ChainFactor(self.chain, inverses, couplings)


def _invert(matrices: Floats) -> None:
    """Replace symmetric positive definite matrices by their inverses."""
    width = matrices.shape[1]
    upper = np.triu_indices(width, 1)
    for matrix in matrices:
        for lift in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
            work = np.array(matrix.T, order="F")
            if lift:
                work[np.diag_indices(width)] *= 1.0 + lift
            root, failed = lapack.dpotrf(work, lower=1, clean=0, overwrite_a=1)
            if not failed:
                inverse, failed = lapack.dpotri(root, lower=1, overwrite_c=1)
            if not failed:
                break
        else:
            raise SolverFailure("a matrix of the interior-point method is not positive definite any more.")
        full = inverse.T  # row-major view whose upper triangle is right
        matrix[...] = full
        matrix.T[upper] = full[upper]
