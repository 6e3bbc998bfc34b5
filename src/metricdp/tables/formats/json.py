"""JSON: one object a line, or a collection of GeoJSON features, each a point with properties."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import (
    BATCH_ROWS,
    CountedReader,
    Format,
    Location,
    Storage,
    blocks,
    harmless_reason,
    json_value,
    open_bytes,
    open_output,
)
from metricdp.tables.formats.parquet import is_in_degrees
from metricdp.tables.options import Reading
from metricdp.tables.values import rebuild_type

BLOCK_BYTES = 8 << 20
MOST_NESTED = 64  # levels; Arrow reads every level inside the one before, and thousands end the process
UNNESTED = bytes(set(range(256)) - set(b'"[]{}'))
COLLECTION = b'"FeatureCollection"'  # of GeoJSON, which is one object


class LinesReader(CountedReader):
    """Objects, one a line; the types of all lines are found in a first pass, and the rows read in a second."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self.storage = Storage("jsonl", packing=location.packing)
        self._location = location
        self._rows, self.schema = infer_schema(self._blocks(), self.name)

    def _blocks(self) -> Iterator[bytes]:
        return blocks(self._location, BLOCK_BYTES)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for block in self._blocks():
            yield from rows_of(block, self.schema)


def infer_schema(pieces: Iterable[bytes], name: str) -> tuple[int, pa.Schema]:
    """Return how many objects there are, and the names and types that hold all of them; dates stay text."""
    rows = 0
    schemas: list[pa.Schema] = []
    for block in pieces:
        if not block.strip():
            continue
        table = _read(block, name, rows)
        found = pa.schema([field.with_type(_plain_type(field.type)) for field in table.schema])
        schemas = [pa.unify_schemas([*schemas, found], promote_options="permissive")]
        rows += table.num_rows
    if not schemas:
        raise InvalidInput(f"{name!r} is empty: JSON Lines hold one object a line.")
    if not schemas[0].names:
        raise InvalidInput(f"{name!r} holds objects without a single name.")
    return rows, schemas[0]


def _read(block: bytes, name: str, first_row: int) -> pa.Table:
    """Read a block of lines; what is wrong with one is said with its number, not with what is in it."""
    from pyarrow import json as arrow_json

    if _depth(block) > MOST_NESTED:
        raise InvalidInput(f"{name!r} cannot be read: its values are nested more than {MOST_NESTED} levels deep.")
    try:
        return arrow_json.read_json(io.BytesIO(block), read_options=_options(block))
    except pa.ArrowInvalid as error:
        reason = harmless_reason(error)
        found = re.search(r"(?:Column\(/(.*?)\) .*)?in row (\d+)", str(error))
    where = f" in row {first_row + int(found[2])} (the first is row 0)" if found else ""
    column = f"the values of {found[1]!r} " if found and found[1] else ""
    raise InvalidInput(f"{name!r} cannot be read: {column}{reason}{where}. Is every line one whole object?")


def _depth(block: bytes) -> int:
    """Return how many objects and lists lie in one another at most; brackets in texts are none."""
    unescaped = block.replace(rb"\\", b"").replace(rb"\"", b"")
    letters = np.frombuffer(unescaped.translate(None, UNNESTED), np.uint8)
    quotes = np.add.accumulate(letters == ord('"'), dtype=np.uint8)  # a number that overflows stays odd or even
    outside = quotes & 1 == 0
    folded = letters | 32  # [ becomes {, and ] becomes }
    steps = (outside & (folded == ord("{"))).astype(np.int32) - (outside & (folded == ord("}")))
    return int(np.add.accumulate(steps).max(initial=0))


