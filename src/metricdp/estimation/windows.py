"""Weights that enclose a region of the map, for noise on places anywhere.

If weights w of reports have a mean f(x) = E[w(report) | x] <= 1 for x in a region, and <= 0 for every other x, then the
mean of w over a table lies below the mass of the region on average, wherever the secrets are: in it, outside it, or
outside the map. With >= it lies above. Such weights are made in three steps.

1. A smooth function h that lies below the indicator of the region (or above it): the region made smaller by a reach r,
   smoothed by a bump of radius r.
2. Weights with A w = h, nearly: h with the noise taken out again, by Fourier transform.
3. What they are on average is computed from the noise itself on a lattice of places, a quarter of 1 / epsilon apart
   (wider where a region is many units wide). A place inside counts as outside if one of its neighbours is. Between
   places f may exceed what they have by its curvature, of which twice the second differences are added; beyond the
   lattice by what the tails of the noise allow. What exceeds the region is taken away around the place where it is, and
   the rest everywhere.

That f holds at the places of the lattice is computed, to the errors of quadrature. That it holds between them is no
proof, since second differences only estimate the curvature: it was checked by integrals in the plane, for cells
of 0.7 to 40 units (the tests do so for some). With the differences themselves, not twice, f missed by 0.0005.

A small reach r tells what lies near the border and scatters more. Half of the reports choose it for the other half, so
that choosing does no harm.

References: Donoho, "Statistical estimation and optimal recovery", 1994; Stanley, Patil, Kuusela, "Uncertainty
quantification for wide-bin unfolding", 2022; Chernozhukov et al., "Double/debiased machine learning", 2018 (halves).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.estimation.bins import LatticeNoise, ReportBins, density, heights_of, units_of
from metricdp.metrics import points_are

FINE = 0.25  # of a unit of noise: places and bins
SIDE = 192  # places along a window, beyond which they lie wider
REACHES = (0.5, 0.8, 1.3, 2.0, 3.0, 4.5)  # of units, or of the distance of places if that is wider
MARGIN = 7.0  # units around a region within which a report counts
BAND = {True: 6.5, False: 14.0}  # units that noise is followed for, normal or not
LOST = 2e-5  # of the noise at least is taken to lie beyond the band
BENT = 2.0  # times the second differences: of a peak between places they show too little
FLAT = 1e-4  # of the largest frequency, squared: what is smaller is not made good


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of the bins of a window that begins at `start`, and of every other report (`rest`)."""

    start: tuple[int, int]
    factor: int
    values: Floats
    rest: float
    powers: Floats  # the means of w, w^2, w^3 and w^4 over the window


def powers_of(values: Floats) -> Floats:
    """Return values, their squares, third and fourth powers, one row each."""
    squares = values * values
    return np.stack([values, squares, squares * values, squares * squares])


