"""Places: grids and road networks are spaces with the distances they claim."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine, Lp, ShortestPath
from metricdp.places import (
    bundled_roads,
    bundled_streets,
    bundled_trips,
    data_folder,
    grid,
    road_network,
)


def great_circle(a, b):
    """Return the distance in kilometres by the law of haversines, written out."""
    (la, oa), (lb, ob) = np.radians(a), np.radians(b)
    half = math.sin((lb - la) / 2) ** 2 + math.cos(la) * math.cos(lb) * math.sin((ob - oa) / 2) ** 2
    return 2 * 6371.009 * math.asin(math.sqrt(half))


def square(lengths=(100.0, 100.0, 100.0, 100.0)):
    """Return four crossings around a block and the streets between them."""
    nodes = pa.table({"lat": [41.0, 41.001, 41.001, 41.0], "lon": [-8.0, -8.0, -8.001, -8.001]})
    edges = pa.table({"u": [0, 1, 2, 3], "v": [1, 2, 3, 0], "length_m": list(lengths)})
    return nodes, edges


def floyd_warshall(count, streets):
    apart = [[0.0 if i == j else math.inf for j in range(count)] for i in range(count)]
    for u, v, length in streets:
        apart[u][v] = min(apart[u][v], length)
    for k, i, j in itertools.product(range(count), repeat=3):
        apart[i][j] = min(apart[i][j], apart[i][k] + apart[k][j])
    return np.array(apart)


class TestGrid:
    def test_points_and_distances(self):
        space = grid((2, 3), spacing=(2.0, 0.5), origin=(10.0, 20.0))
        assert space.points.tolist() == [[10, 20], [10, 20.5], [10, 21], [12, 20], [12, 20.5], [12, 21]]
        assert isinstance(space.metric, Lp)
        assert space.distances[0, 5] == pytest.approx(math.hypot(2, 1))

    def test_a_number_is_a_line(self):
        assert grid(4).points.ravel().tolist() == [0, 1, 2, 3]

    def test_kilometres_on_the_earth(self):
        space = grid((5, 7), spacing=0.25, origin=(60.1, 24.9), metric=Haversine())
        assert space.points[0].tolist() == [60.1, 24.9]
        middle = space.points.reshape(5, 7, 2)[2]
        assert great_circle(middle[3], middle[4]) == pytest.approx(0.25, rel=1e-6)
        assert great_circle(space.points[0], space.points[7]) == pytest.approx(0.25, rel=1e-9)

    @pytest.mark.parametrize("shape", [(), 0, (3, 0), (2.5, 2), "ab"])
    def test_bad_shapes(self, shape):
        with pytest.raises(InvalidInput, match="shape"):
            grid(shape)

    @pytest.mark.parametrize("spacing", [0, -1.0, (1.0, 2.0, 3.0), math.nan])
    def test_bad_spacing(self, spacing):
        with pytest.raises(InvalidInput, match="spacing"):
            grid((2, 2), spacing=spacing)

    def test_the_earth_needs_a_corner_and_room(self):
        with pytest.raises(InvalidInput, match="south-west"):
            grid((2, 2), metric=Haversine())
        with pytest.raises(InvalidInput, match="poles"):
            grid((400, 2), spacing=30.0, origin=(0, 0), metric=Haversine())


class TestRoadNetwork:
    def test_around_the_block(self):
        space = road_network(square())
        assert isinstance(space.metric, ShortestPath)
        assert space.unit == "km"
        expected = floyd_warshall(
            4, [(a, b, 0.1) for u, v in [(0, 1), (1, 2), (2, 3), (3, 0)] for a, b in [(u, v), (v, u)]]
        )
        np.testing.assert_allclose(space.distances, expected, atol=1e-15)

    def test_the_longer_way_of_one_way_streets(self):
        space = road_network(square(), one_way="longer")
        one = floyd_warshall(4, [(0, 1, 0.1), (1, 2, 0.1), (2, 3, 0.1), (3, 0, 0.1)])
        np.testing.assert_allclose(space.distances, np.maximum(one, one.T), atol=1e-15)

    def test_loops_parallels_and_zero_lengths(self):
        nodes = {"lat": [41.0, 41.0, 41.001, 41.002], "lon": [-8.0, -8.0, -8.0, -8.0]}
        edges = {
            "u": [0, 1, 1, 2, 2, 3],
            "v": [1, 2, 2, 3, 2, 2],
            "length_m": [0.0, 150.0, 111.0, 120.0, 30.0, 130.0],
        }
        space = road_network((nodes, edges))
        assert len(space) == 3  # the first two are one place
        assert space.distances[0].tolist() == pytest.approx([0.0, 0.111, 0.231])
        assert space.coordinates[0].tolist() == [41.0, -8.0]

    def test_keeps_one_connected_part(self):
        nodes = {"lat": [41.0, 41.001, 42.0, 42.001, 42.002], "lon": [-8.0] * 5}
        edges = {"u": [0, 2, 3], "v": [1, 3, 4], "length_m": [111.0, 111.0, 111.0]}
        assert len(road_network((nodes, edges))) == 3
        assert np.all(road_network((nodes, edges), center=(41.0, -8.0), nodes=2).coordinates[:, 0] > 40)

    def test_a_folder_and_the_bundle_agree(self, tmp_path):
        import pyarrow.parquet as parquet

        nodes, edges = square()
        parquet.write_table(nodes, tmp_path / "nodes.parquet")
        parquet.write_table(edges, tmp_path / "edges.parquet")
        np.testing.assert_array_equal(road_network(tmp_path).distances, road_network(square()).distances)

    def test_a_graph_as_osmnx_makes_it(self):
        class Graph:
            def is_directed(self):
                return True

            def nodes(self, data=False):
                return [("a", {"y": 41.0, "x": -8.0}), ("b", {"y": 41.001, "x": -8.0})]

            def edges(self, data=False):
                return [("a", "b", {"length": 112.0})]

        assert road_network(Graph()).distances[0, 1] == pytest.approx(0.112)

    def test_undirected_tables_run_both_ways(self):
        nodes, edges = square()
        both = edges.replace_schema_metadata({"directed": "false"})
        longer = road_network((nodes, both), one_way="longer")
        np.testing.assert_array_equal(longer.distances, road_network((nodes, edges)).distances)

    @pytest.mark.parametrize("one_way", ["open", "longer"])
    def test_cut_to_size_stays_connected(self, one_way):
        from metricdp.places import BUNDLED_FOLDER

        space = road_network(BUNDLED_FOLDER / "roads_porto", center=(41.1496, -8.6110), nodes=80, one_way=one_way)
        assert len(space) == 80 if one_way == "open" else 40 <= len(space) <= 80
        apart = space.distances  # raises where no road leads
        assert np.all(apart[:, None, :] <= apart[:, :, None] + apart[None] + 1e-12)

    def test_bad_input(self):
        nodes, edges = square()
        with pytest.raises(InvalidInput, match="length_m"):
            road_network((nodes, edges.drop_columns(["length_m"])))
        with pytest.raises(InvalidInput, match="negative"):
            road_network(square((1.0, 2.0, -3.0, 4.0)))
        with pytest.raises(InvalidInput, match="codes from 0 to 3"):
            road_network((nodes, {"u": [0], "v": [9], "length_m": [1.0]}))
        with pytest.raises(InvalidInput, match="atlantis"):
            road_network("atlantis")
        with pytest.raises(InvalidInput, match="one_way"):
            road_network(square(), one_way="both")
        with pytest.raises(InvalidInput, match="nodes"):
            road_network(square(), nodes=1)
        with pytest.raises(InvalidInput, match="networkx"):
            road_network(42)  # type: ignore[arg-type]


class TestBundle:
    def test_roads(self):
        space = bundled_roads()
        assert 600 <= len(space) <= 1000
        assert np.all(np.isfinite(space.distances))
        straight = Haversine()(space.coordinates[:, None], space.coordinates[None])
        assert np.all(space.distances >= straight * (1 - 1e-3))  # a road is no shortcut
        assert len(bundled_streets()) > 600

    def test_small_and_attributed(self):
        from metricdp.places import BUNDLED_FOLDER

        assert sum(path.stat().st_size for path in BUNDLED_FOLDER.rglob("*.parquet")) < 150_000
        text = (BUNDLED_FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
        assert "OpenStreetMap contributors" in text
        assert "ODbL" in text

    def test_trips_are_repeatable_and_say_that_they_are_simulated(self):
        space = bundled_roads(nodes=120)
        table = bundled_trips(trips=20, seed=3, space=space)
        assert table.equals(bundled_trips(trips=20, seed=3, space=space))
        assert table.schema.metadata[b"simulated"] == b"true"
        positions = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1)
        assert space.nearest(positions)[1].max() < 0.015
        assert len(set(table["trip"].to_pylist())) == 20

    def test_data_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("METRICDP_DATA", str(tmp_path))
        assert data_folder() == tmp_path
        assert len(road_network("porto", nodes=30)) == 30  # the bundle still answers
        monkeypatch.setenv("METRICDP_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(InvalidInput, match="METRICDP_DATA"):
            data_folder()
        monkeypatch.delenv("METRICDP_DATA")
        assert data_folder().is_dir()
