"""docs/format.md by hand: a writer and a reader that use nothing but that page (and the standard library)."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import metricdp as mdp
from instances import OTHERS, interpolated, place_and_hour, some_local, some_matrix, streets, with_zeros
from metricdp.artifacts import save

CODES = {"F64": "d", "F32": "f", "I64": "q", "U64": "Q", "U32": "I", "U16": "H", "U8": "B"}
ORDER = ["U64", "I64", "F64", "F32", "U32", "U16", "U8"]
FILES = sorted((Path(__file__).parents[1] / "data").glob("v*.mdp"))


def parts(data: bytes) -> tuple[dict[str, Any], dict[str, tuple[str, list[int], bytes]]]:
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    manifest = json.loads(header.pop("__metadata__")["metricdp"])
    body = data[8 + size :]
    return manifest, {k: (v["dtype"], v["shape"], body[slice(*v["data_offsets"])]) for k, v in header.items()}


def number(value: float) -> str:
    """The shortest decimal that reads back the same, spelled as the page says."""
    digits = next(text for n in range(17) if float(text := f"{value:.{n}e}") == value)
    mantissa, exponent = digits.split("e")
    power = int(exponent)
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    figures = mantissa.replace(".", "").rstrip("0") or "0"
    if value != 0 and not -4 <= power < 16:
        point = f".{figures[1:]}" if len(figures) > 1 else ""
        return f"{sign}{figures[0]}{point}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{figures}"
    figures = figures.ljust(power + 2, "0")
    return f"{sign}{figures[: power + 1]}.{figures[power + 1 :]}"


def text(value: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
    return '"' + "".join(short.get(c, f"\\u{ord(c):04x}" if ord(c) < 32 else c) for c in value) + '"'


def canonical(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{text(k)}:{canonical(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value) if isinstance(value, int) else number(value)


def written(manifest: dict[str, Any], tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    end, entries, body = 0, [f'"__metadata__":{{"metricdp":{text(canonical(manifest))}}}'], b""
    for name in sorted(tensors, key=lambda name: (ORDER.index(tensors[name][0]), name)):
        kind, shape, data = tensors[name]
        sides = ",".join(str(side) for side in shape)
        span = f"[{end},{end + len(data)}]"
        entries.append(f'{text(name)}:{{"dtype":"{kind}","shape":[{sides}],"data_offsets":{span}}}')
        end, body = end + len(data), body + data
    header = ("{" + ",".join(entries) + "}").encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + body


def every_file(folder: Path) -> list[Path]:
    private, _ = mdp.artifacts.create_keys(folder / "me")
    made: list[tuple[Any, dict[str, Any]]] = [
        (some_matrix(), {}), (some_matrix(1e-5), {"licence": 'a "quoted"\n licence\t© \x01'}),
        (with_zeros(), {"storage": "sparse", "key": private}), (mdp.quantised(some_matrix(), bits=16), {}),
        (mdp.quantised(some_matrix(), bits=40), {"key": private}),
        (mdp.quantised(interpolated()), {}), (streets(), {"storage": "sparse"}), (place_and_hour(), {}),
        (some_local(), {"key": private}),
        *((build(), {}) for build in OTHERS.values()),
    ]  # fmt: skip
    return [save(m, folder / f"{k}.mdp", **options) for k, (m, options) in enumerate(made)]


def test_the_page_says_every_byte(tmp_path: Path) -> None:
    for path in [*every_file(tmp_path), *FILES]:
        data = path.read_bytes()
        manifest, tensors = parts(data)
        assert written(manifest, tensors) == data, path.name
        digest = manifest["sha256"]
        assert data.count(digest.encode()) == 1
        assert hashlib.sha256(data.replace(digest.encode(), b"0" * 64)).hexdigest() == digest
    assert len(FILES) == 12


def test_the_spelling_of_numbers() -> None:
    values = [0.0, 1.0, 0.1, 1e-4, 9.999e-5, 1e-5, 1.5e-300, 5e-324, 1e15, 1e16, 1.7976931348623157e308, 123456.789]
    for value in (*values, *(-v for v in values[1:]), math.pi, 2 / 3, 1e22, 0.7999778951234):
        assert number(value) == json.dumps(value)


def numbers_of(tensor: tuple[str, list[int], bytes]) -> list[Any]:
    kind, _, data = tensor
    code = CODES[kind]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))


def rows(manifest: dict[str, Any], tensors: dict[str, tuple[str, list[int], bytes]]) -> list[list[Fraction]]:
    """The laws of a table in any storage, as rationals, from the page alone."""

    def values(name: str) -> list[Any]:
        return numbers_of(tensors[name])

    entry = manifest["body"]["matrix"]
    if isinstance(entry, str):
        flat, (_, (n, m), _) = values(entry), tensors[entry]
        numbers = [[Fraction(v) for v in flat[i * m : (i + 1) * m]] for i in range(n)]
        return [[v / sum(row) for v in row] for row in numbers]
    n, m = entry["shape"]
    columns = values(entry["columns"])
    used = len(columns)
    if entry["storage"] == "sparse":
        stored = iter(values(entry["values"]))
        bits = None if entry["present"] is None else values(entry["present"])
        here = [bits is None or bool(bits[b // 8] >> (b % 8) & 1) for b in range(n * used)]
        block = [Fraction(next(stored)) if there else Fraction(0) for there in here]
    else:
        block = [Fraction(count, 2 ** entry["bits"]) for count in values(entry["counts"])]
    result = []
    for i in range(n):
        row = [Fraction(0)] * m
        for k, column in enumerate(columns):
            row[column] = block[i * used + k]
        total = sum(row)
        assert entry["storage"] == "sparse" or total == 1
        result.append([v / total for v in row])
    return result


@pytest.mark.parametrize("storage", ["dense", "sparse", "quantised"])
def test_the_page_gives_the_laws(storage: Any, tmp_path: Path) -> None:
    for made in (some_matrix(), with_zeros()):
        path = save(mdp.quantised(made) if storage == "quantised" else made, tmp_path / "a.mdp", storage=storage)
        back: Any = mdp.load(path)
        for ours, theirs in zip(rows(*parts(path.read_bytes())), back.matrix.tolist(), strict=True):
            total = sum(Fraction(v) for v in theirs)
            assert ours == [Fraction(v) / total for v in theirs]


def local_rows(manifest: dict[str, Any], tensors: dict[str, tuple[str, list[int], bytes]]) -> list[list[Fraction]]:
    """The laws of sparse rows over a background, as rationals, from the page alone."""
    body = manifest["body"]
    _, (n, blocks), _ = tensors[body["lengths"]]
    lengths, columns = (numbers_of(tensors[body[name]]) for name in ("lengths", "columns"))
    values, background = (numbers_of(tensors[body[name]]) for name in ("values", "background"))
    result, at = [], 0
    for i in range(n):
        row = [Fraction(v) for v in background]
        for block in range(blocks):
            for _ in range(lengths[i * blocks + block]):
                row[65536 * block + columns[at]] = Fraction(values[at])
                at += 1
        result.append([v / sum(row) for v in row])
    assert at == len(columns) == len(values)
    return result


def test_the_page_gives_the_laws_of_sparse_rows(tmp_path: Path) -> None:
    path = save(some_local(), tmp_path / "a.mdp")
    back: Any = mdp.load(path)
    for ours, theirs in zip(local_rows(*parts(path.read_bytes())), back.matrix.tolist(), strict=True):
        assert [float(v) for v in ours] == pytest.approx(theirs, rel=1e-14, abs=0)
