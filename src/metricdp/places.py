"""Ways to obtain a space: a grid, a road network, a vocabulary, and the data that comes with the package."""

from __future__ import annotations

import heapq
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from metricdp.arrays import Booleans, Floats, Integers, as_codes, as_floats, as_matrix
from metricdp.errors import InvalidInput
from metricdp.metrics import EARTH_RADIUS_KM, Haversine, Lp, Metric, ShortestPath
from metricdp.spaces import FiniteSpace

BUNDLED_FOLDER = Path(__file__).parent / "data"
BUNDLED_CITY = "porto"
CENTERS = {"porto": (41.1496, -8.6110), "rome": (41.8986, 12.4769)}  # where each city is cut by default
KM_PER_DEGREE = EARTH_RADIUS_KM * np.pi / 180.0


@runtime_checkable
class _Graph(Protocol):
    """What is used of a networkx graph."""

    def is_directed(self) -> bool: ...
    def nodes(self, data: bool = False) -> Any: ...
    def edges(self, data: bool = False) -> Any: ...


RoadSource: TypeAlias = "str | Path | tuple[Any, Any] | _Graph"


@dataclass(frozen=True, eq=False)
class _Roads:
    """Crossings (latitude, longitude) and streets between them, in kilometres."""

    nodes: Floats
    edges: Integers
    lengths: Floats
    directed: bool

    def kept(self, numbers: Integers) -> _Roads:
        """Return the part between these crossings, renumbered in their order."""
        new = np.full(len(self.nodes), -1, dtype=np.int64)
        new[numbers] = np.arange(len(numbers))
        pairs = new[self.edges]
        inside = np.all(pairs >= 0, axis=1)
        return replace(self, nodes=self.nodes[numbers], edges=pairs[inside], lengths=self.lengths[inside])


def grid(
    shape: int | tuple[int, ...],
    *,
    spacing: float | tuple[float, ...] = 1.0,
    origin: ArrayLike | None = None,
    metric: Metric | None = None,
) -> FiniteSpace:
    """Return the points of a regular grid, the last axis running fastest.

    With `metric=Haversine()` the origin is the (latitude, longitude) of the south-west corner, `shape` is
    (rows to the north, columns to the east) and `spacing` is in kilometres; columns are spaced right on the middle row.
    Otherwise the origin is zero and the metric `Lp(2)` unless given.
    """
    sides = (shape,) if isinstance(shape, int) else tuple(shape)
    if not sides or any(not isinstance(side, int | np.integer) or side < 1 for side in sides):
        raise InvalidInput(f"`shape` must be whole numbers of at least 1, such as (7, 7), got {shape!r}.")
    steps = (
        np.broadcast_to(as_floats(spacing, "spacing"), (len(sides),))
        if np.ndim(spacing) == 0
        else (as_floats(spacing, "spacing"))
    )
    if steps.shape != (len(sides),) or np.any(steps <= 0):
        raise InvalidInput(f"`spacing` must be one or {len(sides)} positive numbers, got {spacing!r}.")
    measure: Metric = Lp(2) if metric is None else metric
    on_earth = isinstance(measure, Haversine)
    if on_earth and (origin is None or len(sides) != 2):
        raise InvalidInput(
            "a grid on the Earth needs `origin`, the (latitude, longitude) of its south-west corner, and a shape of "
            f"(rows, columns), got origin {origin!r} and shape {shape!r}."
        )
    corner = np.zeros(len(sides)) if origin is None else as_floats(origin, "origin")
    if corner.shape != (len(sides),):
        raise InvalidInput(f"`origin` must be {len(sides)} numbers, got shape {corner.shape}.")
    if on_earth:
        measure.check(corner[None])
        middle = corner[0] + 0.5 * (sides[0] - 1) * steps[0] / KM_PER_DEGREE
        top = corner[0] + (sides[0] - 1) * steps[0] / KM_PER_DEGREE
        width = steps[1] / (KM_PER_DEGREE * max(np.cos(np.radians(middle)), 1e-300))
        if top > 89.0 or corner[0] < -89.0 or (sides[1] - 1) * width >= 360.0:
            raise InvalidInput("a grid on the Earth must stay clear of the poles and not meet itself: make it smaller.")
        steps = np.array([steps[0] / KM_PER_DEGREE, width])
    axes = [corner[axis] + steps[axis] * np.arange(side) for axis, side in enumerate(sides)]
    points = np.stack([values.ravel() for values in np.meshgrid(*axes, indexing="ij")], axis=1)
    return FiniteSpace(points, measure)


