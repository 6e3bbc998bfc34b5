"""Tables written and read by other means than the library's own: what formats are tested with."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

import metricdp as mdp

ALMOST = mdp.laplace(mdp.Haversine(), 1e4)  # per kilometre: reports lie less than a metre from the truth
METRES = 1e-4  # degrees, more than ALMOST moves a point in a lifetime
ROWS = [
    {"id": 7, "lat": 41.1496123, "lon": -8.6109456, "note": 'a, "quoted"\nnote; äß'},
    {"id": 8, "lat": 41.1579384, "lon": -8.6291053, "note": ""},
    {"id": 9, "lat": -0.0000125, "lon": 0.5, "note": "0012"},
]


def csv_bytes(rows: list[dict[str, Any]], delimiter: str = ",", line_end: str = "\n") -> bytes:
    held = io.StringIO(newline="")
    writer = csv.DictWriter(held, list(rows[0]), delimiter=delimiter, lineterminator=line_end)
    writer.writeheader()
    writer.writerows(rows)
    return held.getvalue().encode()


def csv_rows(data: bytes, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))


def write_sqlite(path: Path, rows: list[dict[str, Any]]) -> None:
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE fixes (id INTEGER, lat REAL, lon REAL, note TEXT)")
        base.executemany("INSERT INTO fixes VALUES (?, ?, ?, ?)", [tuple(row.values()) for row in rows])
        base.execute("CREATE TABLE other (a)")
        base.commit()


def read_sqlite(path: Path, table: str = "fixes") -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as base:
        cursor = base.execute(f'SELECT * FROM "{table}"')
        names = [entry[0] for entry in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def write_duckdb(path: Path, rows: list[dict[str, Any]]) -> None:
    import duckdb

    with duckdb.connect(str(path)) as base:
        base.execute("CREATE TABLE fixes (id INTEGER, lat DOUBLE, lon DOUBLE, note VARCHAR)")
        base.executemany("INSERT INTO fixes VALUES (?, ?, ?, ?)", [list(row.values()) for row in rows])


def read_duckdb(path: Path, table: str = "fixes") -> list[dict[str, Any]]:
    import duckdb

    with duckdb.connect(str(path), read_only=True) as base:
        cursor = base.execute(f'SELECT * FROM "{table}"')
        names = [entry[0] for entry in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def write_geojson(path: Path, rows: list[dict[str, Any]]) -> None:
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [row["lon"], row["lat"], 12.5]},
            "bbox": [row["lon"], row["lat"], row["lon"], row["lat"]],
            "properties": {"id": row["id"], "note": row["note"]},
        }
        for row in rows
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "bbox": [0, 0, 1, 1], "features": features}))


def write_geoparquet(path: Path, rows: list[dict[str, Any]]) -> None:
    cells = [struct.pack("<BIdd", 1, 1, row["lon"], row["lat"]) for row in rows]
    table = pa.table({"id": [row["id"] for row in rows], "note": [row["note"] for row in rows], "geometry": cells})
    entry = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [-9, 40, 1, 42]}
    notes = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": entry}}
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(notes)}), path)


def read_geojson(path: Path) -> list[dict[str, Any]]:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["type"] == "FeatureCollection"
    assert set(found) == {"type", "features"}
    rows = []
    for feature in found["features"]:
        assert set(feature) == {"type", "geometry", "properties"}
        longitude, latitude = feature["geometry"]["coordinates"]
        rows.append({"lat": latitude, "lon": longitude, **feature["properties"]})
    return rows


def placed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with latitude and longitude for a point in WKB: a byte, the number 1, two doubles."""
    found = []
    for row in rows:
        if "geometry" in row:
            order, kind, east, north = struct.unpack("<BIdd", row.pop("geometry"))
            assert (order, kind) == (1, 1)
            row = {"lat": north, "lon": east, **row}
        found.append(row)
    return found


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


WRITERS: dict[str, Callable[[Path, list[dict[str, Any]]], Any]] = {
    "in.csv": lambda path, rows: path.write_bytes(csv_bytes(rows)),
    "in.tsv": lambda path, rows: path.write_bytes(csv_bytes(rows, "\t")),
    "in.csv.gz": lambda path, rows: path.write_bytes(gzip.compress(csv_bytes(rows))),
    "in.csv.zst": lambda path, rows: path.write_bytes(pa.compress(csv_bytes(rows), "zstd", asbytes=True)),
    "in.geoparquet": lambda path, rows: write_geoparquet(path, rows),
    "in.parquet": lambda path, rows: pq.write_table(pa.Table.from_pylist(rows), path),
    "in.feather": lambda path, rows: pyarrow.feather.write_feather(pa.Table.from_pylist(rows), str(path)),
    "in.jsonl": lambda path, rows: path.write_text(_lines(rows)),
    "in.jsonl.gz": lambda path, rows: path.write_bytes(gzip.compress(_lines(rows).encode())),
    "in.geojson": write_geojson,
    "in.db": write_sqlite,
    "in.duckdb": write_duckdb,
}
READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    ".csv": lambda path: csv_rows(path.read_bytes()),
    ".csv.gz": lambda path: csv_rows(gzip.decompress(path.read_bytes())),
    ".csv.zst": lambda path: csv_rows(pa.CompressedInputStream(str(path), "zstd").read()),
    ".parquet": lambda path: pq.read_table(path).to_pylist(),
    ".feather": lambda path: pyarrow.feather.read_table(str(path)).to_pylist(),
    ".jsonl": lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()],
    ".geojson": read_geojson,
    ".geoparquet": lambda path: pq.read_table(path).to_pylist(),
    ".db": lambda path: read_sqlite(path, "protected"),
    ".duckdb": lambda path: read_duckdb(path, "protected"),
}
