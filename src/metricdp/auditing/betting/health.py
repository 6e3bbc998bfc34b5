"""What makes a sampler unfit for bets in batches: calls that repeat, reports of a call that hang together, drift.

None of it convicts: a mechanism may be seeded, cached or slow to settle and still keep its promise for every report.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from metricdp.arrays import Integers, Points, Words
from metricdp.auditing.betting.received import Draw, as_reports
from metricdp.auditing.betting.rounds import identities
from metricdp.auditing.report import Finding

KEPT_CALLS, KEPT_ROWS = 64, 256
CHANCE = 25.0  # e^-25: what nobody sees by chance
DOUBT = 6.0  # e^-6: what is looked into before anyone is convicted
BLOCK = 40  # reports that are compared with others as one


@runtime_checkable
class Restartable(Protocol):
    """A sampler that can be started anew."""

    def fresh(self) -> Draw:
        """Return the sampler as a new start of it would be."""


class Calls:
    """What the calls for one secret gave: whether one repeats another, whether reports of one hang together."""

    def __init__(self) -> None:
        self.first: Words | None = None
        self.coincidence = 0.0  # the logarithm of the chance that so many calls in a row repeat by accident
        self.asked = self.received = self.made = 0
        self._kept: list[Points] = []
        self._every = 1

    def note(self, asked: int, received: Points, mixed: Points) -> None:
        """Note a call: how many were asked for, the rows as received, and the same in random order."""
        self.asked, self.received = self.asked + asked, self.received + len(received)
        if len(received) == 0:
            return
        names = identities(received[:KEPT_ROWS])
        if self.first is not None and not self.repeats:
            chance = coincidence(names, self.first)
            self.coincidence = self.coincidence + chance if chance < 0.0 else 0.0
        if self.first is None or len(names) > len(self.first):
            self.first = names
        if self.made % self._every == 0:
            self._kept.append(mixed[:KEPT_ROWS])
        if len(self._kept) > KEPT_CALLS:
            self._kept, self._every = self._kept[::2], 2 * self._every
        self.made += 1

    @property
    def repeats(self) -> bool:
        """Whether calls gave the same draws again, beyond chance."""
        return self.coincidence < -CHANCE

    def unlike(self) -> tuple[float, float]:
        """Return the p-values of all calls having one law, and of the early ones having that of the late ones."""
        rows = np.concatenate(self._kept) if self._kept else np.zeros((0, 1))
        sizes = np.array([len(part) for part in self._kept], dtype=np.int64)
        size = min(BLOCK, max(1, len(rows) // 4))
        block = np.unique((np.cumsum(sizes) - sizes) // size, return_inverse=True)[1].repeat(sizes)
        if len(rows) == 0 or block[-1] == 0:  # a call stays in one block
            return 1.0, 1.0
        half = (block > np.median(block)).astype(np.int64)
        tests = [(_homogeneous(codes, block), _homogeneous(codes, half)) for codes in _cells(rows)]
        lowest = np.min(tests, axis=0) * len(tests)
        return min(1.0, float(lowest[0])), min(1.0, float(lowest[1]))


def coincidence(one: Words, two: Words) -> float:
    """Return the logarithm of the chance of two calls agreeing as they do by accident; 0 where they do not agree."""
    shorter, longer = (one, two) if len(one) <= len(two) else (two, one)
    if len(shorter) >= 4 and len(np.unique(longer)) > 0.95 * len(longer):  # values hardly come twice by themselves:
        hits = np.isin(shorter, longer)  # m that all differ say that two are equal with probability below 6 / m (m - 1)
        return float(hits.sum() * np.log(min(1.0, 6.0 / (len(longer) - 1)))) if hits.mean() > 0.5 else 0.0
    if not np.array_equal(longer[: len(shorter)], shorter):
        return 0.0
    _, inverse, counts = np.unique(np.concatenate([one, two]), return_inverse=True, return_counts=True)
    codes = inverse[: len(one)] if shorter is one else inverse[len(one) :]
    chance = float(np.log(counts[codes] / counts.sum()).sum())
    runs = 1 + int(np.count_nonzero(np.diff(codes)))
    if runs == len(np.unique(codes)):  # sorted, perhaps: such calls agree whenever every value comes as often
        from scipy.special import gammaln

        chance += float(gammaln(len(codes) + 1) - gammaln(np.unique(codes, return_counts=True)[1] + 1).sum())
    return min(chance, 0.0)


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
    if coincidence(*starts) > -CHANCE:
        return ()
    return (Finding("seed", "Two fresh starts gave the same draws: whoever knows the seed can undo the noise."),)


def health_findings(calls: list[Calls]) -> tuple[Finding, ...]:
    """Say what was seen of the calls: rows that are missing or too many, repeated draws, drift, calls that differ."""
    found = []
    asked, received = sum(one.asked for one in calls), sum(one.received for one in calls)
    if asked != received:
        shares = [one.received / one.asked for one in calls if one.asked >= 100]
        uneven = len(shares) > 1 and max(shares) > 1.05 * min(shares)
        found.append(
            Finding(
                "rows",
                f"Asked for {asked:,} reports the sampler gave {received:,}. What came is judged as it came; whoever "
                "can count reports may learn from their number" + (", which depends on the secret." if uneven else "."),
            )
        )
    if any(one.repeats for one in calls):
        found.append(
            Finding(
                "memory",
                "Calls for one secret gave the same draws again: a fixed seed or a memory. Only one call a secret was "
                "judged, and repeated reports are not protected by fresh noise.",
            )
        )
    tests = [one.unlike() for one in calls]
    if min((late for _, late in tests), default=1.0) * len(tests) < 1e-6:
        found.append(
            Finding("drift", "Later reports of a secret follow another law than earlier ones: a state drifts.")
        )
    elif min((every for every, _ in tests), default=1.0) * len(tests) < 1e-6:
        found.append(Finding("calls", "Reports of one call hang together: they were not drawn independently."))
    return tuple(found)


def doubtful(calls: list[Calls]) -> bool:
    """Tell whether calls look so different that a conviction needs reports that were asked for one at a time."""
    unlike = min((min(one.unlike()) for one in calls), default=1.0) * len(calls) < 1e-3
    return unlike or any(one.coincidence < -DOUBT for one in calls)