def vocabulary(words: Any, vectors: ArrayLike, *, metric: Metric | None = None) -> FiniteSpace:
    """Return words as secrets: what tables hold are the words, what is measured are their vectors."""
    spellings = [str(word) for word in words]
    array = as_matrix(vectors, "vectors", (len(spellings), None))
    seen: dict[str, int] = {}
    for row, word in enumerate(spellings):
        if seen.setdefault(word, row) != row:
            raise InvalidInput(f"`words` must be distinct, got {word!r} in rows {seen[word]} and {row}. Drop one.")
    return FiniteSpace(array, Lp(2) if metric is None else metric, coordinates=np.array(spellings))


def road_network(
    source: RoadSource,
    *,
    center: tuple[float, float] | None = None,
    nodes: int | None = None,
    one_way: str = "open",
) -> FiniteSpace:
    """Return the crossings of a road network with distances along the roads, in kilometres.

    The source is a city ("porto", "rome", or any folder `roads_<city>` of the data folder), a folder with
    `nodes.parquet` (lat, lon) and `edges.parquet` (u, v, length_m), the two tables themselves, or a networkx graph as
    osmnx makes it. One connected part is kept: the one around `center`, or else the largest. `nodes` keeps that many
    crossings near the center (the middle of the network unless given), grown street by street so that they stay
    connected; with `one_way="longer"` at most that many. See `ShortestPath` for `one_way`.
    """
    if one_way not in ("open", "longer"):
        raise InvalidInput(f"`one_way` must be 'open' or 'longer', got {one_way!r}.")
    if nodes is not None and (not isinstance(nodes, int | np.integer) or nodes < 2):
        raise InvalidInput(f"`nodes` must be a whole number of at least 2, got {nodes!r}.")
    if center is None and isinstance(source, str):
        center = CENTERS.get(source.lower())
    roads = _merged(_read(source))
    middle = np.median(roads.nodes, axis=0) if center is None else as_floats(center, "center")
    Haversine().check(np.asarray(middle, float)[None])
    roads = roads.kept(_connected(roads, one_way, None if center is None and nodes is None else middle))
    if nodes is not None and nodes < len(roads.nodes):
        roads = _near(roads, middle, int(nodes), one_way)
    if len(roads.nodes) < 2:
        raise InvalidInput("the part of the network around the center has a single crossing: choose another center.")
    pairs, lengths = roads.edges, roads.lengths
    if not roads.directed and one_way == "longer":
        pairs, lengths = np.concatenate([pairs, pairs[:, ::-1]]), np.concatenate([lengths, lengths])
    metric = ShortestPath(pairs, lengths, len(roads.nodes), one_way=one_way)
    return FiniteSpace(np.arange(len(roads.nodes)), metric, coordinates=roads.nodes, ground=Haversine())


def data_folder() -> Path:
    """Return where larger data is: `METRICDP_DATA`, else the shared folder beside a checkout, else the bundled data."""
    named = os.environ.get("METRICDP_DATA", "")
    if named:
        if not Path(named).is_dir():
            raise InvalidInput(f"METRICDP_DATA must name a folder, got {named!r}. Create it or unset the variable.")
        return Path(named)
    project = Path(__file__).resolve().parents[2]
    beside = project.parent / "shared" / "data"
    if (project / "pyproject.toml").is_file() and beside.is_dir():
        return beside
    return BUNDLED_FOLDER


