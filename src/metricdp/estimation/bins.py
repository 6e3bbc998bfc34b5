"""Reports anywhere, counted in bins of a public lattice; the distribution of a bin is an integral of the density.

    A[i, k] = mean over x in cell i of the integral over bin k of f(y | x)

Bins follow the lattice that reports lie on, so that each is a union of its cells and nothing is rounded; what lies
beyond them all is one more bin. Integrals are by Gauss and Legendre, finer where the density has its kink.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Protocol, cast

import numpy as np

from metricdp.arrays import Floats, Integers, frozen, row_slices
from metricdp.auditing import accuracy_radius
from metricdp.errors import InvalidInput
from metricdp.mechanisms import MECHANISMS, Mechanism
from metricdp.mechanisms.kind import BinDensity
from metricdp.mechanisms.lattice import Lattice
from metricdp.metrics import EUCLID, earth_of, norm_of
from metricdp.spaces import FiniteSpace, Space

INSIDE = 3  # points along each axis of a cell in which secrets may lie
MOST_BINS = 4_096
NEAR = 14.0  # units of noise around a place beyond which hardly a report lies
CHUNK = 1 << 21  # densities that are held at once
FAR = 0.999  # the share of noise that stays within the margin around the cells


class LatticeNoise(Mechanism, Protocol):
    """A mechanism whose kind says how high its density is, with reports on a lattice."""

    @property
    def lattice(self) -> Lattice: ...


@dataclass(frozen=True, eq=False)
class ReportBins:
    """Rectangles between edges along each axis, the last axis running fastest, and one bin for all that is beyond."""

    edges: tuple[Floats, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) - 1 for axis in self.edges)

    @property
    def size(self) -> int:
        return math.prod(self.shape) + 1

    def codes(self, reports: Floats) -> Integers:
        """Return the bin of every report."""
        if reports.ndim != 2 or reports.shape[1] != len(self.edges) or not np.isfinite(reports).all():
            raise InvalidInput(
                f"`reports` must be rows of {len(self.edges)} finite numbers, got shape {reports.shape}."
            )
        at = [np.searchsorted(axis, reports[:, i], side="right") - 1 for i, axis in enumerate(self.edges)]
        inside = np.all([(a >= 0) & (a < side) for a, side in zip(at, self.shape, strict=True)], axis=0)
        return np.where(inside, np.ravel_multi_index(at, self.shape, mode="clip"), self.size - 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class CoarseBins:
    """Wide bins, each a block of fine ones."""

    fine: ReportBins
    wide: ReportBins
    blocks: tuple[int, ...]

    def counts(self, counts: Floats) -> Floats:
        """Return counts of wide bins from those of fine ones; the last counts what is beyond all."""
        table = counts[:-1].reshape(self.fine.shape)
        for axis, block in enumerate(self.blocks):
            table = np.add.reduceat(table, np.arange(0, table.shape[axis], block), axis=axis)
        return np.append(table.ravel(), counts[-1])


def coarsen(fine: ReportBins, units: Floats, most: int) -> CoarseBins:
    """Return wide bins about a unit of noise wide, `most` of them at most."""
    wanted = 1.0
    while True:
        blocks = [max(1, round(wanted / unit)) for unit in units.tolist()]
        counts = [math.ceil(side / block) for side, block in zip(fine.shape, blocks, strict=True)]
        if math.prod(counts) <= most:
            break
        wanted *= 1.2
    edges = [np.unique(np.append(axis[::block], axis[-1])) for axis, block in zip(fine.edges, blocks, strict=True)]
    return CoarseBins(fine, ReportBins(tuple(edges)), tuple(blocks))


def build_bins(mechanism: Mechanism, cells: FiniteSpace, *, within: str) -> tuple[ReportBins, Floats]:
    """Return bins for the reports of noise around cells, and the probabilities of the bins given a cell."""
    noise = decodable_noise(mechanism, cells)
    bins = _bins_for(noise, cells)
    table = np.zeros((len(cells), bins.size))
    for places, share in points_within(cells, noise.inputs, within=within):
        table[:, :-1] += share * _masses(noise, places, bins)
    return bins, _add_beyond(table)


def place_probabilities(mechanism: LatticeNoise, bins: ReportBins, places: Floats) -> Floats:
    """Return the probabilities of bins given places."""
    return _add_beyond(np.stack([_masses_near(mechanism, place, bins) for place in places]))


def decodable_noise(mechanism: Mechanism, cells: FiniteSpace) -> LatticeNoise:
    """Return the mechanism if it is noise that is decoded on such cells."""
    if mechanism.inputs.dimension > 2 or not MECHANISMS.has("bins", mechanism):
        raise MECHANISMS.refusal("bins", mechanism)
    if cells.coordinates.shape[1] != mechanism.inputs.dimension:
        raise InvalidInput(
            f"`cells` must have {mechanism.inputs.dimension} coordinates like the secrets, got {cells.width}."
        )
    noise: Any = mechanism
    return cast(LatticeNoise, noise)


def heights_of(mechanism: Mechanism) -> BinDensity:
    """Return how high the density of noise is, how wide it is, and where it ends."""
    found: BinDensity = MECHANISMS.facet("bins", mechanism)(mechanism)
    return found


def _add_beyond(table: Floats) -> Floats:
    """Return the probabilities of bins with the rest of each row in the last one, which lies beyond all others."""
    table[:, -1] = np.maximum(1.0 - table.sum(axis=1), 0.0)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def rates_of(mechanism: Mechanism, places: Floats) -> Floats:
    """Return how many units of noise one unit of every coordinate is worth: distances that noise hides."""
    metric = mechanism.inputs.metric
    noisy = MECHANISMS.has("bins", mechanism)  # elsewhere distributions are interpolated, and change at their epsilon
    level = heights_of(mechanism).rate if noisy else float(mechanism.guarantee.epsilon)
    earth, norm = earth_of(metric), norm_of(metric) or EUCLID
    if earth is not None:
        across = math.cos(math.radians(float(np.abs(places[:, 0]).min())))
        return level * earth.degree * np.array([1.0, max(across, 0.01)])
    return np.full(places.shape[1], level * norm.stretch())


def units_of(mechanism: LatticeNoise, edges: tuple[Floats, ...]) -> Floats:
    """Return how wide bins between edges are along each axis, in units of noise."""
    places = np.stack([np.array([axis[0], axis[-1]]) for axis in edges], axis=1)
    steps = np.array([float(np.diff(axis).mean()) for axis in edges])
    return np.asarray(rates_of(mechanism, places) * steps)


@cache
def gauss(count: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss and Legendre from -1 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return frozen(nodes), frozen(weights)


def points_within(cells: FiniteSpace, inputs: Space, *, within: str) -> Iterator[tuple[Floats, float]]:
    """Yield one place in every cell with the share of the cell it stands for: its point, or nodes all over it."""
    places = np.asarray(cells.coordinates, dtype=np.float64)
    steps = spacing_of(places) if within == "cell" else None
    if steps is None:
        yield places, 1.0
        return
    nodes, weights = gauss(INSIDE)
    for at in product(range(INSIDE), repeat=len(steps)):
        moved = places + 0.5 * nodes[list(at)] * steps
        if not inputs.legal(moved).all():  # cells at the border of a box: what lies outside is no secret
            limits = inputs.limits
            moved = places if limits is None else np.clip(moved, *limits)
        yield moved, float(np.prod(0.5 * weights[list(at)]))


def spacing_of(places: Floats) -> Floats | None:
    """Return the steps of a regular grid along each axis, or None where the points are none."""
    steps = []
    for axis in places.T:
        values = np.unique(np.round(axis, 9))
        gaps = np.diff(values)
        if len(gaps) == 0 or np.ptp(gaps) > 1e-6 * gaps.mean() + 1e-8:
            return None
        steps.append(float(gaps.mean()))
    return np.array(steps)


def boxes_of(cells: FiniteSpace) -> Floats:
    """Return low and high ends of the cells of a regular grid along two axes (cells x 2 x 2); a line has one row."""
    places = np.asarray(cells.coordinates, dtype=np.float64)
    steps = spacing_of(places)
    assert steps is not None
    found = np.stack([places - 0.5 * steps, places + 0.5 * steps], axis=1)
    if places.shape[1] == 1:
        ends = np.broadcast_to(np.array([[[-0.5], [0.5]]]), found.shape)
        found = np.concatenate([ends, found], axis=2)
    return np.asarray(found)


def fine_bins(mechanism: LatticeNoise, cells: FiniteSpace, around: float, apart: float, most: int) -> ReportBins:
    """Return bins of one width along each axis, `apart` units of noise or more, and `around` units past the cells."""
    places, pitch = np.asarray(cells.coordinates, dtype=np.float64), mechanism.lattice.pitch
    steps = spacing_of(places)
    assert steps is not None
    rates = rates_of(mechanism, places)
    low, high = (edge(places, axis=0) for edge in (np.min, np.max))
    start, stop = low - 0.5 * steps - around / rates, high + 0.5 * steps + around / rates
    width = np.maximum(np.floor(apart / rates / pitch), 1.0)  # that many points of the lattice
    while float(np.prod(np.ceil((stop - start) / (width * pitch)))) > most:
        width = np.ceil(1.25 * width)
    edges = []
    for begin, end, step in zip(start, stop, width, strict=True):
        first, count = math.floor(begin / pitch), math.ceil((end - begin) / (step * pitch)) + 1
        edges.append((first + step * np.arange(count + 1) - 0.5) * pitch)
    return _clip_edges(mechanism, edges)


def _clip_edges(mechanism: LatticeNoise, edges: list[Floats]) -> ReportBins:
    """Return bins between edges: no report lies beyond a pole, nor across the border of longitudes."""
    ends = heights_of(mechanism).ends
    if ends:
        edges = [axis[np.abs(axis) <= most] for axis, most in zip(edges, ends, strict=True)]
    return ReportBins(tuple(edges))


def _bins_for(mechanism: LatticeNoise, cells: FiniteSpace) -> ReportBins:
    places = np.asarray(cells.coordinates, dtype=np.float64)
    low, high = places.min(axis=0), places.max(axis=0)
    radius, pitch = accuracy_radius(mechanism, FAR), mechanism.lattice.pitch
    margin = np.full(len(low), radius)
    earth = earth_of(mechanism.inputs.metric)
    if earth is not None:
        across = math.cos(math.radians(float(np.abs(places[:, 0]).max())))
        margin = radius / earth.degree / np.array([1.0, max(across, 0.01)])
    regular = spacing_of(places)
    side = math.sqrt(len(cells)) if len(low) > 1 else len(cells)
    width = (high - low) / max(side - 1.0, 1.0) if regular is None else regular
    width = np.maximum(width, 2.0 * pitch)
    start, stop = low - 0.5 * width - margin, high + 0.5 * width + margin
    while np.prod(np.ceil((stop - start) / width)) > MOST_BINS:
        width = width * 1.25
    # Edges half way between points of the lattice: a bin is a union of lattice cells.
    edges = []
    for begin, end, step in zip(start, stop, width, strict=True):
        raw = np.arange(math.ceil((end - begin) / step) + 1) * step + begin
        edges.append(np.unique((np.floor(raw / pitch) + 0.5) * pitch))
    return _clip_edges(mechanism, edges)


def _masses(mechanism: LatticeNoise, places: Floats, bins: ReportBins) -> Floats:
    """Return the mass of every bin around every place, by quadrature."""
    rate = float(rates_of(mechanism, places).max())
    count = int(np.clip(math.ceil(2.0 + rate * max(float(np.diff(axis).max()) for axis in bins.edges)), 3, 24))
    axes = [_nodes(axis, count) for axis in bins.edges]
    points = _grid([nodes for nodes, _ in axes])
    shares = _outer([weights for _, weights in axes])
    result = np.empty((len(places), bins.size - 1))
    for part in row_slices(len(places), len(points), CHUNK):
        result[part] = _sum_nodes(density(mechanism, places[part], points) * shares, bins.shape, count)
    if heights_of(mechanism).smooth:
        return result
    own = bins.codes(places)
    for row in np.flatnonzero(own < bins.size - 1).tolist():  # the density has its kink in the bin of the place itself
        result[row, own[row]] = _own_mass(mechanism, places[row], bins, int(own[row]))
    return result


def _masses_near(mechanism: LatticeNoise, place: Floats, bins: ReportBins) -> Floats:
    """Return the masses of the bins around one place that matter, none for the others and for what is beyond all."""
    reach = NEAR / rates_of(mechanism, place[None])
    spans = []
    for value, axis, far in zip(place, bins.edges, reach, strict=True):
        first, last = np.searchsorted(axis, [value - far, value + far]).tolist()
        spans.append((max(first - 1, 0), min(last, len(axis) - 1)))
    found = np.zeros(bins.shape)
    if all(first < last for first, last in spans):
        near = ReportBins(tuple(axis[first : last + 1] for axis, (first, last) in zip(bins.edges, spans, strict=True)))
        part = _masses(mechanism, place[None], near).reshape(near.shape)
        found[tuple(slice(first, last) for first, last in spans)] = part
    return np.append(found.ravel(), 0.0)


def _own_mass(mechanism: LatticeNoise, place: Floats, bins: ReportBins, code: int) -> float:
    """Return the mass of the bin that holds the place: cut at its coordinates, where the kink is a corner."""
    at = np.unravel_index(code, bins.shape)
    axes = []
    for value, axis, index in zip(place, bins.edges, at, strict=True):
        cut = np.unique([axis[index], min(max(value, axis[index]), axis[index + 1]), axis[index + 1]])
        axes.append(_nodes(cut, 24))
    points, shares = _grid([nodes for nodes, _ in axes]), _outer([weights for _, weights in axes])
    return float((density(mechanism, place[None], points) @ shares)[0])


def density(mechanism: LatticeNoise, places: Floats, points: Floats) -> Floats:
    """Return f(y | x) per volume of coordinates, places x points."""
    return heights_of(mechanism).density(places, points)


def _nodes(edges: Floats, count: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss and Legendre on every interval between edges, in order."""
    nodes, weights = gauss(count)
    widths = np.diff(edges)
    places = edges[:-1, None] + 0.5 * (nodes + 1.0) * widths[:, None]
    return places.ravel(), (0.5 * weights * widths[:, None]).ravel()


def _grid(axes: list[Floats]) -> Floats:
    return np.stack([values.ravel() for values in np.meshgrid(*axes, indexing="ij")], axis=1)


def _outer(axes: list[Floats]) -> Floats:
    return np.asarray(np.prod(_grid(axes), axis=1))


def _sum_nodes(heights: Floats, shape: tuple[int, ...], count: int) -> Floats:
    """Return the sum over the nodes of every bin, one row a place."""
    split = [length for side in shape for length in (side, count)]
    inner = tuple(range(2, 2 * len(shape) + 1, 2))
    return np.asarray(heights.reshape(len(heights), *split).sum(axis=inner).reshape(len(heights), -1))
