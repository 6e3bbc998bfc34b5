"""What lies between a table as it is stored and flat columns of numbers: stages that go there and back.

Secrets may lie in structs, lists or geometries, as whole numbers that have to be scaled, with decimal commas, or in
projected coordinates. A layout makes flat columns of them, one number each, before anything else sees the rows, and
puts reports back in the same form. The way back sees reports alone, so it is post-processing: no guarantee changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metricdp.errors import InvalidInput
from metricdp.tables.formats import Format
from metricdp.tables.formats.parquet import is_in_degrees
from metricdp.tables.layouts.places import Geometry, WkbPoints, geometry_in, projection
from metricdp.tables.options import Reading
from metricdp.tables.plan import LATITUDES, LONGITUDES, available_columns, expand_names, find_pair
from metricdp.tables.values import (
    WIDEST_PLACE,
    empty_batch,
    holds_vectors,
    is_list,
    is_text,
    join_lists,
    lengths_of,
    numbers_of,
    put_column,
    put_numbers,
    replace_columns,
)


class Stage(Protocol):
    """One step of the way, for record batches of any length, none included."""

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        """Return rows as `protect` takes them."""

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        """Return reports, with all else that is released, as a format holds them."""


@dataclass(frozen=True)
class ColumnLayout:
    """The whole way: its stages, the flat columns of the secret (None for the usual ones), what to say of it.

    `point` are the flat columns of latitude and longitude, where the table has a geometry. `reads` says what a cell of
    the secret has to be, for messages. `notes` are sentences for the summary. `width` is how many numbers a secret has
    where columns were named: as many as there are flat columns, or the length of the lists in one of them.
    """

    stages: tuple[Stage, ...] = ()
    columns: tuple[str, ...] | None = None
    point: tuple[str, str] | None = None
    reads: str = "number"
    notes: tuple[str, ...] = ()
    width: int | None = None

    def flat(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with every coordinate of the secret in a column of its own."""
        for stage in self.stages:
            batch = stage.forward(batch)
        return batch

    def back(self, batch: pa.RecordBatch, made: Format) -> pa.RecordBatch:
        """Return reports in the form the secrets came in, as far as the format has it."""
        for stage in reversed(self.stages):
            batch = stage.backward(batch, made)
        return batch

    def flat_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the rows after `flat`."""
        return self.flat(empty_batch(schema)).schema if self.stages else schema

    def back_schema(self, schema: pa.Schema, made: Format) -> pa.Schema:
        """Return the schema of reports after `back`."""
        return self.back(empty_batch(schema), made).schema if self.stages else schema


PLAIN = ColumnLayout()


@dataclass(frozen=True)
class UniqueNames:
    """Repeated names become lat#1, lat#2, ..., counted from the left."""

    names: tuple[str, ...]  # all of the table, each once
    before: dict[str, str]  # numbered name -> name

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        return batch.rename_columns(list(self.names))

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        names = batch.schema.names
        old = [self.before.get(name, name) for name in names]
        if not made.repeats:  # those whose twins are gone
            old = [before if old.count(before) == 1 else name for before, name in zip(old, names, strict=True)]
        return batch.rename_columns(old)


def unique_names(names: Sequence[str]) -> UniqueNames | None:
    """Return the stage that tells columns of one name apart; None where all names differ."""
    repeated = {name for name, count in Counter(names).items() if count > 1}
    if not repeated:
        return None
    seen: Counter[str] = Counter()
    new: list[str] = []
    before: dict[str, str] = {}
    for name in names:
        made = name
        while name in repeated and (made == name or made in names):
            seen[name] += 1
            made = f"{name}#{seen[name]}"
        if made != name:
            before[made] = name
        new.append(made)
    return UniqueNames(tuple(new), before)