def bundled_roads(*, nodes: int | None = None) -> FiniteSpace:
    """Return the part of central Porto that comes with the package (OpenStreetMap contributors, ODbL 1.0)."""
    return road_network(BUNDLED_FOLDER / f"roads_{BUNDLED_CITY}", center=CENTERS[BUNDLED_CITY], nodes=nodes)


def bundled_streets() -> list[Floats]:
    """Return the bundled streets as lines of (latitude, longitude), for maps."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(BUNDLED_FOLDER / f"roads_{BUNDLED_CITY}" / "streets.parquet")
    street = table["street"].to_numpy()
    points = np.stack([table["lat"].to_numpy(), table["lon"].to_numpy()], axis=1).astype(np.float64)
    return np.split(points, np.flatnonzero(np.diff(street)) + 1)


def bundled_trips(*, trips: int = 60, seed: int = 2026, space: FiniteSpace | None = None) -> Any:
    """Return an Arrow table of simulated trips (trip, t, lat, lon) on the bundled network.

    Each trip drives the shortest way between two crossings at 24 km/h and notes its position at crossings, at most
    every ten seconds, with a GPS error of three metres each way. The trips are simulated from the seed, nobody drove
    them, and the table's metadata says so.
    """
    import pyarrow as arrow

    roads = bundled_roads() if space is None else space
    if trips < 1:
        raise InvalidInput(f"`trips` must be at least 1, got {trips}.")
    generator = np.random.default_rng(seed)
    numbers, times, places = [], [], []
    for trip in range(trips):
        seconds, line = _simulated_trip(roads, generator)
        numbers.append(np.full(len(line), trip))
        times.append(1_767_600_000 + 900 * trip + np.rint(seconds))
        places.append(line)
    points = np.concatenate(places)
    table = arrow.table(
        {
            "trip": np.concatenate(numbers).astype(np.int32),
            "t": np.concatenate(times).astype(np.int64),
            "lat": np.round(points[:, 0], 6),
            "lon": np.round(points[:, 1], 6),
        }
    )
    note = f"simulated trips on the bundled road network (seed {seed}); no real person or vehicle"
    return table.replace_schema_metadata({"simulated": "true", "description": note})


def _simulated_trip(roads: FiniteSpace, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the seconds since the start and the noisy positions of one trip."""
    from scipy.sparse.csgraph import dijkstra

    metric = roads.metric
    if not isinstance(metric, ShortestPath):
        raise InvalidInput("trips need a road network: pass a space made by `road_network`.")
    start = int(generator.integers(len(roads)))
    away, before = dijkstra(metric.graph, directed=metric.one_way != "open", indices=start, return_predecessors=True)
    far = np.flatnonzero(away >= 0.4 * away.max())
    path = [int(generator.choice(far))]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    path.reverse()
    seconds = away[path] * 3600.0 / 24.0
    noted = [0]
    for step in range(1, len(path)):
        if seconds[step] - seconds[noted[-1]] >= 10.0:
            noted.append(step)
    corners = np.asarray(roads.coordinates[np.array(path)[noted]], float)
    east = np.stack([np.ones(len(corners)), np.cos(np.radians(corners[:, 0]))], axis=1)
    return seconds[noted], corners + generator.normal(scale=0.003 / KM_PER_DEGREE, size=corners.shape) / east


def _read(source: RoadSource) -> _Roads:
    if isinstance(source, tuple) and len(source) == 2:
        return _from_tables(*source)
    if isinstance(source, _Graph):
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
        f"`source` must be a folder with nodes.parquet and edges.parquet or one of the cities {', '.join(sorted(found))}, "
        f"got {str(source)!r}. Set METRICDP_DATA to the folder that holds more cities."
    )


