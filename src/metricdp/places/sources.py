"""Road networks as they come: folders, tables, graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from metricdp.arrays import Floats, Integers, as_codes, as_floats
from metricdp.errors import InvalidInput
from metricdp.metrics import Haversine
from metricdp.places.folders import BUNDLED_FOLDER, data_folder


@runtime_checkable
class Graph(Protocol):
    """What is used of a networkx graph."""

    def is_directed(self) -> bool: ...
    def nodes(self, data: bool = False) -> Any: ...
    def edges(self, data: bool = False) -> Any: ...


RoadSource: TypeAlias = "str | Path | tuple[Any, Any] | Graph"


@dataclass(frozen=True, eq=False)
class Roads:
    """Crossings (latitude, longitude) and streets between them, in kilometres."""

    nodes: Floats
    edges: Integers
    lengths: Floats
    directed: bool

    def kept(self, numbers: Integers) -> Roads:
        """Return the part between these crossings, renumbered in their order."""
        new = np.full(len(self.nodes), -1, dtype=np.int64)
        new[numbers] = np.arange(len(numbers))
        pairs = new[self.edges]
        inside = np.all(pairs >= 0, axis=1)
        return replace(self, nodes=self.nodes[numbers], edges=pairs[inside], lengths=self.lengths[inside])


def read_roads(source: RoadSource) -> Roads:
    if isinstance(source, tuple) and len(source) == 2:
        return _from_tables(*source)
    if isinstance(source, Graph):
        return _from_graph(source)
    if isinstance(source, str | Path):
        return _from_folder(_folder_of(source))
    raise InvalidInput(
        "`source` must be a city such as 'porto', a folder, a pair of tables (nodes, edges) or a networkx graph, "
        f"got {type(source).__name__}."
    )


def _folder_of(source: str | Path) -> Path:
    given = Path(source)
    if (given / "nodes.parquet").is_file():
        return given
    name = f"roads_{str(source).lower()}"
    for base in (data_folder(), BUNDLED_FOLDER):
        if isinstance(source, str) and (base / name / "nodes.parquet").is_file():
            return base / name
    found = {
        path.name.removeprefix("roads_") for base in (data_folder(), BUNDLED_FOLDER) for path in base.glob("roads_*")
    }
    raise InvalidInput(
        f"`source` must be a folder with nodes.parquet and edges.parquet or one of the cities "
        f"{', '.join(sorted(found))}, got {str(source)!r}. Set METRICDP_DATA to the folder that holds more cities."
    )


def _from_folder(folder: Path) -> Roads:
    import pyarrow.parquet as parquet

    try:
        return _from_tables(*(parquet.read_table(folder / f"{name}.parquet") for name in ("nodes", "edges")))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"the road network in {folder} cannot be read: {error}") from error


def _from_tables(nodes: Any, edges: Any) -> Roads:
    places = np.stack([as_floats(_column(nodes, name, "nodes"), name) for name in ("lat", "lon")], axis=1)
    if len(places) == 0:
        raise InvalidInput("`nodes` must hold at least one crossing, got an empty table.")
    Haversine().check(places)
    ends = [as_codes(_column(edges, name, "edges"), len(places), name) for name in ("u", "v")]
    lengths = as_floats(_column(edges, "length_m", "edges"), "length_m") / 1000.0
    if np.any(lengths < 0):
        raise InvalidInput(f"`length_m` must not be negative, got {1000 * lengths.min():g}.")
    metadata = getattr(getattr(edges, "schema", None), "metadata", None) or {}
    directed = metadata.get(b"directed", b"true") != b"false" if isinstance(metadata, dict) else True
    return Roads(places, np.stack(ends, axis=1), lengths, directed)


def _column(table: Any, name: str, which: str) -> Any:
    if isinstance(table, dict):
        columns, values = list(table), table.get(name)
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError as error:
            raise InvalidInput(f"`{which}` must be a table, got {type(table).__name__}.") from error
        columns = list(frame.columns)
        values = frame[name].to_numpy() if name in columns else None
    if values is None:
        raise InvalidInput(f"the table of {which} must have the column `{name}`, got {', '.join(map(str, columns))}.")
    return values


def _from_graph(graph: Graph) -> Roads:
    places, number = [], {}
    for row, (node, data) in enumerate(graph.nodes(data=True)):
        number[node] = row
        latitude, longitude = data.get("y", data.get("lat")), data.get("x", data.get("lon"))
        if latitude is None or longitude is None:
            raise InvalidInput(f"node {node!r} must have `y` and `x` (or `lat` and `lon`) in degrees, got {data}.")
        places.append((latitude, longitude))
    ends, lengths = [], []
    for u, v, data in graph.edges(data=True):
        length = data.get("length", data.get("length_m"))
        if length is None:
            raise InvalidInput(f"the edge from {u!r} to {v!r} must have `length` in metres, got {data}.")
        ends.append((number[u], number[v]))
        lengths.append(length)
    if not ends:
        raise InvalidInput("the graph must have at least one edge.")
    table = {"u": [a for a, _ in ends], "v": [b for _, b in ends], "length_m": lengths}
    roads = _from_tables({"lat": [p[0] for p in places], "lon": [p[1] for p in places]}, table)
    return replace(roads, directed=graph.is_directed())
