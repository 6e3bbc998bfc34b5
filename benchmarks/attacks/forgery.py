"""Forged and damaged mechanism files: every kind and version, changed in places, the checksum made to fit."""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

DATA = Path(__file__).parents[2] / "tests" / "data"
NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 0.5, 1e-320, 1e-14, 1e308, -1e308, 2**63, 2**64, 10**40),
    *("", "nan", "inf", "l2", "x" * 300, "../x", "\u0000", "ü"),
    *([], [1], [[]], {}, {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"float": "1e999"}, {"float": 1}),
)
NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 5e-324, 1e-310, 1e308, 1e200, 0.5, 1.0, 2.0**53)
ZEROS = "0" * 64


def originals() -> tuple[tuple[str, bytes], ...]:
    """Return honest files: at least one of every kind and metric that is declared, and those of older versions.

    A kind or a metric that none of them holds is an error: give `tests/data` or `tests/instances.py` a file of it.
    """
    return tuple((name, data) for name, data in _made()[0] if data)


def left_out() -> dict[str, str]:
    """Return what is not forged here, since a package that makes it is not installed, with what to install."""
    return _made()[1]


@functools.cache
def _made() -> tuple[list[tuple[str, bytes]], dict[str, str]]:
    """Return the files, those that could not be made empty: a case is the same attack wherever it can be made."""
    import metricdp as mdp
    from instances import (
        KINDS,
        OTHERS,
        SPACES,
        hours,
        interpolated,
        place_and_hour,
        some_local,
        some_matrix,
        streets,
        with_zeros,
    )
    from metricdp.artifacts import dumps
    from metricdp.errors import MissingExtra

    made: dict[str, Any] = {name: make() for name, make in OTHERS.items()}
    missing: dict[str, str] = {}
    for name, make in SPACES.items():
        try:
            made[name] = mdp.exponential(make(), 1.0)
        except MissingExtra as error:
            made[name], missing[name] = None, str(error)
    made |= {"box": interpolated(), "streets": streets(), "zeros": with_zeros(), "local": some_local()}
    made |= {"product": place_and_hour(), "hours": hours(), "whole": mdp.quantised(some_matrix(), bits=16)}
    made["optimal"] = mdp.optimal(mdp.Problem(mdp.grid((3, 3)), 1.0), gap=0.05)
    made |= _more()
    files = [(name, b"" if mechanism is None else dumps(mechanism)) for name, mechanism in made.items()]
    files += [(path.name, path.read_bytes()) for path in sorted(DATA.glob("**/*.mdp"))]
    from metricdp.mechanisms import MECHANISMS

    here = {kind_of(data) for _, data in files if data}
    files += [(name, dumps(make())) for name, (make, _) in KINDS.items() if name not in here]
    if unknown := {declaration.name for declaration in MECHANISMS} - {kind_of(data) for _, data in files if data}:
        raise LookupError(f"no file of the kinds {', '.join(sorted(unknown))} is forged")
    from metricdp.metrics import METRICS

    if unknown := {declaration.name for declaration in METRICS} - set().union(*(_names(data) for _, data in files)):
        raise LookupError(f"no file with the metrics {', '.join(sorted(unknown))} is forged")
    return files, missing


def _more() -> dict[str, Any]:
    """Return what neither `tests/instances.py` nor `tests/data` holds: rules of boxes, grounds of bags, other words."""
    import metricdp as mdp

    rng, corners = np.random.default_rng(11), np.array([[x, y] for x in (1.0, 3.0) for y in (1.0, 3.0)])
    words, places = rng.normal(size=(5, 2)), rng.uniform(0, 4, (30, 2))
    losses = np.linalg.norm(places[:, None] - corners[None], axis=2)
    made: dict[str, Any] = {
        f"box, {rule}": mdp.interpolated(
            mdp.Box([0, 0], [4, 4], mdp.Lp(2)), mdp.FiniteSpace(corners, mdp.Lp(2)), 0.8,
            loss=(places, losses), anchors=(2, 2), rule=rule,
        )
        for rule in ("direction", "log")
    }  # fmt: skip
    kept = made["box, log"]  # the same laws without a promise between anchors, as AIPO-R has none
    nothing = mdp.Guarantee(0.8, kept.inputs.metric, basis="none")
    made["box, relaxed"] = dataclasses.replace(kept, rule="relaxed", guarantee=nothing)
    metrics = {
        "l1": mdp.Lp(1),
        "linf": mdp.Lp(np.inf),
        "ellipse": mdp.Mahalanobis([[2.0, 0.3], [0.3, 1.0]]),
        "ball": mdp.Hyperbolic(),
    }
    made |= {f"words, {name}": mdp.madlib(mdp.FiniteSpace(words / 5, metric), 2.0) for name, metric in metrics.items()}
    grounds = metrics | {"earth": mdp.Haversine()}
    made |= {f"bags, {name}": mdp.laplace(mdp.metrics.Bags(one, 2), 2.0, dimension=6) for name, one in grounds.items()}
    curves = {"l1": mdp.Lp(1), "l2": mdp.Lp(2)}
    made |= {f"curves, {name}": mdp.laplace(mdp.Frechet(one, 2), 1.0, dimension=8) for name, one in curves.items()}
    made["projected"] = mdp.laplace(mdp.Lp(2), 1.0, dimension=4, projection=rng.normal(size=(2, 4)))
    return made