def _from_folder(folder: Path) -> _Roads:
    import pyarrow.parquet as parquet

    try:
        return _from_tables(*(parquet.read_table(folder / f"{name}.parquet") for name in ("nodes", "edges")))
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"the road network in {folder} cannot be read: {error}") from error


def _from_tables(nodes: Any, edges: Any) -> _Roads:
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
    return _Roads(places, np.stack(ends, axis=1), lengths, directed)


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


def _from_graph(graph: _Graph) -> _Roads:
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


def _merged(roads: _Roads) -> _Roads:
    """Merge crossings joined by a street of length zero, drop loops, keep the shortest of parallel streets."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(roads.nodes)
    zero = roads.edges[roads.lengths == 0]
    same = coo_array((np.ones(len(zero)), (zero[:, 0], zero[:, 1])), shape=(count, count))
    _, label = connected_components(same, directed=False)
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # keep the order of the crossings
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    edges = rank[inverse[roads.edges]].astype(np.int64).reshape(-1, 2)
    lengths = roads.lengths
    if not roads.directed:
        edges = np.sort(edges, axis=1)
    by_length = np.argsort(lengths, kind="stable")
    edges, lengths = edges[by_length], lengths[by_length]
    _, shortest = np.unique(edges, axis=0, return_index=True)
    shortest = shortest[edges[shortest, 0] != edges[shortest, 1]]
    return _Roads(roads.nodes[first[order]], edges[shortest], lengths[shortest], roads.directed)


def _components(roads: _Roads, one_way: str) -> Integers:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(roads.nodes)
    links = coo_array((np.ones(len(roads.edges)), (roads.edges[:, 0], roads.edges[:, 1])), shape=(count, count))
    strong = one_way == "longer" and roads.directed
    return np.asarray(
        connected_components(links, directed=strong, connection="strong" if strong else "weak")[1], dtype=np.int64
    )


def _connected(roads: _Roads, one_way: str, middle: Floats | None) -> Integers:
    """Return the crossings of the part nearest `middle` among parts of some size, or of the largest part."""
    label = _components(roads, one_way)
    sizes = np.bincount(label)
    if middle is None:
        return np.flatnonzero(label == sizes.argmax())
    away = Haversine()(roads.nodes, middle)
    away = np.where(sizes[label] >= min(10, sizes.max()), away, np.inf)  # a stray island is not what was meant
    return np.flatnonzero(label == label[int(away.argmin())])


def _near(roads: _Roads, middle: Floats, count: int, one_way: str) -> _Roads:
    away = Haversine()(roads.nodes, middle)
    order = _grown(roads, away)
    if one_way == "open" or not roads.directed:
        return roads.kept(np.sort(order[:count]))
    # Strongly connected parts only grow with the crossings kept: bisect for the largest within the count.
    low, high, best = 1, len(order), np.sort(order[:1])
    while low <= high:
        middle_size = (low + high) // 2
        chosen = np.sort(order[:middle_size])
        label = _components(roads.kept(chosen), one_way)
        part = chosen[label == label[int(np.flatnonzero(chosen == order[0])[0])]]
        if len(part) <= count:
            best, low = part if len(part) >= len(best) else best, middle_size + 1
        else:
            high = middle_size - 1
    return roads.kept(best)


def _grown(roads: _Roads, away: Floats) -> Integers:
    """Return all crossings in the order they are reached: always the nearest to the center that touches the rest."""
    count = len(away)
    both = np.concatenate([roads.edges, roads.edges[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    begin = np.searchsorted(both[:, 0], np.arange(count + 1))
    start = int(away.argmin())
    seen: Booleans = np.zeros(count, dtype=np.bool_)
    seen[start] = True
    waiting, order = [(float(away[start]), start)], []
    while waiting:
        _, node = heapq.heappop(waiting)
        order.append(node)
        for other in both[begin[node] : begin[node + 1], 1].tolist():
            if not seen[other]:
                seen[other] = True
                heapq.heappush(waiting, (float(away[other]), other))
    return np.array(order, dtype=np.int64)
