"""Altering mechanism files as a forger would: any change, and a checksum that fits.

Files are put together by the safetensors library and the standard library alone, so that what is tested is not what
tests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

Manifest = dict[str, Any]
Tensors = dict[str, Any]
Change = Callable[[Manifest, Tensors], object]


def opened(data: bytes) -> tuple[Manifest, Tensors]:
    """Return manifest and tensors of a file, as they are and writeable."""
    size = int.from_bytes(data[:8], "little")
    manifest = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["metricdp"])
    return manifest, {name: np.array(value) for name, value in unpack(data).items()}


def spelled(manifest: Manifest) -> str:
    """Return a manifest as JSON the way files spell it."""
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sealed(text: str, tensors: Tensors) -> bytes:
    """Return a file around any text at all, its checksum put where the 64 zeros of `sha256` stand."""
    blank = pack(tensors, metadata={"metricdp": text})
    mark = b'sha256\\":\\"'
    return blank.replace(mark + b"0" * 64, mark + hashlib.sha256(blank).hexdigest().encode())


def forged(data: bytes, change: Change) -> bytes:
    """Return the file after a change to its manifest or its tensors, with a checksum that fits."""
    manifest, tensors = opened(data)
    change(manifest, tensors)
    if "sha256" in manifest:
        manifest["sha256"] = "0" * 64
    return sealed(spelled(manifest), tensors)


def rewritten(path: Path, change: Change) -> None:
    """Alter a file in its place."""
    path.write_bytes(forged(path.read_bytes(), change))


# What a forger puts where a number, a text, a list or an object is expected.
NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 2**31, 2**53 - 1, 2**53, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, 1e-320,
    5e-324, 1e-9, 1e16, 1e154, 1e300, 1.7e308, -1.7e308, {"float": "nan"}, {"float": "inf"}, {"float": "-inf"},
    {"float": "one"}, {"float": 1}, "", "\x00", "matrix", "nan", "Lp", "finite", "é" * 50, "x" * 20_000, [], [[]], {},
    [0, 0], [1e308, 1e308], [[0, [0], 1.0]], [0] * 1000, {"": 0},
)  # fmt: skip
NUMBERS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-320, 5e-324, 1e-300, 1e154, 1e300, 1.7e308, -1e308),
    *(float("nan"), float("inf"), float("-inf")),
)
WHOLES = (0, 1, -1, 2, 5, 24, 255, 256, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value inside a manifest."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key in sorted(value):
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += places(item, (*path, number))
    return found


def mutate(manifest: Manifest, tensors: Tensors, rng: np.random.Generator) -> None:
    """Change one thing, or two, in a manifest or its tensors, as no honest writer would."""
    for _ in range(1 + int(rng.random() < 0.3)):
        if tensors and rng.random() < 0.4:
            _alter_tensor(tensors, rng)
        else:
            _alter_manifest(manifest, rng)


def _alter_manifest(manifest: Manifest, rng: np.random.Generator) -> None:
    inner = [way for way in places(manifest) if way[0] not in ("sha256", "format")]
    way = inner[int(rng.integers(len(inner)))]
    parent: Any = manifest
    for step in way[:-1]:
        parent = parent[step]
    kind = rng.integers(10)
    if kind == 0:
        del parent[way[-1]]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(way[-1], parent[way[-1]])
    elif kind == 2 and isinstance(parent, dict):
        parent[f"{way[-1]}2"] = parent[way[-1]]
    elif kind == 3 and isinstance(parent[way[-1]], int | float) and not isinstance(parent[way[-1]], bool):
        parent[way[-1]] = parent[way[-1]] * float(rng.choice([0.5, 0.999, 1.001, 2.0, -1.0, 1e10]))
    elif kind == 4:  # something that stands elsewhere
        other: Any = manifest
        for step in inner[int(rng.integers(len(inner)))]:
            other = other[step] if (isinstance(other, list) and step < len(other)) or step in other else other
        parent[way[-1]] = deepcopy(other)
    else:
        parent[way[-1]] = deepcopy(NASTY[int(rng.integers(len(NASTY)))])


def _alter_tensor(tensors: Tensors, rng: np.random.Generator) -> None:
    name = sorted(tensors)[int(rng.integers(len(tensors)))]
    array = tensors[name]
    kind = rng.integers(8)
    if kind == 0:
        del tensors[name]
    elif kind == 1:
        tensors[f"{name}.more"] = array.copy()
    elif kind == 2:
        tensors[name] = array.reshape(-1).copy()
    elif kind == 3 and len(array) > 1:
        tensors[name] = array[:-1].copy()
    elif kind == 4:
        tensors[name] = array.astype(
            rng.choice(np.array(["<f8", "<f4", "<i8", "|u1", "<u2", "<u4", "<u8"])), casting="unsafe"
        )
    elif array.size:
        values: Any = NUMBERS if array.dtype.kind == "f" else [w for w in WHOLES if _fits(w, array.dtype)]
        flat = array.reshape(-1).copy()
        with np.errstate(over="ignore"):  # 1e300 is infinite as a float of 32 bits
            flat[rng.integers(flat.size, size=int(rng.integers(1, 4)))] = values[int(rng.integers(len(values)))]
        tensors[name] = flat.reshape(array.shape)


def _fits(value: int, dtype: Any) -> bool:
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max)
