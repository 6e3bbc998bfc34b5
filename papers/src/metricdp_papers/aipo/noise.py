"""Laplace noise, then the nearest report: its distribution by an integral along the borders between reports.

The density at distance r is proportional to e^(-epsilon r) in the norm N of the metric. In polar coordinates around the
secret x, the mass beyond a border is G(epsilon N) with G(s) = (1 + s) e^-s, so with A the area of the unit ball

    Pr[report k | x] = [x in the cell of k] - (1 / 2A) integral over the border of k of G(epsilon N) (q - x) x dq / N^2,

N = N(q - x).

Borders are straight (the nearest report in the Euclidean sense), each is one smooth integral in s with t = h sinh s, h
the distance of x from its line, cut where |q - x| has a kink. Far borders are summed with their own small size, so
that small probabilities are as accurate as large ones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from metricdp.arrays import Floats, Integers
from metricdp.auditing import ApproximateDistribution

FAR = 60.0  # borders end where noise has e^-60 left
POINTS = 4_000_000  # evaluations at a time
QUADRATURE = 1e-9  # what a probability may be off by: 24 and 60 nodes differ by 4e-10 at most on the maps of the study


@dataclass(frozen=True)
class CellBorders:
    """Segments between the cells of two reports: start, direction of unit length, ends, the report left and right."""

    middle: Floats
    along: Floats
    ends: Floats
    left: Integers
    right: Integers


def borders(reports: Floats, reach: float) -> CellBorders:
    """Return the borders between nearest reports, from the half planes of every third report."""
    found = []
    for left in range(len(reports)):
        for right in range(left + 1, len(reports)):
            apart = reports[right] - reports[left]
            length = float(np.hypot(*apart))
            if length == 0.0:
                continue
            middle, along = (reports[left] + reports[right]) / 2, np.array([apart[1], -apart[0]]) / -length
            others = np.delete(np.arange(len(reports)), [left, right])
            # |q - left|^2 <= |q - other|^2 is a_o + b_o t <= 0 on the line q = middle + t along
            toward = reports[others] - reports[left]
            a = toward @ middle - ((reports[others] ** 2).sum(axis=1) - (reports[left] ** 2).sum()) / 2
            b = toward @ along
            with np.errstate(divide="ignore", invalid="ignore"):
                cuts = -a / b
            low = max(-reach, float(np.max(cuts[b < 0], initial=-np.inf)))
            high = min(reach, float(np.min(cuts[b > 0], initial=np.inf)))
            if low < high and not np.any((b == 0) & (a > 0)):
                found.append((middle, along, (low, high), left, right))
    parts = list(zip(*found, strict=True))
    return CellBorders(*(np.array(part) for part in parts))


def nearest_report_distribution(
    reports: Floats, p: float, epsilon: float, *, nodes: int = 24
) -> ApproximateDistribution:
    """Return the distribution of the nearest report after noise in the plane, for p = 1 or 2."""
    if p not in (1.0, 2.0):
        raise ValueError("the law is written for l_1 and l_2")
    size = float(np.abs(reports).max())
    lines = borders(reports, FAR / epsilon + 4.0 * size + 1e3)

    def distribution(points: Floats) -> Floats:
        result = np.empty((len(points), len(reports)))
        step = max(1, POINTS // (len(lines.left) * 4 * nodes))
        for start in range(0, len(points), step):
            part = points[start : start + step]
            flux = _flux(lines, part, p, epsilon, nodes)
            inside = ((part[:, None] - reports[None]) ** 2).sum(axis=2).argmin(axis=1)
            masses = np.zeros((len(part), len(reports)))
            np.add.at(masses.T, lines.left, -flux.T)
            np.add.at(masses.T, lines.right, flux.T)
            masses[np.arange(len(part)), inside] += 1.0
            result[start : start + step] = np.maximum(masses, 0.0)
        return np.asarray(result / result.sum(axis=1, keepdims=True))

    return ApproximateDistribution(distribution, QUADRATURE)


def _flux(lines: CellBorders, points: Floats, p: float, epsilon: float, nodes: int) -> Floats:
    """Return the mass that crosses every border from the left, seen from every point (negative from the right)."""
    away = lines.middle[None] - points[:, None]
    foot = (away * lines.along[None]).sum(axis=2)  # q - x = normal + (foot + t) along
    normal = away - foot[:, :, None] * lines.along[None]
    height = away[..., 0] * lines.along[None, :, 1] - away[..., 1] * lines.along[None, :, 0]
    size = np.maximum(np.abs(height), 1e-12)
    cuts = [foot + lines.ends[None, :, 0], np.zeros(foot.shape), foot + lines.ends[None, :, 1]]
    if p == 1.0:  # |q - x| has a kink where a coordinate changes sign
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = (lines.along[None, :, i] for i in (0, 1))
            cuts += [np.where(slope != 0, -normal[..., i] / slope, 0.0) for i, slope in enumerate(slopes)]
    stations = np.arcsinh(np.stack(cuts) / size)
    reach = np.arccosh(np.maximum(FAR / epsilon / size, 1.0)) + 1.0  # beyond, G has nothing left
    first, last = np.clip(stations[0], -reach, reach), np.clip(stations[2], -reach, reach)
    stations = np.sort(np.clip(stations, first, last), axis=0)
    place, weight = np.polynomial.legendre.leggauss(nodes)
    total = np.zeros(foot.shape)
    for begin, end in itertools.pairwise(stations):
        half = (end - begin)[..., None] / 2
        s = begin[..., None] + half * (1.0 + place)
        cosh = np.cosh(s)
        if p == 2.0:
            norm = size[..., None] * cosh
            total += (half * weight * _beyond(epsilon * norm) / cosh).sum(axis=2)
        else:
            t = size[..., None] * np.sinh(s)
            norm = sum(np.abs(normal[..., i, None] + t * lines.along[None, :, i, None]) for i in (0, 1))
            total += (half * weight * _beyond(epsilon * norm) * cosh * (size[..., None] / norm) ** 2).sum(axis=2)
    return np.asarray(np.sign(height) * total / (2.0 * np.pi if p == 2.0 else 4.0))


def _beyond(s: Floats) -> Floats:
    return np.asarray((1.0 + s) * np.exp(-s))
