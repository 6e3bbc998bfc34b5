"""What the loss of a design counts: how likely every place is, and what it costs to report another one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp import wording
from metricdp.arrays import Floats, Points
from metricdp.cli.choices import Places, distance_in
from metricdp.cli.counts import Counted, coordinates_in, counts_from, nearest_places
from metricdp.cli.policies import Ground, area_names
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput
from metricdp.metrics import Lp, pairwise
from metricdp.spaces import FiniteSpace
from metricdp.tables import there_are

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
    before = places.before
    if wanted in (None, "distance"):
        if before is None:
            return replace(BY_DISTANCE, unit=space.unit)
        return Cost(before.distances if len(before) <= DENSE else before, BY_DISTANCE.about, before.unit)
    if wanted == "squared":
        return _in_squares(space if before is None else before, by_number=before is not None)
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


def _in_squares(space: FiniteSpace, *, by_number: bool) -> Cost:
    """Return the squared distance; `by_number` where it is asked for places by number, not by coordinates."""

    def squared(a: Points, b: Points) -> Floats:
        if by_number:
            a, b = (space.points[np.asarray(rows)[..., 0].astype(np.int64)] for rows in (a, b))
        return np.asarray(space.metric(a, b) ** 2)

    unit = f"{space.unit}²" if space.unit else ""
    loss = space.distances**2 if len(space) <= DENSE else squared
    return Cost(loss, "the squared distance from the truth to the report", unit)


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


def scaled_by(
    path: str, places: Places, cost: Cost, *, categories: str | None = None, reach: str | None = None
) -> tuple[Places, Cost]:
    """Return the places with distances that count less in sensitive regions; the loss stays in the distances of before.

    What was read is said: how many places lie in a region.
    """
    from metricdp.cli.reading import read_table
    from metricdp.places import scaled

    table, space = read_table(path), places.space
    names = [name for name in table.schema.names if name != "name"]
    if categories is not None or "category" in names:
        scale = _by_category(table, path, places, categories)
    else:
        scale = _by_region(table, path, names, space)
    inside = int((scale != 1.0).sum())
    note(f"{inside:,} of {len(space):,} places lie in regions of their own scale, from {scale.min():g}.")
    if cost.is_distance:
        cost = replace(cost, loss=space.distances if len(space) <= DENSE else space)
    longest = None if reach is None else distance_in(reach, space.unit, "reach")
    return replace(places, space=scaled(space, scale, reach=longest)), cost


def _by_region(table: pa.Table, path: str, names: list[str], space: FiniteSpace) -> Floats:
    from metricdp.places import region_scale

    try:
        columns = {name: np.asarray(table[name].to_numpy(), dtype=np.float64) for name in names}
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{path!r} must hold numbers, but for a column `name`. {there_are(names)}") from error
    return region_scale(space, columns)


def _by_category(table: pa.Table, path: str, places: Places, categories: str | None) -> Floats:
    """Return the scale of every place by its categories: the smallest, where a table gives it several."""
    from metricdp.cli.reading import numbers_of, read_table
    from metricdp.places import region_scale

    names = table.schema.names
    if categories is None or not {"category", "scale"} <= set(names):
        raise InvalidInput(
            f"scales by category need a table with the columns category and scale (--sensitivity) and the categories "
            f"of places (--categories kinds.csv, or column:kind of the points). In {path!r}: {there_are(names)}"
        )
    space, scale = places.space, numbers_of(table.column("scale").combine_chunks(), "scale", path)
    regions: dict[str, Any] = {"category": [str(one) for one in table.column("category").to_pylist()], "scale": scale}
    word, colon, column = categories.partition(":")
    if word == "column" and colon:
        own = list(_of_points(places, column.strip()))
        codes = np.arange(len(own)) if places.rows is None else places.rows
    else:
        kinds = read_table(categories)
        if "category" not in kinds.schema.names:
            raise InvalidInput(f"{categories!r} has no column 'category'. {there_are(kinds.schema.names)}")
        own, beside = kinds.column("category").to_pylist(), coordinates_in(kinds, space)
        if beside:
            codes, known = nearest_places(kinds, categories, beside, space, Counted("categories", "the category"))
            own, codes = [one for one, near in zip(own, known.tolist(), strict=True) if near], codes[known]
        elif len(own) != len(space):
            raise InvalidInput(
                f"{categories!r} has {len(own):,} rows, and there are {len(space):,} places: give one row a place in "
                "their order, or the coordinates as well, so that rows are matched by where they are."
            )
        else:
            codes = np.arange(len(space))
    rows = FiniteSpace(np.arange(len(own)), Lp(1))  # one scale a row of the table, the smallest of a place counts
    by_row = region_scale(rows, regions, categories=[None if one is None else str(one) for one in own])
    found = np.ones(len(space))
    np.minimum.at(found, codes, by_row)
    return found


def _of_points(places: Places, column: str) -> Sequence[str]:
    where = places.where
    if where is None or where.points is None:
        raise InvalidInput("--categories column:NAME names a column of the points: it belongs to --points.")
    ground = Ground(places.space, None, where.points, None, where.table.reading())
    return area_names(ground, column)


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
    """Return how likely every place is, from a table of counts or shares (`counts_from`)."""
    what = Counted("prior", "how likely a place is", column, within)
    return _normalised(counts_from(path, places.space, places.rows, what), path)


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