@dataclass(frozen=True)
class StructFields:
    """Some fields of a struct become columns `struct.field`; what else is in it stays a struct."""

    column: str
    keys: tuple[str, ...]
    order: tuple[str, ...]  # all fields of the struct

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        whole = batch.column(self.column)
        parts = dict(zip(self.order, whole.flatten(), strict=True))
        kinds = {field.name: field for field in whole.type}
        new = [(kinds[key].with_name(f"{self.column}.{key}").with_nullable(True), parts[key]) for key in self.keys]
        rest = [key for key in self.order if key not in self.keys]
        if rest:
            fields = [kinds[key].with_nullable(True) for key in rest]
            made = pa.StructArray.from_arrays([parts[key] for key in rest], fields=fields, mask=whole.is_null())
            new.append((pa.field(self.column, made.type), made))
        return replace_columns(batch, [self.column], new)

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        gone = [name for name in (f"{self.column}.{key}" for key in self.keys) if name in batch.schema.names]
        if not made.nested or not gone:
            return batch
        parts = {name.removeprefix(f"{self.column}."): batch.column(name) for name in gone}
        if self.column in batch.schema.names:
            gone.append(self.column)
            left = batch.column(self.column)
            parts |= dict(zip((field.name for field in left.type), left.flatten(), strict=True))
        order = [key for key in self.order if key in parts]
        whole = pa.StructArray.from_arrays([parts[key] for key in order], names=order)
        return put_column(batch, gone, self.column, whole)


@dataclass(frozen=True)
class ListItems:
    """Items of a list become columns `list[0]`, `list[1]`, ...

    A row whose list has another length holds no secret. With `longer` more items are allowed; they belong to the true
    place (an altitude, say) and are left out.
    """

    column: str
    places: tuple[int, ...]
    kind: pa.DataType  # of the list
    longer: bool = False

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        array = batch.column(self.column)
        lengths = np.maximum(lengths_of(array), 0).astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        values = array.flatten()
        if pa.types.is_fixed_size_list(array.type) and array.null_count:
            values = array.filter(array.is_valid()).flatten()  # of rows without a list nothing is left
        enough = lengths > max(self.places) if self.longer else lengths == len(self.places)
        new = []
        for place in self.places:
            taken = values.take(pa.array(np.where(enough, starts + place, 0), pa.int64(), mask=~enough))
            new.append((pa.field(f"{self.column}[{place}]", values.type), taken))
        return replace_columns(batch, [self.column], new)

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        parts = [f"{self.column}[{place}]" for place in sorted(self.places)]
        if not made.nested or not set(parts) <= set(batch.schema.names):
            return batch
        columns = [batch.column(name) for name in parts]
        rows, width = batch.num_rows, len(parts)
        mixed = np.arange(rows)[:, None] + rows * np.arange(width)[None, :]
        values = pa.concat_arrays(columns).take(pa.array(mixed.ravel()))
        null = np.logical_or.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in columns])
        mask = pa.array(null) if null.any() else None
        if pa.types.is_fixed_size_list(self.kind):
            whole = pa.FixedSizeListArray.from_arrays(values, width, mask=mask)
        else:
            kind = pa.large_list if pa.types.is_large_list(self.kind) else pa.list_
            whole = join_lists(values, np.full(rows, width), kind(values.type), mask)
        return put_column(batch, parts, self.column, whole)


COMMA_NUMBER = r"^\s*[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?\s*$"


@dataclass(frozen=True)
class NumberColumns:
    """Some columns become doubles, multiplied with `scale`; reports go back divided, and whole where they were whole.

    Rounding a report to the unit of the table is post-processing.
    """

    kinds: dict[str, pa.DataType]  # of the columns, as they are stored
    commas: frozenset[str] = frozenset()
    scale: float = 1.0
    whole: frozenset[str] = frozenset()  # the columns of whole numbers

    def forward(self, batch: pa.RecordBatch, /) -> pa.RecordBatch:
        for name in self.kinds:
            column = batch.column(name)
            if name in self.commas and is_text(column.type):
                column = _decimal_points(column)
            batch = put_numbers(batch, name, numbers_of(column, name) * self.scale)
        return batch

    def backward(self, batch: pa.RecordBatch, made: Format, /) -> pa.RecordBatch:
        for name, kind in self.kinds.items():
            if name in batch.schema.names and batch.schema.field(name).type == pa.float64():
                batch = put_column(batch, [name], name, self._restore_column(batch.column(name), name, kind, made))
        return batch

    def _restore_column(self, column: pa.Array, name: str, kind: pa.DataType, made: Format) -> pa.Array:
        if made.on_earth:  # it holds degrees
            return column
        if self.scale != 1.0:
            column = pc.divide(column, self.scale)
        if name in self.whole:
            column = _round_column(column, kind if pa.types.is_integer(kind) else pa.int64())
        elif pa.types.is_float32(kind):
            column = column.cast(kind)
        if name in self.commas and not made.typed:
            column = pc.replace_substring(column.cast(pa.string()), ".", ",")
        return column


