"""Vectors in safetensors files: eight bytes of length, a header in JSON, the numbers. Read by hand and bounded."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from metricdp.text.formats.arrays import VECTORS, WORDS, match_words, to_float32
from metricdp.text.formats.base import Singles, VectorRows, VectorSource, open_source

LONGEST_HEADER = 2**26  # bytes
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def is_safetensors(head: bytes) -> bool:
    """Tell whether a file begins as safetensors do."""
    return len(head) > 8 and head[8:9] == b"{" and 2 <= struct.unpack("<Q", head[:8])[0] <= LONGEST_HEADER


def read_safetensors(source: VectorSource, tensor: str, words: list[str] | None) -> VectorRows:
    """Read the matrix of vectors; its words are in the header, or in a list of their own."""
    with open_source(source) as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = _header(stream.read(length), source)
        name = tensor or _matrix_name(header, source)
        kind, shape, (start, stop) = _entry(header, name, source)
        rows, dimension = shape
        source.refuse_size(rows, dimension)
        wanted = rows if source.limit is None else min(rows, source.limit)
        stream.seek(8 + length + start)
        width = dimension * np.dtype(TYPES[kind]).itemsize
        held = stream.read(wanted * width)
    if stop - start != rows * width or len(held) < wanted * width:
        source.refuse(f"says {rows:,} x {dimension:,} numbers for {name!r} and does not hold them: it is damaged.")
    spelled = words if words is not None else _words(header, source)
    return VectorRows(
        match_words(spelled, wanted, source) if source.limit is None else spelled[:wanted], _numbers(held, kind, wanted)
    )


def _numbers(held: bytes, kind: str, rows: int) -> Singles:
    values = np.frombuffer(held, dtype=TYPES[kind]).reshape(rows, -1)
    if kind == "BF16":  # the upper half of a float of 32 bits
        return (values.astype(np.uint32) << 16).view(np.float32)
    return to_float32(values)


def _header(text: bytes, source: VectorSource) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        source.refuse("has no header that can be read: it is damaged.")
    return found


def _matrix_name(header: dict[str, Any], source: VectorSource) -> str:
    """Return the name of the one matrix, or of the one with a usual name."""
    names = [name for name in header if name != "__metadata__" and _is_matrix(header[name])]
    usual = [name for name in names if any(part in VECTORS or "embed" in part for part in name.split("."))]
    found = usual if len(names) > 1 else names
    if len(found) != 1:
        listed = ", ".join(sorted(found or names)[:6]) or "none"
        source.refuse(f"must hold one matrix of vectors, got {listed}: name one as {source.path.name}::name.")
    return found[0]


def _is_matrix(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("dtype") in TYPES and len(entry.get("shape", ())) == 2


def _entry(header: dict[str, Any], name: str, source: VectorSource) -> tuple[str, tuple[int, int], tuple[int, int]]:
    entry: Any = header.get(name)
    if not _is_matrix(entry):
        source.refuse(f"has no matrix of floats called {name!r}.")
    numbers = [*entry["shape"], *entry.get("data_offsets", ())]
    if len(numbers) != 4 or not all(type(number) is int and 0 <= number < 2**48 for number in numbers):
        source.refuse(f"has a header that makes no sense for {name!r}: it is damaged.")
    return entry["dtype"], (numbers[0], numbers[1]), (numbers[2], numbers[3])


def _words(header: dict[str, Any], source: VectorSource) -> list[str]:
    """Return the words that stand in the header, as a list in JSON or one a line."""
    notes = header.get("__metadata__", {})
    text = next((notes[key] for key in WORDS if isinstance(notes, dict) and isinstance(notes.get(key), str)), None)
    if text is None:
        source.refuse("has vectors and no words: give the list of words, one a line, as `words`.")
    try:
        found = json.loads(text)
    except ValueError:
        found = text.splitlines()
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        source.refuse("must list its words in the header as JSON or one a line.")
    return found
