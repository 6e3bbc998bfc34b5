"""What the loss of a design counts: how likely every place is, and what it costs to report another one."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp import wording
from metricdp.arrays import Floats, Integers, Points
from metricdp.cli.choices import Places, distance_in
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine, pairwise
from metricdp.spaces import FiniteSpace
from metricdp.tables.task import LATITUDES, LONGITUDES, there_are

if TYPE_CHECKING:
    import pyarrow as pa  # imported where something is read

KINDS = ("distance", "squared", "ground", "time")
DENSE = 4_096  # secrets up to which a loss is one matrix


@dataclass(frozen=True, eq=False)
class Cost:
    """A loss for a problem (None: the distance), what it is called, and the unit of its figures."""

    loss: Any
    about: str
    unit: str

    @property
    def is_distance(self) -> bool:
        """Whether it is the distance from the truth to the report."""
        return self.loss is None


BY_DISTANCE = Cost(None, "the distance from the truth to the report", "")


def loss_from(wanted: str | None, places: Places, *, speed: float | None = None) -> Cost:
    """Return the loss that `--loss` names: distance, squared, ground, time (on roads), or a file with a matrix."""
    space = places.space
    if speed is not None and wanted != "time":
        raise InvalidInput("--speed says how fast streets are driven and belongs to --loss time.")
    if wanted in (None, "distance"):
        return replace(BY_DISTANCE, unit=space.unit)
    if wanted == "squared":
        unit = f"{space.unit}²" if space.unit else ""
        if len(space) <= DENSE:
            return Cost(space.distances**2, "the squared distance from the truth to the report", unit)
        return Cost(_squared(space), "the squared distance from the truth to the report", unit)
    if wanted == "ground":
        return _on_the_ground(space)
    if wanted == "time":
        return _minutes(places, speed)
    path = str(wanted)
    if not Path(path).exists() and not Path(path).suffix:
        near = difflib.get_close_matches(path, KINDS, 1, 0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"--loss must be {', '.join(KINDS)} or a file with a matrix, got {path!r}.{hint}")
    return Cost(_matrix(path, places), f"what {Path(path).name} says", "")


def _squared(space: FiniteSpace) -> Callable[[Points, Points], Floats]:
    def squared(a: Points, b: Points) -> Floats:
        return np.asarray(space.metric(a, b) ** 2)

    return squared


def _on_the_ground(space: FiniteSpace) -> Cost:
    """Return the distance of coordinates, where the metric counts something else: hops of a policy, say."""
    if space.is_text:
        raise InvalidInput("--loss ground is the distance of places on a map; words have none.")
    places, words = space.coordinates, "the distance from the truth to the report on the ground"
    if len(space) <= DENSE:
        return Cost(pairwise(space.ground, places, places), words, space.ground.unit)
    if space.coordinates is space.points:
        return Cost(space.ground, words, space.ground.unit)
    if not np.array_equal(space.points[:, 0], np.arange(len(space))):
        raise InvalidInput(f"--loss ground is for places by number, or at most {DENSE:,} of them.")

    def ground(a: Points, b: Points) -> Floats:
        one, two = (np.asarray(rows)[..., 0].astype(np.int64) for rows in (a, b))
        return np.asarray(space.ground(places[one], places[two]))

    return Cost(ground, words, space.ground.unit)


def _minutes(places: Places, speed: float | None) -> Cost:
    from metricdp.places import travel_time

    where, space = places.where, places.space
    if where is None or where.roads is None:
        raise InvalidInput("--loss time is the time to drive along streets: it belongs to --roads.")
    metric = travel_time(where.roads, nodes=where.nodes, speed_kmh=speed)
    words = "the time to drive from the truth to the report"
    if len(space) <= DENSE:
        return Cost(pairwise(metric, space.points, space.points), words, "min")
    return Cost(metric, words, "min")


def _matrix(path: str, places: Places) -> Floats:
    """Return a loss for every place and report; rows and columns of points that were merged must agree."""
    from metricdp.cli.matrices import read_distances

    matrix, size = read_distances(path, "the losses of all pairs of places"), len(places.space)
    if places.rows is not None and len(matrix) == len(places.rows):
        first = np.unique(places.rows, return_index=True)[1]
        merged = matrix[np.ix_(first, first)]
        if not np.array_equal(merged[np.ix_(places.rows, places.rows)], matrix):
            raise InvalidInput(
                f"{path!r} gives different losses to points that are one place: leave repeated points away in both "
                "files."
            )
        return merged
    if len(matrix) != size:
        raise InvalidInput(f"{path!r} must hold a loss for every pair of the {size:,} places, got {matrix.shape}.")
    return matrix


def scaled_by(path: str, places: Places, cost: Cost) -> tuple[Places, Cost]:
    """Return the places with distances that count less in sensitive regions; the loss stays in the distances of before.

    What was read is said: how many places lie in a region.
    """
    from metricdp.cli.reading import read_table
    from metricdp.places import region_scale, scaled

    table, space = read_table(path), places.space
    names = [name for name in table.schema.names if name != "name"]
    try:
        columns = {name: np.asarray(table[name].to_numpy(), dtype=np.float64) for name in names}
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{path!r} must hold numbers, but for a column `name`. {there_are(names)}") from error
    scale = region_scale(space, columns)
    inside = int((scale != 1.0).sum())
    note(f"{inside:,} of {len(space):,} places lie in regions of their own scale, from {scale.min():g}.")
    if cost.is_distance:
        cost = replace(cost, loss=space.distances if len(space) <= DENSE else space)
    return replace(places, space=scaled(space, scale)), cost


def hidden_in_sets(
    error: str, places: Places, cost: Cost, *, epsilon: float, prior: Floats | None
) -> tuple[Places, Cost]:
    """Return the places in protection sets; the loss stays in the distances of before. What was made is said."""
    from metricdp.places import protection_sets

    space = places.space
    is_file = Path(error).exists() or (Path(error).suffix != "" and Path(error).suffix[1:2].isalpha())
    wanted: Any = numbers_for(error, places, option="error") if is_file else distance_in(error, space.unit, "error")
    sets = protection_sets(space, epsilon, error=wanted, prior=prior)
    least = wording.distance(float(sets.least.min()), space.unit, "down")
    widths = [wording.distance(float(one), space.unit, "up") for one in (sets.diameters.min(), sets.diameters.max())]
    many = "one protection set" if len(sets) == 1 else f"{len(sets):,} protection sets"
    known = "that all places are alike" if prior is None else "the prior"
    note(
        f"{len(space):,} places in {many}, {widths[0]} to {widths[1]} wide: after every report the best guess of "
        f"whoever knows {known} errs by {least} on average at least, even told the set."
    )
    if cost.is_distance:
        cost = replace(cost, loss=space.distances)
    return replace(places, space=sets.space), cost


def numbers_for(path: str, places: Places, *, option: str) -> Floats:
    """Return one number a place from a file with one column, in the order of the places."""
    from metricdp.cli.reading import read_numbers

    values = read_numbers(path)
    if len(values) != len(places.space):
        raise InvalidInput(
            f"--{option} {path} must hold one number a place, {len(places.space):,}, got {len(values):,}."
        )
    return values


def prior_from(path: str, places: Places, *, column: str | None = None, within: float | None = None) -> Floats:
    """Return how likely every place is, from a table of counts or shares.

    Where the table has the columns of the places (lat and lon, or the names in the file of points) its rows count for
    the place they name, or the nearest one; otherwise row by row in the order of the places. What was done is said.
    """
    from metricdp.cli.reading import read_table

    table, space = read_table(path), places.space
    if table.num_rows == 0:
        raise InvalidInput(f"{path!r} has no rows: give one row a place, or one a visit, below the header.")
    beside = _coordinates(table, space)
    weights = _weights(table, path, column, beside)
    if beside:
        total = _by_place(table, path, beside, weights, space, within)
    else:
        if within is not None:
            raise InvalidInput(f"--prior-within needs coordinates in {path!r}. {there_are(table.schema.names)}")
        total = _by_order(weights, path, places)
    return _normalised(total, path)


def _coordinates(table: pa.Table, space: FiniteSpace) -> tuple[str, ...]:
    """Return the columns of a table that say where a row is; none where it has no such columns."""
    names = table.schema.names
    if isinstance(space.ground, Haversine):
        found = [[name for name in names if name.lower() in known] for known in (LATITUDES, LONGITUDES)]
        return tuple(one[0] for one in found) if all(len(one) == 1 for one in found) else ()
    wanted = space.columns
    if not wanted or not all(name in names for name in wanted):
        return ()
    return wanted if len(names) > 1 else ()  # a single column holds numbers, whatever it is called


def _weights(table: pa.Table, path: str, column: str | None, beside: tuple[str, ...]) -> Floats:
    """Return what every row counts: the column that was named, the only other one, or one a row."""
    from metricdp.cli.reading import numbers_of

    names = table.schema.names
    left = [name for name in names if name not in beside]
    if column is None:
        if beside and not left:
            return np.ones(table.num_rows)
        if len(left) != 1:
            raise InvalidInput(
                f"{path!r} has the columns {', '.join(names)}: say with --prior-column which one holds how likely a "
                "place is" + (", or leave the others away to count rows." if beside else ".")
            )
        column = left[0]
    if column not in names:
        near = difflib.get_close_matches(column, names, 1, 0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidInput(f"{path!r} has no column {column!r} (--prior-column). {there_are(names)}{hint}")
    array = table.column(column).combine_chunks()
    values = numbers_of(array, column, path)
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(bad):
        raise InvalidInput(
            f"{path!r}: the column {column!r} must hold counts or shares of at least 0; row {bad[0]} (the first is row "
            f"0) does not ({len(bad):,} such rows)."
        )
    return values


def _by_order(weights: Floats, path: str, places: Places) -> Floats:
    size, rows = len(places.space), len(weights)
    if places.rows is not None and rows == len(places.rows):
        return np.asarray(np.bincount(places.rows, weights=weights, minlength=size), dtype=np.float64)
    if rows != size:
        also = "" if places.rows is None else f" (or {len(places.rows):,}, one a row of the points)"
        columns = " and ".join(places.space.columns or ("lat", "lon"))
        raise InvalidInput(
            f"{path!r} has {rows:,} rows, and there are {size:,} places{also}: give one row a place in their order, or "
            f"the columns {columns} as well, so that rows are matched by where they are."
        )
    return weights


def _by_place(
    table: pa.Table, path: str, beside: tuple[str, ...], weights: Floats, space: FiniteSpace, within: float | None
) -> Floats:
    """Add up the weights at the place that every row names, or at the nearest; rows far from all are left out."""
    from metricdp.cli.reading import numbers_of

    if space.is_text:
        codes, known = _spelled(table, beside[0], space)
        limit = 0.0
    else:
        rows = np.column_stack([numbers_of(table.column(n).combine_chunks(), n, path) for n in beside])
        space.ground.check(rows)
        codes, away = space.nearest(rows)
        limit = _spacing(space) if within is None else within
        known = away <= limit
    if not known.any():
        raise InvalidInput(f"no row of {path!r} lies {_within(limit, space)} any of the places: is it another city?")
    missed = int((~known).sum())
    left = f"; left out, since they lie not {_within(limit, space)} any: {missed:,}." if missed else "."
    note(f"the prior counts rows of {path} at the nearest of {len(space):,} places: {int(known.sum()):,}{left}")
    return np.asarray(np.bincount(codes[known], weights=weights[known], minlength=len(space)), dtype=np.float64)


def _spelled(table: pa.Table, name: str, space: FiniteSpace) -> tuple[Integers, Any]:
    known = {str(word): code for code, word in enumerate(space.coordinates[:, 0].tolist())}
    codes = np.array([known.get(str(word), -1) for word in table.column(name).to_pylist()], dtype=np.int64)
    return np.maximum(codes, 0), codes >= 0


def _spacing(space: FiniteSpace) -> float:
    """Return the largest distance from a place to its nearest other place: rows as far as that belong to none."""
    from scipy.spatial import KDTree

    points = np.asarray(space.coordinates, dtype=float)
    if isinstance(space.ground, Haversine):  # chords of the sphere are ordered like its arcs
        angles = np.radians(points)
        flat = np.cos(angles[:, 0])
        points = np.stack([flat * np.cos(angles[:, 1]), flat * np.sin(angles[:, 1]), np.sin(angles[:, 0])], axis=1)
    near = KDTree(points).query(points, k=2)[1][:, 1]
    return float(space.ground(space.coordinates, space.coordinates[near]).max())


def _within(limit: float, space: FiniteSpace) -> str:
    return f"within {wording.distance(limit, space.ground.unit, 'up')} of" if limit else "at"


def _normalised(counts: Floats, path: str) -> Floats:
    """Return shares that sum to one, and say what was done."""
    total = float(counts.sum())
    if not total > 0:
        raise InvalidInput(f"{path!r} gives every place a prior of 0: one of them must be likely.")
    if abs(total - 1.0) > 1e-6:
        note(f"the prior of {path} sums to {total:,.6g}: taken as counts and divided by that.")
    if zeros := int((counts == 0).sum()):
        note(
            f"places with a prior of 0: {zeros:,} of {len(counts):,}. The promise protects them like all others, the "
            "expected loss does not count them."
        )
    return counts / total
