"""How far from the truth a report lies, by the distribution alone: a radius that holds for every secret.

    q(x) = min { r : Pr[d(x, M(x)) <= r] >= level },        radius = sup over secrets x of q(x)

The probability is over the noise. Whatever the secret is, a ball of this radius around the report holds it with at
least that probability; nothing is measured on a table, and no prior is needed. It is not the probability that a secret
lies there once its report is known: that would take a prior. Distances are those of what tables hold (`Space.ground`:
great circles for the crossings of a road network), in which a disc on a map is drawn. All radii are rounded up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from metricdp.arrays import Floats, Integers, Points, row_slices
from metricdp.errors import InvalidInput
from metricdp.mechanisms import (
    MECHANISMS,
    FiniteMechanism,
    InterpolatedMechanism,
    KernelMechanism,
    LocalMechanism,
    MatrixMechanism,
    Mechanism,
    StreetMechanism,
)
from metricdp.mechanisms.kind import RadiusBound
from metricdp.metrics import Metric, pairwise, roads_of, sum_of

Cells = InterpolatedMechanism | StreetMechanism
ROUNDED_UP = 1.0 + 1e-9  # above all rounding of a distance
CELLS = 4_000_000  # probabilities looked at together
FINE = 4_000  # places at which an interpolated distribution is looked at


@dataclass(frozen=True)
class Radius:
    """A distance from the truth that a report keeps with a probability of at least `level`, whatever the secret is.

    `tight` says that no smaller radius holds for every secret, up to the lattice; otherwise it is an upper bound.
    """

    value: float
    metric: Metric
    level: float
    tight: bool

    @property
    def unit(self) -> str:
        return self.metric.unit


def accuracy_radius(mechanism: Mechanism, level: float = 0.95, *, snap: float = 0.0) -> float:
    """Return the radius around a report that holds the truth with a probability of at least `level`, for every secret.

    The probability is over the noise, so it holds whatever the secrets are and takes no prior. In the unit of what
    tables hold (kilometres on the Earth and for the crossings of a road network, as the crow flies). Values that were
    put on the nearest secret lie up to `snap` farther.
    """
    return radii_of(mechanism, (level,))[0].value + snap


def radii_of(mechanism: Mechanism, levels: Sequence[float]) -> list[Radius]:
    """Return such a radius for every level, with the metric it is measured in."""
    for level in levels:
        if not (isinstance(level, float) and 0.0 < level < 1.0):
            raise InvalidInput(f"`level` must lie between 0 and 1, such as 0.95, got {level!r}.")
    wanted = np.asarray(levels, dtype=np.float64)
    found: RadiusBound = MECHANISMS.facet("accuracy", mechanism)(mechanism, wanted)
    return [
        Radius(float(value) * ROUNDED_UP, found.metric, level, found.tight)
        for value, level in zip(found.values, levels, strict=True)
    ]


def _table_radii(mechanism: MatrixMechanism, levels: Floats) -> RadiusBound:
    ground = _measurement_places(mechanism)
    rows = np.arange(len(mechanism.inputs))
    worst = _largest(rows, lambda codes: (mechanism.matrix[codes], ground.between(codes)), levels)
    return RadiusBound(worst, ground.metric, True)


def _kernel_radii(mechanism: KernelMechanism, levels: Floats) -> RadiusBound:
    """Secrets that are reported themselves with such a probability need no row: their radius is 0."""
    ground, space, distribution = _measurement_places(mechanism), mechanism.space, mechanism.distribution
    own = np.zeros(len(space)) if distribution.log_weights is None else distribution.log_weights
    sure = np.exp(own - mechanism.log_normalisers) >= levels.max() * ROUNDED_UP + distribution.error
    measured = ground.metric is space.metric and ground.secrets is space.points

    def rows(codes: Integers) -> tuple[Floats, Floats]:
        if not measured:
            return mechanism.rows(codes), ground.between(codes)
        away = distribution.measured.rows(codes)  # one product for the distances and for the terms
        terms = distribution.exponentials(away)
        return terms if distribution.weights is None else terms * distribution.weights, away

    worst = _largest(np.flatnonzero(~sure), rows, levels)
    return RadiusBound(worst, ground.metric, True)


def _local_radii(mechanism: LocalMechanism, levels: Floats) -> RadiusBound:
    """Reports that are not stored count as farther than any, unless a level cannot be reached without them."""
    ground, worst, tight = _measurement_places(mechanism), np.zeros(len(levels)), True
    for row in range(len(mechanism.inputs)):
        stored = slice(int(mechanism.starts[row]), int(mechanism.starts[row + 1]))
        columns = mechanism.columns[stored].astype(np.int64)
        weights = mechanism.values[stored].astype(np.float64)
        total = float(mechanism.totals[row]) * (1.0 + 2.0**-35)
        if weights.sum() >= (levels.max() + 1e-9) * total:
            away = np.append(ground.pairs(row, columns), np.inf)
            weights = np.append(weights, max(0.0, total - float(weights.sum())))
            tight = False
        else:
            away, near = ground.between(np.array([row]))[0], weights
            weights = mechanism.background.astype(np.float64)
            weights[columns] = near
        worst = np.maximum(worst, _quantiles(weights[None], away[None], levels)[0])
    return RadiusBound(worst, ground.metric, tight)


def _box_radii(mechanism: InterpolatedMechanism, levels: Floats) -> RadiusBound:
    """Cells are cut finely: inside a piece the distribution is a mixture (or geometric mean) of those at corners."""
    metric, reports = mechanism.inputs.metric, np.asarray(mechanism.outputs.points, dtype=np.float64)
    cuts = max(1, int((FINE / np.prod([len(axis) - 1 for axis in mechanism.axes])) ** (1.0 / len(mechanism.axes))))
    axes = [_refine_axis(axis, cuts) for axis in mechanism.axes]
    lows = np.stack([grid.ravel() for grid in np.meshgrid(*(axis[:-1] for axis in axes), indexing="ij")], axis=1)
    highs = np.stack([grid.ravel() for grid in np.meshgrid(*(axis[1:] for axis in axes), indexing="ij")], axis=1)
    corners, worst = list(product((False, True), repeat=len(axes))), np.zeros(len(levels))
    mixed = mechanism.rule in ("exact", "direction")
    for part in row_slices(len(lows), len(corners) * len(reports), CELLS):
        places = [np.where(corner, highs[part], lows[part]) for corner in corners]
        away = np.max([pairwise(metric, some, reports) for some in places], axis=0)  # a norm is largest at a corner
        worst = np.maximum(worst, _piece_radii(mechanism, places, away, levels, mixed=mixed))
    return RadiusBound(worst, metric, False)


def _street_radii(mechanism: StreetMechanism, levels: Floats) -> RadiusBound:
    """Along a piece from a to b of length w a place lies at most (d(a, y) + d(b, y) + w) / 2 from a report y."""
    streets, outputs = mechanism.inputs, mechanism.outputs
    if roads_of(outputs.metric) is None:
        raise InvalidInput("the reports are no crossings of the network: how far along the streets is not known.")
    ends = streets.at_crossings(outputs.points[:, 0])
    lengths, counts = streets.network.lengths, mechanism.counts
    cuts = counts * max(1, int(FINE / int(counts.sum())))
    street = np.repeat(np.arange(len(cuts)), cuts)
    step = np.arange(len(street)) - np.repeat(np.cumsum(cuts) - cuts, cuts)
    width, worst = lengths / cuts, np.zeros(len(levels))
    for part in row_slices(len(street), 8 * len(outputs), CELLS):
        here, size = street[part], width[street[part]]
        places = [
            np.stack([here, np.minimum((step[part] + side) * size, lengths[here])], axis=1).astype(float)
            for side in (0, 1)
        ]
        away = np.sum([streets.metric(some[:, None], ends[None]) for some in places], axis=0)
        farthest = (away + size[:, None]) / 2.0
        worst = np.maximum(worst, _piece_radii(mechanism, places, farthest, levels, mixed=True))
    return RadiusBound(worst, streets.metric, False)


def _largest(codes: Integers, rows: Callable[[Integers], tuple[Floats, Floats]], levels: Floats) -> Floats:
    """Return the largest quantiles of some rows, of which `rows` gives weights and distances.

    A row that holds the share of a level within the largest distance so far changes nothing: only others are sorted,
    which in any order but a sorted one are some ln(n) of n. A share counts as held where it is by more than rounding.
    """
    order = np.random.default_rng(0).permutation(codes)  # follows no trend, and is the same every time
    worst, start, size = np.zeros(len(levels)), 0, 8
    while start < len(order):
        weights, away = rows(order[start : start + size])
        enough = (levels[:, None] + 4.0 * _rounding(weights)) * weights.sum(axis=1)
        held = [np.where(away <= radius, weights, 0.0).sum(axis=1) for radius in worst]
        more = np.flatnonzero((np.stack(held) < enough).any(axis=0))
        if more.size:
            worst = np.maximum(worst, _quantiles(weights[more], away[more], levels).max(axis=0))
        start += size
        size = min(2 * size, max(1, CELLS // weights.shape[1]))
    return worst


def _rounding(weights: Floats) -> float:
    """Return a bound of the relative error of a sum of a row's weights, twice."""
    return float(weights.shape[1] + 8) * 2.0**-52


