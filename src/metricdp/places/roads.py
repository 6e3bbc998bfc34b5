"""Road networks as spaces: one connected part, distances along the roads."""

from __future__ import annotations

import heapq
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from metricdp.arrays import Booleans, Floats, Integers, as_choice, as_floats, as_positive
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine, ShortestPath
from metricdp.places.folders import BUNDLED_FOLDER, CENTERS, data_folder
from metricdp.places.graphml import from_graphml
from metricdp.places.network import Roads, build_listed_roads, part_labels
from metricdp.places.tables import as_numbers, folder_formats, from_tables
from metricdp.spaces import FiniteSpace

RoadSource: TypeAlias = "str | Path | tuple[Any, Any] | NetworkGraph"


def road_network(
    source: RoadSource,
    *,
    center: tuple[float, float] | None = None,
    nodes: int | None = None,
    one_way: str = "open",
) -> FiniteSpace:
    """Return the crossings of a road network with distances along the roads, in kilometres.

    The source is a city ("porto", "rome", or any folder `roads_<city>` of the data folder), a GraphML file or a
    networkx graph as osmnx makes it, a folder with the tables `nodes` and `edges` (.parquet or .csv), or the two tables
    themselves or their paths. Crossings have `lat` and `lon` (or `y` and `x`) in degrees. Streets have `u` and `v` (or
    `from` and `to`, `source` and `target`), row numbers of crossings or what stands in their column `osmid` or `id`,
    and `length_m` (or `length`) in metres. They run from u to v, and back where `oneway` says that they are not.

    One connected part is kept: the one around `center`, or else the largest; how many crossings that leaves out is
    logged. `nodes` keeps that many crossings near the center (the middle of the network unless given), grown street by
    street so that they stay connected; with `one_way="longer"` at most that many. See `ShortestPath` for `one_way`.
    """
    roads = _selected_roads(source, center, nodes, one_way)
    return FiniteSpace(
        np.arange(len(roads.nodes)), _paths(roads, roads.lengths, one_way), coordinates=roads.nodes, ground=Haversine()
    )


def travel_time(
    source: RoadSource,
    *,
    center: tuple[float, float] | None = None,
    nodes: int | None = None,
    one_way: str = "open",
    speed_kmh: float | None = None,
) -> ShortestPath:
    """Return how many minutes it takes to drive between the crossings that `road_network` returns for the same words.

    Streets take what the source says: `travel_time_s` or `speed_kmh` (osmnx: `travel_time`, `speed_kph`). Those of
    which it says nothing are driven at `speed_kmh`. A loss for `Problem`, not a metric to protect with.
    """
    roads = _selected_roads(source, center, nodes, one_way)
    minutes = np.full(len(roads.lengths), np.nan) if roads.minutes is None else roads.minutes
    silent = int(np.isnan(minutes).sum())
    if speed_kmh is None and silent:
        raise InvalidInput(
            f"{silent:,} of {len(minutes):,} streets say neither how long they take (`travel_time_s`) nor how fast "
            "they are (`speed_kmh`): give a speed for them (`speed_kmh`, --speed 30)."
        )
    if silent:
        minutes = np.where(np.isnan(minutes), 60.0 * roads.lengths / as_positive(speed_kmh, "speed_kmh"), minutes)
    return _paths(roads, minutes, one_way, "min")


