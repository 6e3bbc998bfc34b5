"""Places all over the cells of a regular grid, for secrets of which nothing is assumed but the cell.

Between two places the mean of any weights of reports changes by little if they lie near compared to the noise. Where
intervals rest on them they lie half a unit of noise apart, all over every cell. Where only the likeliest masses do
(`thin`), they lie less densely in cells that are wide. A place on a border touches several cells: it is in none of them
for sure, and may be in each. A place around the grid touches none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Booleans, Floats
from metricdp.errors import InvalidInput

APART = 0.5  # of a unit of noise, 1 / epsilon
BORDER = np.array([0.0, 0.5, 1.0, 1.5, 2.25, 3.25])  # units from a border, in cells that are wide
MOST_NODES = 4_000
MOST_THIN = 800  # where only the likeliest masses rest on them
AROUND = (1.5, 6.0)  # units around the grid: how far apart places lie there, and how far out


@dataclass(frozen=True, eq=False)
class Nodes:
    """Places, and which cells each of them touches (places x cells)."""

    places: Floats
    touching: Booleans

    def inner_nodes(self, sums: Floats) -> Floats:
        """Return for every sum of cells (0 or 1 each) which places lie in it, whichever cell they are in."""
        return np.asarray((self._touch_counts(sums) >= self.touching.sum(axis=1)[:, None] - 0.5).astype(np.float64))

    def touching_nodes(self, sums: Floats) -> Floats:
        """Return for every sum of cells which places may lie in it."""
        return np.asarray((self._touch_counts(sums) > 0.5).astype(np.float64))

    def cell_masses(self, masses: Floats) -> Floats:
        """Return the masses of cells, where places on a border belong to all that they touch in equal shares."""
        degrees = np.maximum(self.touching.sum(axis=1), 1)
        return np.asarray((masses / degrees) @ self.touching)

    def _touch_counts(self, sums: Floats) -> Floats:
        return np.asarray(self.touching.astype(np.float64) @ sums)


def nodes_of(centres: Floats, steps: Floats, rates: Floats, *, thin: bool = False) -> Nodes:
    """Return places all over rectangular cells, `steps` wide; `rates` are units of noise per unit of a coordinate."""
    units = rates * steps
    while True:
        offsets = [_thin(float(width)) if thin else _even(float(width)) for width in units]
        columns = zip(centres.T, steps.tolist(), offsets, strict=True)
        axes = [_axis(np.unique(np.round(values, 9)), step, at) for values, step, at in columns]
        count = math.prod(len(places) for places, _, _ in axes)
        if count <= (MOST_THIN if thin else MOST_NODES) or (thin and max(len(at) for at in offsets) <= 3):
            break
        if not thin:
            raise InvalidInput(
                f"places half of 1 / epsilon apart in these cells are {count:,}, and at most {MOST_NODES:,} are "
                "decoded with nothing assumed: name fewer or smaller cells, or say within='cell' or within='point'."
            )
        units = 0.8 * units
    grids = np.meshgrid(*(np.arange(len(places)) for places, _, _ in axes), indexing="ij")
    places = np.stack([axis[0][at.ravel()] for axis, at in zip(axes, grids, strict=True)], axis=1)
    touching = np.ones((len(places), len(centres)), dtype=np.bool_)
    for number, ((_, values, touches), at) in enumerate(zip(axes, grids, strict=True)):
        cell = np.searchsorted(values, np.round(centres[:, number], 9) - 1e-9)
        touching &= touches[at.ravel()][:, cell]
    used = touching.any(axis=1)
    return Nodes(places[used], touching[used])


def add_surroundings(nodes: Nodes, centres: Floats, steps: Floats, rates: Floats) -> Nodes:
    """Return nodes with further places around the grid, which touch no cell."""
    low, high = centres.min(axis=0) - 0.5 * steps, centres.max(axis=0) + 0.5 * steps
    apart = np.maximum(AROUND[0] / rates, (high - low).max() / 40.0)
    axes = [np.arange(begin - AROUND[1] / rate, end + AROUND[1] / rate + gap, gap)
            for begin, end, rate, gap in zip(low, high, rates, apart, strict=True)]  # fmt: skip
    places = np.stack([values.ravel() for values in np.meshgrid(*axes, indexing="ij")], axis=1)
    outside = places[((places < low - 0.25 * apart) | (places > high + 0.25 * apart)).any(axis=1)]
    none = np.zeros((len(outside), nodes.touching.shape[1]), dtype=np.bool_)
    return Nodes(np.concatenate([nodes.places, outside]), np.concatenate([nodes.touching, none]))


def _even(width: float) -> Floats:
    """Return places along a cell from 0 to 1, both borders among them; `width` is the cell's in units of noise."""
    return np.linspace(0.0, 1.0, max(2, math.ceil(width / APART)) + 1)


def _thin(width: float) -> Floats:
    if width <= 4.0:
        return _even(width)
    side = BORDER[0.45 * width > BORDER] / width
    return np.unique(np.concatenate([side, [0.5], 1.0 - side]))


def _axis(values: Floats, step: float, offsets: Floats) -> tuple[Floats, Floats, Booleans]:
    """Return places along an axis, the middles of its cells, and which place touches which cell."""
    places = np.append((values[:, None] + step * (offsets[None, :-1] - 0.5)).ravel(), values[-1] + 0.5 * step)
    number = np.arange(len(places))
    per = len(offsets) - 1
    first = np.minimum(number // per, len(values) - 1)
    touches = np.zeros((len(places), len(values)), dtype=np.bool_)
    touches[number, first] = True
    border = (number % per == 0) & (number > 0) & (number < len(places) - 1)
    touches[number[border], first[border] - 1] = True
    return places, values, touches
