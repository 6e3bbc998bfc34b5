"""All pairs of sparse rows that are near enough to matter, in any metric, without n x n.

Beyond a distance R no pair can show more than `target` per distance: R target is the widest range of one report's
weights plus the range of the row sums. Within R every pair is compared, at the entries of either row that lie high
enough to matter at its distance (`windows`). Reports that neither row stores show |ln r_i - ln r_j|; where it is not
plain that there is such a report, the two rows are merged whole.

The target is a value that some pair provably reaches, so that nothing that is left out can be the worst; in large
spaces at least half the claim, and then epsilon is stated as no more than that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from metricdp.arrays import Floats, Integers
from metricdp.auditing.interval_proofs import ULP, Prover
from metricdp.auditing.report import AuditReport, Claim, obstacle_of
from metricdp.auditing.sparse import SparseDistribution, compiled, extremes, leaks_of
from metricdp.mechanisms import Witness
from metricdp.metrics import pairwise, roads_of, within
from metricdp.metrics.neighbours import search_rows
from metricdp.spaces import FiniteSpace

SMALL = 2_000  # secrets up to which epsilon is found to the last digits however small it is
BATCH = 2_000_000  # pairs compared at a time
SAMPLE = 32  # secrets whose neighbours are counted to know what lies ahead
MOST_STEPS = 1e12  # of about a nanosecond: a quarter of an hour on one core
PAIR_STEPS, SHARE = 30.0, 6.0  # what a pair takes besides its weights, and which share of a row lies high enough


@dataclass
class _PairSearch:
    """The pairs compared so far: what is proven to be reached, and which of them may reach more."""

    inputs: FiniteSpace
    windows: EntryWindows
    claim: Claim
    best: float = 0.0
    compared: int = 0
    near: list[tuple[Integers, Floats, Floats]] = field(default_factory=list)  # pairs, distances, ceilings

    def compare(self, rows: Integers, radius: float, target: float) -> Witness | None:
        """Compare some rows with all within a radius; return a witness where a pair leaks without bound."""
        distribution, slack = self.windows.distribution, self.claim.slack
        starts, codes, apart = self._neighbours(rows, radius)
        owner = np.repeat(rows, np.diff(starts))
        touching = np.flatnonzero((apart == 0) & (owner < codes))
        for i, j in zip(owner[touching].tolist(), codes[touching].tolist(), strict=True):
            witness = _unequal_witness(distribution, i, j, slack)
            if witness is not None:
                return witness
        lengths = np.diff(distribution.starts)
        # a report that neither stores, for certain
        plain = len(distribution.possible) > lengths[owner] + lengths[codes]
        whole = np.flatnonzero(~plain & (owner < codes) & (apart > 0))
        pairs = np.column_stack([owner[whole], codes[whole]])
        infinite = self._keep(pairs, apart[whole], *leaks_of(distribution, pairs, *extremes(distribution, pairs)))
        used = np.flatnonzero(plain & (apart > 0))
        starts = np.searchsorted(used, starts)
        pairs, apart = np.column_stack([owner[used], codes[used]]), apart[used]
        infinite = infinite or self._keep(pairs, apart, *self._quotients(rows, starts, pairs, apart * target + slack))
        self.compared += len(touching) + len(whole) + int(np.count_nonzero(pairs[:, 0] < pairs[:, 1]))
        return None if infinite is None else distribution.impossible(*infinite)

    def compare_one(self, radius: float) -> None:
        """Compare one pair within a radius, if there is one: where all are too far to matter it is what is shown."""
        everybody = np.arange(len(self.inputs))
        for rows in np.split(everybody, np.arange(1, len(everybody), 256)):
            starts, codes, apart = self._neighbours(rows, radius)
            if len(codes):
                pair = np.array([[np.repeat(rows, np.diff(starts))[0], codes[0]]])
                distribution = self.windows.distribution
                self._keep(pair, apart[:1], *leaks_of(distribution, pair, *extremes(distribution, pair)))
                self.compared += 1
                return

    def _neighbours(self, rows: Integers, radius: float) -> tuple[Integers, Integers, Floats]:
        metric, points = self.inputs.metric, self.inputs.points
        if np.isinf(radius):
            found = search_rows(metric, points[rows], points, np.finfo(np.float64).max)
        else:
            found = within(metric, points[rows], points, radius)
        own = np.repeat(rows, np.diff(found.starts))
        selected = np.flatnonzero(found.codes != own)
        starts = np.searchsorted(selected, found.starts)
        return starts, found.codes[selected].astype(np.int64), found.distances[selected]

    def _quotients(self, rows: Integers, starts: Integers, pairs: Integers, allowed: Floats) -> tuple[Floats, Floats]:
        """Return what pairs show and a bound of its error, where it may be more than is allowed."""
        logs, errors = self.windows.distribution.log_totals
        i, j = np.ascontiguousarray(pairs.T)
        shift, error = logs[j] - logs[i], errors[i] + errors[j]
        space = allowed - error - SURE
        # ln p_jk - ln p_ik = ln(w_jk / w_ik) - (ln r_j - ln r_i)
        upward, downward = self.windows.quotients(rows, starts, j, (space + shift, space - shift))
        with np.errstate(divide="ignore"):
            up, down = np.log(upward), np.log(downward)
        leaks = np.maximum(np.abs(shift), np.maximum(up - shift, down + shift))
        sizes = np.abs(logs[i]) + np.abs(logs[j]) + np.abs(shift) + np.where(np.isfinite(leaks), leaks, 0.0)
        return leaks, error + 8.0 * ULP * (2.0 * sizes + 1.0)

    def _keep(self, pairs: Integers, apart: Floats, leaks: Floats, errors: Floats) -> tuple[int, int] | None:
        """Note the pairs that may be the worst; return one that leaks without bound."""
        infinite = np.flatnonzero(np.isinf(leaks))
        if len(infinite):
            i, j = pairs[infinite[0]].tolist()
            return i, j
        slack = self.claim.slack
        with np.errstate(over="ignore"):  # at tiny distances: infinity is a bound like any other
            floors, ceilings = (leaks - slack - errors) / apart, (leaks - slack + errors) / apart
        self.best = max(self.best, float(floors.max(initial=0.0)))
        selected = np.flatnonzero(ceilings + 4 * ULP * np.abs(ceilings) >= self.best)
        self.near.append((pairs[selected], apart[selected], ceilings[selected]))
        return None

    def worst(self) -> tuple[Integers, Floats, Floats]:
        """Return the pairs that may be the worst, their distances, and bounds of what they show per distance."""
        pairs, apart, ceilings = (np.concatenate(part) for part in zip(*self.near, strict=True))
        selected = np.flatnonzero(ceilings + 4 * ULP * np.abs(ceilings) >= self.best)
        return pairs[selected], apart[selected], ceilings[selected]


def audit_pairs(inputs: FiniteSpace, distribution: SparseDistribution, claim: Claim) -> AuditReport:
    """Audit sparse rows over a background at all pairs, or at those up to the radius of the claim."""
    n, windows = len(inputs), EntryWindows(distribution)
    skipped = count_unreachable(inputs) if claim.radius is None else 0
    report = partial(claim.report, "proof", "exact at all pairs near enough to matter", vacuous=n == 1)
    if n == 1:
        return report(0.0, obstacle=obstacle_of(1, 0))
    witness = None if claim.radius is not None else _one_sided_witness(inputs, windows)
    search = _PairSearch(inputs, windows, claim)
    farthest = np.inf if claim.radius is None else claim.radius
    target = 0.0
    if witness is None:
        first = min(2.0 / claim.epsilon, farthest)
        some = np.linspace(0, n - 1, int(np.clip(BATCH / _mean_neighbours(inputs, first), 1, n))).astype(np.int64)
        witness = search.compare(np.unique(some), first, 0.0)
        target = search.best if n <= SMALL else max(search.best, claim.epsilon / 2.0)
    search.compared, search.near = 0, []
    if witness is None:
        radius = min(farthest, _reach(windows, claim.slack, target))
        usual = _mean_neighbours(inputs, radius)
        steps = n * usual * (PAIR_STEPS + len(distribution.columns) / n / SHARE)
        if steps > MOST_STEPS:
            return report(np.inf, obstacle=_too_much(n, usual, steps))
        batches = np.array_split(np.arange(n), int(np.clip(np.ceil(n * usual / BATCH), 1, n)))
        for number, rows in enumerate(batches):
            witness = search.compare(rows, radius, max(target, search.best))
            if witness is not None:
                break
            if claim.progress is not None:
                claim.progress((number + 1) / len(batches))
        if witness is None and not search.compared:
            search.compare_one(farthest)
    epsilon, refuted, compared = np.inf, True, max(1, search.compared)
    if witness is None:
        proven, refuted, witness = Prover(distribution, claim.slack).settle(*search.worst(), claim.epsilon)
        epsilon, compared = max(proven, target), search.compared  # what was left out shows at most the target
    return report(epsilon, refuted=refuted, witness=witness, pairs=compared, obstacle=obstacle_of(n, skipped))


def _reach(windows: EntryWindows, slack: float, target: float) -> float:
    """Return a distance beyond which no pair shows more than the target."""
    logs, errors = windows.distribution.log_totals
    most = windows.widest + float(logs.max() - logs.min()) + 2.0 * float(errors.max()) + SURE - slack
    if not target > 0:
        return np.inf
    with np.errstate(over="ignore"):
        return float(max(most, 0.0) / target * (1.0 + SURE) + np.finfo(np.float64).tiny)


def _mean_neighbours(inputs: FiniteSpace, radius: float) -> float:
    """Return about how many secrets lie within a radius of one."""
    n = len(inputs)
    if np.isinf(radius):
        return float(n)
    some = np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int64))
    return max(1.0, len(within(inputs.metric, inputs.points[some], inputs.points, radius).codes) / len(some))


def _too_much(secrets: int, usual: float, steps: float) -> str:
    return (
        f"About {usual:,.0f} of the {secrets:,} secrets are near enough to each one to matter, which would take about "
        f"{steps:.1g} steps of a nanosecond: audit a region of it."
    )


def _unequal_witness(distribution: SparseDistribution, i: int, j: int, slack: float) -> Witness | None:
    """Return a witness where two secrets at distance 0 have distributions that differ by more than the slack."""
    if distribution.alike(i, j):
        return None
    reports, one, two = distribution.two_rows(i, j)
    if not np.all((one > 0) & (two > 0)):
        return distribution.impossible(i, j)
    if slack > 0 and Prover(distribution, slack).differ_at_most(i, j, reports):
        return None
    return distribution.witness(*distribution.largest(i, j)[0])


def _one_sided_witness(inputs: FiniteSpace, windows: EntryWindows) -> Witness | None:
    """Find a report that one secret never gives and another does, at a finite distance, however far."""
    distribution, (least, most) = windows.distribution, windows.range
    everybody = np.arange(len(distribution))
    for report in np.flatnonzero((least == 0) & (most > 0)).tolist():
        weights = np.full(len(distribution), distribution.background[report])
        stored = np.flatnonzero(distribution.columns == report)
        weights[np.searchsorted(distribution.starts, stored, side="right") - 1] = distribution.values[stored]
        never = everybody[weights == 0]
        for secret in everybody[np.argsort(-weights, kind="stable")][: len(distribution) - len(never)].tolist():
            away = pairwise(inputs.metric, inputs.points[[secret]], inputs.points[never])[0]
            if np.isfinite(away).any():
                return distribution.witness(secret, int(never[np.isfinite(away)][0]), report)
    return None


def count_unreachable(inputs: FiniteSpace) -> int:
    """Return how many pairs of secrets are at an infinite distance; a finite one is an equivalence."""
    metric, roads = inputs.metric, roads_of(inputs.metric)
    if roads is not None:
        from scipy.sparse.csgraph import connected_components

        one_way = roads.one_way != "open"
        labels = connected_components(roads.graph, directed=one_way, connection="strong")[1]
        sizes = [int(size) for size in np.bincount(labels[inputs.points[:, 0].astype(np.int64)])]
    else:
        sizes, rest = [], inputs.points
        while len(rest):
            away = pairwise(metric, rest[:1], rest)[0]
            away[0] = 0.0
            sizes.append(int(np.isfinite(away).sum()))
            rest = rest[~np.isfinite(away)]
    return (sum(sizes) ** 2 - sum(size * size for size in sizes)) // 2


# Sparse rows against each other where only some of their entries can matter.
#
# A report shows at most ln w_jk - ln(least weight of report k anywhere): its height in row j. What a pair at distance
# d may show, epsilon d, leaves of row j only the entries that lie higher; so each row keeps its entries from the
# highest down, and a pair looks at the first of them. Entries below the background are stored a second time by their
# depth under the largest weight of their report, since the other row's background may be what is compared with them.

LEVELS = 64  # heights are distinguished to a 64th of the largest
BLOCKS = 64  # of rows that share a dense row of inverse weights, and are compared in parallel
SURE = 1e-9  # more than the rounding of any logarithm of a quotient of float32


@dataclass(frozen=True)
class RankedEntries:
    """Some stored entries of every row, from the highest level down: counts[i, l] of row i lie at level l or above."""

    starts: Integers
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    counts: NDArray[np.int32]
    step: float

    def stops(self, rows: Integers, limits: Floats) -> Integers:
        """Return how many entries of each row have to be looked at, so that none is left out above the limit."""
        levels = np.clip(np.floor(limits / self.step), 0, LEVELS + 1).astype(np.int64)
        return np.asarray(self.counts[rows, levels], dtype=np.int64)


@dataclass(frozen=True)
class EntryWindows:
    """The entries of a distribution by height and by depth."""

    distribution: SparseDistribution

    @cached_property
    def range(self) -> tuple[Floats, Floats]:
        """The least and the largest weight of every report over all rows."""
        distribution, reports = self.distribution, len(self.distribution.background)
        least, most, count = np.full(reports, np.inf), np.zeros(reports), np.zeros(reports, dtype=np.int64)
        loops = compiled()
        if loops is not None:
            loops.spans(distribution.columns, distribution.values, least, most, count)
        for first, last in distribution.chunks() if loops is None else ():
            part = slice(int(distribution.starts[first]), int(distribution.starts[last]))
            columns, values = distribution.columns[part], distribution.values[part].astype(np.float64)
            np.minimum.at(least, columns, values)
            np.maximum.at(most, columns, values)
            count += np.bincount(columns, minlength=reports)
        behind = np.where(count < len(distribution), distribution.background.astype(np.float64), np.nan)
        return np.fmin(least, behind), np.fmax(most, behind)

    @cached_property
    def widest(self) -> float:
        """The largest logarithm of a quotient of two weights of one report; infinite where one of them is 0."""
        least, most = self.range
        with np.errstate(divide="ignore"):
            return float(np.log(most[most > 0] / least[most > 0]).max(initial=0.0)) + SURE

    @cached_property
    def high(self) -> RankedEntries:
        """All entries above 0 by their height."""
        return self._rank(deep=False)

    @cached_property
    def deep(self) -> RankedEntries:
        """The entries below the background by their depth."""
        return self._rank(deep=True)

    def _rank(self, *, deep: bool) -> RankedEntries:
        distribution, (least, most) = self.distribution, self.range
        finite = np.log(most[least > 0] / least[least > 0])
        step = max(float(finite.max(initial=0.0)) / LEVELS, SURE)
        loops = compiled()
        if loops is not None:
            return self._rank_entries(loops, deep, step)
        parts: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = []
        counts = np.zeros((len(distribution), LEVELS + 2), dtype=np.int32)
        for first, last in distribution.chunks():
            part = slice(int(distribution.starts[first]), int(distribution.starts[last]))
            columns, values = distribution.columns[part], distribution.values[part]
            owner = np.repeat(np.arange(last - first), np.diff(distribution.starts[first : last + 1]))
            low = (values < distribution.background[columns]) & (most[columns] > 0)  # what nobody gives is not compared
            chosen = np.flatnonzero(low if deep else values > 0)
            columns, values, owner = columns[chosen], values[chosen], owner[chosen]
            with np.errstate(divide="ignore"):
                heights = np.log(most[columns] / values if deep else values / least[columns])
            levels = np.minimum(np.floor((heights + SURE) / step), LEVELS)
            levels[np.isinf(heights)] = LEVELS + 1  # a report that some row never gives: always looked at
            key = owner * (LEVELS + 2) + (LEVELS + 1 - levels.astype(np.int64))
            order = np.argsort(key, kind="stable")
            parts.append((columns[order], values[order]))
            found = np.bincount(key, minlength=(last - first) * (LEVELS + 2)).reshape(last - first, LEVELS + 2)
            counts[first:last] = np.cumsum(found, axis=1)[:, ::-1]
        starts = np.append(0, np.cumsum(counts[:, 0], dtype=np.int64))
        columns, values = np.concatenate([one for one, _ in parts]), np.concatenate([two for _, two in parts])
        return RankedEntries(starts, columns, values, counts, step)

    def _rank_entries(self, loops: ModuleType, deep: bool, step: float) -> RankedEntries:
        arrays = self.distribution.starts, self.distribution.columns, self.distribution.values
        bounds = (*self.range, self.distribution.background.astype(np.float64))
        levels = np.empty(len(self.distribution.columns), dtype=np.uint8)
        counts = np.zeros((len(self.distribution), LEVELS + 2), dtype=np.int32)
        loops.count_levels(arrays, bounds, deep, (step, SURE), levels, counts)
        starts = np.append(0, np.cumsum(counts[:, 0], dtype=np.int64))
        columns, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=np.float32)
        loops.place_levels(arrays, levels, counts, starts, columns, values)
        return RankedEntries(starts, columns, values, counts, step)

    def quotients(
        self, rows: Integers, starts: Integers, codes: Integers, limits: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Return max_k w_jk / w_ik and max_k w_ik / w_jk for rows i and their codes j, each within three roundings.

        The first looks at all entries of row j, the second at those below the background, both where the logarithm may
        lie above a limit; 0 where there is none.
        """
        high, deep = self.high, self.deep
        stops = high.stops(codes, limits[0]), deep.stops(codes, limits[1])
        upward, downward = np.zeros(len(codes)), np.zeros(len(codes))
        distribution, background = self.distribution, self.distribution.background.astype(np.float64)
        loops = compiled()
        if loops is not None:
            loops.windows(
                min(len(rows), BLOCKS), rows, starts, codes, (distribution.starts, distribution.columns,
                    distribution.values), background,
                (high.starts, high.columns, high.values, stops[0], upward),
                (deep.starts, deep.columns, deep.values, stops[1], downward),
            )  # fmt: skip
            return upward, downward
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1.0 / background
            for a, row in enumerate(rows.tolist()):
                columns, values = distribution.row(row)
                inverse[columns] = 1.0 / values
                part = slice(int(starts[a]), int(starts[a + 1]))
                for ranked, stop, result, turned in zip((high, deep), stops, (upward, downward), (0, 1), strict=True):
                    result[part] = _largest(ranked, codes[part], stop[part], inverse, turned=bool(turned))
                inverse[columns] = 1.0 / background[columns]
        return upward, downward


def _largest(ranked: RankedEntries, codes: Integers, stops: Integers, inverse: Floats, *, turned: bool) -> Floats:
    """Return the largest product of the first entries of each row with the inverse weights, or of the turned ones."""
    result = np.zeros(len(codes))
    used = np.flatnonzero(stops)
    if not len(used):
        return result
    lengths = stops[used]
    begins = np.cumsum(lengths) - lengths
    entries = np.repeat(ranked.starts[codes[used]] - begins, lengths) + np.arange(int(lengths.sum()))
    quotients = ranked.values[entries].astype(np.float64) * inverse[ranked.columns[entries]]
    if turned:
        quotients = 1.0 / quotients
        quotients[np.isinf(inverse[ranked.columns[entries]])] = 0.0  # the row never gives this report
    result[used] = np.maximum.reduceat(quotients, begins)
    return result