def _selected_roads(source: RoadSource, center: tuple[float, float] | None, nodes: int | None, one_way: str) -> Roads:
    """Return the part of a network that is kept, its crossings numbered in their order."""
    as_choice(one_way, "one_way", ("open", "longer"))
    if nodes is not None and (not isinstance(nodes, int | np.integer) or nodes < 2):
        raise InvalidInput(f"`nodes` must be a whole number of at least 2, got {nodes!r}.")
    if center is None:
        center = CENTERS.get(city_of(source))
    found = read_roads(source)
    roads = _merge_crossings(found.add_reverse_streets() if one_way == "longer" and found.directed else found)
    middle = np.median(roads.nodes, axis=0) if center is None else as_floats(center, "center")
    Haversine().check(np.asarray(middle, float)[None])
    joined = _main_component(roads, one_way, None if center is None and nodes is None else middle)
    if nodes is None and len(joined) < len(roads.nodes):
        logging.getLogger("metricdp").warning(
            "%s of %s crossings are left out: no road joins them to the part that is kept.",
            f"{len(roads.nodes) - len(joined):,}",
            f"{len(roads.nodes):,}",
        )
    roads = roads.subnetwork(joined)
    if nodes is not None and nodes < len(roads.nodes):
        roads = _nearest_roads(roads, middle, int(nodes), one_way)
    if len(roads.nodes) < 2:
        raise InvalidInput("the part of the network around the center has a single crossing: choose another center.")
    return roads


def _paths(roads: Roads, lengths: Floats, one_way: str, unit: str = "km") -> ShortestPath:
    pairs = roads.edges
    if not roads.directed and one_way == "longer":
        pairs, lengths = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([lengths, lengths])
    return ShortestPath(pairs, lengths, len(roads.nodes), one_way=one_way, unit=unit)


def _merge_crossings(roads: Roads) -> Roads:
    """Merge crossings joined by a street of length zero, drop loops, keep the shortest of parallel streets."""
    count = len(roads.nodes)
    label = part_labels(roads.edges[roads.lengths == 0], count)
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # keep the order of the crossings
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    edges = rank[inverse[roads.edges]].astype(np.int64).reshape(-1, 2)
    if not roads.directed:
        edges = np.sort(edges, axis=1)
    by_length = np.argsort(roads.lengths, kind="stable")
    edges = edges[by_length]
    _, shortest = np.unique(edges[:, 0] * np.int64(count) + edges[:, 1], return_index=True)
    shortest = shortest[edges[shortest, 0] != edges[shortest, 1]]
    subnetwork = roads.streets(by_length[shortest])
    return replace(subnetwork, nodes=roads.nodes[first[order]], edges=edges[shortest])


def _components(roads: Roads, one_way: str) -> Integers:
    return part_labels(roads.edges, len(roads.nodes), strong=one_way == "longer" and roads.directed)


def _main_component(roads: Roads, one_way: str, middle: Floats | None) -> Integers:
    """Return the crossings of the part nearest `middle` among parts of some size, or of the largest part."""
    label = _components(roads, one_way)
    sizes = np.bincount(label)
    if middle is None:
        return np.flatnonzero(label == sizes.argmax())
    away = Haversine()(roads.nodes, middle)
    away = np.where(sizes[label] >= min(10, sizes.max()), away, np.inf)  # a stray island is not what was meant
    return np.flatnonzero(label == label[int(away.argmin())])


def _nearest_roads(roads: Roads, middle: Floats, count: int, one_way: str) -> Roads:
    away = Haversine()(roads.nodes, middle)
    if one_way == "open" or not roads.directed:
        return roads.subnetwork(np.sort(_grow_from_center(roads, away, count)))
    order = _grow_from_center(roads, away, len(away))
    # Strongly connected parts only grow with the crossings kept: bisect for the largest within the count.
    low, high, best = 1, len(order), np.sort(order[:1])
    while low <= high:
        middle_size = (low + high) // 2
        chosen = np.sort(order[:middle_size])
        label = _components(roads.subnetwork(chosen), one_way)
        part = chosen[label == label[int(np.flatnonzero(chosen == order[0])[0])]]
        if len(part) <= count:
            best, low = part if len(part) >= len(best) else best, middle_size + 1
        else:
            high = middle_size - 1
    return roads.subnetwork(best)


