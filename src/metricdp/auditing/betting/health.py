"""Findings about a sampler beside the bets: calls that repeat, reports that are missing, distributions that drift.

None of it convicts: a mechanism may be seeded, cached or slow to settle and still satisfy its guarantee for every
report.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol, runtime_checkable

import numpy as np

from metricdp.arrays import Integers, Points, Words
from metricdp.auditing.betting.rounds import Draw, as_reports, identities
from metricdp.auditing.report import Finding

STORED_ROWS = 256  # of one call, to be compared with others
STORED_ENDS = 512  # how many of the first and of the last reports of a secret are stored
COINCIDENCE_LOG = 25.0  # e^-25: what nobody sees by chance


@runtime_checkable
class Restartable(Protocol):
    """A sampler that can be started anew."""

    def fresh(self) -> Draw:
        """Return the sampler as a new start of it would be."""


class Calls:
    """What the calls for one secret gave: how many reports, whether calls repeat, how the first ones and the last look.

    `coincidence` is the logarithm of the probability that so many calls in a row repeat by accident.
    """

    def __init__(self) -> None:
        self.coincidence = 0.0
        self.asked = self.received = self.made = 0
        self._first: Words | None = None
        self._early: list[Points] = []
        self._late: deque[Points] = deque(maxlen=STORED_ENDS)

    def note(self, asked: int, rows: Points, *, singly: bool = False) -> None:
        """Note a call, or calls for a single report each: how many reports were asked for, and what came."""
        self.asked, self.received = self.asked + asked, self.received + len(rows)
        self.made += asked if singly else 1
        if asked > 1 and len(rows) and not singly:
            self._compare(identities(rows[:STORED_ROWS]))
        new = rows if singly else rows[:1]
        left = STORED_ENDS - len(self._early)
        self._early.extend(new[:left])
        self._late.extend(new[left:][-STORED_ENDS:])

    @property
    def is_repeated(self) -> bool:
        """Whether calls gave the same draws again, beyond chance."""
        return self.coincidence < -COINCIDENCE_LOG

    @property
    def needs_more_calls(self) -> bool:
        """Whether calls look alike, and one more may tell whether that is chance."""
        return -COINCIDENCE_LOG <= self.coincidence < 0.0

    def drift(self) -> float:
        """Return the p-value of the first reports having the distribution of the last ones."""
        if len(self._late) < STORED_ENDS:
            return 1.0
        rows = np.stack([*self._early, *self._late])
        half = (np.arange(len(rows)) >= len(self._early)).astype(np.int64)
        tests = [_homogeneous(codes, half) for codes in _cells(rows)]
        return min(1.0, min(tests) * len(tests))

    def _compare(self, names: Words) -> None:
        if self._first is not None and not self.is_repeated:
            probability = coincidence(names, self._first)
            self.coincidence = self.coincidence + probability if probability < 0.0 else 0.0
        if self._first is None or len(names) > len(self._first):
            self._first = names


def coincidence(one: Words, two: Words) -> float:
    """Return the log probability that two calls agree as they do by accident; 0 where they do not agree."""
    shorter, longer = (one, two) if len(one) <= len(two) else (two, one)
    if len(shorter) >= 4 and len(np.unique(longer)) > 0.95 * len(longer):  # values hardly come twice by themselves:
        hits = np.isin(shorter, longer)  # m that all differ say that two are equal with probability below 6 / m (m - 1)
        return float(hits.sum() * np.log(min(1.0, 6.0 / (len(longer) - 1)))) if hits.mean() > 0.5 else 0.0
    if not np.array_equal(longer[: len(shorter)], shorter):
        return 0.0
    _, inverse, counts = np.unique(np.concatenate([one, two]), return_inverse=True, return_counts=True)
    codes = inverse[: len(one)] if shorter is one else inverse[len(one) :]
    probability = float(np.log(counts[codes] / counts.sum()).sum())
    runs = 1 + int(np.count_nonzero(np.diff(codes)))
    if runs == len(np.unique(codes)):  # sorted, perhaps: such calls agree whenever every value comes as often
        from scipy.special import gammaln

        probability += float(gammaln(len(codes) + 1) - gammaln(np.unique(codes, return_counts=True)[1] + 1).sum())
    return min(probability, 0.0)


def _cells(rows: Points) -> list[Integers]:
    """Return ways to sort reports into a few cells."""
    if rows.dtype.kind == "U" or len(np.unique(rows, axis=0)) <= 16:
        names = identities(rows)
        values, counts = np.unique(names, return_counts=True)
        often = np.sort(values[np.argsort(-counts)[:7]])
        place = np.minimum(np.searchsorted(often, names), len(often) - 1)
        return [np.where(often[place] == names, place + 1, 0)]
    return [np.searchsorted(np.quantile(column, [0.25, 0.5, 0.75]), column) for column in rows.T[:4]]


def _homogeneous(cells: Integers, block: Integers) -> float:
    """Return the p-value of the chi-square test that cells are as frequent in every block."""
    from scipy.special import gammaincc

    table = np.zeros((int(block.max()) + 1, int(cells.max()) + 1))
    np.add.at(table, (block, cells), 1.0)
    table = table[:, table.sum(axis=0) >= 5]
    table = table[table.sum(axis=1) > 0]
    if min(table.shape) < 2:
        return 1.0
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return float(gammaincc((table.shape[0] - 1) * (table.shape[1] - 1) / 2.0, statistic / 2.0))


def seed_finding(draw: Draw, secret: Any) -> tuple[Finding, ...]:
    """Start a sampler twice, where it can be, and say so if both give the same draws."""
    if not isinstance(draw, Restartable):
        return ()
    width = np.asarray(secret).size
    starts = [identities(as_reports(draw.fresh()(secret, 64), width=width)) for _ in range(2)]
    if coincidence(*starts) > -COINCIDENCE_LOG:
        return ()
    return (Finding("seed", "Two fresh starts gave the same draws: who knows the seed can undo the noise."),)


def health_findings(calls: list[Calls]) -> tuple[Finding, ...]:
    """Say what was seen of the calls: reports that are missing or too many, repeated draws, drift."""
    found = []
    asked, received = sum(one.asked for one in calls), sum(one.received for one in calls)
    if asked != received:
        shares = [one.received / one.asked for one in calls if one.asked >= 100]
        uneven = len(shares) > 1 and max(shares) > 1.05 * min(shares)
        found.append(
            Finding(
                "rows",
                f"Asked for {asked:,} reports the sampler gave {received:,}. What came is audited as it came: a call "
                "without a report is no evidence here. Their number may tell something to those who count reports"
                + (", which depends on the secret." if uneven else "."),
            )
        )
    if any(one.is_repeated for one in calls):
        found.append(
            Finding(
                "memory",
                "Calls for one secret gave the same draws again: a fixed seed or a memory. Fresh noise does not "
                "protect a report that is repeated.",
            )
        )
    elif min((one.drift() for one in calls), default=1.0) * len(calls) < 1e-6:
        found.append(
            Finding("drift", "Later reports of a secret follow another distribution than earlier ones: a state drifts.")
        )
    return tuple(found)
