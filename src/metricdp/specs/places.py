"""Places by their names: points of a file, crossings, cells or words, under a metric, a policy or elastic distances."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.metrics import ShortestPath, parse_metric, points_are
from metricdp.places import cell_radius, elastic, map_cells, map_shape, policy, policy_graphs, road_network
from metricdp.rendering import plural
from metricdp.spaces import FiniteSpace
from metricdp.specs.metrics import read_metric
from metricdp.specs.options import SHAPE, USUAL, PlaceSpec
from metricdp.tables.points import IDS, PlaceTable, PointFile, read_pairs, read_points
from metricdp.units import METRES, parse_distance, parse_numbers

SHOWN = 6  # edges that a note names


@dataclass(frozen=True, eq=False)
class Places:
    """The secrets that were asked for.

    Attributes:
        space: Their space.
        spec: How they were named.
        file: The file that they were read from.
        before: Their space in distances of their own, where the promise counts levels.
        notes: What was done without being asked for, a sentence each; reading a table about them adds to it.
    """

    space: FiniteSpace
    spec: PlaceSpec | None = None
    file: PointFile | None = None
    before: FiniteSpace | None = None
    notes: list[str] = field(default_factory=list)

    def table(self, option: str = "prior") -> PlaceTable:
        """Return what reads a table about the places; `option` is what sentences call it."""
        return PlaceTable(self.space, self.file, option, self.notes)

    @property
    def words(self) -> str:
        """What they are and how many."""
        return (self.spec or PlaceSpec()).describe(len(self.space))

    @property
    def cell(self) -> float:
        """How far a position of a map lies from the middle of its cell at most; zero where secrets are no cells."""
        if self.spec is None or self.spec.cell is None:
            return 0.0
        return cell_radius(self.space, parse_distance(self.spec.cell, self.space.ground.unit, option="cell"))


def point_space(points: list[list[float]], metric: str, streets: dict[str, Any] | None = None) -> FiniteSpace:
    """Return the space of points, one a row, under the metric of a name; along streets where there are any.

    `streets` holds the `edges` between rows and their `lengths`. No file is read: a name cannot be one.
    """
    if len({len(point) for point in points}) != 1 or not points[0]:
        raise InvalidInput("`points` must have the same number of coordinates in every row, at least one.")
    chosen, places = parse_metric(metric), np.array(points, dtype=np.float64)
    if streets is not None:
        roads = ShortestPath(streets["edges"], streets["lengths"], nodes=len(points))
        return FiniteSpace(np.arange(len(points))[:, None], roads, coordinates=places, ground=chosen)
    return FiniteSpace(places, chosen, columns=("lat", "lon") if points_are(chosen, "degrees") else ())


def read_places(spec: PlaceSpec) -> Places:
    """Return the places that are named, in the distances of a policy or an elastic metric where one is asked for."""
    spec.check()
    found = _read_space(spec)
    if spec.elastic is not None:
        return replace(found, space=_elastic_space(found, spec), before=found.space)
    return found if spec.policy is None else replace(found, space=_policy_space(found, spec))


def _read_space(spec: PlaceSpec) -> Places:
    if spec.points is not None:
        besides = (*columns_besides(spec), spec.mass_column or "")
        file = read_points(spec.points, spec.columns, spec.reading, force=spec.force, besides=besides).distinct()
        return Places(file.space(spec.metric), spec, file, notes=list(file.notes))
    if spec.are_words:
        from metricdp.text.lists import word_space

        metric = None if spec.metric is None else read_metric(spec.metric)
        space, notes = word_space(spec.vectors, spec.words, metric)
        return Places(space, spec, notes=list(notes))
    if spec.grid is not None:
        return Places(map_space(spec.grid, str(spec.cell), spec.metric), spec)
    return Places(road_network(str(spec.roads), nodes=spec.nodes), spec)


def columns_besides(spec: PlaceSpec) -> tuple[str, ...]:
    """Return the columns of the points that name places or areas of a policy and are no coordinates."""
    return () if spec.policy is None else (*IDS, spec.area_column or "")


def map_space(corners: str, size: str, metric: str | None) -> FiniteSpace:
    """Return the middles of the square cells that cover a map: `south,west,north,east` on the Earth, else x,y,x,y."""
    chosen = read_metric(metric or "haversine")
    meaning = "south,west,north,east in degrees" if points_are(chosen, "degrees") else "x,y of two corners"
    found = parse_numbers(corners, "grid", f"four numbers, {meaning}, such as 41.8,12.4,42.0,12.6", count=4)
    return map_cells(found, parse_distance(size, chosen.unit, option="cell"), metric=chosen)


def _policy_space(places: Places, spec: PlaceSpec) -> FiniteSpace:
    """Return the places in the distances of the policy; a note says which edges were added."""
    edges, lengths = _policy_edges(places, spec)
    left, parts, space = spec.isolated or "refuse", spec.apart or "refuse", places.space
    if spec.lengths is not None and lengths is not None:
        raise InvalidInput(f"{spec.policy!r} has lengths of its own: remove --lengths.")
    added = policy_graphs.repairs(space, edges, isolated=left, parts=parts)
    if len(added):
        ends = ", ".join(f"{one}-{two}" for one, two in added[:SHOWN].tolist())
        more = f" and {len(added) - SHOWN:,} more" if len(added) > SHOWN else ""
        places.notes.append(f"the policy was given {plural(len(added), 'edge')} between nearest places: {ends}{more}.")
    steps = "distance" if spec.lengths == "distance" else lengths
    made = policy(space, edges, lengths=steps, isolated=left, parts=parts)
    several = policy_graphs.parts(made)
    if len(several) > 1:
        single = sum(len(part) == 1 for part in several)
        alone = f" and {single:,} of one place" if single else ""
        places.notes.append(
            f"the policy falls into {len(several):,} parts, the largest of {len(several[0]):,} places{alone}: "
            "reports may reveal the part, as asked."
        )
    return made


def _policy_edges(places: Places, spec: PlaceSpec) -> Any:
    """Return the edges that were named, and their lengths where a table has some."""
    wanted, space = str(spec.policy), places.space
    word, _, rest = wanted.partition(":")
    if word == "areas" and not Path(wanted).exists():
        return _area_edges(places, spec), None
    if word == "neighbours" and spec.grid is not None:
        if rest not in ("", "4", "8"):
            raise InvalidInput(f"--policy {wanted}: a cell has neighbours (4) or neighbours:8, with diagonals.")
        return policy_graphs.grid_neighbours(map_shape(space), diagonal=rest == "8"), None
    if word == "streets" and space.network is not None:
        return policy_graphs.streets(space), None
    if word == "nearest":
        if not rest.isdigit():
            raise InvalidInput(f"--policy {wanted}: say how many nearest places, such as nearest:4.")
        return policy_graphs.nearest(space, int(rest)), None
    if word == "within":
        edges = policy_graphs.within(space, _parse_near(rest, space.unit, "policy", "within:"))
        if not len(edges):
            raise InvalidInput(f"--policy {wanted}: no two places are that near.")
        return edges, None
    if word in ("neighbours", "streets"):
        belongs = "--grid" if word == "neighbours" else "--roads"
        raise InvalidInput(
            f"--policy {word} belongs to {belongs}; elsewhere it is areas:COLUMN, nearest:4, within:300m or a file."
        )
    if not Path(wanted).exists() and not Path(wanted).suffix:
        raise InvalidInput(f"--policy must be {USUAL}; got {wanted!r}.")
    return places.table().edges(wanted)


def _area_edges(places: Places, spec: PlaceSpec) -> Any:
    """Return the edges between all places of an area, and of areas that are neighbours."""
    if spec.area_column is None:
        raise InvalidInput(f"--policy {spec.policy}: say which column names the areas, such as areas:district.")
    if places.file is None:
        raise InvalidInput("--policy areas:COLUMN names a column of the points: it belongs to --points.")
    names = places.file.labels(spec.area_column)
    edges = policy_graphs.areas(names, neighbours=_neighbour_areas(places, names, spec.bordering))
    if not len(edges):
        raise InvalidInput(
            f"{places.file.path!r}: every place has a {spec.area_column!r} of its own, so that no place would be "
            "hidden from another."
        )
    return edges


def _neighbour_areas(places: Places, names: list[str], wanted: str | None) -> Any:
    """Return the pairs of areas that are neighbours, by a distance or by a table; None where there are none."""
    if wanted is None:
        return None
    if Path(wanted).suffix.lower().strip(".").isalpha() or Path(wanted).exists():
        return read_pairs(wanted, names)
    unit = places.space.unit
    found = policy_graphs.bordering(places.space, names, _parse_near(wanted, unit, "bordering"))
    if not found:
        places.notes.append(f"no two areas lie within {wanted} of each other: none has a neighbour.")
    return found or None


def _parse_near(text: str, unit: str, option: str, before: str = "") -> float:
    if not text.strip():
        example = "300m" if unit in METRES else f"2{unit}" if unit else "2.5"
        raise InvalidInput(f"--{option} {before}: say how near, such as {before}{example}.")
    return parse_distance(text, unit, option=option, before=before)


def _elastic_space(places: Places, spec: PlaceSpec) -> FiniteSpace:
    """Return the places in levels; a note says what lies within the first ones."""
    first, most = _parse_requirement(str(spec.requirement))
    mass = _read_mass(places, spec)
    total = float(mass.sum())

    def requirement(level: float) -> float:
        return min(first * level * level, most)

    if most > total:
        places.notes.append(f"all places together have a mass of {total:,.6g}: more than that is not asked for.")
    made = elastic(places.space, mass=mass, requirement=requirement)
    ends = f", up to {most:,.6g}" if math.isfinite(most) else ""
    places.notes.append(
        f"level 1 holds a mass of at least {min(first, total):,.6g}, level 2 {min(requirement(2.0), total):,.6g}, "
        f"growing with the square of the level{ends}; the mass is public."
    )
    return made


def _parse_requirement(text: str) -> tuple[float, float]:
    meaning = f"one or two numbers above 0, {SHAPE}"
    found = parse_numbers(text, "requirement", meaning)
    if len(found) > 2 or not all(0 < number < math.inf for number in found):
        raise InvalidInput(f"--requirement must be {meaning}; got {text!r}.")
    first, most = found[0], found[1] if len(found) == 2 else math.inf
    if most < first:
        raise InvalidInput(f"--requirement {text} ends at {most:g}, below the {first:g} of level 1.")
    return first, most


def _read_mass(places: Places, spec: PlaceSpec) -> Floats:
    if spec.elastic == "one":
        if spec.elastic_column is not None:
            raise InvalidInput("--elastic-column names a column of a table, and with --elastic one there is none.")
        rows = None if places.file is None else places.file.rows
        return np.ones(len(places.space)) if rows is None else np.bincount(rows).astype(np.float64)
    if spec.mass_column is None:
        table = places.table("elastic")
        return table.counts(str(spec.elastic), "the mass of a place", column=spec.elastic_column)
    if places.file is None:
        raise InvalidInput("--elastic column:NAME names a column of the points: it belongs to --points.")
    return places.file.sums(spec.mass_column)
