"""Road networks in the forms people have: tables of many spellings, GraphML of osmnx, and sentences for the rest."""

import itertools
import logging
import math

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as parquet
import pytest

from metricdp.errors import InvalidInput
from metricdp.places import graphml, road_network

LAT, LON = [41.0, 41.001, 41.001, 41.0], [-8.0, -8.0, -8.001, -8.001]
STREETS = [(0, 1, 100.0, True), (1, 2, 90.0, False), (2, 3, 80.0, True), (3, 0, 70.5, True)]
NAMES = ["21637960", "7", "3000000001", "12"]


def ways(one_way):
    """All distances of the four streets, by Floyd and Warshall written out."""
    apart = [[0.0 if i == j else math.inf for j in range(4)] for i in range(4)]
    for u, v, length, only in STREETS:
        apart[u][v] = length / 1000
        if one_way == "open" or not only:
            apart[v][u] = length / 1000
    for k, i, j in itertools.product(range(4), repeat=3):
        apart[i][j] = min(apart[i][j], apart[i][k] + apart[k][j])
    return np.maximum(apart, np.array(apart).T)


def written(streets=STREETS, *, head="", default="directed", keys=("y", "x", "length", "oneway"), extra=""):
    """GraphML as networkx writes it for osmnx."""
    kinds = ("node", "node", "edge", "edge")
    text = '<?xml version="1.0" encoding="utf-8"?>\n' + head
    text += '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for number, (key, kind) in enumerate(zip(keys, kinds, strict=True)):
        text += f'  <key id="d{number}" for="{kind}" attr.name="{key}" attr.type="string" />\n'
    text += f'  <key id="d9" for="edge" attr.name="name" attr.type="string" />\n  <graph edgedefault="{default}">\n'
    text += '    <data key="d7">epsg:4326</data>\n'
    for name, y, x in zip(NAMES, LAT, LON, strict=True):
        text += f'    <node id="{name}">\n      <data key="d0">{y}</data><data key="d1">{x}</data>\n    </node>\n'
    for u, v, length, only in streets:
        text += f'    <edge source="{NAMES[u]}" target="{NAMES[v]}" id="0"><data key="d9">Via &amp; Roma</data>'
        text += f'<data key="d2">{length}</data><data key="d3">{only}</data></edge>\n'
    return text + extra + "  </graph>\n</graphml>\n"


@pytest.mark.parametrize("one_way", ["open", "longer"])
def test_graphml_as_osmnx_writes_it(one_way, tmp_path):
    path = tmp_path / "town.graphml"
    path.write_text(written(), encoding="utf-8")
    for source in (path, str(path)):
        space = road_network(source, one_way=one_way)
        np.testing.assert_allclose(space.distances, ways(one_way), rtol=1e-12)
        np.testing.assert_array_equal(space.coordinates, np.column_stack([LAT, LON]))


def test_graphml_without_direction_runs_both_ways(tmp_path):
    (tmp_path / "a.graphml").write_text(written(default="undirected"), encoding="utf-8")
    np.testing.assert_allclose(road_network(tmp_path / "a.graphml", one_way="longer").distances, ways("open"))