def _grow_from_center(roads: Roads, away: Floats, most: int) -> Integers:
    """Return crossings in the order they are reached: always the nearest to the center that touches the rest."""
    count = len(away)
    both = np.concatenate([roads.edges, roads.edges[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    begin = np.searchsorted(both[:, 0], np.arange(count + 1))
    start = int(away.argmin())
    seen: Booleans = np.zeros(count, dtype=np.bool_)
    seen[start] = True
    waiting, order = [(float(away[start]), start)], list[int]()
    while waiting and len(order) < most:
        _, node = heapq.heappop(waiting)
        order.append(node)
        for other in both[begin[node] : begin[node + 1], 1].tolist():
            if not seen[other]:
                seen[other] = True
                heapq.heappush(waiting, (float(away[other]), other))
    return np.array(order, dtype=np.int64)


@runtime_checkable
class NetworkGraph(Protocol):
    """What is used of a networkx graph."""

    def is_directed(self) -> bool: ...
    def nodes(self, data: bool = False) -> Any: ...
    def edges(self, data: bool = False) -> Any: ...


def read_roads(source: RoadSource) -> Roads:
    """Return the network behind a name, a folder, a file, two tables or a graph."""
    if isinstance(source, tuple) and len(source) == 2:
        return from_tables(*source)
    if isinstance(source, NetworkGraph):
        return _from_graph(source)
    if isinstance(source, str | Path):
        place = _place_of(source)
        if place.is_file():
            return from_graphml(place)
        kind = folder_formats(place)
        return from_tables(place / f"nodes.{kind}", place / f"edges.{kind}")
    raise InvalidInput(
        "`source` must be a city such as 'porto', a folder, a GraphML file, a pair of tables (nodes, edges) or a "
        f"networkx graph, got {type(source).__name__}."
    )


def city_of(source: RoadSource) -> str:
    """Return the name of a city as it was given, without "roads_"."""
    return source.lower().removeprefix("roads_") if isinstance(source, str) else ""


def _place_of(source: str | Path) -> Path:
    given = Path(source)
    if given.suffix.lower() == ".graphml":
        if not given.is_file():
            raise InvalidInput(f"the GraphML file {str(source)!r} does not exist. Check the spelling and the folder.")
        return given
    if folder_formats(given):
        return given
    for base in (data_folder(), BUNDLED_FOLDER):
        for name in (f"roads_{city_of(source)}", city_of(source)):
            if isinstance(source, str) and "/" not in source and folder_formats(base / name):
                return base / name
    if given.is_dir():
        raise InvalidInput(
            f"the folder {str(source)!r} holds no road network: it must have the tables nodes (lat, lon) and edges "
            "(u, v, length_m), both as .parquet or both as .csv; or name a .graphml file itself."
        )
    found = {
        path.name.removeprefix("roads_") for base in (data_folder(), BUNDLED_FOLDER) for path in base.glob("roads_*")
    }
    raise InvalidInput(
        f"`source` must be a folder with nodes and edges (.parquet or .csv), a .graphml file, or one of the cities "
        f"{', '.join(sorted(found))}, got {str(source)!r}. Set METRICDP_DATA to the folder that holds more cities."
    )


def _from_graph(graph: NetworkGraph) -> Roads:
    places, number = [], {}
    for row, (node, data) in enumerate(graph.nodes(data=True)):
        number[node] = row
        latitude, longitude = data.get("y", data.get("lat")), data.get("x", data.get("lon"))
        if latitude is None or longitude is None:
            raise InvalidInput(f"node {node!r} must have `y` and `x` (or `lat` and `lon`) in degrees, got {data}.")
        places.append((latitude, longitude))
    ends, lengths, ways, times = [], [], list[tuple[bool, Any]](), []
    for u, v, data in graph.edges(data=True):
        length = data.get("length", data.get("length_m"))
        if length is None:
            raise InvalidInput(f"the edge from {u!r} to {v!r} must have `length` in metres, got {data}.")
        ends.append((number[u], number[v]))
        lengths.append(length)
        times.append(data.get("travel_time", data.get("travel_time_s")))
        ways.append((graph.is_directed(), data.get("oneway", True)))
    return build_listed_roads(places, ends, as_numbers(lengths), ways, times)
