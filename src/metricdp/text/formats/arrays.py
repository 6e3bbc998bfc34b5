"""Vectors in NumPy files: `.npz` with words and vectors, `.npy` with a list of words beside it. Pickles are refused."""

from __future__ import annotations

import io
import tokenize
import zipfile
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from metricdp.text.formats.base import VectorRows, VectorSource, decode_words, open_source

WORDS = ("words", "word", "vocab", "vocabulary", "tokens", "token", "term", "labels", "label", "index", "keys", "itos")
VECTORS = ("vectors", "vector", "embeddings", "embedding", "emb", "weights", "weight", "matrix", "W", "arr_0")
MAGIC = b"\x93NUMPY"
PICKLE = (
    "holds Python objects (a pickle), and reading those can run any program. Save plain arrays: "
    "np.savez(path, words=np.array(words), vectors=array)."
)


class ArrayHeader(NamedTuple):
    """What the head of an array says about it."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def read_array_header(stream: IO[bytes], source: VectorSource) -> ArrayHeader:
    """Return what an array is, from its head, before any of it is read."""
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except (ValueError, TypeError, SyntaxError, RecursionError, tokenize.TokenError):  # a head is a Python literal
        source.refuse("is not a NumPy array that can be read.")
    if dtype.hasobject:
        source.refuse(PICKLE)
    return ArrayHeader(shape, fortran, dtype)


def read_array(stream: IO[bytes], source: VectorSource) -> NDArray[Any]:
    """Return an array, as many of its rows as are wanted."""
    shape, fortran, dtype = read_array_header(stream, source)
    rows = shape[0] if shape else 0
    row_values = int(np.prod(shape[1:], dtype=np.int64))
    source.refuse_size(rows, max(row_values * dtype.itemsize // 4, 1) if dtype.kind in "USV" else row_values)
    wanted = rows if fortran or source.limit is None else min(rows, source.limit)
    size = wanted * row_values * dtype.itemsize
    held = stream.read(size)
    if len(held) < size:
        source.refuse(f"ends before its {rows:,} rows do. It was not copied whole.")
    flat = np.frombuffer(held, dtype=dtype)
    if fortran:
        return flat.reshape(shape[::-1]).T[: source.limit]
    return flat.reshape(wanted, *shape[1:])


def read_npz(source: VectorSource) -> VectorRows:
    """Read words and vectors from an archive of arrays, whatever their names; or one array a word."""
    with open_source(source) as file, zipfile.ZipFile(file if file.seekable() else io.BytesIO(file.read())) as packed:
        names = {name.removesuffix(".npy"): name for name in packed.namelist() if name.endswith(".npy")}
        shapes = {}
        for key, name in names.items():
            with packed.open(name) as stream:
                shapes[key] = read_array_header(stream, source)
        words, vectors = _words_key(shapes, source), _vectors_key(shapes)
        if words is None or vectors is None:
            return _read_word_arrays(packed, names, shapes, source)
        with packed.open(names[words]) as stream:
            spelled = decode_words(read_array(stream, source).tolist(), source, "row")
        with packed.open(names[vectors]) as stream:
            array = read_array(stream, source)
    if shapes[words].shape[0] != shapes[vectors].shape[0]:
        counts = [shapes[key].shape[0] for key in (words, vectors)]
        source.refuse(f"has {counts[0]:,} words in {words!r} and {counts[1]:,} vectors in {vectors!r}.")
    return VectorRows(spelled, to_float32(array))


def _words_key(shapes: Mapping[str, ArrayHeader], source: VectorSource) -> str | None:
    """Return the array of words: the list of texts, by a usual name where there are several."""
    texts = [key for key, head in shapes.items() if head.dtype.kind in "US" and len(head.shape) == 1]
    known = [name for name in WORDS if name in texts]
    if not known and len(texts) > 1:
        source.refuse(f"has several lists of words ({', '.join(sorted(texts)[:6])}): name the right one {WORDS[0]!r}.")
    return next(iter(known or texts), None)


def _vectors_key(shapes: Mapping[str, ArrayHeader]) -> str | None:
    """Return the array of vectors: the matrix of numbers with a usual name, else the largest."""
    tables = [key for key, head in shapes.items() if head.dtype.kind in "fiu" and len(head.shape) == 2]
    usual = [name for name in VECTORS if name in tables]
    return usual[0] if usual else max(tables, key=lambda key: np.prod(shapes[key].shape), default=None)


def _read_word_arrays(
    packed: zipfile.ZipFile, names: Mapping[str, str], shapes: Mapping[str, ArrayHeader], source: VectorSource
) -> VectorRows:
    """Return the archive that has one array for each word, named by it."""
    sizes = {head.shape for head in shapes.values()}
    single = len(sizes) == 1 and all(head.dtype.kind in "fiu" and len(head.shape) == 1 for head in shapes.values())
    if not single or not names:
        held = ", ".join(f"{key} {'x'.join(map(str, head.shape))}" for key, head in list(shapes.items())[:6])
        source.refuse(f"must hold a list of words and a matrix of their vectors, got {held or 'nothing'}.")
    (dimension,) = sizes.pop()
    source.refuse_size(len(names), dimension)
    words = list(names)[: source.limit]
    rows = []
    for word in words:
        with packed.open(names[word]) as stream:
            rows.append(read_array(stream, VectorSource(source.path)))
    return VectorRows(words, to_float32(np.array(rows)))


def read_npy(source: VectorSource, words: list[str] | None) -> VectorRows:
    """Read vectors from one array; the words stand in a list of their own."""
    if words is None:
        source.refuse("has vectors and no words: give the list of words, one a line, as `words`.")
    with open_source(source) as stream:
        array = read_array(stream, source)
        rows = array.shape[0]
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        source.refuse(f"must be a matrix of numbers, got {array.dtype} of shape {array.shape}.")
    return VectorRows(match_words(words, rows, source), to_float32(array))


def match_words(words: list[str], rows: int, source: VectorSource) -> list[str]:
    """Return as many words as there are vectors; without a limit both must be as many."""
    if len(words) < rows or (source.limit is None and len(words) != rows):
        source.refuse(f"has {rows:,} vectors, and the list of words has {len(words):,}.")
    return words[:rows]


def to_float32(array: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as floats of 32 bits, in this machine's order of bytes; what does not fit becomes infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)
