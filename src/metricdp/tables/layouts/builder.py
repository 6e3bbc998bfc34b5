"""Which stages a table needs: from the columns that were named, their types, and what was said about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.parquet import KEY, is_in_degrees
from metricdp.tables.layouts.places import Geometry, WkbPoints, geometry_in, projection
from metricdp.tables.layouts.stages import (
    ColumnLayout,
    ListItems,
    NumberColumns,
    Stage,
    StructFields,
    empty_batch,
    is_whole,
    unique_names,
)
from metricdp.tables.options import Reading
from metricdp.tables.plan import LATITUDES, LONGITUDES, available_columns, expand_names
from metricdp.tables.values import WIDEST_PLACE, holds_vectors, is_list, is_text, lengths_of, numbers_of

SPOT = 0.01  # degrees
EAST = ("x", "east", "easting", "e", "rechtswert")
NORTH = ("y", "north", "northing", "n", "hochwert")
STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")
Path = tuple[str, list[str | int]]  # a column and the steps into it


@dataclass(frozen=True)
class TableInfo:
    """What is known of a table before its rows are read: names and types, its first rows, how numbers are written."""

    schema: pa.Schema
    first: Callable[[], pa.RecordBatch]  # the first rows
    commas: tuple[int, ...] = ()  # the columns with decimal commas, by number
    unclear: tuple[int, ...] = ()
    mixed: tuple[int, ...] = ()
    point: tuple[str, str] | None = None  # latitude and longitude, where the format has one geometry a row
    usual: Callable[[Sequence[str]], Sequence[str]] | None = None  # the columns of the secret, where none are named

    @property
    def has_odd_numbers(self) -> bool:
        """Whether some numbers are not written as numbers are."""
        return bool(self.commas or self.unclear or self.mixed)


def layout_for(
    table: TableInfo, columns: Sequence[str] | str | None, reading: Reading, *, geographic: bool, vectors: bool = False
) -> ColumnLayout:
    """Return how the secrets of a table become flat columns, and reports go back.

    `geographic` says whether a secret is a latitude and a longitude. With `vectors` a list that is longer than a place
    stays a column of lists: taking it apart would take time and memory.
    """
    stages: list[Stage] = []
    if (apart := unique_names(table.schema.names)) is not None:
        stages.append(apart)
    names = list(apart.names if apart is not None else table.schema.names)
    wanted = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
    building = _LayoutBuilder(table, stages, geographic=geographic, reading=reading, vectors=vectors and not geographic)
    geometry = geometry_in(table.schema) if KEY in (table.schema.metadata or {}) else None
    if wanted is None:
        wanted = _usual_columns(names, geometry, table, reading)
    if wanted is None and vectors and not geographic and len(names) == 1 and holds_vectors(table.schema.field(0).type):
        wanted = names
    if wanted is None:
        return replace(building.layout(None), point=table.point)
    paths = [_path(name, names) for name in expand_names(wanted, names)]
    if any(head not in names for head, _ in paths):
        return building.layout(wanted)  # whoever checks the columns says which is not there
    flat = building.flatten_paths(paths, geometry)
    _refuse_unclear(flat, names, table)
    commas = frozenset(names[number] for number in table.commas if number < len(names) and names[number] in flat)
    building.numbers(flat, commas)
    building.projected(flat, geometry)
    return building.layout(flat)


def _usual_columns(
    names: Sequence[str], geometry: Geometry | None, table: TableInfo, reading: Reading
) -> list[str] | None:
    """Return the columns of the secret where none were named; None leaves the choice to the usual names."""
    if geometry is not None:
        return [geometry.column]
    if table.point is not None:
        projected = reading.crs is not None and not is_in_degrees(reading.crs)
        return list(table.point[::-1] if projected else table.point)  # east comes first in a projection
    if reading.crs is not None:
        lower = [name.strip().lower() for name in names]
        pair = [[i for i, name in enumerate(lower) if name in usual] for usual in (EAST, NORTH)]
        if [len(found) for found in pair] != [1, 1]:
            raise InvalidInput(
                f"say which columns hold the coordinates of {reading.crs}, east first: --columns x,y. "
                f"{available_columns(names)}"
            )
        return [names[found[0]] for found in pair]
    if table.usual is not None and (reading.scale != 1.0 or table.has_odd_numbers):
        return list(table.usual(names))
    return None


def _refuse_unclear(flat: Sequence[str], names: Sequence[str], table: TableInfo) -> None:
    for number in table.unclear:
        if number < len(names) and names[number] in flat:
            raise InvalidInput(
                f"the column {names[number]!r} has commas in its numbers, and they may be decimal commas or stand "
                "between thousands: say --decimal comma, or write the numbers without them."
            )
    for number in table.mixed:
        if number < len(names) and names[number] in flat:
            raise InvalidInput(
                f"the column {names[number]!r} has decimal points in some rows and decimal commas in others: say which "
                "are right with --decimal point or --decimal comma; the other rows count as bad."
            )


class _LayoutBuilder:
    """The stages so far."""

    def __init__(
        self, table: TableInfo, stages: list[Stage], *, geographic: bool, reading: Reading, vectors: bool
    ) -> None:
        self._table, self._stages = table, stages
        self._geographic, self._reading, self._vectors = geographic, reading, vectors
        self._packed = 0  # the length of the lists that stay whole
        self._notes: list[str] = []
        self._reads = "number"
        self._point: tuple[str, str] | None = None

    def layout(self, columns: Sequence[str] | None) -> ColumnLayout:
        chosen = None if columns is None else tuple(columns)
        width = None if chosen is None else self._packed or len(chosen)
        return ColumnLayout(tuple(self._stages), chosen, self._point, self._reads, tuple(self._notes), width)

    def _schema(self) -> pa.Schema:
        return ColumnLayout(tuple(self._stages)).flat(empty_batch(self._table.schema)).schema

    def _first(self) -> pa.RecordBatch:
        return ColumnLayout(tuple(self._stages)).flat(self._table.first())

    def flatten_paths(self, paths: list[Path], geometry: Geometry | None) -> list[str]:
        """Take every wanted column out of structs, lists and geometries; return the names they have then."""
        while any(steps for _, steps in paths):
            paths = self._one_step(paths)
        flat: list[str] = []
        for name, _ in paths:
            flat += self._whole(name, geometry, alone=len(paths) == 1)
        return flat

    def _one_step(self, paths: list[Path]) -> list[Path]:
        """Open the first struct or list on the way."""
        head = next(name for name, steps in paths if steps)
        first = [steps[0] for name, steps in paths if name == head and steps]
        kind = self._schema().field(head).type
        if all(isinstance(step, str) for step in first):
            keys = tuple(dict.fromkeys(str(step) for step in first))
            order = self._fields(head, kind, keys)
            self._stages.append(StructFields(head, keys, order))
        else:
            if not is_list(kind) or not all(isinstance(step, int) for step in first):
                raise InvalidInput(f"the column {head!r} holds {kind}, which has no numbered items.")
            places = tuple(dict.fromkeys(int(step) for step in first))
            self._items(head, kind, places, longer=True)
        return [
            (f"{name}.{steps[0]}" if isinstance(steps[0], str) else f"{name}[{steps[0]}]", steps[1:])
            if name == head and steps
            else (name, steps)
            for name, steps in paths
        ]

    def _fields(self, head: str, kind: pa.DataType, keys: Sequence[str]) -> tuple[str, ...]:
        if not pa.types.is_struct(kind):
            raise InvalidInput(f"the column {head!r} holds {kind} and no struct: it has no field {keys[0]!r}.")
        order = tuple(kind.field(number).name for number in range(kind.num_fields))
        for key in keys:
            if key not in order:
                raise InvalidInput(f"no field {key!r} in the column {head!r}. Its fields are {', '.join(order)}.")
        return order

    def _items(self, head: str, kind: pa.DataType, places: tuple[int, ...], *, longer: bool) -> None:
        if longer:
            self._notes.append(f"Of the lists in {head!r}, items that are not protected were left out.")
        self._stages.append(ListItems(head, places, kind, longer))

    def _whole(self, name: str, geometry: Geometry | None, *, alone: bool) -> list[str]:
        """Return the flat columns of one that was named as a whole."""
        kind = self._schema().field(name).type
        if is_list(kind):
            width = self._width(name, kind)
            if self._vectors and alone and width > WIDEST_PLACE and holds_vectors(kind):
                self._packed = width
                return [name]
            self._items(name, kind, tuple(range(width)), longer=False)
            return [f"{name}[{place}]" for place in range(width)]
        if pa.types.is_struct(kind):
            keys = self._coordinates(name, kind)
            self._stages.append(StructFields(name, keys, self._fields(name, kind, keys)))
            return [f"{name}.{key}" for key in keys]
        if _is_binary(kind) and alone:
            return self._points(name, geometry)
        return [name]

    def _width(self, name: str, kind: pa.DataType) -> int:
        if pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        if self._geographic:
            return 2
        first: Any = self._first().column(name)
        lengths = [int(length) for length in lengths_of(first.slice(0, 1000)) if length > 0]
        if not lengths:
            raise InvalidInput(f"the column {name!r} holds no list in its first rows: nobody knows how long they are.")
        return max(set(lengths), key=lengths.count)

    def _coordinates(self, name: str, kind: pa.DataType) -> tuple[str, ...]:
        order = [kind.field(number).name for number in range(kind.num_fields)]
        pairs: list[tuple[Sequence[str], Sequence[str]]] = [(EAST, NORTH)]
        if self._geographic and self._reading.crs is None:
            pairs = [(LATITUDES, LONGITUDES), (NORTH[:1], EAST[:1])]
        for first, second in pairs:
            found = [[key for key in order if key.lower() in usual] for usual in (first, second)]
            if [len(part) for part in found] == [1, 1]:
                return found[0][0], found[1][0]
        example = ",".join(f"{name}.{key}" for key in order[:2])
        raise InvalidInput(f"the column {name!r} is a struct: name the fields that are meant, such as {example}.")

    def _points(self, name: str, geometry: Geometry | None) -> list[str]:
        ours = geometry if geometry is not None and geometry.column == name else None
        crs = self._crs(ours)
        if ours is not None and ours.encoding.upper() != "WKB":
            raise InvalidInput(f"the geometry {name!r} is encoded as {ours.encoding}, and WKB points can be read.")
        degrees = self._geographic and crs is None
        columns = (f"{name}.lat", f"{name}.lon") if degrees else (f"{name}.x", f"{name}.y")
        if ours is not None and ours.covering:
            self._stages.append(DropColumns(ours.covering))
            self._notes.append(
                f"Left out: {', '.join(ours.covering)}, the bounding box of every row, which is the true place itself."
            )
        stated = crs or (None if ours is None else ours.stated)  # the output says what the table said
        undefined = ours is not None and ours.undefined and stated is None
        self._stages.append(WkbPoints(name, columns, degrees, stated, file=ours is not None, undefined=undefined))
        self._reads = "point"
        self._point = columns if degrees else None
        return list(columns)

    def _crs(self, geometry: Geometry | None) -> str | None:
        return self._reading.crs or (None if geometry is None else geometry.crs)

    def numbers(self, flat: Sequence[str], commas: frozenset[str]) -> None:
        """Scale numbers, and read decimal commas."""
        scale = self._reading.scale
        if scale == 1.0 and not commas:
            return
        schema = self._schema()
        if self._packed:
            raise InvalidInput(f"--scale is for columns of numbers, and {flat[0]!r} holds lists of {self._packed}.")
        kinds = {name: schema.field(name).type for name in flat if scale != 1.0 or name in commas}
        texts = [name for name, kind in kinds.items() if is_text(kind)]
        whole = {name for name, kind in kinds.items() if pa.types.is_integer(kind)}
        if scale != 1.0 and texts:
            first = self._first()
            whole |= {name for name in texts if is_whole(first.column(name))}
        self._stages.append(NumberColumns(kinds, commas, scale, frozenset(whole) if scale != 1.0 else frozenset()))
        if scale != 1.0 and self._geographic and self._reading.crs is None:
            self._check_scale(flat)

    def _check_scale(self, flat: Sequence[str]) -> None:
        """Refuse a scale that puts all of the first rows on one spot: they are stored without it."""
        first = self._first()
        sizes = [np.abs(numbers_of(first.column(name), name)) for name in flat]
        if all(np.nanmax(size, initial=0.0) < SPOT for size in sizes):
            raise InvalidInput(
                f"with --scale {self._reading.scale:g} all of the first rows lie within {SPOT:g} degrees of latitude 0 "
                "and longitude 0: are the numbers stored as degrees already?"
            )

    def projected(self, flat: Sequence[str], geometry: Geometry | None) -> None:
        """Go from projected coordinates to the Earth."""
        crs = self._crs(geometry if geometry is not None and f"{geometry.column}.x" in flat else None)
        if crs is None:
            return
        if not self._geographic:
            raise InvalidInput(
                f"--crs {crs} is for promises per kilometre on the Earth: leave --metric away, or --crs."
            )
        if len(flat) != 2:
            raise InvalidInput(f"coordinates of {crs} are two columns, east and north, got {', '.join(flat)}.")
        stage = projection(crs, (flat[0], flat[1]))
        stage.check_area(self._first())
        self._stages.append(stage)
        self._reads = f"place of {crs}"
        self._notes.append(
            f"Coordinates of {crs} were taken to the Earth and reports back. The promise is about kilometres on the "
            "Earth, not about lengths in the projection; reports are projected by a rule that knows nothing else, so "
            "it holds for what is written."
        )


@dataclass(frozen=True)
class DropColumns:
    """Some columns are left out."""

    columns: tuple[str, ...]

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        return batch.drop_columns([name for name in self.columns if name in batch.schema.names])

    def backward(self, batch: pa.RecordBatch, made: Any, /) -> pa.RecordBatch:
        return batch


def _path(name: str, names: Sequence[str]) -> Path:
    """Return the column that a name begins with, and the steps into it."""
    exact = [one for one in names if one == name] or [one for one in names if one.strip() == name.strip()]
    if len(exact) == 1:
        return exact[0], []
    for head in sorted((one for one in names if name.startswith(one) and one), key=len, reverse=True):
        rest = name[len(head) :]
        steps = list(STEP.finditer(rest))
        if rest and "".join(step[0] for step in steps) == rest:
            return head, [step[1] if step[2] is None else int(step[2]) for step in steps]
    twins = [one for one in names if re.fullmatch(re.escape(name) + r"#\d+", one)]
    if twins:
        raise InvalidInput(
            f"there are {len(twins)} columns {name!r}: name one as {' or '.join(repr(twin) for twin in twins)}, "
            "counted from the left."
        )
    return name, []


def _is_binary(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return bool(kind.extension_name == "geoarrow.wkb")
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
