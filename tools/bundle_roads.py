"""Make the bundled part of central Porto from the full road network.

    python tools/bundle_roads.py FOLDER_WITH_roads_porto

Writes nodes, edges and street shapes to src/metricdp/data/roads_porto. Coordinates and lengths are as in the source;
shapes are thinned to about 2 metres for maps.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from metricdp.metrics import Haversine
from metricdp.places import CENTERS, road_network

CROSSINGS = 900
METADATA = {
    "city": "Porto, Portugal (central part)",
    "directed": "true",
    "source": "OpenStreetMap contributors, by way of the LibCity Porto road network",
    "licence": "Open Database License (ODbL) 1.0",
}


def thinned(line: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the line without the points that lie within `tolerance` degrees of it (Douglas-Peucker)."""
    if len(line) < 3:
        return line
    start, along = line[0], line[-1] - line[0]
    length = np.hypot(*along)
    offset = line - start
    away = np.abs(offset @ np.array([-along[1], along[0]])) / length if length else np.hypot(*offset.T)
    worst = int(away.argmax())
    if away[worst] <= tolerance:
        return line[[0, -1]]
    return np.concatenate([thinned(line[: worst + 1], tolerance)[:-1], thinned(line[worst:], tolerance)])


def main(data: Path) -> None:
    source = data / "roads_porto"
    nodes, edges = (pq.read_table(source / f"{name}.parquet") for name in ("nodes", "edges"))
    space = road_network(source, center=CENTERS["porto"], nodes=CROSSINGS)
    full = np.stack([nodes["lat"].to_numpy(), nodes["lon"].to_numpy()], axis=1)
    number = {tuple(place): code for code, place in enumerate(space.coordinates.tolist())}
    new = np.array([number.get(tuple(place), -1) for place in full.tolist()])
    u, v = new[edges["u"].to_numpy()], new[edges["v"].to_numpy()]
    inside = np.flatnonzero((u >= 0) & (v >= 0) & (u != v))

    shapes = pq.read_table(source / "edge_shapes.parquet")
    of_edge = shapes["edge"].to_numpy()
    points = np.stack([shapes["lat"].to_numpy(), shapes["lon"].to_numpy()], axis=1)
    begin, end = np.searchsorted(of_edge, inside), np.searchsorted(of_edge, inside, side="right")
    lines, seen = [], set()
    for first, last in zip(begin, end, strict=True):
        line = points[first:last]
        key = min(tuple(map(tuple, line.tolist())), tuple(map(tuple, line[::-1].tolist())))
        if key not in seen:
            seen.add(key)
            lines.append(thinned(line, 2e-5))

    target = Path(__file__).parents[1] / "src" / "metricdp" / "data" / "roads_porto"
    target.mkdir(parents=True, exist_ok=True)
    tables = {
        "nodes": {"lat": space.coordinates[:, 0], "lon": space.coordinates[:, 1]},
        "edges": {
            "u": u[inside].astype(np.int32),
            "v": v[inside].astype(np.int32),
            "length_m": edges["length_m"].to_numpy()[inside],
        },
        "streets": {
            "street": np.repeat(np.arange(len(lines), dtype=np.int32), [len(line) for line in lines]),
            "lat": np.concatenate(lines)[:, 0].astype(np.float32),
            "lon": np.concatenate(lines)[:, 1].astype(np.float32),
        },
    }
    for name, columns in tables.items():
        table = pa.table(columns).replace_schema_metadata(METADATA)
        pq.write_table(table, target / f"{name}.parquet", compression="zstd", compression_level=19)
    extent = Haversine()(space.coordinates.min(axis=0), space.coordinates.max(axis=0))
    size = sum(path.stat().st_size for path in target.glob("*.parquet"))
    print(
        f"{len(space)} crossings, {len(inside)} edges, {len(lines)} streets, "
        f"{extent:.2f} km across, {size / 1e3:.0f} kB"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
