"""The bytes of a mechanism file: a manifest and tensors in one spelling, with a checksum and perhaps a signature.

This is a safetensors file, written and read here so that nothing is believed before it is checked: sizes before
anything is read, every byte of the header against the one way to write it, the checksum before any value is used.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp import constants
from metricdp.errors import CorruptFile

Entry = dict[str, Any]
Tensors = dict[str, NDArray[Any]]
Shape = tuple[str, list[int]]

FORMAT, KEY = constants.FORMAT, "metricdp"
HEADER_LIMIT = constants.HEADER_LIMIT  # bytes; a header holds names and a few numbers
LONGEST_WHOLE = 16  # digits: 2**53 has 16, and every reader of JSON holds them exactly
MOST_SIDES = 8
ZEROS = "0" * 64
# in the order in which they are written: wide ones first, so that every tensor is aligned
TYPES = {"U64": "<u8", "I64": "<i8", "F64": "<f8", "F32": "<f4", "U32": "<u4", "U16": "<u2", "U8": "|u1"}
NAMES = {np.dtype(code): name for name, code in TYPES.items()}


class NotMechanismFile(CorruptFile):
    """The file is something else."""


def pack(manifest: Entry, tensors: Tensors) -> bytes:
    """Return the bytes of a file with exactly this manifest."""
    return b"".join(_parts(manifest, tensors))


def packed_digest(manifest: Entry, tensors: Tensors) -> bytes:
    """Return the SHA-256 of what `pack` returns, without putting it together: cities are hundreds of megabytes."""
    found = hashlib.sha256()
    for part in _parts(manifest, tensors):
        found.update(part)
    return found.digest()


def seal(manifest: Entry, tensors: Tensors) -> bytes:
    """Return the bytes of a file whose checksum fits."""
    return pack(manifest | {"sha256": packed_digest(manifest | {"sha256": ZEROS}, tensors).hex()}, tensors)


def _parts(manifest: Entry, tensors: Tensors) -> Iterator[bytes | memoryview[int]]:
    """Yield the header of a file and its tensors, in order."""
    shapes = _sort_names({name: (NAMES[array.dtype], list(array.shape)) for name, array in tensors.items()})
    yield _header(_canonical(manifest), shapes)
    for name in shapes:
        yield np.ascontiguousarray(tensors[name]).reshape(-1).view(np.uint8).data


def unpack(data: bytes) -> tuple[Entry, Tensors]:
    """Return manifest and tensors of a file whose header is spelled as `pack` spells it.

    The tensors are read-only views of `data`. The checksum is not looked at here: see `check_seal`.
    """
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= size <= HEADER_LIMIT:
        raise NotMechanismFile("it is not a mechanism file, or its first bytes are damaged")
    if 8 + size > len(data):
        raise CorruptFile(f"it is cut off: {len(data)} bytes, its header alone needs {8 + size}")
    header = _json(data[8 : 8 + size])
    metadata = header.pop("__metadata__", None)
    text = metadata.get(KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str) or set(metadata or ()) != {KEY}:
        raise NotMechanismFile("it is a safetensors file, but not one of metricdp")
    shapes, wanted = {}, 8 + size
    for name, entry in header.items():
        shapes[name] = _shape(entry)
        wanted += _bytes(*shapes[name])
    if wanted != len(data):
        raise CorruptFile(f"it is {'cut off' if wanted > len(data) else 'too long'}: {len(data)} bytes, not {wanted}")
    manifest = _json(text)
    if manifest.get("format") != FORMAT:
        raise NotMechanismFile("it is a safetensors file, but not one of metricdp")
    # There is one way to write a mechanism, so whatever the checksum says, another spelling is refused.
    if (
        list(shapes) != list(_sort_names(shapes))
        or _canonical(manifest) != text
        or _header(text, shapes) != data[: 8 + size]
    ):
        raise CorruptFile("it is not written the way metricdp writes: it was altered")
    tensors, start = {}, 8 + size
    for name, (kind, shape) in shapes.items():
        count = math.prod(shape)
        tensors[name] = np.frombuffer(data, TYPES[kind], count, start).reshape(shape)
        start += _bytes(kind, shape)
    return manifest, tensors


def check_seal(data: bytes, manifest: Entry) -> bytes:
    """Refuse a file whose checksum does not fit, and return its header with the digits of the checksum as zeros."""
    size = 8 + int.from_bytes(data[:8], "little")
    digest, head = manifest["sha256"], data[:size]
    if not isinstance(digest, str) or len(digest) != 64 or head.count(digest.encode()) != 1:
        raise CorruptFile("its checksum is missing")
    zeroed = head.replace(digest.encode(), ZEROS.encode())
    if digest_of(zeroed, data).hex() != digest:
        raise CorruptFile("its checksum does not fit its contents: it was altered or damaged")
    return zeroed


def digest_of(head: bytes, data: bytes) -> bytes:
    """Return the SHA-256 of a file with another header of the same length."""
    found = hashlib.sha256(head)
    found.update(memoryview(data)[len(head) :])
    return found.digest()


def _header(text: str, shapes: dict[str, Shape]) -> bytes:
    """Return the first bytes of a file: the length of its header and the header."""
    entries: Entry = {"__metadata__": {KEY: text}}
    end = 0
    for name, (kind, shape) in shapes.items():
        start, end = end, end + _bytes(kind, shape)
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    raw = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw


def _sort_names(shapes: dict[str, Shape]) -> dict[str, Shape]:
    """Return tensors in the order in which they are written."""
    return dict(sorted(shapes.items(), key=lambda item: (list(TYPES).index(item[1][0]), item[0])))


def _shape(entry: object) -> Shape:
    """Return type and shape of a tensor from its entry in the header."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise NotMechanismFile("it is a safetensors file, but not one of metricdp")
    kind, shape = entry["dtype"], entry["shape"]
    if kind not in TYPES:
        raise CorruptFile("it holds numbers of an unknown type")
    if not isinstance(shape, list) or len(shape) > MOST_SIDES or any(type(s) is not int or s < 0 for s in shape):
        raise CorruptFile("a tensor in it has no shape")
    return kind, shape


def _bytes(kind: str, shape: list[int]) -> int:
    return math.prod(shape) * np.dtype(TYPES[kind]).itemsize


def _canonical(manifest: Entry) -> str:
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _json(text: bytes | str) -> Entry:
    """Read an object as strictly as there is: no key twice, no number that JSON does not hold, UTF-8."""
    try:
        value = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse,
            parse_int=_whole,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as error:
        raise NotMechanismFile("it is not a mechanism file, or its header is damaged") from error
    if not isinstance(value, dict):
        raise NotMechanismFile("it is not a mechanism file, or its header is damaged")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> Entry:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_WHOLE:
        raise ValueError("a whole number is too long")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _refuse(name: str) -> None:
    raise ValueError(name)