def test_graphml_in_small_pieces_is_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(graphml, "PIECE", 7)
    (tmp_path / "a.graphml").write_text(written(), encoding="utf-8")
    np.testing.assert_allclose(road_network(tmp_path / "a.graphml").distances, ways("open"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (written(head='<!DOCTYPE graphml [<!ENTITY a "aaaa">]>\n'), "declares a document type or entities"),
        (written(head='<!DOCTYPE graphml SYSTEM "file:///etc/passwd">\n'), "declares a document type or entities"),
        (written()[:-30], "cannot be read as GraphML"),
        ("osmid,y,x\n1,2,3\n", "cannot be read as GraphML"),
        (written(keys=("y", "z", "length", "oneway")), r"node '21637960' must have `y` and `x`"),
        (written(keys=("y", "x", "width", "oneway")), r"must have `length` in metres \(osmnx"),
        (written([(0, 1, "long", True)]), "lengths in the GraphML file must be numbers"),
        (written([(0, 1, "nan", True)]), "that of street 0 is not known"),
        (written([(0, 1, -1.0, True)]), "must not be negative, got -1 m for street 0"),
        (written([]), "at least one street"),
        (written([(0, 1, "1" * 2000, True)]), "more than 1000 characters"),
        (written(extra='<edge source="7" target="nobody"><data key="d2">1</data></edge>'), "node 'nobody'"),
        (
            written(extra='<node id="7"><data key="d0">1</data><data key="d1">1</data></node>'),
            "two nodes of the name '7'",
        ),
    ],
)
def test_graphml_that_is_refused(text, words, tmp_path):
    (tmp_path / "a.graphml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=words):
        road_network(tmp_path / "a.graphml")


def test_graphml_of_any_size_is_bounded(tmp_path, monkeypatch):
    (tmp_path / "a.graphml").write_text(written(), encoding="utf-8")
    monkeypatch.setattr(graphml, "MOST_ELEMENTS", 3)
    with pytest.raises(InvalidInput, match="more than 3 crossings or streets"):
        road_network(tmp_path / "a.graphml")
    monkeypatch.setattr(graphml, "MOST_BYTES", 100)
    with pytest.raises(InvalidInput, match="at most 100 are read"):
        road_network(tmp_path / "a.graphml")
    with pytest.raises(InvalidInput, match="does not exist"):
        road_network(tmp_path / "b.graphml")


def tables(node_columns, edge_columns, *, names=None):
    """Return the two tables under these column names; with names, ends are names."""
    ends = np.array([[u, v] for u, v, _, _ in STREETS])
    nodes = dict(zip(node_columns[:2], (LAT, LON), strict=True))
    if names is not None:
        nodes[node_columns[2]] = names
        ends = np.array(names)[ends]
    values = (ends[:, 0], ends[:, 1], [s[2] for s in STREETS], [s[3] for s in STREETS])
    return pa.table({**nodes, "note": ["a"] * 4}), pa.table({**dict(zip(edge_columns, values, strict=True)), "w": LAT})


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("one_way", ["open", "longer"])
@pytest.mark.parametrize(
    ("nodes", "edges", "names"),
    [
        (("lat", "lon"), ("u", "v", "length_m", "oneway"), None),
        (("y", "x", "osmid"), ("u", "v", "length", "oneway"), [21637960, 7, 3000000001, 12]),
        (("latitude", "longitude", "id"), ("source", "target", "length", "one_way"), ["a", "b", "c", "d"]),
        (("lat", "lng", "osmid"), ("from", "to", "length_m", "oneway"), [40, 30, 20, 10]),
    ],
)
def test_tables_in_the_columns_people_have(kind, one_way, nodes, edges, names, tmp_path):
    pair = tables(nodes, edges, names=names)
    for name, table in zip(("nodes", "edges"), pair, strict=True):
        write = parquet.write_table if kind == "parquet" else pacsv.write_csv
        write(table, tmp_path / f"{name}.{kind}")
    paths = tmp_path / f"nodes.{kind}", str(tmp_path / f"edges.{kind}")
    for source in (tmp_path, pair, paths):
        np.testing.assert_allclose(road_network(source, one_way=one_way).distances, ways(one_way), rtol=1e-12)


def test_names_that_are_not_used_do_not_disturb():
    nodes, edges = tables(("lat", "lon"), ("u", "v", "length_m", "oneway"))
    named = nodes.append_column("osmid", [[21637960, 7, 3000000001, 12]])
    np.testing.assert_allclose(road_network((named, edges)).distances, ways("open"))
    same = nodes.append_column("id", [[0, 1, 2, 3]])
    np.testing.assert_allclose(road_network((same, edges)).distances, ways("open"))
    with pytest.raises(InvalidInput, match="both fit"):
        road_network((nodes.append_column("id", [[3, 2, 1, 0]]), edges))


def test_tables_that_are_refused(tmp_path):
    nodes, edges = tables(("lat", "lon"), ("u", "v", "length_m", "oneway"))
    with pytest.raises(
        InvalidInput, match=r"edges must have the column `length_m` \(or `length`\), got u, v, oneway, w"
    ):
        road_network((nodes, edges.drop_columns(["length_m"])))
    unknown = edges.set_column(2, "length_m", [[1.0, None, 2.0, None]])
    with pytest.raises(InvalidInput, match=r"that of street 1 is not known \(2 such streets\)"):
        road_network((nodes, unknown))
    with pytest.raises(InvalidInput, match="lengths must be numbers"):
        road_network((nodes, edges.set_column(2, "length_m", [["a", "b", "c", "d"]])))
    with pytest.raises(InvalidInput, match="names: the column of names repeats one"):
        road_network(tables(("lat", "lon", "id"), ("u", "v", "length", "oneway"), names=[40, 40, 20, 10]))
    (tmp_path / "nodes.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    pacsv.write_csv(edges, tmp_path / "edges.csv")
    with pytest.raises(InvalidInput, match=r"nodes must have the column `lat` \(or `y`, `latitude`\), got a, b"):
        road_network(tmp_path)
    (tmp_path / "nodes.csv").write_text("", encoding="utf-8")
    with pytest.raises(InvalidInput, match="column `lat`"):
        road_network(tmp_path)
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match="cannot be read"):
        road_network((tmp_path / "nodes.parquet", edges))
    with pytest.raises(InvalidInput, match="does not exist"):
        road_network((tmp_path / "nobody.csv", edges))
    with pytest.raises(InvalidInput, match="at least one crossing"):
        road_network(({"lat": [], "lon": []}, {"u": [], "v": [], "length": []}))


def test_what_is_left_out_is_said(caplog):
    nodes = {"lat": [41.0, 41.001, 42.0, 42.001, 42.002], "lon": [-8.0] * 5}
    edges = {"u": [0, 2, 3], "v": [1, 3, 4], "length": [111.0, 111.0, 111.0]}
    with caplog.at_level(logging.WARNING, "metricdp"):
        assert len(road_network((nodes, edges))) == 3
    assert "2 of 5 crossings are left out: no road joins them" in caplog.text
    caplog.clear()
    road_network((nodes, edges), nodes=2)
    assert not caplog.text


def test_a_name_with_or_without_roads(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICDP_DATA", str(tmp_path))
    for name, kind in (("roads_lilliput", "csv"), ("brobdingnag", "parquet")):
        (tmp_path / name).mkdir()
        for table, values in zip(("nodes", "edges"), tables(("y", "x"), ("u", "v", "length", "oneway")), strict=True):
            (parquet.write_table if kind == "parquet" else pacsv.write_csv)(values, tmp_path / name / f"{table}.{kind}")
    for name in ("lilliput", "roads_lilliput", "Lilliput", "brobdingnag"):
        assert len(road_network(name)) == 4
    assert len(road_network("roads_porto", nodes=30)) == 30
    with pytest.raises(InvalidInput, match=r"one of the cities lilliput, porto, got 'atlantis'"):
        road_network("atlantis")


def test_millimetres_loops_and_parallels_are_roads():
    nodes = {"lat": [41.0, 41.0, 41.001], "lon": [-8.0, -8.0, -8.0]}
    edges = {"u": [0, 0, 1, 2, 2], "v": [1, 1, 2, 1, 2], "length": [0.001, 5.0, 111.0, 50.0, 3.0]}
    space = road_network((nodes, edges))
    np.testing.assert_allclose(space.distances, [[0, 1e-6, 0.050001], [1e-6, 0, 0.05], [0.050001, 0.05, 0]], rtol=1e-12)
    assert space.near(1e-6).counts.tolist() == [2, 2, 1]
