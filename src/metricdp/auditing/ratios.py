"""The largest and the smallest quotient of two sparse rows, report by report: compiled, or in numpy by chunks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing.sparse import CHUNK, SparseLaw


@cache
def compiled() -> ModuleType | None:
    """Return the compiled loops where numba is installed (the extra `fast`); they only save time."""
    if find_spec("numba") is None:
        return None
    from metricdp.auditing import compiled

    return compiled


def extremes(
    law: SparseLaw, pairs: Integers, *, progress: Callable[[float], None] | None = None
) -> tuple[Floats, Floats]:
    """Return max_k and min_k of w_ik / w_jk for every pair (i, j), each within a rounding; impossible reports apart.

    Infinity and 0 stand for a report that only one of the two gives. Reports that neither row stores count as the one
    quotient they have: 1.
    """
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    most, least = np.empty(len(pairs)), np.empty(len(pairs))
    work = np.cumsum(law.starts[pairs + 1].sum(axis=1) - law.starts[pairs].sum(axis=1))
    chunks = max(1, -(-int(work[-1] if len(work) else 0) // CHUNK))
    ends = np.searchsorted(work, np.arange(1, chunks) * CHUNK)
    loops = compiled()
    for some in np.split(np.arange(len(pairs)), ends):
        if not len(some):
            continue
        part = slice(int(some[0]), int(some[-1]) + 1)
        if loops is None:
            most[part], least[part] = _in_numpy(law, pairs[part])
        else:
            first, second = np.ascontiguousarray(pairs[part].T)
            arrays = (law.starts, law.columns, law.values, law.background, len(law.possible))
            loops.extremes(*arrays, first, second, most[part], least[part])
        if progress is not None:
            progress(part.stop / len(pairs))
    return most, least


def _in_numpy(law: SparseLaw, pairs: Integers) -> tuple[Floats, Floats]:
    """Lay both rows of every pair side by side: the report's number within the pair is the key they meet under."""
    owner_a, at_a = _entries(law, pairs[:, 0])
    owner_b, at_b = _entries(law, pairs[:, 1])
    reports = len(law.background)
    keys_a, keys_b = (owner * reports + law.columns[at] for owner, at in ((owner_a, at_a), (owner_b, at_b)))
    keys = np.union1d(keys_a, keys_b)
    owner, behind = keys // reports, law.background[keys % reports].astype(np.float64)
    one, two = behind.copy(), behind.copy()
    one[np.searchsorted(keys, keys_a)] = law.values[at_a]
    two[np.searchsorted(keys, keys_b)] = law.values[at_b]
    most, least = np.zeros(len(pairs)), np.full(len(pairs), np.inf)
    used = np.flatnonzero((one > 0) | (two > 0))
    with np.errstate(divide="ignore"):
        quotient = one[used] / two[used]
    groups, starts = np.unique(owner[used], return_index=True)
    if len(groups):
        most[groups] = np.maximum.reduceat(quotient, starts)
        least[groups] = np.minimum.reduceat(quotient, starts)
    seen = np.bincount(owner[behind > 0], minlength=len(pairs))
    neither = seen < len(law.possible)
    most[neither], least[neither] = np.maximum(most[neither], 1.0), np.minimum(least[neither], 1.0)
    return most, least


def _entries(law: SparseLaw, rows: Integers) -> tuple[Integers, Integers]:
    """Return for every stored weight of some rows the position of its row in `rows`, and its place."""
    lengths = law.starts[rows + 1] - law.starts[rows]
    owner = np.repeat(np.arange(len(rows)), lengths)
    first = np.repeat(law.starts[rows] - (np.cumsum(lengths) - lengths), lengths)
    return owner, first + np.arange(len(owner))
