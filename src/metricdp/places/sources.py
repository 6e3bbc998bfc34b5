"""Road networks as they come: folders, files, tables, graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from metricdp.errors import InvalidInput
from metricdp.places.folders import BUNDLED_FOLDER, data_folder
from metricdp.places.graphml import from_graphml
from metricdp.places.network import Roads, build_roads, is_one_way
from metricdp.places.tables import as_numbers, folder_formats, from_tables


@runtime_checkable
class NetworkGraph(Protocol):
    """What is used of a networkx graph."""

    def is_directed(self) -> bool: ...
    def nodes(self, data: bool = False) -> Any: ...
    def edges(self, data: bool = False) -> Any: ...


RoadSource: TypeAlias = "str | Path | tuple[Any, Any] | NetworkGraph"


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
    ends, lengths, both, times = [], [], [], []
    for u, v, data in graph.edges(data=True):
        length = data.get("length", data.get("length_m"))
        if length is None:
            raise InvalidInput(f"the edge from {u!r} to {v!r} must have `length` in metres, got {data}.")
        ends.append((number[u], number[v]))
        lengths.append(length)
        times.append(data.get("travel_time", data.get("travel_time_s")))
        both.append(not graph.is_directed() or not is_one_way(data.get("oneway", True)))
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    known = None if all(seconds is None for seconds in times) else times
    ways = np.array(both, dtype=bool)
    return build_roads(np.array(places).reshape(-1, 2), pairs, as_numbers(lengths), ways, seconds=known)
