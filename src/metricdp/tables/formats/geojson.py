"""GeoJSON: a collection of features, each a point with properties; longitude comes first, in degrees of WGS 84."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import Format, Location, Storage
from metricdp.tables.formats.geometry import in_degrees
from metricdp.tables.formats.jsonlines import COLLECTION, is_object, rows_of, typed
from metricdp.tables.formats.packing import opened_bytes, packed_output
from metricdp.tables.formats.plain import jsonable
from metricdp.tables.options import Reading

PIECE_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
LINES = 20_000  # features at a time
POINT = ("lat", "lon")
PROJECTED = ("y", "x")  # north and east, where the file holds metres
IDENTITY = "id"
# "urn:ogc:def:crs:EPSG::25832", or "EPSG:25832" as still older programs write it
SYSTEM = re.compile(rb'"(urn:ogc:def:crs:(\w+):[^:"]*:(\w+)|(EPSG|OGC):(\w+))"')
SPACE = " \t\r\n"


class GeojsonReader:
    """Features, one at a time: coordinates and properties become columns; altitudes and bounding boxes are left out."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self._location = location
        with opened_bytes(location) as stream:
            system = _system(bytes(stream.read(HEAD_BYTES)), self.name, reading)
        self.storage = Storage("geojson", packing=location.packing, crs=system)
        names: set[str] = set()
        self._rows = 0
        for feature in self._features():
            names.update(_properties(feature))
            self._rows += 1
        if not self._rows:
            raise InvalidInput(f"{self.name!r} has no features: there is nothing to read.")
        point = POINT if reading.crs is None or in_degrees(reading.crs) else PROJECTED
        self.point = (f"geometry.{point[0]}", f"geometry.{point[1]}") if names & set(point) else point
        _, schema = typed(self._blocks(), self.name)
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
        with opened_bytes(self._location) as stream:
            for number, feature in enumerate(items_of(stream, "features", self.name)):
                if not isinstance(feature, dict):
                    raise InvalidInput(f"{self.name!r}: feature {number} (the first is 0) is no object.")
                yield feature

    def batches(self) -> Iterator[pa.RecordBatch]:
        for block in self._blocks():
            yield from rows_of(block, self.schema)

    def share(self, rows: int) -> float:
        return rows / max(1, self._rows)

    def close(self) -> None:
        """Nothing is open between batches."""


class GeojsonWriter:
    """Writes a collection of features; the columns of the point become its geometry, all others properties."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        point = storage.point
        if point is None and set(POINT) <= set(schema.names):
            point = POINT
        if point is None or not set(point) <= set(schema.names):
            raise InvalidInput("GeoJSON holds points with a latitude and a longitude, and these reports have none.")
        self._point = point
        self._file = packed_output(path, storage.packing)
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
        return {"type": "Feature", "geometry": geometry, "properties": jsonable(row)}

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
        raise InvalidInput(
            f"{name!r} says that its coordinates are of {stated}: say --crs {stated} to have them converted."
        )
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


def is_collection(head: bytes) -> bool:
    """Tell whether a file that begins so is a collection of features."""
    return is_object(head) and COLLECTION in head


FORMAT = Format(
    name="geojson",
    about="GeoJSON: features with a point each",
    suffixes=(".geojson", ".json"),
    reader="metricdp.tables.formats.geojson:GeojsonReader",
    writer="metricdp.tables.formats.geojson:GeojsonWriter",
    keeps="properties, identifiers among them; altitudes, bounding boxes and other members are left out",
    looks=is_collection,
    packed=True,
    earthly=True,
)
