"""Options that say where secrets are, which of them must be hidden from each other, and how far."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from metricdp.cli.options import DEFAULT_READING, Corners, ReadingOptions, distance_in, metric_of, numbers
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput

if TYPE_CHECKING:
    from metricdp.arrays import Floats
    from metricdp.spaces import FiniteSpace
    from metricdp.tables.points import PlaceTable, PointFile

Left = Literal["refuse", "join", "disclose"]
USUAL = (
    "a file of edges, areas:COLUMN (of --points), neighbours or neighbours:8 (with --grid), streets (with --roads), "
    "nearest:4, within:300m"
)
SHOWN = 6  # edges that a note names
SHAPE = "such as --requirement 200,4000: 200 within level 1, growing with the square of the level, up to 4000"


@dataclass(frozen=True, eq=False)
class PlaceSet:
    """The secrets: their space, how they were named, and the file that they were read from.

    `before` is their space in distances of their own, where the promise counts levels.
    """

    space: FiniteSpace
    where: PlaceOptions | None = None
    file: PointFile | None = None
    before: FiniteSpace | None = None

    def from_table(self, read: Callable[[PlaceTable], Any], option: str = "prior") -> Any:
        """Return what is read of a table about the places; what was done there is said."""
        from metricdp.tables.points import PlaceTable

        table = PlaceTable(self.space, self.file, option)
        found = read(table)
        for sentence in table.notes:
            note(sentence)
        return found

    @property
    def cell(self) -> float:
        """How far a position of a map lies from the middle of its cell at most; zero where secrets are no cells."""
        from metricdp.places import cell_radius

        if self.where is None or self.where.cell is None:
            return 0.0
        return cell_radius(self.space, distance_in(self.where.cell, self.space.ground.unit, "cell"))


@dataclass(frozen=True)
class PolicyOptions:
    """Which places must be hidden from each other, where that is a graph.

    Attributes:
        policy: Which of them must be hidden from each other, so that epsilon is per hop: a table of edges with the
            columns from and to (rows of the points from 0, or names of their column id) and, where wanted, length; or
            areas:district, all places with the same value in that column of the points; or neighbours, neighbours:8
            (of --grid), streets (of --roads), nearest:4, within:300m.
        bordering: With areas: whose places are hidden from each other too, one hop apart: areas that come as near to
            each other as this distance, such as 500m, or a table of pairs with the columns from and to.
        lengths: How long an edge is: hop (the default), or distance, what the places lie apart; epsilon is then per km.
        isolated: With a policy: what becomes of places without an edge: refuse, join (to the nearest), disclose.
        apart: With a policy: what becomes of parts that no edge joins: refuse, join, disclose (reports may reveal it).
    """

    policy: str | None = None
    bordering: str | None = None
    lengths: Literal["hop", "distance"] | None = None
    isolated: Left | None = None
    apart: Left | None = None

    def check(self) -> None:
        """Refuse what says more about a policy that was not asked for."""
        if self.policy is None:
            for option in ("bordering", "lengths", "isolated", "apart"):
                if getattr(self, option) is not None:
                    raise InvalidInput(f"--{option} says more about a policy: give --policy, which is {USUAL}.")
        elif self.bordering is not None and self.column is None:
            raise InvalidInput("--bordering says which areas are neighbours: it belongs to --policy areas:COLUMN.")

    @property
    def column(self) -> str | None:
        """The column of the points that names areas, where the policy is one of areas."""
        word, colon, rest = (self.policy or "").partition(":")
        return rest.strip() if word == "areas" and colon and rest.strip() else None

    @property
    def besides(self) -> tuple[str, ...]:
        """The columns of the points that name places or areas and are no coordinates."""
        if self.policy is None:
            return ()
        from metricdp.tables.points import IDS

        return (*IDS, self.column or "")

    def apply_to(self, places: PlaceSet) -> FiniteSpace:
        """Return the places in the distances of the policy; a note says which edges were added."""
        from metricdp.places import policy, policy_graphs

        edges, lengths = self._edges(places)
        left, parts, space = self.isolated or "refuse", self.apart or "refuse", places.space
        if self.lengths is not None and lengths is not None:
            raise InvalidInput(f"{self.policy!r} has lengths of its own: leave --lengths away.")
        added = policy_graphs.repairs(space, edges, isolated=left, parts=parts)
        if len(added):
            source_name = ", ".join(f"{one}-{two}" for one, two in added[:SHOWN].tolist())
            more = f" and {len(added) - SHOWN:,} more" if len(added) > SHOWN else ""
            count = "an edge" if len(added) == 1 else f"{len(added):,} edges"
            note(f"the policy was given {count} between nearest places: {source_name}{more}.")
        steps = "distance" if self.lengths == "distance" else lengths
        made = policy(space, edges, lengths=steps, isolated=left, parts=parts)
        several = policy_graphs.parts(made)
        if len(several) > 1:
            single = sum(len(part) == 1 for part in several)
            alone = f" and {single:,} of one place" if single else ""
            note(
                f"the policy falls into {len(several):,} parts, the largest of {len(several[0]):,} places{alone}: "
                "reports may reveal the part, as asked."
            )
        return made

    def _edges(self, places: PlaceSet) -> Any:
        """Return the edges that were named, and their lengths where a table has some."""
        from metricdp.places import map_shape, policy_graphs

        wanted, space = str(self.policy), places.space
        word, _, rest = wanted.partition(":")
        if word == "areas" and not Path(wanted).exists():
            return self._areas(places), None
        if word == "neighbours" and places.where is not None and places.where.grid is not None:
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
            edges = policy_graphs.within(space, _number_near(rest, space.unit, f"--policy {wanted}", "within:"))
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
        return places.from_table(lambda table: table.edges(wanted))

    def _areas(self, places: PlaceSet) -> Any:
        from metricdp.places import policy_graphs

        if self.column is None:
            raise InvalidInput(f"--policy {self.policy}: say which column names the areas, such as areas:district.")
        if places.file is None:
            raise InvalidInput("--policy areas:COLUMN names a column of the points: it belongs to --points.")
        names = places.file.labels(self.column)
        pairs = None if self.bordering is None else self._pairs(places.space, names, self.bordering)
        edges = policy_graphs.areas(names, neighbours=pairs)
        if not len(edges):
            raise InvalidInput(
                f"{places.file.path!r}: every place has a {self.column!r} of its own, so that no place would be hidden "
                "from another."
            )
        return edges

    def _pairs(self, space: FiniteSpace, names: list[str], path: str) -> Any:
        """Return the pairs of areas that are neighbours, by a distance or by a table; None where there are none."""
        from metricdp.places import policy_graphs
        from metricdp.tables.points import read_pairs

        if Path(path).suffix.lower().strip(".").isalpha() or Path(path).exists():
            return read_pairs(path, names)
        found = policy_graphs.bordering(space, names, _number_near(path, space.unit, f"--bordering {path}", ""))
        if not found:
            note(f"no two areas lie within {path} of each other: none has a neighbour.")
        return found or None


@dataclass(frozen=True)
class ElasticOptions:
    """How far a place is hidden, where that is not a distance: as far as it takes until enough is inside.

    Attributes:
        elastic: Count distances in levels, each as far as it takes until enough public mass is inside, so that epsilon
            is per level: one (every place counts one), column:people (that column of the points), or a table of counts
            like that of --prior. Losses stay in the distances of before.
        elastic_column: Which column of that table holds the mass, where there are several.
        requirement: With elastic: how much mass lies within level 1, growing with the square of the level, and where it
            ends, such as 200,4000. Above 4,096 places it must end.
    """

    elastic: str | None = None
    elastic_column: str | None = None
    requirement: str | None = None

    def check(self) -> None:
        """Refuse what says more about an elastic metric that was not asked for, and one without a requirement."""
        if self.elastic is None:
            for option in ("elastic_column", "requirement"):
                if getattr(self, option) is not None:
                    shown = option.replace("_", "-")
                    raise InvalidInput(f"--{shown} says more about --elastic, which is not given.")
        elif self.requirement is None:
            raise InvalidInput(f"--elastic needs --requirement, how much of that mass a level holds, {SHAPE}.")

    @property
    def column(self) -> str | None:
        """The column of the points that holds the mass."""
        word, colon, rest = (self.elastic or "").partition(":")
        return rest.strip() if word == "column" and colon else None

    @property
    def besides(self) -> tuple[str, ...]:
        """The columns of the points that are no coordinates."""
        return () if self.column is None else (self.column,)

    def apply_to(self, places: PlaceSet) -> FiniteSpace:
        """Return the places in levels; what lies within the first ones is said."""
        from metricdp.places import elastic

        first, most = self._parse_requirement()
        mass = self._mass(places)
        total = float(mass.sum())

        def requirement(level: float) -> float:
            return min(first * level * level, most)

        if most > total:
            note(f"all places together have a mass of {total:,.6g}: more than that is not asked for.")
        made = elastic(places.space, mass=mass, requirement=requirement)
        ends = f", up to {most:,.6g}" if math.isfinite(most) else ""
        note(
            f"level 1 holds a mass of at least {min(first, total):,.6g}, level 2 {min(requirement(2.0), total):,.6g}, "
            f"growing with the square of the level{ends}; the mass is public."
        )
        return made

    def _parse_requirement(self) -> tuple[float, float]:
        meaning = f"one or two numbers above 0, {SHAPE}"
        found = numbers(str(self.requirement), "requirement", meaning)
        if len(found) > 2 or not all(0 < number < math.inf for number in found):
            raise InvalidInput(f"--requirement must be {meaning}; got {self.requirement!r}.")
        first, most = found[0], found[1] if len(found) == 2 else math.inf
        if most < first:
            raise InvalidInput(f"--requirement {self.requirement} ends at {most:g}, below the {first:g} of level 1.")
        return first, most

    def _mass(self, places: PlaceSet) -> Floats:
        import numpy as np

        if self.elastic == "one":
            if self.elastic_column is not None:
                raise InvalidInput("--elastic-column names a column of a table, and with --elastic one there is none.")
            rows = None if places.file is None else places.file.rows
            return np.ones(len(places.space)) if rows is None else np.bincount(rows).astype(np.float64)
        if self.column is None:
            path, column = str(self.elastic), self.elastic_column
            mass: Floats = places.from_table(
                lambda table: table.counts(path, "the mass of a place", column=column), "elastic"
            )
            return mass
        if places.file is None:
            raise InvalidInput("--elastic column:NAME names a column of the points: it belongs to --points.")
        return places.file.sums(self.column)


NO_POLICY, NOT_ELASTIC = PolicyOptions(), ElasticOptions()


@dataclass(frozen=True)
class PlaceOptions:
    """Where secrets are: the points of a file, the crossings of a road network, or the cells of a map.

    Attributes:
        points: A table of points, one a row, one coordinate a column (or lat, lon). `metricdp list formats` lists what
            can be read.
        metric: How far places are apart, such as l2 or haversine:mi; `metricdp list metrics` lists the names. lat and
            lon mean haversine. On roads distances run along the roads, in km.
        roads: The crossings of a city such as rome, a folder or a GraphML file. The folder has the tables nodes and
            edges (.parquet or .csv); the GraphML file is one that osmnx writes; a city lies in the data folder.
        nodes: With --roads: how many crossings around the centre, instead of all.
        grid: The cells of a map between two corners, south,west,north,east. They are in degrees, such as
            41.8,12.4,42.0,12.6; with --metric l2 they are x,y,x,y. A secret lies at the middle of its cell.
        cell: With --grid: how wide and high a cell is, such as 200m.
        vectors: The words of a file of word vectors, such as glove.npz. It is GloVe, word2vec, fastText, .npz,
            safetensors or Parquet; several files with commas between; or bundled, 2,161 English words to try things
            with.
        words: With --vectors: how many of its first words, or a file with one word a line. Without: the words of a
            file, measured by their spelling.
    """

    points: str | None = None
    metric: str | None = None
    roads: str | None = None
    nodes: int | None = None
    grid: Corners | None = None
    cell: str | None = None
    vectors: str | None = None
    words: str | None = None
    policy: Annotated[PolicyOptions, Parameter(name="*")] = NO_POLICY
    levels: Annotated[ElasticOptions, Parameter(name="*")] = NOT_ELASTIC
    table: Annotated[ReadingOptions, Parameter(name="*")] = DEFAULT_READING

    def places(self) -> PlaceSet:
        """Return them; a note is said where rows of a file are one place."""
        self._check()
        found = self._read_places()
        if self.levels.elastic is not None:
            return replace(found, space=self.levels.apply_to(found), before=found.space)
        return found if self.policy.policy is None else replace(found, space=self.policy.apply_to(found))

    def _read_places(self) -> PlaceSet:
        if self.points is not None:
            besides = (*self.policy.besides, *self.levels.besides)
            file = point_file(self.points, self.table, besides).distinct()
            space = file.space(self.metric)
            for sentence in file.notes:
                note(sentence)
            return PlaceSet(space, self, file)
        if self.are_words:
            from metricdp.text.lists import word_space

            space, notes = word_space(self.vectors, self.words, None if self.metric is None else metric_of(self.metric))
            for sentence in notes:
                note(sentence)
            return PlaceSet(space, self)
        if self.grid is not None:
            return PlaceSet(cells(self.grid, str(self.cell), self.metric), self)
        from metricdp.places import road_network

        return PlaceSet(road_network(str(self.roads), nodes=self.nodes), self)

    def _check(self) -> None:
        given = [name for name in ("points", "roads", "grid", "vectors") if getattr(self, name) is not None]
        given = given or (["words"] if self.words is not None else [])
        if len(given) != 1:
            found = " and ".join(f"--{name}" for name in given) or "none of them"
            raise InvalidInput(
                "say where secrets are, with either --points cells.csv, or --roads and a city, a folder or a GraphML "
                f"file, or --grid 41.8,12.4,42.0,12.6 --cell 200m, or --vectors glove.npz for words; got {found}."
            )
        if self.words is not None and given[0] not in ("vectors", "words"):
            raise InvalidInput(f"--words is for words, alone or with --vectors; leave it away with --{given[0]}.")
        if self.nodes is not None and self.roads is None:
            raise InvalidInput(f"--nodes counts crossings and belongs to --roads; leave it away with --{given[0]}.")
        if self.metric is not None and self.roads is not None:
            raise InvalidInput("--metric belongs to --points: with --roads distances run along the roads, in km.")
        if (self.cell is None) != (self.grid is None):
            raise InvalidInput("--grid and --cell belong together, such as --grid 41.8,12.4,42.0,12.6 --cell 200m.")
        self.policy.check()
        self.levels.check()
        if self.policy.policy is not None and self.levels.elastic is not None:
            raise InvalidInput("--policy counts hops and --elastic levels: a promise is in one of them.")
        if self.levels.elastic is not None and self.are_words:
            raise InvalidInput("--elastic grows around places on a map; words have none.")

    @property
    def are_words(self) -> bool:
        """Whether secrets are words."""
        return self.vectors is not None or self.words is not None

    @property
    def source_name(self) -> str | None:
        """The file or folder that was named."""
        return self.points or self.roads or self.vectors or self.words

    def describe(self, space: FiniteSpace) -> str:
        """Return what they are and how many."""
        kind = "crossings" if self.roads is not None else "cells" if self.grid is not None else "points"
        kind = "words" if self.are_words else kind
        return f"{len(space):,} {kind}"


NOWHERE = PlaceOptions()


def cells(corners: str, size: str, metric: str | None) -> FiniteSpace:
    """Return the middles of the square cells that cover a map: `south,west,north,east` on the Earth, else x,y,x,y."""
    from metricdp.metrics import points_are
    from metricdp.places import map_cells

    chosen = metric_of(metric or "haversine")
    meaning = "south,west,north,east in degrees" if points_are(chosen, "degrees") else "x,y of two corners"
    found = numbers(corners, "grid", f"four numbers, {meaning}, such as 41.8,12.4,42.0,12.6", count=4)
    return map_cells(found, distance_in(size, chosen.unit, "cell"), metric=chosen)


def point_file(path: str, table: ReadingOptions = DEFAULT_READING, besides: tuple[str, ...] = ()) -> PointFile:
    """Return the points of a file."""
    from metricdp.tables.points import read_points

    return read_points(path, table.names, table.reading(), force=table.force, besides=besides)


def _number_near(text: str, unit: str, said: str, word: str) -> float:
    from metricdp.units import parse_distance

    if not text or (unit and not text.strip()[-1:].isalpha()):
        example = f"{text or '300'}{unit}" if unit else "2.5"
        raise InvalidInput(f"{said}: say how near, with a unit where distances have one: {word}{example}.")
    return parse_distance(text, unit)
