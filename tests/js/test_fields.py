"""The fields of files in JavaScript: its table comes from the declarations, and refuses what Python refuses."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browsers import outcomes
from forging import forged, opened
from metricdp.artifacts import inspect
from metricdp.artifacts.codecs import CERTIFICATE, GUARANTEE_KINDS, LATER
from metricdp.errors import CorruptFile
from metricdp.mechanisms import MECHANISMS
from metricdp.metrics import METRICS
from metricdp.registry import Array, Field, Group, Many, Maybe, Number, Part, Table, Text, Whole
from metricdp.spaces import SPACES

PROJECT = Path(__file__).parents[2]
Change = Callable[[dict[str, Any], dict[str, Any]], Any]
FLOATS = {"nan": {"float": "nan"}, "inf": {"float": "inf"}}
Way = tuple[Any, ...]


def at(value: Any, way: Way) -> Any:
    for key in way:
        value = value[key]
    return value


def put(manifest: dict[str, Any], way: Way, value: Any) -> None:
    at(manifest, way[:-1])[way[-1]] = value


def test_the_table_of_fields_is_what_is_declared() -> None:
    spec = importlib.util.spec_from_file_location("pages", PROJECT / "tools" / "pages.py")
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    found = (PROJECT / "js" / "fields.json").read_text(encoding="utf-8")
    assert found == pages.fields(), "run `python tools/pages.py`, then `node build.js` in js/"


def test_what_the_first_files_did_not_say_yet_may_be_absent_in_both_languages(
    every_kind: list[Path], tmp_path: Path
) -> None:
    def older(manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
        for name in LATER:
            manifest["guarantee"].pop(name, None)
            manifest["certificate"].pop(name, None)

    path = tmp_path / "older.mdp"
    path.write_bytes(forged(every_kind[0].read_bytes(), older))
    assert inspect(path).mechanism.guarantee.radius is None
    assert outcomes(tmp_path)[path.name]["outcome"] == "opened"


def test_letters_that_belong_to_no_word_are_refused_in_both_languages(every_kind: list[Path], tmp_path: Path) -> None:
    words = next(file for file in every_kind if file.name == "levenshtein.mdp" or "hamming" in file.name)
    _, tensors = opened(words.read_bytes())
    name = next(name for name in tensors if name.endswith(".bytes"))
    path = tmp_path / "more.mdp"
    path.write_bytes(forged(words.read_bytes(), lambda m, t: t.update({name: np.append(t[name], np.uint8(65))})))
    with pytest.raises(CorruptFile):
        inspect(path)
    assert outcomes(tmp_path)[path.name]["outcome"] == "refused"


def fields_of(manifest: dict[str, Any]) -> Iterator[tuple[str, Way, Field]]:
    """Every declared field of a manifest: where it belongs, where it stands and what it may be."""
    for number, entry in enumerate(manifest["metrics"]):
        for name, kind in METRICS.named(entry["name"]).fields.items():
            yield entry["name"], ("metrics", number, "parameters", name), kind
    for number, entry in enumerate(manifest["spaces"]):
        for name, kind in SPACES.named(entry["kind"]).fields.items():
            yield entry["kind"], ("spaces", number, name), kind
    inner = enumerate(manifest["body"].get("parts", ()))
    for way in ((), *(("body", "parts", number) for number, _ in inner)):
        mechanism = at(manifest, way)
        entry = MECHANISMS.named(mechanism["kind"])
        records = {"body": entry.fields, "guarantee": GUARANTEE_KINDS[entry.promise][0], "certificate": CERTIFICATE}
        for part, fields in records.items():
            for name, kind in fields.items():
                if name in mechanism[part]:
                    owner = mechanism["kind"] if part == "body" else f"{entry.promise} {part}"
                    yield f"{owner}{len(way)}", (*way, part, name), kind


def beyond(kind: Field, value: Any) -> Iterator[Any]:
    """What stands one step outside a field: beyond each limit, of another type, too short, too long."""
    match kind:
        case Number():
            yield from (FLOATS["nan"], {"float": "-inf"}, "1", True, None, [1.0])
            yield from () if kind.infinite else (FLOATS["inf"],)
            yield from () if kind.least is None else (math.nextafter(kind.least, -math.inf),)
            yield from () if kind.above is None else (kind.above, -1.0)
            yield from () if kind.most is None else (math.nextafter(kind.most, math.inf),)
        case Whole():
            yield from (kind.least - 1, kind.most + 1, kind.least + 0.5, "1", True, None)
        case Text():
            yield from ("x" * (kind.longest + 1), 7, None, *(["something else"] if kind.choices else []))
        case Maybe():
            yield from (wrong for wrong in beyond(kind.of, value) if wrong is not None)
        case Many():
            yield from ("x", None, {}, *([value[: kind.least - 1]] if kind.least else []))
            yield from (
                ([value[0]] * (kind.most + 1), *([wrong, *value[1:]] for wrong in beyond(kind.of, value[0])))
                if value
                else ()
            )
        case Group():
            yield from (value[:-1], [*value, 0])
            for place, inner in enumerate(kind.of):
                yield from ([*value[:place], wrong, *value[place + 1 :]] for wrong in beyond(inner, value[place]))
        case Part():
            yield from (None, {}) if kind.of == "mechanism" else (-1, 1024, 0.5, "0", None)
        case Array() | Table():
            yield from ("no such tensor", 7, None, ["inputs.points"], {}, {"storage": "dense"})


def altered(kind: Field, array: Any) -> Iterator[Any]:
    """Tensors that a field does not allow: of another type, with another side, with a number beyond each limit."""
    if not isinstance(kind, Array) or array is None:
        return
    others = {"float": np.int64, "single": float, "whole": float, "narrow": np.int64, "points": np.float32}
    yield array.astype(others[kind.of])
    yield array.astype(np.float32 if kind.of == "narrow" else np.uint32)
    yield from (array[..., None],) if kind.sides else ()
    beyond_limits = [np.nan] if array.dtype.kind == "f" else []
    beyond_limits += [] if kind.least is None else [kind.least - max(1.0, abs(kind.least) / 10)]
    beyond_limits += [] if kind.most is None else [kind.most + max(1.0, abs(kind.most) / 10)]
    for number in beyond_limits:
        if array.dtype.kind == "f" or 0 <= number < 2**31 or (array.dtype.kind == "i" and abs(number) < 2**62):
            changed = array.astype(np.uint32) if kind.of == "narrow" else array.copy()
            with np.errstate(over="ignore"):  # infinite as a float of 32 bits
                changed.flat[array.size // 2] = number
            yield changed


def tensor_named(tensors: dict[str, Any], value: Any) -> Any:
    return tensors.get(value) if isinstance(value, str) else None


def test_a_value_beyond_the_limits_of_any_field_is_refused_in_both_languages(
    every_kind: list[Path], tmp_path: Path
) -> None:
    """Every declared field of every metric, space and mechanism, one step beyond each of its limits."""
    seen: set[tuple[str, Any]] = set()
    tried: dict[str, str] = {}

    def attempt(source: bytes, what: str, change: Change) -> None:
        path = tmp_path / f"{len(tried):04}.mdp"
        path.write_bytes(forged(source, change))
        tried[path.name] = what
        with pytest.raises(CorruptFile):
            pytest.fail(f"Python takes {what}: {inspect(path, verify=False)}")

    for file in every_kind:
        source = file.read_bytes()
        manifest, tensors = opened(source)
        for owner, way, kind in fields_of(manifest):
            if (owner, way[-1]) in seen:
                continue
            seen.add((owner, way[-1]))
            value, what = at(manifest, way), f"{way[-1]} of {owner} in {file.name}"
            for wrong in beyond(kind, value):
                attempt(source, f"{what}: {str(wrong)[:50]}", lambda m, t, way=way, wrong=wrong: put(m, way, wrong))
            inner, name = (kind.of, value[0]) if isinstance(kind, Many) and value else (kind, value)
            for wrong in altered(inner, tensor_named(tensors, name)):
                attempt(source, f"{what}: {wrong.dtype}", lambda m, t, name=name, wrong=wrong: t.update({name: wrong}))
            attempt(source, f"{what}, and more", lambda m, t, way=way: at(m, way[:-1]).update(more=0))
            if way[-1] not in LATER:
                attempt(source, f"no {what}", lambda m, t, way=way: at(m, way[:-1]).pop(way[-1]))
    for registry in (METRICS, SPACES, MECHANISMS):
        for entry in registry:
            owner = entry.name if registry is not MECHANISMS else f"{entry.name}0"
            assert {(owner, name) for name in entry.fields} <= seen, entry.name
    for name, answer in outcomes(tmp_path).items():
        assert answer["outcome"] == "refused", (tried[name], answer)
        assert "checksum" not in answer["message"], (tried[name], answer)
