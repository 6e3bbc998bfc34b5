"""A policy on the command line: a table of edges, or the name of a usual one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import metricdp
from metricdp.arrays import Floats, Integers
from metricdp.cli.terminal import note
from metricdp.errors import InvalidInput
from metricdp.places.tables import FIRST, SECOND
from metricdp.spaces import FiniteSpace
from metricdp.tables.task import there_are
from metricdp.units import parse_distance

if TYPE_CHECKING:
    import pyarrow as pa

Left = Literal["refuse", "join", "disclose"]
LENGTHS = ("length", "weight")
IDS = ("id", "name", "node")
USUAL = "a file of edges, neighbours or neighbours:8 (with --grid), streets (with --roads), nearest:4, within:300m"
SHOWN = 6  # edges that a note names


@dataclass(frozen=True)
class Ground:
    """What a policy is laid over: the places, their rows in a file and its name, the sides of a grid, streets."""

    space: FiniteSpace
    rows: Integers | None = None
    points: str | None = None
    sides: tuple[int, ...] | None = None


def policy_space(wanted: str, ground: Ground, *, isolated: Left, apart: Left) -> FiniteSpace:
    """Return the places in the distances of a policy; a note says which edges were added."""
    space, lengths = ground.space, None
    word, _, rest = wanted.partition(":")
    if word == "neighbours" and ground.sides is not None:
        if rest not in ("", "4", "8"):
            raise InvalidInput(f"--policy {wanted}: a cell has neighbours (4) or neighbours:8, with diagonals.")
        edges = metricdp.policies.grid_neighbours(ground.sides, diagonal=rest == "8")
    elif word == "streets" and space.network is not None:
        pairs = np.unique(np.sort(space.network.edges, axis=1), axis=0)
        edges = pairs[pairs[:, 0] != pairs[:, 1]]
    elif word == "nearest":
        if not rest.isdigit():
            raise InvalidInput(f"--policy {wanted}: say how many nearest places, such as nearest:4.")
        edges = metricdp.policies.nearest(space, int(rest))
    elif word == "within":
        edges = metricdp.policies.within(space, _distance(rest, space, wanted))
    elif word in ("neighbours", "streets"):
        belongs = "--grid" if word == "neighbours" else "--roads"
        raise InvalidInput(f"--policy {word} belongs to {belongs}; elsewhere it is nearest:4, within:300m or a file.")
    else:
        edges, lengths = _read(wanted, ground)
    added = metricdp.policies.repairs(space, edges, isolated=isolated, parts=apart)
    if len(added):
        named = ", ".join(f"{one}-{two}" for one, two in added[:SHOWN].tolist())
        more = f" and {len(added) - SHOWN:,} more" if len(added) > SHOWN else ""
        count = "an edge" if len(added) == 1 else f"{len(added):,} edges"
        note(f"the policy was given {count} between nearest places: {named}{more}.")
    made = metricdp.policy(space, edges, lengths=lengths, isolated=isolated, parts=apart)
    several = metricdp.policies.parts(made)
    if len(several) > 1:
        note(
            f"the policy falls into {len(several):,} parts, the largest of {len(several[0]):,} places and "
            f"{sum(len(part) == 1 for part in several):,} of one place: reports may reveal the part, as asked."
        )
    return made


def _distance(text: str, space: FiniteSpace, wanted: str) -> float:
    if not text or (space.unit and not text.strip()[-1:].isalpha()):
        unit = f"{text or '300'}{space.unit}" if space.unit else "2.5"
        raise InvalidInput(f"--policy {wanted}: say how near, with a unit where distances have one: within:{unit}.")
    return parse_distance(text, space.unit)


def _read(path: str, ground: Ground) -> tuple[Integers, Floats | None]:
    """Return the edges of a table, and their lengths where it has some."""
    from pathlib import Path

    from metricdp.cli.reading import numbers_of, read_table

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
    from metricdp.cli.reading import read_table

    table = read_table(ground.points)
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
