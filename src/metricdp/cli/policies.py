"""A policy on the command line: a table of edges, areas by a column of the points, or the name of a usual one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import metricdp
from metricdp.arrays import Floats, Integers
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput
from metricdp.spaces import FiniteSpace
from metricdp.units import parse_distance

if TYPE_CHECKING:
    import pyarrow as pa

    from metricdp.tables import Reading

Left = Literal["refuse", "join", "disclose"]
LENGTHS = ("length", "weight")
IDS = ("id", "name", "node")
AREAS = "areas"
USUAL = (
    "a file of edges, areas:COLUMN (of --points), neighbours or neighbours:8 (with --grid), streets (with --roads), "
    "nearest:4, within:300m"
)
SHOWN = 6  # edges that a note names


@dataclass(frozen=True)
class Policy:
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
        return rest.strip() if word == AREAS and colon and rest.strip() else None

    @property
    def besides(self) -> tuple[str, ...]:
        """The columns of the points that name places or areas and are no coordinates."""
        return () if self.policy is None else (*IDS, self.column or "")

    def laid_over(self, ground: Ground) -> FiniteSpace:
        """Return the places in the distances of the policy; a note says which edges were added."""
        edges, lengths = self._edges(ground)
        left, parts, space = self.isolated or "refuse", self.apart or "refuse", ground.space
        if self.lengths is not None and lengths is not None:
            raise InvalidInput(f"{self.policy!r} has lengths of its own: leave --lengths away.")
        steps: Any = "distance" if self.lengths == "distance" else lengths
        added = metricdp.policies.repairs(space, edges, isolated=left, parts=parts)
        if len(added):
            named = ", ".join(f"{one}-{two}" for one, two in added[:SHOWN].tolist())
            more = f" and {len(added) - SHOWN:,} more" if len(added) > SHOWN else ""
            count = "an edge" if len(added) == 1 else f"{len(added):,} edges"
            note(f"the policy was given {count} between nearest places: {named}{more}.")
        made = metricdp.policy(space, edges, lengths=steps, isolated=left, parts=parts)
        several = metricdp.policies.parts(made)
        if len(several) > 1:
            single = sum(len(part) == 1 for part in several)
            alone = f" and {single:,} of one place" if single else ""
            note(
                f"the policy falls into {len(several):,} parts, the largest of {len(several[0]):,} places{alone}: "
                "reports may reveal the part, as asked."
            )
        return made

    def _edges(self, ground: Ground) -> tuple[Integers, Floats | None]:
        wanted, space = str(self.policy), ground.space
        word, _, rest = wanted.partition(":")
        if word == AREAS and not Path(wanted).exists():
            return self._areas(ground), None
        if word == "neighbours" and ground.sides is not None:
            if rest not in ("", "4", "8"):
                raise InvalidInput(f"--policy {wanted}: a cell has neighbours (4) or neighbours:8, with diagonals.")
            return metricdp.policies.grid_neighbours(ground.sides, diagonal=rest == "8"), None
        if word == "streets" and space.network is not None:
            pairs = np.unique(np.sort(space.network.edges, axis=1), axis=0)
            return pairs[pairs[:, 0] != pairs[:, 1]], None
        if word == "nearest":
            if not rest.isdigit():
                raise InvalidInput(f"--policy {wanted}: say how many nearest places, such as nearest:4.")
            return metricdp.policies.nearest(space, int(rest)), None
        if word == "within":
            edges = metricdp.policies.within(space, _distance(rest, space, f"--policy {wanted}", "within:"))
            if not len(edges):
                raise InvalidInput(f"--policy {wanted}: no two places are that near.")
            return edges, None
        if word in ("neighbours", "streets"):
            belongs = "--grid" if word == "neighbours" else "--roads"
            raise InvalidInput(
                f"--policy {word} belongs to {belongs}; elsewhere it is areas:COLUMN, nearest:4, within:300m or a file."
            )
        return _read(wanted, ground)

    def _areas(self, ground: Ground) -> Integers:
        if self.column is None:
            raise InvalidInput(f"--policy {self.policy}: say which column names the areas, such as areas:district.")
        if ground.points is None:
            raise InvalidInput("--policy areas:COLUMN names a column of the points: it belongs to --points.")
        names = area_names(ground, self.column)
        pairs: Any = None
        if self.bordering is not None:
            pairs = self._pairs(ground, names)
        edges = metricdp.policies.areas(names, neighbours=pairs)
        if not len(edges):
            raise InvalidInput(
                f"{ground.points!r}: every place has a {self.column!r} of its own, so that no place would be hidden "
                "from another."
            )
        return edges

    def _pairs(self, ground: Ground, names: list[str]) -> Any:
        """Return the pairs of areas that are neighbours, by a distance or by a table; None where there are none."""
        from metricdp.places.tables import FIRST, SECOND

        path = str(self.bordering)
        if not Path(path).suffix.lower().strip(".").isalpha() and not Path(path).exists():
            radius = _distance(path, ground.space, f"--bordering {path}", "")
            found = metricdp.policies.bordering(ground.space, names, radius)
            if not found:
                note(f"no two areas lie within {path} of each other: none has a neighbour.")
            return found or None
        from metricdp.cli.reading import read_table

        table = read_table(path)
        ends = [_column(table, one, path) for one in (FIRST, SECOND)]
        known = set(names)
        for row, pair in enumerate(zip(*ends, strict=True)):
            for name in pair:
                if str(name) not in known:
                    raise InvalidInput(f"{path!r}: row {row} names the area {str(name)!r}, and no place lies in it.")
            if str(pair[0]) == str(pair[1]):
                raise InvalidInput(f"{path!r}: row {row} names one area twice; its places are neighbours already.")
        if not table.num_rows:
            raise InvalidInput(f"{path!r} has no rows: give one pair of areas a row below the header.")
        return [[str(name) for name in pair] for pair in zip(*ends, strict=True)]


NO_POLICY = Policy()


@dataclass(frozen=True)
class Ground:
    """What a policy is laid over: the places, their rows in a file and its name, the sides of a grid, streets."""

    space: FiniteSpace
    rows: Integers | None = None
    points: str | None = None
    sides: tuple[int, ...] | None = None
    reading: Reading | None = None

    def table(self) -> pa.Table:
        """Return the file of points as it is stored."""
        from metricdp.cli.reading import read_table
        from metricdp.tables import AS_IT_IS

        reading = AS_IT_IS if self.reading is None else replace(self.reading, scale=1.0, crs=None)
        return read_table(str(self.points), reading)


def area_names(ground: Ground, column: str) -> list[str]:
    """Return the area of every place, by a column of the file of points; rows of one place must agree."""
    from metricdp.tables import there_are

    path, table = str(ground.points), ground.table()
    if column not in table.schema.names:
        raise InvalidInput(f"{path!r}: no column {column!r}. {there_are(table.schema.names)}")
    values = table.column(column).to_pylist()
    empty = [row for row, value in enumerate(values) if value is None or not str(value).strip()]
    if empty:
        raise InvalidInput(
            f"{path!r}: row {empty[0]} (the first is row 0) has no {column!r}: every place lies in some area."
        )
    names = [str(value).strip() for value in values]
    if ground.rows is None:
        return names
    found: list[str | None] = [None] * len(ground.space)
    for row, (code, name) in enumerate(zip(ground.rows.tolist(), names, strict=True)):
        if found[code] not in (None, name):
            raise InvalidInput(
                f"{path!r}: row {row} repeats a point with another {column!r}: a place lies in one area."
            )
        found[code] = name
    return [str(name) for name in found]


def _distance(text: str, space: FiniteSpace, said: str, word: str) -> float:
    if not text or (space.unit and not text.strip()[-1:].isalpha()):
        unit = f"{text or '300'}{space.unit}" if space.unit else "2.5"
        raise InvalidInput(f"{said}: say how near, with a unit where distances have one: {word}{unit}.")
    return parse_distance(text, space.unit)


def _read(path: str, ground: Ground) -> tuple[Integers, Floats | None]:
    """Return the edges of a table, and their lengths where it has some."""
    from metricdp.cli.reading import numbers_of, read_table
    from metricdp.places.tables import FIRST, SECOND

    if not Path(path).exists() and not Path(path).suffix:
        raise InvalidInput(f"--policy must be {USUAL}; got {path!r}.")
    table = read_table(path)
    ends = [_column(table, names, path) for names in (FIRST, SECOND)]
    if not table.num_rows:
        raise InvalidInput(f"{path!r} has no rows: give one edge a row below the header.")
    codes = np.stack([_codes(end, ground, path) for end in ends], axis=1)
    _refuse_loops(codes, path)
    column = next((name for name in LENGTHS if name in table.schema.names), None)
    if column is None:
        return codes, None
    lengths = numbers_of(table.column(column).combine_chunks(), column, path)
    bad = np.flatnonzero(~(lengths > 0))
    if len(bad):
        raise InvalidInput(f"{path!r}: the edge in row {int(bad[0])} has no {column} above 0.")
    return codes, lengths


def _column(table: pa.Table, names: tuple[str, ...], path: str) -> list[Any]:
    from metricdp.places.tables import FIRST, SECOND
    from metricdp.tables import there_are

    found = next((name for name in names if name in table.schema.names), None)
    if found is None:
        raise InvalidInput(
            f"{path!r}: an edge has the columns {FIRST[1]} and {SECOND[1]} (or {FIRST[0]} and {SECOND[0]}). "
            f"{there_are(table.schema.names)}"
        )
    values: list[Any] = table.column(found).to_pylist()
    return values


def _codes(values: list[Any], ground: Ground, path: str) -> Integers:
    """Return the codes of the ends of edges: names of an id column of the points, else their rows from 0."""
    names = _names(ground)
    size = len(ground.space) if ground.rows is None else len(ground.rows)
    known = {str(row): row for row in range(size)} if names is None else names
    codes = np.array([known.get(str(value), -1) for value in values], dtype=np.int64)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        what = f"a row of the points, counted from 0 to {size - 1}" if names is None else "the id of a point"
        raise InvalidInput(f"{path!r}: the edge in row {row} leads to a point that is not there; an end is {what}.")
    return codes if ground.rows is None else np.asarray(ground.rows[codes])


def _names(ground: Ground) -> dict[str, int] | None:
    if ground.points is None:
        return None
    table = ground.table()
    column = next((name for name in IDS if name in table.schema.names), None)
    if column is None:
        return None
    values = [str(value) for value in table.column(column).to_pylist()]
    if len(set(values)) < len(values):
        raise InvalidInput(f"{ground.points!r}: the column {column!r} names points, and two have the same name.")
    return {value: row for row, value in enumerate(values)}


def _refuse_loops(codes: Integers, path: str) -> None:
    loops = np.flatnonzero(codes[:, 0] == codes[:, 1])
    if len(loops):
        raise InvalidInput(f"{path!r}: the edge in row {int(loops[0])} joins a point to itself; leave it out.")
    pairs = np.sort(codes, axis=1)
    _, first, where = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[where.ravel()] != np.arange(len(pairs)))
    if len(again):
        one = int(first[where.ravel()[again[0]]])
        raise InvalidInput(f"{path!r}: the edges in rows {one} and {int(again[0])} join the same two points; keep one.")