def rows_of(block: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the objects of a block of lines as record batches."""
    from pyarrow import json as arrow_json

    if not block.strip():
        return
    parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    table = arrow_json.read_json(io.BytesIO(block), read_options=_options(block), parse_options=parse)
    for batch in table.select(schema.names).combine_chunks().to_batches(BATCH_ROWS):
        if batch.num_rows:
            yield batch


def _options(block: bytes) -> Any:
    from pyarrow import json as arrow_json

    # one block of Arrow's own, so that types are those of all lines and errors count rows from its first
    return arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type with text in the place of dates, which would come back written in another way."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    return rebuild_type(kind, lambda field: field.with_type(_plain_type(field.type)))


class LinesWriter:
    """Writes one object a line; what is null stays null."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        self._file = open_output(path, storage.packing)

    def write(self, batch: pa.RecordBatch, /) -> None:
        lines = [json.dumps(json_value(row), ensure_ascii=False, allow_nan=False) for row in batch.to_pylist()]
        if lines:
            self._file.write(("\n".join(lines) + "\n").encode())

    def close(self) -> None:
        self._file.close()


JSONL = Format(
    name="jsonl",
    about="JSON Lines: one object a line",
    suffixes=(".jsonl", ".ndjson", ".json"),
    reader="metricdp.tables.formats.json:LinesReader",
    writer="metricdp.tables.formats.json:LinesWriter",
    keeps="names, nesting, dates as text; a name that a line lacks comes back as null",
    begins=(b"{",),
    loose=True,
    head_test=lambda head: COLLECTION not in head,
    packed=True,
)


PIECE_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
LINES = 20_000  # features at a time
POINT = ("lat", "lon")
PROJECTED = ("y", "x")  # north and east, where the file holds metres
IDENTITY = "id"
# "urn:ogc:def:crs:EPSG::25832", or "EPSG:25832" as still older programs write it
SYSTEM = re.compile(rb'"(urn:ogc:def:crs:(\w+):[^:"]*:(\w+)|(EPSG|OGC):(\w+))"')
SPACE = " \t\r\n"


class GeojsonReader(LinesReader):
    """Features, one at a time: coordinates and properties become columns; altitudes and bounding boxes are left out."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self._location = location
        with open_bytes(location) as stream:
            system = _system(bytes(stream.read(HEAD_BYTES)), self.name, reading)
        self.storage = Storage("geojson", packing=location.packing, crs=system)
        names: set[str] = set()
        self._rows = 0
        for feature in self._features():
            names.update(_properties(feature))
            self._rows += 1
        if not self._rows:
            raise InvalidInput(f"{self.name!r} has no features: there is nothing to read.")
        point = POINT if reading.crs is None or is_in_degrees(reading.crs) else PROJECTED
        self.point = (f"geometry.{point[0]}", f"geometry.{point[1]}") if names & set(point) else point
        _, schema = infer_schema(self._blocks(), self.name)
        kept = [field for field in schema if field.name not in self.point]
        self.schema: pa.Schema = pa.schema([*(pa.field(name, pa.float64()) for name in self.point), *kept])

    def _blocks(self) -> Iterator[bytes]:
        lines: list[str] = []
        for feature in self._features():
            lines.append(json.dumps(self._row(feature), ensure_ascii=False))
            if len(lines) == LINES:
                yield ("\n".join(lines) + "\n").encode()
                lines = []
        if lines:
            yield ("\n".join(lines) + "\n").encode()

    def _row(self, feature: dict[str, Any]) -> dict[str, Any]:
        longitude, latitude = _coordinates(feature.get("geometry"))
        identity = {IDENTITY: feature["id"]} if "id" in feature and IDENTITY not in _properties(feature) else {}
        return {self.point[0]: latitude, self.point[1]: longitude, **identity, **_properties(feature)}

    def _features(self) -> Iterator[dict[str, Any]]:
        with open_bytes(self._location) as stream:
            for number, feature in enumerate(items_of(stream, "features", self.name)):
                if not isinstance(feature, dict):
                    raise InvalidInput(f"{self.name!r}: feature {number} (the first is 0) is no object.")
                yield feature


class GeojsonWriter:
    """Writes a collection of features; the columns of the point become its geometry, all others properties."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        point = storage.point
        if point is None and set(POINT) <= set(schema.names):
            point = POINT
        if point is None or not set(point) <= set(schema.names):
            raise InvalidInput("GeoJSON holds points with a latitude and a longitude, and these reports have none.")
        self._point = point
        self._file = open_output(path, storage.packing)
        system = {"crs": {"type": "name", "properties": {"name": storage.crs}}} if storage.crs else {}
        head = json.dumps({"type": "FeatureCollection", **system, "features": []})
        self._file.write(head.removesuffix("]}").encode() + b"\n")
        self._first = True

    def write(self, batch: pa.RecordBatch, /) -> None:
        lines = [json.dumps(self._feature(row), ensure_ascii=False, allow_nan=False) for row in batch.to_pylist()]
        if lines:
            self._file.write((("" if self._first else ",\n") + ",\n".join(lines)).encode())
            self._first = False

    def _feature(self, row: dict[str, Any]) -> dict[str, Any]:
        latitude, longitude = (row.pop(name) for name in self._point)
        there = latitude is not None and longitude is not None
        geometry = {"type": "Point", "coordinates": [longitude, latitude]} if there else None
        return {"type": "Feature", "geometry": geometry, "properties": json_value(row)}

    def close(self) -> None:
        self._file.write(b"\n]}\n")
        self._file.close()


def items_of(stream: Any, key: str, name: str) -> Iterator[Any]:
    """Yield the items of the list under a key of one object, without holding more of the file than an item."""
    decoder = json.JSONDecoder()
    text, ended = "", False
    mark = f'"{key}"'

    def more() -> None:
        nonlocal text, ended
        piece = stream.read(PIECE_BYTES)
        ended = not piece
        text += bytes(piece).decode("utf-8", errors="surrogateescape")

    while (at := text.find(mark)) < 0 or "[" not in text[at:]:
        if ended:
            raise InvalidInput(f"{name!r} holds no list of {key}: it is no whole collection.")
        more()
    text = text[text.index("[", at) + 1 :]
    while True:
        text = text.lstrip(SPACE + ",")
        if text.startswith("]"):
            return
        try:
            item, end = decoder.raw_decode(text)
        except ValueError:
            if ended:
                break
            more()
            continue
        if end == len(text) and not ended:  # a number might go on
            more()
            continue
        yield item
        text = text[end:]
    raise InvalidInput(f"{name!r} ends in the middle of its {key}: it is cut off, or not JSON.")


def _system(head: bytes, name: str, reading: Reading) -> str:
    """Return the name under which an old file states that its coordinates are longitude and latitude.

    Empty where it states nothing. Another system is refused, unless it was named: its reports are written in longitude
    and latitude, as GeoJSON has it, so its name must not stay.
    """
    before = head.partition(b'"features"')[0]
    found = SYSTEM.search(before)
    if found is None:
        return ""
    authority, code = next((groups[0], groups[1]) for groups in (found.groups()[1:3], found.groups()[3:5]) if groups[0])
    stated = b":".join((authority, code)).decode("ascii", "replace")
    if stated in ("OGC:CRS84", "EPSG:4326"):
        return found[1].decode("ascii", "replace")
    if reading.crs is None:
        raise InvalidInput(f"{name!r} says that its coordinates are of {stated}: say --crs {stated} to convert them.")
    return ""


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    found = feature.get("properties")
    return found if isinstance(found, dict) else {}


def _coordinates(geometry: Any) -> tuple[float | None, float | None]:
    """Return longitude and latitude of a point; nothing for other shapes, which are no secrets here."""
    if not isinstance(geometry, dict) or geometry.get("type") != "Point":
        return None, None
    found = geometry.get("coordinates")
    if not isinstance(found, list) or len(found) < 2 or not all(isinstance(part, int | float) for part in found[:2]):
        return None, None
    return float(found[0]), float(found[1])


GEOJSON = Format(
    name="geojson",
    about="GeoJSON: features with a point each",
    suffixes=(".geojson", ".json"),
    reader="metricdp.tables.formats.json:GeojsonReader",
    writer="metricdp.tables.formats.json:GeojsonWriter",
    keeps="properties, identifiers among them; altitudes, bounding boxes and other members are left out",
    begins=(b"{",),
    loose=True,
    head_test=lambda head: COLLECTION in head,
    packed=True,
    on_earth=True,
)
