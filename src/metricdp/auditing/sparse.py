"""Sparse rows over one background, as a distribution for the exact audit: single weights, exact sums, two rows."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from importlib.util import find_spec
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers, set_fields
from metricdp.auditing.interval_proofs import ULP, exact_sum
from metricdp.mechanisms import Witness

CHUNK = 1 << 22  # stored weights that are turned into doubles at a time
CERTAIN = 2.0**-40  # relative: a sum in doubles that is less certain than this is taken exactly


@dataclass(frozen=True)
class SparseDistribution:
    """Row i gives report k the weight it stores, else background[k]; the distribution is weight / sum of the row.

    All weights are float32: exact as doubles, and the quotient of two neither overflows nor underflows there.
    """

    starts: Integers
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    background: NDArray[np.float32]
    _sums: dict[int, Fraction] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:  # the types that a mechanism stores, so that what is audited is what is sampled
        kinds = {"starts": np.int64, "columns": np.int32, "values": np.float32, "background": np.float32}
        for name, kind in kinds.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=kind).view()
            array.flags.writeable = False  # as in a mechanism: loops are compiled for one type of arrays
            set_fields(self, **{name: array})

    def __len__(self) -> int:
        return len(self.starts) - 1

    def row(self, secret: int) -> tuple[NDArray[np.int32], Floats]:
        """Return the stored reports of a secret, increasing, and their weights."""
        part = slice(int(self.starts[secret]), int(self.starts[secret + 1]))
        return self.columns[part], self.values[part].astype(np.float64)

    def at(self, secret: int, reports: Integers) -> Floats:
        """Return the weights of some reports."""
        columns, values = self.row(secret)
        weights = self.background[reports].astype(np.float64)
        place = np.searchsorted(columns, reports)
        stored = np.flatnonzero(place < len(columns))
        stored = stored[columns[place[stored]] == reports[stored]]
        weights[stored] = values[place[stored]]
        return weights

    def weight(self, secret: int, report: int) -> float:
        return float(self.at(secret, np.array([report]))[0])

    def total(self, secret: int) -> tuple[int, int]:
        """Return the exact sum of a row: what it stores, and the background without what it hides."""
        total = self.exact_total(secret)
        return total.numerator, 1 - total.denominator.bit_length()  # the denominator is a power of two

    def exact_total(self, secret: int) -> Fraction:
        if secret not in self._sums:
            columns, values = self.row(secret)
            self._sums[secret] = self._whole + _fraction(values) - _fraction(self.background[columns])
        return self._sums[secret]

    @cached_property
    def _whole(self) -> Fraction:
        return _fraction(self.background)

    def witness(self, secret: int, other: int, report: int) -> Witness:
        """Return how much likelier a report is from one secret than from another."""
        first, second = self.weight(secret, report), self.weight(other, report)
        if second == 0:
            return Witness(secret, other, report, np.inf)
        ratio = first / second * float(self.exact_total(other) / self.exact_total(secret))
        return Witness(secret, other, report, min(ratio, sys.float_info.max))

    @cached_property
    def possible(self) -> Integers:
        """The reports that the background can give."""
        return np.flatnonzero(self.background > 0)

    @cached_property
    def log_totals(self) -> tuple[Floats, Floats]:
        """The logarithms of the sums of all rows, and a bound on the error of each."""
        totals, errors = np.empty(len(self)), np.empty(len(self))
        whole = float(self._whole)
        for first, last in self.chunks():
            stored = slice(int(self.starts[first]), int(self.starts[last]))
            starts = self.starts[first : last + 1] - self.starts[first]
            near = _sums(self.values[stored], starts)
            hidden = _sums(self.background[self.columns[stored]], starts)
            totals[first:last] = near + (whole - hidden)
            # A sum of c terms is within c units of its size, in any order; two more operations, and `whole` itself.
            errors[first:last] = (np.diff(starts) + 8.0) * ULP * (near + hidden + whole)
        rough = np.flatnonzero(~(errors < CERTAIN * totals))
        totals[rough] = [float(self.exact_total(int(i))) for i in rough]
        errors[rough] = ULP * totals[rough]
        logs = np.log(totals)
        return logs, 1.1 * errors / totals + 8.0 * ULP * (np.abs(logs) + 1.0)

    def chunks(self) -> list[tuple[int, int]]:
        """Return ranges of rows that store about `CHUNK` weights together."""
        marks = np.searchsorted(self.starts, np.arange(0, int(self.starts[-1]) + CHUNK, CHUNK), side="right") - 1
        ends = np.unique(np.append(marks, [0, len(self)])).tolist()
        return list(itertools.pairwise(ends))

    def two_rows(self, i: int, j: int) -> tuple[Integers, Floats, Floats]:
        """Return the reports that may tell two secrets apart, with their weights: the impossible ones left out.

        All reports that one of the two stores, and one that neither does: all of those have one ratio.
        """
        reports = np.union1d(self.row(i)[0], self.row(j)[0]).astype(np.int64)
        neither = np.setdiff1d(self.possible[: len(reports) + 1], reports)[:1]
        reports = np.append(reports, neither)
        one, two = self.at(i, reports), self.at(j, reports)
        used = (one > 0) | (two > 0)
        return reports[used], one[used], two[used]

    def impossible(self, i: int, j: int) -> Witness:
        """Return the witness of a report that only one of two secrets gives: the likeliest such."""
        reports, one, two = self.two_rows(i, j)
        shares = one / float(self.exact_total(i)) + two / float(self.exact_total(j))
        at = int(np.argmax(np.where((one == 0) | (two == 0), shares, 0.0)))
        return self.witness(*((i, j) if two[at] == 0 else (j, i)), int(reports[at]))

    def alike(self, i: int, j: int) -> bool:
        """Return whether two rows are one distribution, in whole numbers: proportional weights are."""
        _, one, two = self.two_rows(i, j)
        mine, theirs = self.exact_total(i), self.exact_total(j)
        pairs = zip(one.tolist(), two.tolist(), strict=True)
        return all(Fraction(first) * theirs == Fraction(second) * mine for first, second in pairs)

    def largest(self, i: int, j: int) -> list[tuple[int, int, int]]:
        """Return (secret, other, report) wherever two rows may differ most: the likelier secret first."""
        logs, errors = self.log_totals
        reports, one, two = self.two_rows(i, j)
        difference = (np.log(one) - np.log(two)) - (logs[i] - logs[j])
        size = np.abs(difference)
        sizes = np.abs(np.log(one)) + np.abs(np.log(two)) + abs(logs[i]) + abs(logs[j]) + 1.0
        error = 2.0 * (errors[i] + errors[j] + 8.0 * ULP * float(sizes.max()))
        chosen = np.flatnonzero(size >= size.max() - error)
        return [(i, j, int(reports[c])) if difference[c] >= 0 else (j, i, int(reports[c])) for c in chosen]


def _fraction(values: NDArray[np.floating]) -> Fraction:
    if not len(values):
        return Fraction(0)
    total, power = exact_sum(values.astype(np.float64))
    return Fraction(total << max(power, 0), 1 << max(-power, 0))


def _sums(values: NDArray[np.float32], starts: Integers) -> Floats:
    """Return the sum of every row in doubles; an empty one is 0."""
    if not len(values):
        return np.zeros(len(starts) - 1)
    sums = np.add.reduceat(np.append(values.astype(np.float64), 0.0), starts[:-1])
    return np.where(np.diff(starts) == 0, 0.0, sums)


# The largest and the smallest quotient of two sparse rows, report by report: compiled, or in numpy by chunks.


@cache
def compiled() -> ModuleType | None:
    """Return the compiled loops where numba is installed (the extra `fast`); they only save time."""
    if find_spec("numba") is None:
        return None
    from metricdp.auditing import compiled

    return compiled


def extremes(
    distribution: SparseDistribution, pairs: Integers, *, progress: Callable[[float], None] | None = None
) -> tuple[Floats, Floats]:
    """Return max_k and min_k of w_ik / w_jk for every pair (i, j), each within a rounding; impossible reports apart.

    Infinity and 0 stand for a report that only one of the two gives. Reports that neither row stores count as the one
    quotient they have: 1.
    """
    pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    most, least = np.empty(len(pairs)), np.empty(len(pairs))
    work = np.cumsum(distribution.starts[pairs + 1].sum(axis=1) - distribution.starts[pairs].sum(axis=1))
    chunks = max(1, -(-int(work[-1] if len(work) else 0) // CHUNK))
    ends = np.searchsorted(work, np.arange(1, chunks) * CHUNK)
    loops = compiled()
    for some in np.split(np.arange(len(pairs)), ends):
        if not len(some):
            continue
        part = slice(int(some[0]), int(some[-1]) + 1)
        if loops is None:
            most[part], least[part] = _numpy_extremes(distribution, pairs[part])
        else:
            first, second = np.ascontiguousarray(pairs[part].T)
            arrays = (
                distribution.starts,
                distribution.columns,
                distribution.values,
                distribution.background,
                len(distribution.possible),
            )
            loops.extremes(*arrays, first, second, most[part], least[part])
        if progress is not None:
            progress(part.stop / len(pairs))
    return most, least


def _numpy_extremes(distribution: SparseDistribution, pairs: Integers) -> tuple[Floats, Floats]:
    """Write one row at a time over the background and look the other up in it: no sorting, no search."""
    most, least = np.zeros(len(pairs)), np.full(len(pairs), np.inf)
    background = distribution.background.astype(np.float64)
    one, two = background.copy(), background.copy()
    held, columns, values = -1, distribution.columns[:0], background[:0]
    with np.errstate(divide="ignore", invalid="ignore"):
        for at in np.argsort(pairs[:, 0], kind="stable").tolist():
            i, j = pairs[at].tolist()
            if i != held:
                one[columns] = background[columns]
                held, (columns, values) = i, distribution.row(i)
                one[columns] = values
            others, weights = distribution.row(j)
            two[others] = weights
            quotients = np.append(values / two[columns], one[others] / weights)  # 0 / 0 is not compared
            two[others] = background[others]
            if _neither(distribution, columns, others):
                most[at] = least[at] = 1.0
            most[at] = np.fmax.reduce(quotients, initial=most[at])
            least[at] = np.fmin.reduce(quotients, initial=least[at])
    return most, least


def _neither(distribution: SparseDistribution, columns: NDArray[np.int32], others: NDArray[np.int32]) -> bool:
    """Return whether the background gives a report that neither of two rows stores."""
    if len(distribution.possible) > len(columns) + len(others):
        return True
    return len(distribution.possible) > int(np.count_nonzero(distribution.background[np.union1d(columns, others)]))


def leaks_of(distribution: SparseDistribution, pairs: Integers, most: Floats, least: Floats) -> tuple[Floats, Floats]:
    """Return max_k |ln p_ik - ln p_jk| for pairs from the extreme quotients of their weights, and a bound of its error.

    ln p_ik - ln p_jk = ln(w_ik / w_jk) - (ln r_i - ln r_j).
    """
    logs, errors = distribution.log_totals
    i, j = pairs.T
    with np.errstate(divide="ignore"):
        high, low = np.log(most), np.log(least)
    shift = logs[i] - logs[j]
    sizes = np.abs(logs[i]) + np.abs(logs[j]) + np.where(np.isfinite(high - low), np.abs(high) + np.abs(low), 0.0)
    # A quotient errs by half an ulp and a logarithm by 4; the two differences by 1 ulp of the values involved.
    error = errors[i] + errors[j] + 8.0 * ULP * (sizes + 1.0)
    return np.maximum(high - shift, shift - low), error