@dataclass(frozen=True, eq=False)
class NoiseWindows:
    """Noise, the fine bins of its reports, and what was found for shapes so far."""

    mechanism: LatticeNoise
    bins: ReportBins
    _known: dict[tuple[object, ...], list[Weights]] = field(default_factory=dict)
    _blurs: dict[tuple[object, ...], NoiseConvolution] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of bins; on the line there is one row."""
        rows, columns = self._edges
        return len(rows) - 1, len(columns) - 1

    @cached_property
    def _edges(self) -> tuple[Floats, Floats]:
        edges = self.bins.edges
        return (np.array([-0.5, 0.5]), edges[0]) if self._flat else (edges[0], edges[1])

    @cached_property
    def units(self) -> tuple[float, float]:
        """How wide a bin is along each axis in units of noise."""
        found = units_of(self.mechanism, self.bins.edges)
        return (1.0, float(found[0])) if self._flat else (float(found[0]), float(found[1]))

    @property
    def _flat(self) -> bool:
        """Whether there is one row only, on the line."""
        return len(self.bins.edges) == 1

    def _factors(self, factor: int) -> tuple[int, int]:
        """Return how many bins a wide one holds along each axis; one row stays as it is."""
        return 1 if self._flat else factor, factor

    @property
    def _curved(self) -> bool:
        return points_are(self.mechanism.inputs.metric, "degrees")

    def enclosing_weights(self, boxes: Floats, side: int) -> list[Weights]:
        """Return weights below (side 1) or above (side -1) the indicator of a union of boxes, one for every reach.

        `boxes` are rows of low and high ends along both axes.
        """
        low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
        widest = max(float(high[axis] - low[axis]) / self._step(axis) * self.units[axis] for axis in (0, 1))
        factor = max(1, math.ceil((widest + 4.0 * MARGIN + 2.0) / (SIDE * min(self.units))))
        start, middles, seen = [], [], []
        for axis, (edges, unit, wide) in enumerate(zip(self._edges, self.units, self._factors(factor), strict=True)):
            step, edge = self._step(axis), edges[0]
            first = math.ceil((low[axis] - edge) / step - 0.5 * wide - 1e-6)  # the first place in the region
            inner = math.floor((high[axis] - edge) / step - first - 0.5 * wide + 1e-6) // wide + 1
            around = 0 if axis == 0 and self._flat else math.ceil(2.0 * MARGIN / (wide * unit))
            start.append(first - around * wide)
            begins = start[axis] + wide * np.arange(inner + 2 * around)
            middles.append(edge + step * (begins + 0.5 * wide))
            seen.append((begins >= 0) & (begins + wide <= self.shape[axis]))
        # Only bins that hold reports which are distinguished have weights of their own: the others lie beyond them all.
        inside, there = self._region_mask(boxes, middles, side), np.outer(*seen)
        key = (side, factor, inside.tobytes(), inside.shape, there.tobytes(), start[0] if self._curved else None)
        if key not in self._known:
            sizes = [wide * unit for wide, unit in zip(self._factors(factor), self.units, strict=True)]
            solver = _Solver(self._noise(start[0], inside.shape, middles[0], factor), sizes, inside, there, side)
            self._known[key] = [
                Weights((0, 0), factor, values, rest, powers_of(values.ravel()).mean(axis=1))
                for values, rest in solver.solve()
            ]
        return [replace(one, start=(start[0], start[1])) for one in self._known[key]]

    def _noise(self, start: int, shape: tuple[int, int], rows: Floats, factor: int) -> NoiseConvolution:
        """Return the noise of a window; that of the last one again where it is the same."""
        width = 16 * math.ceil(shape[1] / 16)
        key = (start if self._curved else None, factor, shape[0], width)
        if key not in self._blurs:
            self._blurs.clear()
            self._blurs[key] = NoiseConvolution.of(self._kernel(rows, factor), (shape[0], width))
        return self._blurs[key]

    def _step(self, axis: int) -> float:
        edges = self._edges[axis]
        return float((edges[-1] - edges[0]) / (len(edges) - 1))

    def _region_mask(self, boxes: Floats, middles: list[Floats], side: int) -> Booleans:
        """Return which places lie in the region with all their neighbours (side 1), or with one of them (side -1)."""
        from scipy.ndimage import maximum_filter, minimum_filter

        found = np.zeros((len(middles[0]), len(middles[1])), dtype=np.bool_)
        for low, high in boxes:
            spans = [(at >= low[axis] - 1e-9) & (at <= high[axis] + 1e-9) for axis, at in enumerate(middles)]
            found |= np.outer(*spans)
        filtered = minimum_filter(found, 3, mode="nearest") if side > 0 else maximum_filter(found, 3)
        return np.asarray(filtered, dtype=np.bool_)

    def _kernel(self, rows: Floats, factor: int) -> Floats:
        """Return the masses of the bins around a place: of every row of places, or one for all (rows x bins x bins)."""
        normal = heights_of(self.mechanism).smooth
        axes = []
        for axis in (0, 1):
            size = factor * self.units[axis]
            wide = math.ceil(BAND[normal] / size)
            count = math.ceil(2.0 + 2.0 * size)
            nodes, weights = np.polynomial.legendre.leggauss(count)
            step = factor * self._step(axis)
            offsets = step * (np.arange(-wide, wide + 1)[:, None] + 0.5 * nodes[None])
            axes.append((offsets, np.broadcast_to(0.5 * step * weights, offsets.shape), wide, count))
        (up, high, tall, first), (along, broad, wide, second) = axes
        if self._flat:
            heights = density(self.mechanism, np.zeros((1, 1)), along.reshape(-1, 1))[0] * broad.ravel()
            return np.asarray(heights.reshape(1, 1, 2 * wide + 1, second).sum(axis=3))
        shape = 2 * tall + 1, first, 2 * wide + 1, second
        volume = np.outer(high.ravel(), broad.ravel()).ravel()
        knots = _knots(rows) if self._curved else np.zeros(1)
        found = np.empty((len(knots), 2 * tall + 1, 2 * wide + 1))
        for number, row in enumerate(knots.tolist()):
            grid = np.meshgrid(up.ravel() + row, along.ravel(), indexing="ij")
            points = np.stack([one.ravel() for one in grid], axis=1)
            if self._curved:
                points[:, 0] = np.clip(points[:, 0], -90.0, 90.0)
            found[number] = (
                (density(self.mechanism, np.array([[row, 0.0]]), points)[0] * volume).reshape(shape).sum((1, 3))
            )
        return np.asarray(np.tensordot(_interpolation_weights(knots, rows), found, 1)) if self._curved else found


def _knots(rows: Floats) -> Floats:
    """Return the latitudes at which noise is integrated: all, or five where it hardly changes from one to the next."""
    rows = np.clip(rows, -90.0, 90.0)
    if np.ptp(rows) > 5.0 or np.abs(rows).max() > 75.0 or len(rows) <= 5:
        return rows
    return np.asarray(rows.mean() + 0.5 * np.ptp(rows) * np.cos(np.pi * (np.arange(5) + 0.5) / 5.0))


def _interpolation_weights(knots: Floats, rows: Floats) -> Floats:
    """Return the weights of knots in the polynomial through them, one row for every latitude."""
    from scipy.interpolate import KroghInterpolator

    if len(knots) == len(rows):
        return np.eye(len(rows))
    return np.asarray(KroghInterpolator(knots, np.eye(len(knots)))(rows))


@dataclass(frozen=True, eq=False)
class NoiseConvolution:
    """What noise makes of weights in a window: a matrix between its rows for every frequency along them."""

    matrices: Floats  # complex: frequencies x rows x rows
    middle: Floats  # the noise of the middle row
    length: int
    lost: float

    @staticmethod
    def of(kernel: Floats, shape: tuple[int, int]) -> NoiseConvolution:
        """Return it from the masses of bins around a place of every row, or of any."""
        from scipy.fft import next_fast_len, rfft

        total = kernel.sum(axis=(1, 2), keepdims=True)
        lost = max(LOST, 2.0 * (1.0 - float(total.min())))
        kernel = kernel / np.maximum(total, 1.0)
        tall, wide, rows = kernel.shape[1] // 2, kernel.shape[2] // 2, shape[0]
        length = int(next_fast_len(max(shape[1], wide + 1) + wide, real=True))
        # Noise is the same to the east and to the west, so that what a place has on average is a convolution.
        around = np.zeros((*kernel.shape[:2], length))
        around[:, :, : wide + 1] = kernel[:, :, wide:]
        around[:, :, length - wide :] = kernel[:, :, :wide]
        spectra = rfft(around, axis=2).real
        matrices = np.zeros((spectra.shape[2], rows, rows))
        for row in range(rows):
            first, last = max(0, row - tall), min(rows, row + tall + 1)
            own = spectra[row if len(spectra) > 1 else 0]
            matrices[:, row, first:last] = own[first - row + tall : last - row + tall].T
        return NoiseConvolution(matrices, kernel[len(kernel) // 2], length, lost)

    def mean(self, weights: Floats) -> Floats:
        """Return what weights of the bins are on average from every place; several tables at once."""
        from scipy.fft import irfft, rfft

        spectrum = rfft(weights, n=self.length, axis=2).transpose(2, 1, 0)  # frequencies x rows x tables
        parts = np.concatenate([spectrum.real, spectrum.imag], axis=2)
        found = self.matrices @ parts
        count = len(weights)
        together = (found[:, :, :count] + 1j * found[:, :, count:]).transpose(2, 1, 0)
        return np.asarray(irfft(together, n=self.length, axis=2)[:, :, : weights.shape[2]])


class _Solver:
    """Weights on one window, for all reaches at once."""

    def __init__(
        self, blur: NoiseConvolution, sizes: list[float], inside: Booleans, there: Booleans, side: int
    ) -> None:
        self.blur, self.inside, self.side, self.sizes, self.shape = blur, inside, side, sizes, inside.shape
        self.used = there & (self._distance(~inside) <= MARGIN + 1e-9)

    def _distance(self, mask: Booleans) -> Floats:
        """Return how many units every place of a mask lies from the places that are not in it."""
        from scipy.ndimage import distance_transform_edt

        if mask.all():
            return np.full(mask.shape, np.inf)
        return np.asarray(distance_transform_edt(mask, sampling=self.sizes))

    def solve(self) -> list[tuple[Floats, float]]:
        least = max(1.0, self.sizes[1])
        heights = [height for reach in REACHES if (height := self._smooth(reach * least)) is not None]
        return self._repair(self._deconvolve(np.array(heights))) if heights else []

    def _smooth(self, radius: float) -> Floats | None:
        from scipy.signal import fftconvolve

        core = self._distance(self.inside) > radius if self.side > 0 else self._distance(~self.inside) <= radius
        if not core.any():
            return None
        reaches = [min(int(radius / size), (side - 1) // 2) for size, side in zip(self.sizes, self.shape, strict=True)]
        axes = [np.arange(-reach, reach + 1) * size for reach, size in zip(reaches, self.sizes, strict=True)]
        square = (axes[0][:, None] ** 2 + axes[1][None] ** 2) / radius**2
        bump = np.maximum(1.0 - square, 0.0) ** 3
        return np.asarray(np.clip(fftconvolve(core.astype(np.float64), bump / bump.sum(), mode="same"), 0.0, 1.0))

    def _deconvolve(self, heights: Floats) -> Floats:
        """Return weights whose mean is nearly this: the noise of the middle row taken out, then what is left."""
        from scipy.fft import irfft2, next_fast_len, rfft2

        middle = self.blur.middle
        tall, wide = middle.shape[0] // 2, middle.shape[1] // 2
        sides = [int(next_fast_len(side + 2 * reach)) for side, reach in zip(self.shape, (tall, wide), strict=True)]
        kernel = np.zeros(sides)
        kernel[: middle.shape[0], : middle.shape[1]] = middle
        spectrum = rfft2(np.roll(kernel, (-tall, -wide), axis=(0, 1))).real
        inverse = spectrum / (spectrum**2 + FLAT)

        def sharp(values: Floats) -> Floats:
            made = irfft2(rfft2(values, s=sides) * inverse, s=sides)
            return np.where(self.used, made[:, : self.shape[0], : self.shape[1]], 0.0)

        weights = sharp(heights)
        return weights + sharp(heights - self.blur.mean(weights))

    def _repair(self, weights: Floats) -> list[tuple[Floats, float]]:
        from scipy.ndimage import maximum_filter

        size = [
            1,
            *(1 if n == 1 else 2 * math.ceil(1.0 / step) + 1 for n, step in zip(self.shape, self.sizes, strict=True)),
        ]
        above = self._excess(weights)
        for _ in range(2):
            taken = np.where(self.used, maximum_filter(above, size), 0.0)
            reached = self.blur.mean(taken)
            quotient = np.divide(above, reached, out=np.zeros_like(above), where=(above > 1e-6) & (reached > 1e-12))
            factor = np.clip(quotient.max(axis=(1, 2), keepdims=True), 0.0, 10.0)
            weights = weights - self.side * factor * taken
            above = self._excess(weights)
        rests = above.max(axis=(1, 2)) + self._outer_excess(weights)
        return [(one - self.side * rest, -self.side * rest) for one, rest in zip(weights, rests.tolist(), strict=True)]

    def _excess(self, weights: Floats) -> Floats:
        """Return by how much the mean of weights exceeds the region at a place or next to it."""
        from scipy.ndimage import maximum_filter

        mean = self.side * self.blur.mean(weights)
        bent = np.zeros_like(mean)
        for axis, side in enumerate(self.shape):
            if side > 2:
                along, moved = np.moveaxis(bent, axis + 1, 0), np.moveaxis(mean, axis + 1, 0)
                along[1:-1] += np.maximum(2.0 * moved[1:-1] - moved[2:] - moved[:-2], 0.0) * BENT / 8.0
        bent = maximum_filter(bent, [1, *(min(3, side) for side in self.shape)])
        return np.asarray(np.maximum(mean + bent - self.side * self.inside, 0.0))

    def _outer_excess(self, weights: Floats) -> Floats:
        """Return by how much the mean may exceed nothing outside the window, and through noise beyond the band."""
        tails = self.blur.mean(np.maximum(self.side * weights, 0.0))
        edges = [tails[:, :, 0], tails[:, :, -1]] + ([tails[:, 0], tails[:, -1]] if self.shape[0] > 1 else [])
        most = np.max([edge.max(axis=1) for edge in edges], axis=0)
        return np.asarray(most + self.blur.lost * np.abs(weights).max(axis=(1, 2)))
