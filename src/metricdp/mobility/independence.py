"""Is X independent of Y given Z? A permutation test for discrete places, calibrated at any sample size.

Within every value of Z the values of Y are exchangeable under independence, so shuffling them there gives the exact
null law of any statistic. The statistic is the conditional G, 2 sum n_xyz ln(n_xyz n_z / (n_xz n_yz)), whose
chi-square limit is useless here (most cells hold zero or one sample) while its permutation law is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers
from metricdp.errors import InvalidInput


@dataclass(frozen=True)
class IndependenceTest:
    """The p-value, the statistic of the data and the number of samples in strata where anything could be seen."""

    p_value: float
    statistic: float
    informative: int


def conditional_independence(
    x: ArrayLike, y: ArrayLike, given: ArrayLike | None = None, *, permutations: int = 199, seed: int = 0
) -> IndependenceTest:
    """Test X independent of Y given Z for discrete X, Y, Z.

    `y` may have several columns: they are shuffled together and X is tested against each; the p-value is that of the
    smallest (min-p over the same shuffles), so it is a joint test of all of them. `given` may have several columns.
    p = (1 + shuffles at least as extreme) / (1 + shuffles): valid at every level, never zero.
    """
    left = _labels(x)
    columns = np.asarray(y)
    columns = columns[:, None] if columns.ndim == 1 else columns
    rights = [_labels(column) for column in columns.T]
    strata = np.zeros(len(left), dtype=np.int64) if given is None else _labels(given)
    if not len(left) == len(columns) == len(strata) or len(left) < 2 or permutations < 19:
        raise InvalidInput(
            "`x`, `y` and `given` must be of one length, at least 2, with 19 permutations or more, "
            f"got {len(left)}, {len(columns)}, {len(strata)} and {permutations}."
        )
    # A stratum in which X or every Y is constant says nothing: drop it.
    useful = _varies(left, strata) & np.any([_varies(right, strata) for right in rights], axis=0)
    informative = int(useful.sum())
    if informative < 2:
        return IndependenceTest(1.0, 0.0, informative)
    left, strata = _labels(left[useful]), _labels(strata[useful])
    rights = [_labels(right[useful]) for right in rights]
    order = np.argsort(strata, kind="stable")
    left, strata, rights = left[order], strata[order], [right[order] for right in rights]
    shuffles = _shuffles(strata, permutations, np.random.default_rng(seed))
    values = np.stack([_dependence(left, right, strata, shuffles) for right in rights])  # columns x (1 + shuffles)
    # Rank of each value among all, largest first; the data itself is the first of them. Ties count against rejection.
    ranks = np.stack([len(row) - np.searchsorted(np.sort(row), row - 1e-9, side="left") for row in values])
    least = ranks.min(axis=0)
    p_value = float((least <= least[0]).sum()) / least.size
    return IndependenceTest(p_value, float(values[:, 0].max()), informative)


def _labels(values: ArrayLike) -> Integers:
    array = np.asarray(values)
    axis = 0 if array.ndim > 1 else None
    return np.unique(array, axis=axis, return_inverse=True)[1].astype(np.int64).ravel()


def _varies(values: Integers, strata: Integers) -> Booleans:
    """Return for every sample whether `values` take more than one value in its stratum."""
    low = np.full(int(strata.max()) + 1, np.iinfo(np.int64).max)
    high = np.full(len(low), -1)
    np.minimum.at(low, strata, values)
    np.maximum.at(high, strata, values)
    return np.asarray(low[strata] < high[strata])


def _shuffles(strata: Integers, count: int, rng: np.random.Generator) -> Integers:
    """Return the identity and `count` permutations within (sorted) strata, one a row."""
    keys = rng.random((count, len(strata)))
    moved = np.argsort(strata + keys, axis=1, kind="stable")  # keys < 1 keep the strata apart
    return np.concatenate([np.arange(len(strata))[None], moved]).astype(np.int64)


def _dependence(x: Integers, y: Integers, strata: Integers, shuffles: Integers) -> Floats:
    """Return sum n_xyz ln n_xyz for every shuffle: the part of G that shuffling within strata can change, doubled."""
    pair = _labels(x + strata * (int(x.max()) + 1))
    wide = int(y.max()) + 1
    cells = (int(pair.max()) + 1) * wide
    codes = pair * wide + y[shuffles]
    if cells <= 4 * codes.shape[1]:
        flat = codes + np.arange(len(codes))[:, None] * cells
        counts = np.bincount(flat.ravel(), minlength=cells * len(codes)).reshape(len(codes), cells)
        terms = np.where(counts > 1, counts * np.log(np.maximum(counts, 1)), 0.0)
        return np.asarray(2.0 * terms.sum(axis=1))
    ordered = np.sort(codes, axis=1)
    # Lengths of runs of equal codes; the last position of a run carries n ln n.
    last = np.ones(ordered.shape, dtype=bool)
    last[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    row, at = np.nonzero(last)
    before = np.concatenate([[-1], at[:-1]])
    fresh = np.concatenate([[True], row[1:] != row[:-1]])
    length = at - np.where(fresh, -1, before)
    sums = np.bincount(row, weights=length * np.log(length), minlength=len(codes))
    return np.asarray(2.0 * sums, dtype=np.float64)
