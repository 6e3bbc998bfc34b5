"""Secrets inside structs, lists and geometries, scaled, projected or under a name that others share: there and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain
from metricdp.tables import Reading, perturb
from scripts import main
from tabled import ALMOST, METRES, csv_rows
from tables.engines.hand import perturbed

PLACES = [(41.1496123, -8.6109456), (41.1579384, -8.6291053), (41.2512347, -8.5123456)]


def protected(tmp_path: Path, table: pa.Table, columns: Any = None, **options: Any) -> list[dict[str, Any]]:
    pq.write_table(table, tmp_path / "in.parquet")
    mechanism = options.pop("mechanism", ALMOST)
    perturb(tmp_path / "in.parquet", mechanism, to=tmp_path / "out.parquet", columns=columns, overwrite=True, **options)
    return pq.read_table(tmp_path / "out.parquet").to_pylist()


def test_fields_of_structs_are_protected_where_they_are(tmp_path: Path) -> None:
    positions = [{"lat": lat, "acc": 5, "lon": lon} for lat, lon in PLACES]
    table = pa.table({"n": [1, 2, 3], "pos": positions, "after": ["a", "b", "c"]})
    for columns in ("pos", ["pos.lat", "pos.lon"]):
        rows = protected(tmp_path, table, columns)
        assert list(rows[0]) == ["n", "pos", "after"]
        assert list(rows[0]["pos"]) == ["lat", "acc", "lon"]
        for row, (lat, lon) in zip(rows, PLACES, strict=True):
            assert row["pos"]["acc"] == 5
            assert abs(row["pos"]["lat"] - lat) < METRES
            assert abs(row["pos"]["lon"] - lon) < METRES
        assert [row["pos"] for row in rows] != positions  # one coordinate may stay by chance, not all


def test_deep_paths_and_rows_without_a_struct(tmp_path: Path) -> None:
    deep = [{"fix": {"at": {"lat": 41.5, "lon": -8.5}, "q": 1}}, {"fix": None}, None]
    table = pa.table({"gps": pa.array(deep)})
    with pytest.raises(OutOfDomain, match=r"row 1 .*gps\.fix\.at\.lat and gps\.fix\.at\.lon hold no number"):
        protected(tmp_path, table, ["gps.fix.at.lat", "gps.fix.at.lon"])
    rows = protected(tmp_path, table, ["gps.fix.at.lat", "gps.fix.at.lon"], on_error="null")
    assert rows[0]["gps"]["fix"]["q"] == 1
    assert abs(rows[0]["gps"]["fix"]["at"]["lat"] - 41.5) < METRES
    assert rows[2]["gps"]["fix"]["at"]["lat"] is None
    with pytest.raises(InvalidInput, match=r"no field 'lt' in the column 'gps.fix.at'. Its fields are lat, lon"):
        protected(tmp_path, table, ["gps.fix.at.lt", "gps.fix.at.lon"])


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float64()), pa.list_(pa.float64(), 2)])
def test_lists_hold_a_place(tmp_path: Path, kind: pa.DataType) -> None:
    table = pa.table({"pos": pa.array([list(place) for place in PLACES] + [None], kind)})
    rows = protected(tmp_path, table, "pos", on_error="null")
    assert pq.read_schema(tmp_path / "out.parquet").field("pos").type == kind
    for row, place in zip(rows, PLACES, strict=False):
        assert np.allclose(row["pos"], place, rtol=0, atol=METRES)
    assert rows[3]["pos"] is None
    turned = pa.table({"pos": pa.array([[lon, lat] for lat, lon in PLACES], kind)})
    rows = protected(tmp_path, turned, ["pos[1]", "pos[0]"])
    for row, place in zip(rows, PLACES, strict=True):
        assert np.allclose(row["pos"], place[::-1], rtol=0, atol=METRES)


def test_lists_of_another_length_are_bad_rows_and_altitudes_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"pos": [[41.0, -8.0], [41.0], [], [41.0, -8.0, 3.0]]})
    with pytest.raises(OutOfDomain) as bad:
        protected(tmp_path, table, "pos")
    assert bad.value.rows == (1, 2, 3)
    high = pa.table({"pos": [[-8.0, 41.0, 77.0], [-8.5, 41.5, 78.0]]})
    assert [len(row["pos"]) for row in protected(tmp_path, high, ["pos[1]", "pos[0]"])] == [2, 2]


def test_vectors_are_perturbed_in_their_own_dimension_from_the_command_line(tmp_path: Path) -> None:
    vectors = np.random.default_rng(3).normal(size=(4, 5)).astype(np.float32)
    table = pa.table({"word": ["a", "b", "c", "d"], "vector": pa.array(vectors.tolist(), pa.list_(pa.float32(), 5))})
    pq.write_table(table, tmp_path / "in.parquet")
    words = ["perturb", str(tmp_path / "in.parquet"), "--metric", "l2", "--epsilon", "1e4", "--columns", "vector"]
    assert main([*words, "-o", str(tmp_path / "out.parquet")]) == 0
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.schema.field("vector").type == pa.list_(pa.float32(), 5)
    assert np.allclose(np.array(made["vector"].to_pylist()), vectors, rtol=0, atol=0.02)
    assert not np.array_equal(np.array(made["vector"].to_pylist(), np.float32), vectors)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_whole_numbers_are_scaled_and_stay_whole(tmp_path: Path, kind: pa.DataType) -> None:
    stored = [[round(value * 1e7) for value in column] for column in zip(*PLACES, strict=True)]
    table = pa.table({"lat": pa.array(stored[0], kind), "lon": pa.array(stored[1], kind)})
    rows = protected(tmp_path, table, reading=Reading(scale=1e-7))
    assert pq.read_schema(tmp_path / "out.parquet").types == [kind, kind]
    for row, (lat, lon) in zip(rows, PLACES, strict=True):
        assert isinstance(row["lat"], int)
        assert abs(row["lat"] / 1e7 - lat) < METRES
        assert abs(row["lon"] / 1e7 - lon) < METRES
    lines = ["lat,lon", *(f"{lat},{lon}" for lat, lon in zip(*stored, strict=True))]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv", reading=Reading(scale=1e-7))
    for row, (lat, _) in zip(csv_rows((tmp_path / "out.csv").read_bytes()), PLACES, strict=True):
        assert abs(int(row["lat"]) / 1e7 - lat) < METRES


def test_a_scale_that_puts_all_places_on_one_spot_is_refused(tmp_path: Path) -> None:
    table = pa.table({"lat": [lat for lat, _ in PLACES], "lon": [lon for _, lon in PLACES]})
    with pytest.raises(
        InvalidInput, match=r"--scale 1e-07 all of the first rows lie within 0.01 degrees.*degrees already"
    ):
        protected(tmp_path, table, reading=Reading(scale=1e-7))


def test_reports_beyond_a_small_type_are_put_on_its_border(tmp_path: Path) -> None:
    plane = mdp.laplace(mdp.Lp(2), 0.01)  # reports lie hundreds away
    table = pa.table({"x": pa.array([0, 1] * 100, pa.int8()), "y": pa.array([1, 0] * 100, pa.int8())})
    rows = protected(tmp_path, table, mechanism=plane, reading=Reading(scale=2.0))
    assert {row["x"] for row in rows} >= {-128, 127}


def mercator(lat: float, lon: float) -> tuple[float, float]:
    """The published formula of EPSG:3857, on a sphere."""
    radius = 6378137.0
    return radius * math.radians(lon), radius * math.log(math.tan(math.pi / 4 + math.radians(lat) / 2))


def test_projected_coordinates_come_back_projected(tmp_path: Path) -> None:
    flat = [mercator(*place) for place in PLACES]
    table = pa.table({"x": [x for x, _ in flat], "y": [y for _, y in flat]})
    pq.write_table(table, tmp_path / "in.parquet")
    summary = perturb(tmp_path / "in.parquet", ALMOST, to=tmp_path / "out.parquet", reading=Reading(crs="EPSG:3857"))
    for row, (x, y) in zip(pq.read_table(tmp_path / "out.parquet").to_pylist(), flat, strict=True):
        assert 0 < math.hypot(row["x"] - x, row["y"] - y) < 20
    assert any("kilometres on the Earth, not about lengths in the projection" in line for line in summary.lines())
    words = ["perturb", str(tmp_path / "in.parquet"), "--epsilon", "1e4/km", "--crs", "EPSG:3857"]
    assert main([*words, "-o", str(tmp_path / "o.geojson")]) == 0
    for feature, (lat, lon) in zip(json.loads((tmp_path / "o.geojson").read_text())["features"], PLACES, strict=True):
        assert np.allclose(feature["geometry"]["coordinates"], [lon, lat], rtol=0, atol=METRES)


def test_the_law_of_a_projected_table_is_the_law_on_the_earth(tmp_path: Path) -> None:
    """The mean distance of reports, measured on the Earth after going back, is 2 / epsilon as on the sphere."""
    x, y = mercator(*PLACES[0])
    pq.write_table(pa.table({"x": [x] * 4000, "y": [y] * 4000}), tmp_path / "in.parquet")
    noise = mdp.laplace(mdp.Haversine(), 10.0)
    perturb(tmp_path / "in.parquet", noise, to=tmp_path / "out.parquet", crs="EPSG:3857", force=True)
    made = pq.read_table(tmp_path / "out.parquet")
    east = np.degrees(np.asarray(made["x"]) / 6378137.0)
    north = np.degrees(2 * np.arctan(np.exp(np.asarray(made["y"]) / 6378137.0)) - np.pi / 2)
    a, b = np.radians(north), math.radians(PLACES[0][0])
    half = np.sin((a - b) / 2) ** 2 + np.cos(a) * math.cos(b) * np.sin(np.radians(east - PLACES[0][1]) / 2) ** 2
    kilometres = 2 * 6371.0088 * np.arcsin(np.sqrt(half))
    assert abs(kilometres.mean() - 0.2) < 5 * 0.1414 / math.sqrt(4000)


def test_places_a_projection_cannot_hold_are_bad_and_far_reports_are_put_on_its_border(tmp_path: Path) -> None:
    good = {"east": [565000.0, 566000.0], "north": [5930000.0, 5931000.0]}
    utm = Reading(crs="EPSG:25832")
    wild = {"east": [565000.0, 9e9, None], "north": [5930000.0, 1.0, 5.0]}
    with pytest.raises(OutOfDomain, match=r"row 1 .*hold no place of EPSG:25832") as bad:
        protected(tmp_path, pa.table(wild), reading=utm)
    assert bad.value.rows == (1, 2)
    far = mdp.laplace(mdp.Haversine(), 1e-4)  # per kilometre: reports lie anywhere on the Earth
    table = pa.table({name: values * 300 for name, values in good.items()})
    rows = protected(tmp_path, table, mechanism=far, reading=utm)
    assert all(math.isfinite(row["east"]) and math.isfinite(row["north"]) for row in rows)
    for crs, message in {
        "EPSG:1": "no coordinate system",
        "EPSG:5773": "two columns",
        "+proj=utm +zone=32": "area",
    }.items():
        with pytest.raises(InvalidInput, match=message):
            protected(tmp_path, pa.table(good), reading=Reading(crs=crs))
    with pytest.raises(InvalidInput, match="per kilometre on the Earth"):
        protected(tmp_path, pa.table(good), mechanism=mdp.laplace(mdp.Lp(2), 1.0), reading=utm)
    with pytest.raises(InvalidInput, match=r"say which columns hold the coordinates of EPSG:25832, east first"):
        protected(tmp_path, pa.table({"a": [1.0], "b": [2.0]}), reading=utm)


def geo_file(path: Path, crs: dict[str, Any] | None = None) -> None:
    import shapely

    points = [shapely.Point(lon, lat) for lat, lon in PLACES] if crs is None else [shapely.Point(565000, 5930000)]
    boxes = [dict(zip(("xmin", "ymin", "xmax", "ymax"), point.bounds, strict=True)) for point in points]
    entry: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": ["Point"],
        "bbox": [-8.63, 41.14, -8.5, 41.25],
        "covering": {"bbox": {key: ["bbox", key] for key in boxes[0]}},
    }
    if crs is not None:
        entry["crs"] = crs
    notes = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": entry}}
    table = pa.table({"id": list(range(len(points))), "bbox": boxes, "geometry": [shapely.to_wkb(p) for p in points]})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(notes)}), path)


def test_points_of_a_geoparquet_file_without_what_else_tells_them(tmp_path: Path) -> None:
    import shapely

    geo_file(tmp_path / "in.parquet")
    summary = perturb(tmp_path / "in.parquet", ALMOST, to=tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.schema.names == ["id", "geometry"]  # the bounding box of a point is the point
    shapes = shapely.from_wkb(table["geometry"].to_pylist())
    for shape, (lat, lon) in zip(shapes, PLACES, strict=True):
        assert abs(shape.x - lon) < METRES
        assert abs(shape.y - lat) < METRES
    assert [(shape.y, shape.x) for shape in shapes] != PLACES  # one coordinate may stay by chance, not all
    notes = json.loads(table.schema.metadata[b"geo"])
    assert notes["columns"]["geometry"] == {"encoding": "WKB", "geometry_types": ["Point"]}
    assert any("Left out: bbox" in line for line in summary.lines())
    perturb(tmp_path / "in.parquet", ALMOST, to=tmp_path / "out.csv")
    rows = csv_rows((tmp_path / "out.csv").read_bytes())
    assert list(rows[0]) == ["id", "lat", "lon"]
    assert abs(float(rows[0]["lat"]) - PLACES[0][0]) < METRES


def test_a_geoparquet_file_in_a_projection_says_so_itself(tmp_path: Path) -> None:
    import pyproj
    import shapely

    geo_file(tmp_path / "in.parquet", pyproj.CRS.from_user_input("EPSG:25832").to_json_dict())
    perturb(tmp_path / "in.parquet", ALMOST, to=tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    (point,) = shapely.from_wkb(table["geometry"].to_pylist())
    assert 0 < math.hypot(point.x - 565000, point.y - 5930000) < 20
    notes = json.loads(table.schema.metadata[b"geo"])
    assert notes["columns"]["geometry"]["crs"]["id"] == {"authority": "EPSG", "code": 25832}


def test_other_shapes_and_broken_bytes_are_bad_rows(tmp_path: Path) -> None:
    import shapely

    cells = [shapely.to_wkb(shapely.Point(-8, 41)), shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)])), b"\x01", None]
    with pytest.raises(OutOfDomain, match="hold no point") as bad:
        protected(tmp_path, pa.table({"geom": cells}), "geom")
    assert bad.value.rows == (1, 2, 3)


def test_columns_that_share_a_name_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("lat,lon,note,lat,lon,note\n41.1,-8.1,a,41.5,-8.5,b\n")
    with pytest.raises(InvalidInput, match=r"there are 2 columns 'lat': name one as 'lat#1' or 'lat#2'"):
        perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv", columns=["lat", "lon"])
    perturb(tmp_path / "in.csv", ALMOST, to=tmp_path / "out.csv", columns=["lat#2", "lon#2"])
    names, row = (tmp_path / "out.csv").read_text().splitlines()
    assert names == "lat,lon,note,lat,lon,note"
    cells = row.split(",")
    assert cells[:3] + cells[5:] == ["41.1", "-8.1", "a", "b"]
    assert abs(float(cells[3]) - 41.5) < METRES
    assert cells[3:5] != ["41.5", "-8.5"]


@pytest.mark.parametrize("name", ["Pickup Lat", " Pickup Lat", "Pickup, Lat"])
def test_headers_with_spaces_and_commas_can_be_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.csv").write_text(f'"{name}",Pickup Lon\n41.1,-8.1\n')
    words = ["perturb", str(tmp_path / "in.csv"), "--epsilon", "1e4/km", "-o", str(tmp_path / "out.csv")]
    assert main([*words, "--columns", f'"{name.strip()}", Pickup Lon']) == 0
    assert abs(float((tmp_path / "out.csv").read_text().splitlines()[1].split(",")[0]) - 41.1) < METRES


def test_a_job_keeps_what_was_said_about_its_files(tmp_path: Path) -> None:
    for day in range(2):
        (tmp_path / f"day{day}.csv").write_text("x;y\r\n565000,5;5930000\r\n566000;5931000,25\r\n")
    perturbed(
        [tmp_path / "day0.csv", tmp_path / "day1.csv"], tmp_path / "out", ALMOST, columns=["x", "y"],
        reading=Reading(crs="EPSG:25832"),
    )  # fmt: skip
    for day in range(2):
        lines = (tmp_path / "out" / f"day{day}.csv").read_bytes().decode().split("\r\n")
        east, north = (float(cell.replace(",", ".")) for cell in lines[1].split(";"))
        assert math.hypot(east - 565000.5, north - 5930000) < 20
