"""Finitely many secrets with a metric."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from metricdp import constants
from metricdp.arrays import (
    Booleans,
    Floats,
    Integers,
    Points,
    as_codes,
    as_points,
    as_positive,
    as_whole,
    frozen,
    set_fields,
)
from metricdp.errors import InvalidInput
from metricdp.metrics import Metric, ShortestPath, earth_of, pairwise, protected_distance, roads_of, tree_of
from metricdp.progress import report_task
from metricdp.spaces.base import (
    are_measurable,
    exchange_hint,
    format_value,
    metric_rule,
    missing_number_text,
    number_rows,
    refuse,
    space_card,
)
from metricdp.spaces.grids import finer_points, grid_radius
from metricdp.spaces.near import Near, near_pairs, nearest_pair, widest_distance
from metricdp.spaces.search import NearestSearch, search_for

ROUNDING = constants.ROUNDING  # a value this close to a secret, relative to the largest coordinate, is that secret

MOST_DISTANCES = 20_000**2  # that a matrix of all of them may hold, 3.2 GB


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

    limits: ClassVar[None] = None

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
        set_fields(
            self,
            columns=tuple(columns),
            points=array,
            metric=metric,
            coordinates=places,
            ground=metric if ground is None else ground,
        )

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"FiniteSpace({len(self)} points, {type(self.metric).__name__})"

    _repr_html_ = space_card

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def width(self) -> int:
        return int(self.coordinates.shape[1])

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def finite(self) -> FiniteSpace:
        return self

    @property
    def network(self) -> ShortestPath | None:
        return roads_of(self.metric)

    @property
    def is_text(self) -> bool:
        return self.coordinates.dtype.kind == "U"

    @cached_property
    def distances(self) -> Floats:
        """All distances, exactly symmetric, zero on the diagonal."""
        _refuse_large(len(self), len(self))
        with report_task("measuring distances"):
            matrix = pairwise(self.metric, self.points, self.points)
        matrix = np.minimum(matrix, matrix.T)
        np.fill_diagonal(matrix, 0.0)
        if not np.all(np.isfinite(matrix)):
            i, j = (int(x) for x in np.argwhere(~np.isfinite(matrix))[0])
            raise InvalidInput(
                f"the secrets {i} and {j} are at distance {matrix[i, j]}: no finite epsilon protects such a pair. "
                "Keep one connected part of the network."
            )
        if np.count_nonzero(matrix > 0) < matrix.size - len(matrix):
            i, j = (int(x) for x in np.argwhere((matrix <= 0) & ~np.eye(len(matrix), dtype=bool))[0])
            raise InvalidInput(f"the secrets {i} and {j} are at distance 0: merge them into one.")
        matrix.flags.writeable = False  # nobody else holds it: no copy
        return matrix

    def distances_to(self, outputs: FiniteSpace) -> Floats:
        """Return the distances from every secret to every report of `outputs`, in this space's metric."""
        if outputs is self:
            return self.distances
        self.refuse_other(outputs)
        _refuse_large(len(self), len(outputs))
        return pairwise(self.metric, self.points, outputs.points)

    def near(self, radius: float, outputs: FiniteSpace | None = None) -> Near:
        """Return for every secret the reports of `outputs` (the secrets themselves by default) at most `radius` away.

        Distances are in this space's metric, those that `distances` and `distances_to` would hold, without the matrix:
        for roads by searches up to the radius, in the plane and on the Earth by a tree.
        """
        reports = self if outputs is None else outputs
        self.refuse_other(reports)
        same = reports is self or np.array_equal(reports.points, self.points)
        return near_pairs(self.metric, self.points, reports.points, as_positive(radius, "radius"), symmetric=same)

    def refuse_other(self, outputs: FiniteSpace) -> None:
        """Refuse reports that this space's metric cannot measure, for the shape of their points."""
        if outputs.points.shape[1:] != self.points.shape[1:]:
            raise InvalidInput(
                f"the outputs must have {self.points.shape[1:]} coordinates like the inputs, "
                f"got {outputs.points.shape[1:]}; or give a `loss` matrix."
            )

    def part(self, codes: Integers) -> FiniteSpace:
        """Return some of the secrets, in the metric of all: paths may leave the part."""
        coordinates: Any = None if self.coordinates is self.points else self.coordinates[codes]
        return replace(self, points=self.points[codes], coordinates=coordinates)

    def around(self, place: ArrayLike, radius: float) -> Integers:
        """Return the codes of the secrets at most `radius` from a place, both as tables hold them (`ground`)."""
        reach, center = as_positive(radius, "radius"), as_points(np.atleast_2d(place), "place")
        _, away = self.nearest(center)
        if not away[0] <= reach:
            unit = f" {self.ground.unit}" if self.ground.unit else ""
            raise InvalidInput(
                f"no secret lies within {reach:g}{unit} of that place: the nearest is {away[0]:.6g}{unit} away. "
                "Take a larger radius or another place."
            )
        return np.flatnonzero(self.ground(center[0], self.coordinates) <= reach)

    def nearest(self, values: Any) -> tuple[Integers, Floats]:
        """Return the code of the nearest secret to every value, and its distance."""
        rows = as_points(values, "values")
        if self.is_text:
            raise InvalidInput("text has no nearest secret here; look words up with `encode`.")
        if rows.shape[1:] != self.coordinates.shape[1:]:
            raise InvalidInput(
                f"values must have {self.coordinates.shape[1]} columns like the secrets, got shape {rows.shape}."
            )
        self.ground.check(rows)
        codes = self._search.nearest(rows)
        return codes, self.ground(rows, self.coordinates[codes])

    @cached_property
    def _search(self) -> NearestSearch:
        return search_for(self.coordinates, self.ground)

    def tolerance(self, snap: float = 0.0) -> float:
        """Return how far a value may lie from a secret and still be it: the declared snap, or rounding."""
        earth = earth_of(self.ground)
        scale = 1.0 + float(np.abs(self.coordinates).max()) if earth is None else earth.radius
        return max(float(snap), ROUNDING * scale)

    @property
    def same_ground(self) -> bool:
        """Whether values are put on secrets by the very distances that the metric measures."""
        alike = self.ground is self.metric or bool(self.ground == self.metric)
        return alike and (self.coordinates is self.points or np.array_equal(self.coordinates, self.points))

    def charge(self, snap: float) -> float:
        """Return the distance that snapping can add between two secrets: times epsilon, it is the slack of snapping.

        Where `ground` is the metric it is 2 * snap, by the triangle inequality. Where it is not (roads under latitude
        and longitude) two values an arm's length apart can be put on secrets that are far apart in the metric: it is
        the largest distance between two secrets that one place can reach, max { d(s, s') : ground(s, s') <= 2 snap }.
        Secrets that a policy lets be told apart do not count: there is no guarantee between them, snapped or not.
        """
        if snap == 0:
            return 0.0
        if self.same_ground:
            return 2.0 * snap
        if snap not in self._charges:
            near = 2.0 * self.tolerance(snap)
            limit = protected_distance(self.metric, self.points)
            self._charges[snap] = widest_distance(
                self.points, self.metric, self.coordinates, self.ground, near, most=np.inf if limit is None else limit
            )
        return self._charges[snap]

    def span(self, apart: float, *, snap: float = 0.0) -> float:
        """Return how far apart in the metric two secrets can be on which values `apart` from each other are put.

        `apart` and `snap` are in the unit of `ground`. Where that is the metric it is apart + 2 snap, by the triangle
        inequality; elsewhere max { d(s, s') : ground(s, s') <= apart + 2 snap }, for which all such pairs are measured.
        """
        if self.same_ground:
            return apart + self.charge(snap)
        near = apart + 2.0 * self.tolerance(snap)
        return widest_distance(self.points, self.metric, self.coordinates, self.ground, near, most=np.inf)

    def finer(self, times: int = 2) -> FiniteSpace:
        """Return the places with candidates between them, as reports of a problem: `mdp.Problem(outputs=...)`.

        On a grid every step is cut into `times`; elsewhere the middles between neighbours are added. The guarantee is
        about the secrets, so that more reports never cost privacy; what they may save is loss.
        """
        plain = tree_of(self.metric) is not None and not self.is_text and self.same_ground
        if not plain or self.dimension > 3 or len(self) < 2:
            raise InvalidInput(
                "finer reports are made between points of up to three coordinates under l1, l2 or linf, and places on "
                "the Earth: give `outputs` as a space of your own, under the metric of the secrets."
            )
        points = np.asarray(self.points, dtype=np.float64)
        return FiniteSpace(finer_points(points, as_whole(times, "times", 2)), self.metric, columns=self.columns)

    @cached_property
    def nearest_pair(self) -> float:
        """How far apart the two nearest secrets are: for points under an l_p norm and on the Earth."""
        return nearest_pair(np.asarray(self.points, dtype=np.float64), self.metric)

    @cached_property
    def cell_radius(self) -> float | None:
        """How far a position of a cell lies from its middle at most; None where no grid has these places as middles.

        It is the largest distance of a corner: within a quarter of the globe the cosine of the distance is concave in
        either coordinate, so that nothing inside a cell is farther away. Cells are as wide as the grid is spaced.
        """
        if self.is_text or self.coordinates.shape[1] != 2 or tree_of(self.ground) is None:
            return None
        return grid_radius(np.asarray(self.coordinates, dtype=np.float64), self.ground)

    @cached_property
    def _charges(self) -> dict[float, float]:
        return {}

    def admit(self, rows: Any, /, *, snap: float = 0.0) -> tuple[Booleans, Integers]:
        """Return which rows are secrets (or within `snap` of one), and the codes of all rows."""
        if not (np.isfinite(snap) and snap >= 0):
            raise InvalidInput(f"`snap` must be a distance, zero or more, got {snap:g}.")
        if self.is_text:
            codes = np.fromiter((self._lookup.get(tuple(row), -1) for row in rows), dtype=np.int64, count=len(rows))
            return codes >= 0, np.maximum(codes, 0)
        values = number_rows(rows, self.width)
        good = are_measurable(self.ground, values)
        if good.all():
            found, near = self._search.within(values, self.tolerance(snap))
            return near, found
        codes = np.zeros(len(values), dtype=np.int64)
        if good.any():
            codes[good], near = self._search.within(values[good], self.tolerance(snap))
            good[good] = near
        return good, codes

    def legal(self, rows: Any, /) -> Booleans:
        """Tell which rows are secrets, up to rounding."""
        return self.admit(rows)[0]

    def rule(self, *, snap: float = 0.0) -> str:
        """Say which rows are secrets."""
        if self.is_text:
            return f"secrets are the {len(self):,} words of this vocabulary"
        if snap:
            unit = f" {self.ground.unit}" if self.ground.unit else ""
            return f"it lies beyond the declared snap of {snap:g}{unit} from all {len(self):,} secrets"
        return f"secrets are its {len(self):,} points, up to rounding"

    def why(self, row: Any, /) -> str:
        """Say whether a row is a secret, and if not which is the nearest; this shows the value."""
        if self.is_text:
            return self._why_word(np.asarray(row, dtype=np.str_).ravel())
        value = number_rows(np.atleast_2d(row), self.width)
        if not np.isfinite(value).all():
            return f"{missing_number_text(value[0])}."
        if not are_measurable(self.ground, value)[0]:
            hint = exchange_hint(self.ground, value) or "."
            return f"{format_value(value[0])} is not a secret: {metric_rule(self.ground)}{hint}"
        codes, away = self.nearest(value)
        if away[0] <= self.tolerance():
            return f"{format_value(value[0])} is a secret of this space."
        unit = f" {self.ground.unit}" if self.ground.unit else ""
        return (
            f"{format_value(value[0])} is not a secret of this space; the nearest is "
            f"{format_value(self.coordinates[codes[0]])}, "
            f"{away[0]:.6g}{unit} away."
        )

    def _why_word(self, words: Points) -> str:
        if tuple(words.tolist()) in self._lookup:
            return f"{format_value(words)} is a word of this vocabulary."
        known = {" ".join(row): row for row in self._lookup}
        close = difflib.get_close_matches(" ".join(words.tolist()), list(known), n=1, cutoff=0.0)[0]
        nearest = format_value(np.array(known[close]))
        return f"{format_value(words)} is not a word of this vocabulary; the nearest spelling is {nearest}."

    def encode(self, values: Any, /, *, snap: float = 0.0) -> Integers:
        """Return the codes of values, or refuse values that are no secrets.

        With `snap`, a value x up to that distance (in `ground`) from a secret becomes the nearest one, s(x); farther
        values are refused. The guarantee then holds for d(s(x), s(x')), the distance of the secrets that values were
        put on. For the values themselves it has a slack of epsilon * `charge(snap)`: where `ground` is the metric,
        d(s(x), s(x')) <= d(x, x') + 2 snap; where it is not, the slack is what two values at one place can differ by.
        """
        rows = as_points(values, "values")
        if (rows.dtype.kind == "U") != self.is_text or rows.shape[1:] != self.coordinates.shape[1:]:
            kind = "words" if self.is_text else "numbers"
            raise InvalidInput(f"values must have {self.width} columns of {kind} like the secrets, got {rows.shape}.")
        good, codes = self.admit(rows.tolist() if self.is_text else rows, snap=snap)
        if not good.all():
            hint = "" if self.is_text else exchange_hint(self.ground, rows[~good])
            refuse(good, self.rule(snap=snap) + hint, self._advice(snap))
        return codes

    def _advice(self, snap: float) -> str:
        if self.is_text:
            return "Map or drop unknown words first: passing them through would publish them."
        ask = "Raise" if snap else "Ask for snapping with"
        return f"{ask} `snap` (its slack is added to the guarantee) or drop the row."

    @cached_property
    def _lookup(self) -> dict[tuple[str, ...], int]:
        return {tuple(row): code for code, row in enumerate(self.coordinates.tolist())}

    def decode(self, secrets: ArrayLike, /) -> Points:
        """Return the coordinates behind codes."""
        return np.asarray(self.coordinates[as_codes(secrets, len(self), "codes")])


def _refuse_large(secrets: int, reports: int) -> None:
    if secrets * reports > MOST_DISTANCES:
        raise InvalidInput(
            f"all distances of {secrets:,} secrets and {reports:,} reports would take "
            f"{8e-9 * secrets * reports:,.0f} GB; `space.near(radius)` lists those within a radius, and "
            "`space.metric(a, b)` measures pairs."
        )


def _refuse_duplicates(points: Points) -> None:
    flat = points.reshape(len(points), -1)
    _, first, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
    if len(first) < len(flat):
        original = int(first[np.flatnonzero(counts > 1)[0]])
        same = np.flatnonzero((flat == flat[original]).all(axis=1))
        raise InvalidInput(
            f"`points` must be distinct, rows {int(same[0])} and {int(same[1])} are the same "
            f"({len(flat) - len(first)} repeated rows). Drop them (np.unique(points, axis=0)), add up their prior."
        )