def kind_of(data: bytes) -> str:
    """Return the kind that an honest file names."""
    return str(_manifest(data)["kind"])


def _manifest(data: bytes) -> Any:
    size = int.from_bytes(data[:8], "little")
    return json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["metricdp"])


def _names(data: bytes) -> set[str]:
    """Return every name in a file, those of its metrics among them."""
    manifest = _manifest(data) if data else {}
    found = []
    for path in _places(manifest):
        value = manifest
        for key in path:
            value = value[key]
        if path[-1] == "name" and isinstance(value, str):
            found.append(value)
    return set(found)


def forged(number: int) -> tuple[str, bytes]:
    """Return what was attacked and how, and the bytes."""
    rng = np.random.default_rng([3, number])
    files = _made()[0]
    at = int(rng.integers(len(files)))
    while not files[at][1]:
        at -= 1
    name, data = files[at]
    way = int(rng.integers(10))
    if way == 0:  # damage, checksum and all
        spoilt = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            spoilt[int(rng.integers(len(spoilt)))] ^= 1 << int(rng.integers(8))
        return f"{name}, flipped bits", bytes(spoilt)
    if way == 1:
        cut = int(rng.integers(len(data) + 1))
        return f"{name}, cut or lengthened", data[:cut] + rng.bytes(int(rng.integers(0, 30)))
    size = int.from_bytes(data[:8], "little")
    manifest = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["metricdp"])
    # sorted: they come in another order every time, and a case must be the same attack again
    tensors = {key: np.array(value) for key, value in sorted(unpack(data).items())}
    steps = []
    for _ in range(int(rng.integers(1, 4))):
        if tensors and rng.random() < 0.4:
            steps.append(_spoil_tensor(rng, tensors))
        else:
            steps.append(_spoil_manifest(rng, manifest))
    return f"{name}, {'; '.join(steps)}", packed(manifest, tensors)


def packed(manifest: Any, tensors: dict[str, Any]) -> bytes:
    """Write a file as docs/format.md says, with a checksum that fits."""
    manifest = dict(manifest) if isinstance(manifest, dict) else {"x": manifest}
    manifest["sha256"] = ZEROS
    draft = _bytes(manifest, tensors)
    manifest["sha256"] = hashlib.sha256(draft).hexdigest()
    return _bytes(manifest, tensors)


def _bytes(manifest: dict[str, Any], tensors: dict[str, Any]) -> bytes:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    data: bytes = pack({key: np.ascontiguousarray(value) for key, value in tensors.items()}, {"metricdp": text})
    return data


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += _places(item, (*path, key))
    return found


def _spoil_manifest(rng: np.random.Generator, manifest: dict[str, Any]) -> str:
    places = [path for path in _places(manifest) if path[0] != "sha256"]
    path = places[int(rng.integers(len(places)))]
    inside: Any = manifest
    for key in path[:-1]:
        inside = inside[key]
    way = rng.random()
    if way < 0.15:
        del inside[path[-1]]
        return f"without {path}"
    if way < 0.3:  # another part of the same file
        other = places[int(rng.integers(len(places)))]
        value: Any = manifest
        for key in other:
            value = value[key]
        inside[path[-1]] = copy.deepcopy(value)
        return f"{path} from {other}"
    if way < 0.4 and isinstance(inside[path[-1]], int | float) and not isinstance(inside[path[-1]], bool):
        inside[path[-1]] = float(inside[path[-1]]) * float(rng.choice([0.5, 0.999, 1.001, 2.0, -1.0, 1e-9, 1e9]))
        return f"{path} scaled"
    value = NASTY[int(rng.integers(len(NASTY)))]
    inside[path[-1]] = copy.deepcopy(value)
    return f"{path} = {str(value)[:30]}"


def _spoil_tensor(rng: np.random.Generator, tensors: dict[str, Any]) -> str:
    key = str(rng.choice(list(tensors)))
    value, way = tensors[key], int(rng.integers(6))
    if way == 0:
        del tensors[key]
        return f"without tensor {key}"
    if way == 1:
        with np.errstate(invalid="ignore", over="ignore"):
            tensors[key] = value.astype(rng.choice(["float64", "float32", "int64", "uint8", "int32"]))
        return f"tensor {key} as {tensors[key].dtype}"
    if way == 2:
        shapes = [value.ravel(), value[None], value[: max(0, len(value) - 1)] if value.ndim else value[None], value.T]
        tensors[key] = np.ascontiguousarray(shapes[int(rng.integers(4))])
        return f"tensor {key} of shape {tensors[key].shape}"
    if value.size == 0:
        return "nothing"
    flat = value.copy().ravel()
    at = int(rng.integers(flat.size))
    if value.dtype.kind == "f":
        new = (
            NUMBERS[int(rng.integers(len(NUMBERS)))]
            if way < 5
            else float(flat[at]) * float(rng.choice([0.9, 1.0001, 1.5]))
        )
        with np.errstate(over="ignore"):
            flat[at] = new
    else:
        limits = np.iinfo(value.dtype) if value.dtype.kind in "iu" else None
        new = (
            bool(1 - flat[at])
            if limits is None
            else int(rng.choice([0, 1, limits.min, limits.max, int(flat[at]) // 2]))
        )
        flat[at] = new
    tensors[key] = flat.reshape(value.shape)
    return f"tensor {key}[{at}] = {new}"
