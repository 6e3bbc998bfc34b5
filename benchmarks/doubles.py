"""Noise on the Earth in plain doubles, as it was drawn before it became exact: kept only to compare times with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.mechanisms import SphericalLaplace
from metricdp.randomness import RandomSource, open_uniform, source_of

BATCH = 1 << 15


@dataclass(frozen=True, eq=False)
class DoubleLaplace(SphericalLaplace):
    """The secret is put on the lattice, noise is travelled in doubles, the end is put on the lattice."""

    def sample(self, secrets: Any, /, *, rng: Any = None) -> Floats:
        rows = self.inputs.encode(secrets)
        source = source_of(rng)

        def draw(block: Floats) -> Floats:
            start = np.radians(self.lattice.values(self.lattice.cells(block)))
            away = _angle(self.epsilon * self.earth.radius, len(block), source)
            bearing = 2.0 * np.pi * open_uniform(len(block), source)
            return self._report(np.degrees(_travel(start, away, bearing)))

        blocks = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        with ThreadPoolExecutor(max_workers=2) as pool:
            return np.concatenate(list(pool.map(draw, blocks)))


def _angle(rate: float, count: int, source: RandomSource) -> Floats:
    result, left = np.empty(count), np.arange(count)
    while left.size:
        uniforms = open_uniform(2 * left.size, source).reshape(2, -1)
        angle = -np.log(uniforms.prod(axis=0)) / rate
        chance = np.where(angle < np.pi, np.sinc(angle / np.pi), 0.0)
        kept = open_uniform(left.size, source) < chance
        result[left[kept]] = angle[kept]
        left = left[~kept]
    return result


def _travel(start: Floats, away: Floats, bearing: Floats) -> Floats:
    sin_latitude, cos_latitude = np.sin(start[:, 0]), np.cos(start[:, 0])
    sin_away, cos_away = np.sin(away), np.cos(away)
    north, east = sin_away * np.cos(bearing), sin_away * np.sin(bearing)
    up = sin_latitude * cos_away + cos_latitude * north
    out = cos_latitude * cos_away - sin_latitude * north
    latitude = np.arctan2(up, np.sqrt(out * out + east * east))
    return np.stack([latitude, start[:, 1] + np.arctan2(east, out)], axis=1)