def _round_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return reports as whole numbers of a type; what is beyond it is put on its border."""
    limits: Any = np.iinfo(kind.to_pandas_dtype())
    # The largest double that is not above the limit of 64 bits lies 1024 below it.
    top = float(limits.max) if limits.bits < 64 else float(limits.max - 1023)
    kept = pc.min_element_wise(pc.max_element_wise(column, float(limits.min), skip_nulls=False), top, skip_nulls=False)
    return pc.round(kept).cast(kind)


def _decimal_points(column: pa.Array) -> pa.Array:
    """Return text with decimal points, null where it is no number with a decimal comma."""
    proper = pc.match_substring_regex(column, COMMA_NUMBER)
    return pc.replace_substring(pc.if_else(proper, column, pa.scalar(None, column.type)), ",", ".")


def is_whole(column: pa.Array) -> bool:
    """Tell whether a column holds whole numbers only, in text or as integers."""
    if not is_text(column.type):
        return bool(pa.types.is_integer(column.type))
    some = column.filter(pc.not_equal(pc.utf8_trim_whitespace(column), ""))
    return bool(len(some) and pc.all(pc.match_substring_regex(some, r"^\s*[+-]?[0-9]+\s*$")).as_py())


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
    vectors, geometry = vectors and not geographic, geometry_in(table.schema)
    building = _LayoutBuilder(table, reading, geometry, geographic=geographic, vectors=vectors)
    names = list(table.schema.names)
    if (apart := unique_names(names)) is not None:
        building.stages.append(apart)
        names = list(apart.names)
    wanted = [columns] if isinstance(columns, str) else columns
    if wanted is None:
        wanted = _usual_columns(names, geometry, table, reading)
    if wanted is None and vectors and len(names) == 1 and holds_vectors(table.schema.field(0).type):
        wanted = names
    if wanted is None:
        return replace(building.layout(None), point=table.point)
    paths = [_path(name, names) for name in expand_names(wanted, names)]
    if any(head not in names for head, _ in paths):
        return building.layout(wanted)  # the check of columns says which is not there
    flat = building.flatten_paths(paths)
    _refuse_unclear(flat, names, table)
    building.read_numbers(flat, frozenset(names[number] for number in table.commas if number < len(names)) & set(flat))
    building.project(flat)
    return building.layout(flat)


def _usual_columns(
    names: Sequence[str], geometry: Geometry | None, table: TableInfo, reading: Reading
) -> Sequence[str] | None:
    """Return the columns of the secret where none were named; None leaves the choice to the usual names."""
    if geometry is not None:
        return [geometry.column]
    if table.point is not None:
        projected = reading.crs is not None and not is_in_degrees(reading.crs)
        return table.point[::-1] if projected else table.point  # east comes first in a projection
    if reading.crs is not None:
        if (pair := find_pair(names, EAST, NORTH)) is None:
            raise InvalidInput(
                f"say which columns hold the coordinates of {reading.crs}, east first: --columns x,y. "
                f"{available_columns(names)}"
            )
        return pair
    if table.usual is not None and (reading.scale != 1.0 or table.has_odd_numbers):
        return table.usual(names)
    return None


UNCLEAR = (
    "has commas in its numbers, and they may be decimal commas or stand between thousands: say --decimal comma, or "
    "write the numbers without them."
)
MIXED = (
    "has decimal points in some rows and decimal commas in others: say which are right with --decimal point or "
    "--decimal comma; the other rows count as bad."
)


def _refuse_unclear(flat: Sequence[str], names: Sequence[str], table: TableInfo) -> None:
    for numbers, reason in ((table.unclear, UNCLEAR), (table.mixed, MIXED)):
        for name in (names[number] for number in numbers if number < len(names)):
            if name in flat:
                raise InvalidInput(f"the column {name!r} {reason}")


@dataclass
class _LayoutBuilder:
    """The stages so far."""

    table: TableInfo
    reading: Reading
    geometry: Geometry | None
    geographic: bool
    vectors: bool
    stages: list[Stage] = field(default_factory=list)
    packed: int = 0  # the length of the lists that stay whole
    notes: list[str] = field(default_factory=list)
    reads: str = "number"
    point: tuple[str, str] | None = None

    def layout(self, columns: Sequence[str] | None) -> ColumnLayout:
        chosen = None if columns is None else tuple(columns)
        width = None if chosen is None else self.packed or len(chosen)
        return ColumnLayout(tuple(self.stages), chosen, self.point, self.reads, tuple(self.notes), width)

    def _schema(self) -> pa.Schema:
        return self.layout(None).flat_schema(self.table.schema)

    def _first(self) -> pa.RecordBatch:
        return self.layout(None).flat(self.table.first())

    def flatten_paths(self, paths: list[Path]) -> list[str]:
        """Take every wanted column out of structs, lists and geometries; return the names they have then."""
        while any(steps for _, steps in paths):
            paths = self._one_step(paths)
        flat: list[str] = []
        for name, _ in paths:
            flat += self._whole(name, alone=len(paths) == 1)
        return flat

    def _one_step(self, paths: list[Path]) -> list[Path]:
        """Open the first struct or list on the way."""
        head = next(name for name, steps in paths if steps)
        first = [steps[0] for name, steps in paths if name == head and steps]
        kind = self._schema().field(head).type
        if all(isinstance(step, str) for step in first):
            self._take_fields(head, kind, tuple(dict.fromkeys(str(step) for step in first)))
        else:
            if not is_list(kind) or not all(isinstance(step, int) for step in first):
                raise InvalidInput(f"the column {head!r} holds {kind}, which has no numbered items.")
            self.notes.append(f"Of the lists in {head!r}, items that are not protected were left out.")
            self.stages.append(ListItems(head, tuple(dict.fromkeys(int(step) for step in first)), kind, longer=True))
        return [
            (f"{name}.{steps[0]}" if isinstance(steps[0], str) else f"{name}[{steps[0]}]", steps[1:])
            if name == head and steps
            else (name, steps)
            for name, steps in paths
        ]

    def _take_fields(self, head: str, kind: pa.DataType, keys: tuple[str, ...]) -> None:
        if not pa.types.is_struct(kind):
            raise InvalidInput(f"the column {head!r} holds {kind} and no struct: it has no field {keys[0]!r}.")
        order = tuple(field.name for field in kind)
        for key in keys:
            if key not in order:
                raise InvalidInput(f"no field {key!r} in the column {head!r}. Its fields are {', '.join(order)}.")
        self.stages.append(StructFields(head, keys, order))

    def _whole(self, name: str, *, alone: bool) -> list[str]:
        """Return the flat columns of one that was named as a whole."""
        kind = self._schema().field(name).type
        if is_list(kind):
            width = self._width(name, kind)
            if self.vectors and alone and width > WIDEST_PLACE and holds_vectors(kind):
                self.packed = width
                return [name]
            self.stages.append(ListItems(name, tuple(range(width)), kind))
            return [f"{name}[{place}]" for place in range(width)]
        if pa.types.is_struct(kind):
            keys = self._coordinates(name, kind)
            self._take_fields(name, kind, keys)
            return [f"{name}.{key}" for key in keys]
        if _holds_wkb(kind) and alone:
            return self._points(name)
        return [name]

    def _width(self, name: str, kind: pa.DataType) -> int:
        if pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        if self.geographic:
            return 2
        first: Any = self._first().column(name)
        lengths = [int(length) for length in lengths_of(first.slice(0, 1000)) if length > 0]
        if not lengths:
            raise InvalidInput(f"the column {name!r} holds no list in its first rows, so their length is unknown.")
        return max(set(lengths), key=lengths.count)

    def _coordinates(self, name: str, kind: pa.DataType) -> tuple[str, ...]:
        order = [field.name for field in kind]
        pairs: list[tuple[Sequence[str], Sequence[str]]] = [(EAST, NORTH)]
        if self.geographic and self.reading.crs is None:
            pairs = [(LATITUDES, LONGITUDES), (NORTH[:1], EAST[:1])]
        for words in pairs:
            if (found := find_pair(order, *words)) is not None:
                return found
        example = ",".join(f"{name}.{key}" for key in order[:2])
        raise InvalidInput(f"the column {name!r} is a struct: name the fields that are meant, such as {example}.")

    def _points(self, name: str) -> list[str]:
        ours = self.geometry if self.geometry is not None and self.geometry.column == name else None
        crs = self._crs(ours)
        if ours is not None and ours.encoding.upper() != "WKB":
            raise InvalidInput(f"the geometry {name!r} is encoded as {ours.encoding}, and WKB points can be read.")
        degrees = self.geographic and crs is None
        columns = (f"{name}.lat", f"{name}.lon") if degrees else (f"{name}.x", f"{name}.y")
        if ours is not None and ours.covering:
            self.stages.append(DropColumns(ours.covering))
            self.notes.append(
                f"Left out: {', '.join(ours.covering)}, the bounding boxes of the rows, which are the true places."
            )
        stated = crs or (None if ours is None else ours.stated)  # the output says what the table said
        undefined = ours is not None and ours.undefined and stated is None
        self.stages.append(WkbPoints(name, columns, degrees, stated, file=ours is not None, undefined=undefined))
        self.reads = "point"
        self.point = columns if degrees else None
        return list(columns)

    def _crs(self, geometry: Geometry | None) -> str | None:
        return self.reading.crs or (None if geometry is None else geometry.crs)

    def read_numbers(self, flat: Sequence[str], commas: frozenset[str]) -> None:
        """Scale numbers, and read decimal commas."""
        scale = self.reading.scale
        if scale == 1.0 and not commas:
            return
        schema = self._schema()
        if self.packed:
            raise InvalidInput(f"--scale is for columns of numbers, and {flat[0]!r} holds lists of {self.packed}.")
        kinds = {name: schema.field(name).type for name in flat if scale != 1.0 or name in commas}
        texts = [name for name, kind in kinds.items() if is_text(kind)]
        whole = {name for name, kind in kinds.items() if pa.types.is_integer(kind)}
        if scale != 1.0 and texts:
            first = self._first()
            whole |= {name for name in texts if is_whole(first.column(name))}
        self.stages.append(NumberColumns(kinds, commas, scale, frozenset(whole) if scale != 1.0 else frozenset()))
        if scale != 1.0 and self.geographic and self.reading.crs is None:
            self._check_scale(flat)

    def _check_scale(self, flat: Sequence[str]) -> None:
        """Refuse a scale that puts all of the first rows on one spot: they are stored without it."""
        first = self._first()
        sizes = [np.abs(numbers_of(first.column(name), name)) for name in flat]
        if all(np.nanmax(size, initial=0.0) < SPOT for size in sizes):
            raise InvalidInput(
                f"with --scale {self.reading.scale:g} all of the first rows lie within {SPOT:g} degrees of latitude 0 "
                "and longitude 0: are the numbers stored as degrees already?"
            )

    def project(self, flat: Sequence[str]) -> None:
        """Go from projected coordinates to the Earth."""
        crs = self._crs(self.geometry if self.geometry is not None and f"{self.geometry.column}.x" in flat else None)
        if crs is None:
            return
        if not self.geographic:
            raise InvalidInput(f"--crs {crs} is for guarantees per kilometre on the Earth: drop --metric or --crs.")
        if len(flat) != 2:
            raise InvalidInput(f"coordinates of {crs} are two columns, east and north, got {', '.join(flat)}.")
        stage = projection(crs, (flat[0], flat[1]))
        stage.check_area(self._first())
        self.stages.append(stage)
        self.reads = f"place of {crs}"
        self.notes.append(
            f"Coordinates of {crs} were taken to the Earth and reports back. The guarantee is about kilometres on the "
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


def _holds_wkb(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return bool(kind.extension_name == "geoarrow.wkb")
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