def _quantiles(weights: Floats, away: Floats, levels: Floats) -> Floats:
    """Return rows x levels: the least distance within which such a share of a row's weight lies, rounding against us.

    `levels` are those of all rows, or a row of them for every row.
    """
    order = np.argsort(away, axis=1, kind="stable")
    sorted_weights, rows = np.take_along_axis(weights, order, axis=1), np.arange(len(weights))
    running = np.cumsum(sorted_weights, axis=1)
    # The last report with any weight is far enough for every level.
    last = weights.shape[1] - 1 - np.argmax(sorted_weights[:, ::-1] > 0, axis=1)
    wanted = np.broadcast_to(levels, (len(weights), levels.shape[-1]))
    found = np.empty(wanted.shape)
    for number in range(wanted.shape[1]):
        needed = (wanted[:, number] + _rounding(weights)) * running[:, -1]
        first = np.where(running[:, -1] >= needed, np.argmax(running >= needed[:, None], axis=1), last)
        found[:, number] = away[rows, order[rows, first]]
    return found


def _piece_radii(mechanism: Cells, corners: list[Floats], away: Floats, levels: Floats, *, mixed: bool) -> Floats:
    """Return radii for all places of pieces with these corners, and for reports that far away (pieces x reports).

    A mixture keeps at least the least share of its corners within any distance. A geometric mean has at most the
    largest share of its corners beyond (Hoelder), divided by its normaliser, which is at least sum_y min_c law_c(y).
    """
    distributions = [mechanism.probabilities(corner) for corner in corners]
    if not mixed:
        least = np.min(distributions, axis=0).sum(axis=1)
        levels = 1.0 - (1.0 - levels) * least[:, None]
    return np.asarray(np.max([_quantiles(one, away, levels).max(axis=0) for one in distributions], axis=0))


