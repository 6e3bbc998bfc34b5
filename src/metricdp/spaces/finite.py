"""Finitely many secrets with a metric."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp import shared
from metricdp.arrays import Booleans, Floats, Integers, Points, as_codes, as_points, frozen
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import EARTH_RADIUS_KM, Haversine, Metric, pairwise
from metricdp.spaces.base import show
from metricdp.spaces.search import Search, search_for

ROUNDING = (
    shared.ROUNDING
)  # a value this close (relative to the largest coordinate) to a secret is that secret, rounded


@dataclass(frozen=True, eq=False)
class FiniteSpace:
    """Finitely many secrets with a metric. Codes are row numbers.

    `points` is what the metric measures. `coordinates` is what tables hold where that differs: the latitude and
    longitude of a road node, the spelling of a word; `ground` is the metric in which such coordinates are put on the
    nearest secret. `columns` are the names such coordinates have in tables, where they were given.
    """

    points: Points
    metric: Metric
    coordinates: Points
    ground: Metric
    columns: tuple[str, ...]

    def __init__(
        self,
        points: Any,
        metric: Metric,
        *,
        coordinates: Any = None,
        ground: Metric | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        if isinstance(metric, type) or not isinstance(metric, Metric):
            raise InvalidInput(f"`metric` must be a metric such as mdp.Lp(2), got {metric!r}.")
        array = frozen(as_points(points))
        metric.check(array)
        places = array if coordinates is None else frozen(as_points(coordinates, "coordinates"))
        if len(places) != len(array):
            raise InvalidInput(f"`coordinates` must be one row per point, {len(array)}, got {len(places)}.")
        if columns and len(columns) != places.shape[1]:
            raise InvalidInput(f"`columns` must name {places.shape[1]} columns, one per coordinate, got {columns!r}.")
        _refuse_duplicates(array)
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "points", array)
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "coordinates", places)
        object.__setattr__(self, "ground", metric if ground is None else ground)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"FiniteSpace({len(self)} points, {type(self.metric).__name__})"

    @property
    def unit(self) -> str:
        return self.metric.unit

    @cached_property
    def distances(self) -> Floats:
        """All distances, exactly symmetric, zero on the diagonal."""
        matrix = pairwise(self.metric, self.points, self.points)
        matrix = np.minimum(matrix, matrix.T)
        np.fill_diagonal(matrix, 0.0)
        if not np.all(np.isfinite(matrix)):
            i, j = (int(x) for x in np.argwhere(~np.isfinite(matrix))[0])
            raise InvalidInput(
                f"the secrets {i} and {j} are at distance {matrix[i, j]}: no finite epsilon protects such a pair. "
                "Keep one connected part of the network."
            )
        off = matrix + np.diag(np.full(len(matrix), np.inf))
        if len(matrix) > 1 and off.min() <= 0:
            i, j = (int(x) for x in np.unravel_index(int(off.argmin()), off.shape))
            raise InvalidInput(f"the secrets {i} and {j} are at distance 0: merge them into one.")
        return frozen(matrix)

    def distances_to(self, outputs: FiniteSpace) -> Floats:
        """Return the distances from every secret to every report of `outputs`, in this space's metric."""
        if outputs is self:
            return self.distances
        if outputs.points.shape[1:] != self.points.shape[1:]:
            raise InvalidInput(
                f"the outputs must have {self.points.shape[1:]} coordinates like the inputs, "
                f"got {outputs.points.shape[1:]}; or give a `loss` matrix."
            )
        return pairwise(self.metric, self.points, outputs.points)

    def nearest(self, values: Any) -> tuple[Integers, Floats]:
        """Return the code of the nearest secret to every value, and its distance."""
        rows = as_points(values, "values")
        if self.coordinates.dtype.kind == "U":
            raise InvalidInput("text has no nearest secret here; look words up with `encode`.")
        if rows.shape[1:] != self.coordinates.shape[1:]:
            raise InvalidInput(
                f"values must have {self.coordinates.shape[1]} columns like the secrets, got shape {rows.shape}."
            )
        self.ground.check(rows)
        codes = self._search.nearest(rows)
        return codes, self.ground(rows, self.coordinates[codes])

    def within(self, values: Points, limit: float) -> tuple[Integers, Booleans]:
        """Return the nearest code of every row of checked coordinates, and whether it is at most `limit` away."""
        return self._search.within(values, limit)

    @cached_property
    def _search(self) -> Search:
        return search_for(self.coordinates, self.ground)

    def tolerance(self, snap: float = 0.0) -> float:
        """Return how far a value may lie from a secret and still be it: the declared snap, or rounding."""
        scale = EARTH_RADIUS_KM if isinstance(self.ground, Haversine) else 1.0 + float(np.abs(self.coordinates).max())
        return max(float(snap), ROUNDING * scale)

    def encode(self, values: Any, *, snap: float = 0.0) -> Integers:
        """Return the codes of values, refusing strangers.

        With `snap`, a value up to that distance from a secret becomes that secret; the promise then holds with a slack
        of 2 * epsilon * snap. Farther values are refused.
        """
        if not (np.isfinite(snap) and snap >= 0):
            raise InvalidInput(f"`snap` must be a distance, zero or more, got {snap:g}.")
        if self.coordinates.dtype.kind == "U":
            return self._encode_text(as_points(values, "values"))
        codes, away = self.nearest(values)
        strangers = np.flatnonzero(away > self.tolerance(snap))
        if strangers.size:
            row = int(strangers[0])
            rows = as_points(values, "values")
            legal = self.coordinates[codes[row]]
            raise OutOfDomain(
                f"row {row}: {show(rows[row])} is not a secret of this space; the nearest is {show(legal)}, "
                f"{away[row]:.6g}{' ' + self.ground.unit if self.ground.unit else ''} away"
                + (f", beyond the declared snap of {snap:g}" if snap else "")
                + (f" ({strangers.size} such rows)" if strangers.size > 1 else "")
                + ". "
                + ("Raise `snap`" if snap else "Ask for snapping with `snap`")
                + " (its slack is added to the promise) or drop the row.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return codes

    @cached_property
    def _lookup(self) -> dict[str, int]:
        return {word: code for code, word in enumerate(_spelled(self.coordinates))}

    def _encode_text(self, values: Points) -> Integers:
        if values.shape[1:] != self.coordinates.shape[1:]:
            raise InvalidInput(
                f"values must have {self.coordinates.shape[1]} columns like the secrets, got shape {values.shape}."
            )
        words = _spelled(values)
        codes = np.fromiter((self._lookup.get(word, -1) for word in words), dtype=np.int64, count=len(words))
        strangers = np.flatnonzero(codes < 0)
        if strangers.size:
            row = int(strangers[0])
            close = difflib.get_close_matches(words[row], list(self._lookup), n=1, cutoff=0.0)
            raise OutOfDomain(
                f"row {row}: {show(values[row])} is not a word of this vocabulary; the nearest spelling is "
                f"{show(np.array(close[0].split(chr(31))))}"
                + (f" ({strangers.size} such rows)" if strangers.size > 1 else "")
                + ". Map or drop unknown words first: passing them through would publish them.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return codes

    def decode(self, codes: ArrayLike) -> Points:
        """Return the coordinates behind codes."""
        return np.asarray(self.coordinates[as_codes(codes, len(self), "codes")])


def _spelled(rows: Points) -> list[str]:
    """Return one text per row: the word itself, or all columns with separators that no data holds."""
    return ["\x1f".join(str(cell) for cell in row) for row in rows]


def _refuse_duplicates(points: Points) -> None:
    flat = points.reshape(len(points), -1)
    _, first, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
    if len(first) < len(flat):
        original = int(first[np.flatnonzero(counts > 1)[0]])
        same = np.flatnonzero((flat == flat[original]).all(axis=1))
        raise InvalidInput(
            f"`points` must be distinct, got {show(points[original])} in rows {int(same[0])} and {int(same[1])} "
            f"({len(flat) - len(first)} repeated rows). Drop them (np.unique(points, axis=0)), add up their prior."
        )
