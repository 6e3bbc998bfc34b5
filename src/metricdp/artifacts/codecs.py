"""Metrics and spaces as manifest entries and tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.errors import CorruptFile, InvalidInput
from metricdp.metrics import (
    Angular,
    Frechet,
    Hamming,
    Haversine,
    Hyperbolic,
    Levenshtein,
    Lp,
    Mahalanobis,
    Metric,
    Precomputed,
    ShortestPath,
    StreetPath,
    Temporal,
    Wasserstein,
    Weighted,
    WordMovers,
)
from metricdp.spaces import Box, FiniteSpace, Space, Streets, Unbounded

Entry = dict[str, Any]
Tensors = dict[str, NDArray[Any]]


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: numbers that are not finite become {"float": name}."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    raise InvalidInput(f"a mechanism file cannot hold a value of type {type(value).__name__}.")


def from_plain(value: Any) -> Any:
    """Undo `plain`; lists become tuples."""
    if isinstance(value, dict):
        if set(value) != {"float"} or value["float"] not in ("inf", "-inf", "nan"):
            raise CorruptFile(f"unknown value {value!r}")
        return float(value["float"])
    return tuple(from_plain(item) for item in value) if isinstance(value, list) else value


@dataclass
class Encoder:
    """Collects metrics, spaces and tensors; what is the same object is stored once."""

    metrics: list[Entry] = field(default_factory=list)
    spaces: list[Entry] = field(default_factory=list)
    tensors: Tensors = field(default_factory=dict)
    _seen: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # keeps objects alive, so that ids stay theirs

    def tensor(self, array: NDArray[Any], name: str) -> str:
        """Store an array and return its name; text becomes its UTF-8 bytes and their ends."""
        known = self._seen.get(id(array))
        if known is not None:
            return str(known[1])
        label = self._label(name)
        if array.dtype.kind == "U":
            texts = [str(text).encode() for text in array.ravel()]
            self.tensors[f"{label}.bytes"] = np.frombuffer(b"".join(texts) or b"\0", dtype=np.uint8)
            self.tensors[f"{label}.ends"] = np.cumsum([len(text) for text in texts], dtype=np.int64).reshape(
                array.shape
            )
        elif array.dtype.kind in "fiu":
            whole = array.dtype.kind in "iu"
            self.tensors[label] = np.ascontiguousarray(array, dtype=np.int64 if whole else np.float64)
        else:
            raise InvalidInput(f"a mechanism file cannot hold an array of {array.dtype}.")
        self._seen[id(array)] = (array, label)
        return label

    def whole(self, array: NDArray[Any], name: str) -> str:
        """Store numbers of at least 0 in the narrowest unsigned type that holds them, and return the name."""
        label = self._label(name)
        self.tensors[label] = np.ascontiguousarray(array, dtype=narrowest(int(array.max(initial=0))))
        return label

    def _label(self, name: str) -> str:
        """Return the name, or a longer one where it is taken."""
        free = name not in self.tensors and f"{name}.bytes" not in self.tensors
        return name if free else f"{name}.{len(self.tensors)}"

    def metric(self, metric: Metric) -> int:
        """Store a metric and return its number."""
        known = self._seen.get(id(metric))
        if known is not None:
            return int(known[1])
        codec = METRICS.get(type(metric).__name__)
        if codec is None or codec.kind is not type(metric):
            raise InvalidInput(
                f"a mechanism file cannot hold the metric {type(metric).__name__}: give the distances as "
                "mdp.Precomputed(space.distances)."
            )
        entry = {"name": type(metric).__name__, "parameters": codec.encode(metric, self)}
        self.metrics.append(entry)
        self._seen[id(metric)] = (metric, len(self.metrics) - 1)
        return len(self.metrics) - 1

    def space(self, space: Space, name: str) -> int:
        """Store a space and return its number."""
        known = self._seen.get(id(space))
        if known is not None:
            return int(known[1])
        entry: Entry = {"metric": self.metric(space.metric)}
        if isinstance(space, FiniteSpace):
            entry |= {
                "kind": "finite",
                "points": self.tensor(space.points, f"{name}.points"),
                "coordinates": self.tensor(space.coordinates, f"{name}.coordinates"),
                "ground": self.metric(space.ground),
                "columns": list(space.columns),
            }
        elif isinstance(space, Box):
            entry |= {"kind": "box", "lower": plain(space.lower.tolist()), "upper": plain(space.upper.tolist())}
        elif isinstance(space, Unbounded):
            entry |= {"kind": "unbounded", "dimension": space.dimension}
        elif isinstance(space, Streets):
            entry |= {"kind": "streets"}
        else:
            raise InvalidInput(f"a mechanism file cannot hold a space of type {type(space).__name__}.")
        self.spaces.append(entry)
        self._seen[id(space)] = (space, len(self.spaces) - 1)
        return len(self.spaces) - 1


class Decoder:
    """Rebuilds metrics and spaces, in the order they were stored."""

    def __init__(self, manifest: Entry, tensors: Tensors) -> None:
        self._tensors = tensors
        self._used: set[str] = set()
        self._arrays: dict[str, NDArray[Any]] = {}
        self._metrics: list[Metric] = []
        for entry in manifest["metrics"]:
            self._metrics.append(METRICS[entry["name"]].decode(entry["parameters"], self))
        self._spaces: list[Space | Streets] = []
        for entry in manifest["spaces"]:
            self._spaces.append(self._space(entry))

    def tensor(self, name: str) -> NDArray[Any]:
        """Return an array by name; the same name gives the same array."""
        if name not in self._arrays:
            if f"{name}.bytes" in self._tensors:
                self._used |= {f"{name}.bytes", f"{name}.ends"}
                array = _texts(self._tensors[f"{name}.bytes"], self._tensors[f"{name}.ends"])
            else:
                self._used.add(name)
                array = np.array(self._tensors[name])
            array.flags.writeable = False
            self._arrays[name] = array
        return self._arrays[name]

    def metric(self, number: int) -> Metric:
        return self._metrics[_index(number)]

    def space(self, number: int) -> Space | Streets:
        return self._spaces[_index(number)]

    def refuse_leftovers(self) -> None:
        """Refuse tensors that nothing refers to."""
        left = sorted(set(self._tensors) - self._used)
        if left:
            raise CorruptFile(f"it holds the tensor {left[0]!r} that nothing refers to")

    def _space(self, entry: Entry) -> Space | Streets:
        metric = self.metric(entry["metric"])
        if entry["kind"] == "finite":
            points, places = self.tensor(entry["points"]), self.tensor(entry["coordinates"])
            return FiniteSpace(
                points,
                metric,
                coordinates=None if places is points else places,
                ground=self.metric(entry["ground"]),
                columns=tuple(entry["columns"]),
            )
        if entry["kind"] == "box":
            return Box(from_plain(entry["lower"]), from_plain(entry["upper"]), metric)
        if entry["kind"] == "unbounded":
            dimension = entry["dimension"]
            if not isinstance(dimension, int) or dimension < 1:
                raise CorruptFile(f"a space has the dimension {dimension!r}")
            return Unbounded(metric, dimension)
        if entry["kind"] == "streets" and isinstance(metric, StreetPath):
            return Streets(metric.network)
        raise CorruptFile(f"it holds a space of the unknown kind {entry['kind']!r}")


def narrowest(largest: int) -> np.dtype[Any]:
    """Return the narrowest unsigned type that holds whole numbers up to `largest`."""
    kinds = (np.uint8, np.uint16, np.uint32, np.uint64)
    return np.dtype(next(kind for kind in kinds if largest <= np.iinfo(kind).max))


def _index(number: Any) -> int:
    if not isinstance(number, int) or number < 0:
        raise CorruptFile(f"a reference is {number!r}")
    return number


def _texts(data: NDArray[Any], ends: NDArray[Any]) -> NDArray[Any]:
    whole = data.tobytes()
    stops = ends.ravel().tolist()
    starts = [0, *stops[:-1]]
    return np.array([whole[a:b].decode() for a, b in zip(starts, stops, strict=True)], dtype=np.str_).reshape(
        ends.shape
    )


@dataclass(frozen=True)
class MetricCodec:
    """How one metric is stored."""

    kind: type
    encode: Callable[[Any, Encoder], Entry]
    decode: Callable[[Entry, Decoder], Metric]


def _scalars(kind: type, *names: str) -> MetricCodec:
    """Store a metric that is described by numbers and text alone."""
    return MetricCodec(
        kind,
        lambda metric, encoder: {name: plain(getattr(metric, name)) for name in names},
        lambda entry, decoder: kind(**{name: from_plain(entry[name]) for name in names}),
    )


def _array(kind: type, name: str) -> MetricCodec:
    """Store a metric that is described by one array and its unit."""
    return MetricCodec(
        kind,
        lambda metric, encoder: {name: encoder.tensor(getattr(metric, name), f"metric.{name}"), "unit": metric.unit},
        lambda entry, decoder: kind(decoder.tensor(entry[name]), unit=entry["unit"]),
    )


def _encode_roads(metric: ShortestPath, encoder: Encoder) -> Entry:
    return {
        "edges": encoder.tensor(metric.edges, "metric.edges"),
        "lengths": encoder.tensor(metric.lengths, "metric.lengths"),
        "nodes": metric.nodes,
        "one_way": metric.one_way,
        "unit": metric.unit,
    }


def _decode_roads(entry: Entry, decoder: Decoder) -> ShortestPath:
    edges, lengths = decoder.tensor(entry["edges"]), decoder.tensor(entry["lengths"])
    return ShortestPath(edges, lengths, entry["nodes"], one_way=entry["one_way"], unit=entry["unit"])


def _decode_streets(entry: Entry, decoder: Decoder) -> StreetPath:
    network = decoder.metric(entry["network"])
    if not isinstance(network, ShortestPath):
        raise CorruptFile("its streets are not those of a road network")
    return StreetPath(network)


def _encode_weighted(metric: Weighted, encoder: Encoder) -> Entry:
    parts = [[encoder.metric(part), list(columns), weight] for part, columns, weight in metric.parts]
    return {"parts": parts, "unit": metric.unit}


def _decode_weighted(entry: Entry, decoder: Decoder) -> Weighted:
    parts = [(decoder.metric(number), columns, weight) for number, columns, weight in entry["parts"]]
    return Weighted(parts, unit=entry["unit"])


METRICS: dict[str, MetricCodec] = {
    "Lp": _scalars(Lp, "p", "unit"),
    "Haversine": _scalars(Haversine, "unit"),
    "Angular": _scalars(Angular, "unit"),
    "Hyperbolic": _scalars(Hyperbolic, "unit"),
    "Hamming": _scalars(Hamming, "unit"),
    "Levenshtein": _scalars(Levenshtein, "unit"),
    "Temporal": _scalars(Temporal, "period", "unit"),
    "Mahalanobis": _array(Mahalanobis, "covariance"),
    "Precomputed": _array(Precomputed, "distances"),
    "Wasserstein": _array(Wasserstein, "ground"),
    "ShortestPath": MetricCodec(ShortestPath, _encode_roads, _decode_roads),
    "StreetPath": MetricCodec(
        StreetPath, lambda metric, encoder: {"network": encoder.metric(metric.network)}, _decode_streets
    ),
    "Weighted": MetricCodec(Weighted, _encode_weighted, _decode_weighted),
    "WordMovers": MetricCodec(
        WordMovers,
        lambda metric, encoder: {
            "vectors": encoder.tensor(metric.vectors, "metric.vectors"),
            "ground": encoder.metric(metric.ground),
            "unit": metric.unit,
        },
        lambda entry, decoder: WordMovers(
            decoder.tensor(entry["vectors"]), decoder.metric(entry["ground"]), entry["unit"]
        ),
    ),
    "Frechet": MetricCodec(
        Frechet,
        lambda metric, encoder: {
            "ground": encoder.metric(metric.ground),
            "dimension": metric.dimension,
            "unit": metric.unit,
        },
        lambda entry, decoder: Frechet(decoder.metric(entry["ground"]), entry["dimension"], entry["unit"]),
    ),
}
