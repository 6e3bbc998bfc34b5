"""Where secrets live: finitely many points, those with a context, a box, the whole plane or the Earth."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, Points, as_codes, as_floats, as_points, frozen
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.metrics import EARTH_RADIUS_KM, Haversine, Lp, Metric, Precomputed, Weighted, pairwise
from metricdp.neighbours import Search, search_for

ROUNDING = 1e-9  # a value this close (relative to the largest coordinate) to a secret is that secret, rounded


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
                f"row {row}: {_show(rows[row])} is not a secret of this space; the nearest is {_show(legal)}, "
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
                f"row {row}: {_show(values[row])} is not a word of this vocabulary; the nearest spelling is "
                f"{_show(np.array(close[0].split(chr(31))))}"
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
            f"`points` must be distinct, got {_show(points[original])} in rows {int(same[0])} and {int(same[1])} "
            f"({len(flat) - len(first)} repeated rows). Drop them (np.unique(points, axis=0)), add up their prior."
        )


@dataclass(frozen=True, eq=False)
class Box:
    """A box of continuous secrets, lower <= x <= upper in every coordinate."""

    lower: Floats
    upper: Floats
    metric: Metric

    def __init__(self, lower: ArrayLike, upper: ArrayLike, metric: Metric | None = None) -> None:
        low, high = np.atleast_1d(as_floats(lower, "lower")), np.atleast_1d(as_floats(upper, "upper"))
        if low.ndim != 1 or low.shape != high.shape or np.any(low >= high):
            raise InvalidInput(
                f"`lower` must lie below `upper` in every coordinate, got {low.tolist()} and {high.tolist()}."
            )
        object.__setattr__(self, "lower", frozen(low))
        object.__setattr__(self, "upper", frozen(high))
        object.__setattr__(self, "metric", Lp(2) if metric is None else metric)

    @property
    def dimension(self) -> int:
        return len(self.lower)

    @property
    def unit(self) -> str:
        return self.metric.unit

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {type(self.metric).__name__})"

    def encode(self, values: Any) -> Floats:
        """Return the values as they are, refusing points outside the box."""
        rows = as_points(values, "values")
        if rows.dtype.kind == "U" or rows.shape[1:] != self.lower.shape:
            raise InvalidInput(f"values must have {self.dimension} columns of numbers, got shape {rows.shape}.")
        strangers = np.flatnonzero(np.any((rows < self.lower) | (rows > self.upper), axis=1))
        if strangers.size:
            row = int(strangers[0])
            legal = np.clip(rows[row], self.lower, self.upper)
            raise OutOfDomain(
                f"row {row}: {_show(rows[row])} lies outside the box from {_show(self.lower)} to {_show(self.upper)}; "
                f"the nearest legal point is {_show(legal)}"
                + (f" ({strangers.size} such rows)" if strangers.size > 1 else "")
                + ". Enlarge the box or drop the row.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return np.asarray(rows, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Unbounded:
    """All points of a given dimension: the line, the plane, the Earth."""

    metric: Metric
    dimension: int

    @property
    def unit(self) -> str:
        return self.metric.unit

    def __repr__(self) -> str:
        return f"Unbounded({type(self.metric).__name__}, dimension {self.dimension})"

    def encode(self, values: Any) -> Floats:
        """Return the values as checked coordinates."""
        rows = as_points(values, "values")
        if rows.shape[1:] != (self.dimension,):
            raise InvalidInput(f"values must have {self.dimension} columns, got shape {rows.shape}.")
        self.metric.check(rows)
        return np.asarray(rows, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Augmented:
    """Secrets together with their context: the current place and the places before it.

        d((x, v), (x', v')) = d(x, x') + sum_tau weight_tau * d(v_tau, v'_tau)

    One row of `histories` is one augmented secret: the code of the current place, then the codes one, two, ... steps
    back. Every weight must be positive: a zero would leave two different histories at distance zero.
    """

    base: FiniteSpace
    histories: Integers
    weights: Floats

    def __init__(self, base: FiniteSpace, histories: ArrayLike, weights: ArrayLike) -> None:
        rows = as_codes(histories, len(base), "histories")
        lags = np.atleast_1d(as_floats(weights, "weights"))
        if rows.ndim != 2 or rows.shape[0] == 0 or lags.shape != (rows.shape[1] - 1,) or np.any(lags <= 0):
            raise InvalidInput(
                "`histories` must be one row of codes per secret (current place first) and `weights` one positive "
                f"number per step back, got shapes {rows.shape} and {lags.shape}."
            )
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "histories", frozen(rows))
        object.__setattr__(self, "weights", frozen(lags))

    def __len__(self) -> int:
        return len(self.histories)

    def __repr__(self) -> str:
        return f"Augmented({len(self)} secrets of {len(self.base)} places, {self.lags} steps back)"

    @property
    def lags(self) -> int:
        """How many steps back the context reaches."""
        return len(self.weights)

    @cached_property
    def space(self) -> FiniteSpace:
        """The augmented secrets as a finite space: what a problem takes as inputs.

        Tables hold the coordinates of every step, the current place first: lat, lon, lat_1, lon_1, ... The current
        place is what gets reported.
        """
        place = Precomputed(self.base.distances, unit=self.base.unit)
        scales = [1.0, *self.weights.tolist()]
        metric = Weighted([(place, [column], scale) for column, scale in enumerate(scales)], unit=self.base.unit)
        width = self.base.coordinates.shape[1]
        groups = [range(step * width, (step + 1) * width) for step in range(len(scales))]
        ground = Weighted(
            [(self.base.ground, group, scale) for group, scale in zip(groups, scales, strict=True)],
            unit=self.base.ground.unit,
        )
        names = [name if lag == 0 else f"{name}_{lag}" for lag in range(len(scales)) for name in self.base.columns]
        coordinates = self.base.coordinates[self.histories].reshape(len(self), -1)
        return FiniteSpace(self.histories, metric, coordinates=coordinates, ground=ground, columns=names)

    @cached_property
    def _lookup(self) -> dict[bytes, int]:
        return {row.tobytes(): code for code, row in enumerate(np.ascontiguousarray(self.histories))}

    def encode(self, histories: ArrayLike) -> Integers:
        """Return the codes of histories (current place first), refusing those outside the domain."""
        rows = np.ascontiguousarray(np.atleast_2d(as_codes(histories, len(self.base), "histories")))
        if rows.shape[1] != self.lags + 1:
            raise InvalidInput(
                f"a history must be {self.lags + 1} codes, the current place first, got {rows.shape[1]}. "
                "At the start of a trip repeat its first place (`Walks.histories` does)."
            )
        codes = np.fromiter((self._lookup.get(row.tobytes(), -1) for row in rows), dtype=np.int64, count=len(rows))
        strangers = np.flatnonzero(codes < 0)
        if strangers.size:
            first = int(strangers[0])
            raise OutOfDomain(
                f"row {first}: the history {rows[first].tolist()} is not in the domain ({strangers.size} such rows). "
                "Clean the trace (impossible steps), or allow such steps when the domain is built.",
                rows=tuple(int(r) for r in strangers[:1000]),
            )
        return codes


Space = FiniteSpace | Box | Unbounded


def _show(value: Points) -> str:
    items = [str(v) if isinstance(v, str) else f"{v:.9g}" for v in np.asarray(value).ravel()[:6].tolist()]
    return "(" + ", ".join(items) + (", ..." if value.size > 6 else "") + ")"