@dataclass(frozen=True)
class _MeasuredPlaces:
    """Secrets and reports of a finite mechanism as they are measured for a radius."""

    metric: Metric
    secrets: Points
    reports: Points

    def between(self, rows: Integers) -> Floats:
        return np.asarray(pairwise(self.metric, self.secrets[rows], self.reports))

    def pairs(self, row: int, columns: Integers) -> Floats:
        return (
            self.between(np.array([row]))[0, columns]
            if roads_of(self.metric) is not None
            else np.asarray(self.metric(self.secrets[row][None], self.reports[columns]))
        )


def _measurement_places(mechanism: FiniteMechanism) -> _MeasuredPlaces:
    """Return what lies on the ground: coordinates of tables, or points where those are words or of another shape.

    A secret with a history (a sum of metrics) counts by its current place, the first group of columns.
    """
    inputs, outputs = mechanism.inputs, mechanism.outputs
    pairs = [(inputs.metric, inputs.points, outputs.points)]
    if not (inputs.is_text or outputs.is_text):
        pairs.insert(0, (inputs.ground, inputs.coordinates, outputs.coordinates))
    for metric, secrets, reports in pairs:
        if secrets.shape[1:] == reports.shape[1:] and (secrets.dtype.kind == "U") == (reports.dtype.kind == "U"):
            return _MeasuredPlaces(metric, secrets, reports)
        for current, columns, _ in sum_of(metric)[:1]:
            if reports.shape[1:] == (len(columns),):
                return _MeasuredPlaces(current, secrets[:, list(columns)], reports)
    raise InvalidInput("secrets and reports cannot be measured by one metric: how far apart they lie is not known.")


def _refine_axis(axis: Floats, cuts: int) -> Floats:
    """Return an axis with every interval cut into equal parts, its own coordinates kept as they are."""
    steps = np.arange(cuts) / cuts
    return np.append((axis[:-1, None] + steps * np.diff(axis)[:, None]).ravel(), axis[-1])


MECHANISMS.register(MatrixMechanism, accuracy=_table_radii)
MECHANISMS.register(LocalMechanism, accuracy=_local_radii)
MECHANISMS.register(KernelMechanism, accuracy=_kernel_radii)
MECHANISMS.register(InterpolatedMechanism, accuracy=_box_radii)
MECHANISMS.register(StreetMechanism, accuracy=_street_radii)
