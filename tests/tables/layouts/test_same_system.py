"""A table of points comes back in the coordinate system that its metadata name, and with no bounds of the truth."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.tables import Reading, perturb

pyproj = pytest.importorskip("pyproj")
shapely = pytest.importorskip("shapely")
# East first, and between the points of the lattice of reports: no report is a true number by chance.
TRUE = np.array([[-8.62938471357, 41.14738291357], [-8.61837461357, 41.15839271357], [-8.60726351357, 41.16948361357]])


def projected(code):
    if code in (None, "OGC:CRS84", "EPSG:4326"):
        return TRUE
    there = pyproj.Transformer.from_crs("OGC:CRS84", code, always_xy=True)
    return np.column_stack(there.transform(TRUE[:, 0], TRUE[:, 1]))


def geoparquet(path, code):
    """A GeoParquet file as other programs write it: bounds and all."""
    points = projected(code)
    notes = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [*points.min(axis=0), *points.max(axis=0)]}
    if code is not None:
        notes["crs"] = pyproj.CRS.from_user_input(code).to_json_dict()
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": notes}}
    table = pa.table({"n": [1, 2, 3], "geometry": pa.array(shapely.to_wkb(shapely.points(points)), pa.binary())})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo), "bounds": str(points.tolist())}), path)
    return points


@pytest.mark.parametrize("code", [None, "OGC:CRS84", "EPSG:4326", "EPSG:3763", "EPSG:3857"])
def test_a_geoparquet_file_keeps_its_system_and_loses_its_bounds(tmp_path, code):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    truth = geoparquet(source, code)
    perturb(source, mdp.laplace(mdp.Haversine(), 1000.0), to=target)
    made = pq.read_table(target)
    entry = json.loads(made.schema.metadata[b"geo"])["columns"]["geometry"]
    assert "bbox" not in entry
    assert b"bounds" not in made.schema.metadata
    if code is None:
        assert "crs" not in entry
    else:
        assert pyproj.CRS.from_user_input(entry["crs"]) == pyproj.CRS.from_user_input(code)
    found = shapely.get_coordinates(shapely.from_wkb(made["geometry"].to_numpy(zero_copy_only=False)))
    scale = 1.0 if abs(truth).max() > 1000 else 1e-5  # one unit is a metre, or a metre in degrees
    assert 0.0 < np.abs(found - truth).max() < 100 * scale
    data = target.read_bytes()
    for value in (*truth.min(axis=0), *truth.max(axis=0)):  # neither as text nor as a number, in statistics or notes
        assert np.float64(value).tobytes() not in data
        assert str(float(value)).encode() not in data


def test_a_geoparquet_file_whose_system_nobody_knows_says_so_again(tmp_path):
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    geoparquet(source, None)
    table = pq.read_table(source)
    geo = json.loads(table.schema.metadata[b"geo"])
    geo["columns"]["geometry"]["crs"] = None
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), source)
    perturb(source, mdp.laplace(mdp.Haversine(), 1000.0), to=target)
    entry = json.loads(pq.read_table(target).schema.metadata[b"geo"])["columns"]["geometry"]
    assert "crs" in entry
    assert entry["crs"] is None


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (None, None), ("urn:ogc:def:crs:OGC:1.3:CRS84", None), ("urn:ogc:def:crs:EPSG::4326", None),
        ("EPSG:4326", None), ("urn:ogc:def:crs:EPSG::3763", "EPSG:3763"), ("EPSG:3763", "EPSG:3763"),
    ],
)  # fmt: skip
def test_a_geojson_file_states_the_system_of_its_reports(tmp_path, name, code):
    source, target = tmp_path / "in.geojson", tmp_path / "out.geojson"
    truth = projected(code)
    system = {} if name is None else {"crs": {"type": "name", "properties": {"name": name}}}
    features = [
        {"type": "Feature", "properties": {"n": n}, "geometry": {"type": "Point", "coordinates": list(place)}}
        for n, place in enumerate(truth.tolist())
    ]
    source.write_text(json.dumps({"type": "FeatureCollection", **system, "features": features}))
    noise = mdp.laplace(mdp.Haversine(), 1000.0)
    if code is not None:
        with pytest.raises(mdp.errors.InvalidInput, match=f"say --crs {code}"):
            perturb(source, noise, to=target)
    perturb(source, noise, to=target, reading=Reading(crs=code))
    made = json.loads(target.read_text())
    assert made.get("crs") == (None if code else system.get("crs"))  # GeoJSON is in longitude and latitude
    found = np.array([feature["geometry"]["coordinates"] for feature in made["features"]])
    assert 0.0 < np.abs(found - TRUE).max() < 1e-3


@pytest.mark.parametrize(("code", "names"), [("EPSG:3763", ("x", "y")), ("EPSG:4258", ("lon", "lat"))])
def test_columns_of_a_geojson_file_are_named_after_what_they_hold(tmp_path, code, names):
    """Metres stood under `lat` and `lon`, and degrees of another datum were read with the two exchanged."""
    source, target = tmp_path / "in.geojson", tmp_path / "out.csv"
    truth = projected(code)
    features = [
        {"type": "Feature", "properties": {"n": n}, "geometry": {"type": "Point", "coordinates": list(place)}}
        for n, place in enumerate(truth.tolist())
    ]
    source.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    perturb(source, mdp.laplace(mdp.Haversine(), 1000.0), to=target, reading=Reading(crs=code))
    with target.open() as lines:
        rows = list(csv.DictReader(lines))
    found = np.array([[float(row[name]) for name in names] for row in rows])
    moved = np.abs(found - truth).max()
    assert 0.0 < moved < (100.0 if code == "EPSG:3763" else 1e-3)
