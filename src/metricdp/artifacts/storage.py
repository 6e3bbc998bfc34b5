"""How the probabilities of a mechanism lie in its file: dense, sparse or as whole numbers.

dense       the name of one tensor of doubles
sparse      {"storage": "sparse", "shape", "columns", "values", "present"}: reports that no secret uses are left out;
            `values` are the non-zero doubles of the others row by row, `present` the bits that say which (null: all)
quantised   {"storage": "quantised", "bits", "shape", "columns", "counts"}: p = count / 2**bits, and every row of
            counts sums to exactly 2**bits
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from metricdp.arrays import Floats
from metricdp.artifacts.codecs import Decoder, Encoder, Entry, narrowest
from metricdp.design.quantised import FEWEST_BITS, MOST_BITS, smallest_bits
from metricdp.errors import CorruptFile, InvalidInput

Storage = Literal["dense", "sparse", "quantised"]
STORAGES = ("dense", "sparse", "quantised")
LARGEST_MATRIX = 1 << 29  # entries: a small file must not claim a matrix that no machine holds


@dataclass(frozen=True)
class Layout:
    """How probabilities lie in a file: which storage, and whole multiples of 2**-bits."""

    storage: Storage = "dense"
    bits: int | None = None


def layout_of(mechanism: Any, storage: Storage | None) -> Layout:
    """Return how a mechanism's probabilities are to be stored without loss: as asked for, or the smallest way."""
    if storage is not None and storage not in STORAGES:
        raise InvalidInput(f"`storage` must be one of {', '.join(STORAGES)}, got {storage!r}.")
    matrix = getattr(mechanism, "matrix", None)
    if matrix is None:
        if storage in (None, "dense"):
            return Layout()
        raise InvalidInput(
            f"a {type(mechanism).__name__} holds no table of probabilities of its own that could be {storage}: "
            "leave `storage` away."
        )
    bits = smallest_bits(matrix) if storage in (None, "quantised") else None
    if storage == "quantised" and bits is None:
        raise InvalidInput(
            "these probabilities are no whole multiples of a power of two, and saving never changes a law: round them "
            "first with mdp.quantised(mechanism, bits=...), which certifies the rounded law."
        )
    return Layout(storage, bits) if storage is not None else _smallest(matrix, bits)


def _smallest(matrix: Floats, bits: int | None) -> Layout:
    """Return the storage that takes the fewest bytes; whole numbers, which devices draw fastest, on a tie."""
    used = int((matrix > 0).any(axis=0).sum())
    cells, filled = len(matrix) * used, int(np.count_nonzero(matrix))
    sizes: dict[Layout, float] = {}
    if bits is not None:
        sizes[Layout("quantised", bits)] = cells * narrowest(int(np.ldexp(matrix.max(), bits))).itemsize
    sizes[Layout()] = 8 * matrix.size
    sizes[Layout("sparse")] = 8 * filled + (cells / 8 if filled < cells else 0) + 8 * used
    return min(sizes, key=lambda layout: sizes[layout])


def encode_matrix(matrix: Floats, encoder: Encoder, layout: Layout) -> str | Entry:
    """Store a matrix and return what its body says about it."""
    if layout.storage == "dense":
        return encoder.tensor(matrix, "matrix")
    used = np.flatnonzero((matrix > 0).any(axis=0))
    entry: Entry = {
        "storage": layout.storage,
        "shape": list(matrix.shape),
        "columns": encoder.whole(used, "matrix.columns"),
    }
    block = matrix[:, used]
    if layout.storage == "sparse":
        present = block > 0
        entry["values"] = encoder.tensor(block[present], "matrix.values")
        full = bool(present.all())
        packed = np.packbits(present.ravel(), bitorder="little")
        return entry | {"present": None if full else encoder.whole(packed, "matrix.present")}
    bits = 0 if layout.bits is None else layout.bits
    return entry | {"bits": bits, "counts": encoder.whole(np.ldexp(block, bits).astype(np.uint64), "matrix.counts")}


def decode_matrix(entry: str | Entry, decoder: Decoder) -> Floats:
    """Return the stored matrix as doubles, exactly."""
    if isinstance(entry, str):
        return decoder.tensor(entry)
    storage, shape = entry["storage"], entry["shape"]
    wanted = {"storage", "shape", "columns", *(("values", "present") if storage == "sparse" else ("bits", "counts"))}
    if storage not in ("sparse", "quantised") or set(entry) != wanted:
        raise CorruptFile(f"its probabilities are stored in an unknown way, {storage!r}")
    if len(shape) != 2 or not all(isinstance(side, int) and side > 0 for side in shape):
        raise CorruptFile(f"its matrix has the shape {shape!r}")
    rows, reports = shape
    if rows * reports > LARGEST_MATRIX:
        raise CorruptFile(f"its matrix would have {rows} x {reports} entries")
    columns = decoder.tensor(entry["columns"]).astype(np.int64)
    if columns.ndim != 1 or np.any(np.diff(columns) <= 0) or columns.min() < 0 or columns.max() >= reports:
        raise CorruptFile("the used reports are not listed in order")
    block = _sparse(entry, decoder, rows, len(columns)) if storage == "sparse" else _counts(entry, decoder, rows)
    if block.shape != (rows, len(columns)) or not np.all((block > 0).any(axis=0)):
        raise CorruptFile("its probabilities do not fill the reports that are listed")
    matrix = np.zeros((rows, reports))
    matrix[:, columns] = block
    matrix.flags.writeable = False
    return matrix


def _sparse(entry: Entry, decoder: Decoder, rows: int, used: int) -> Floats:
    values = decoder.tensor(entry["values"])
    if values.ndim != 1 or values.dtype != np.float64 or not np.all(values > 0):
        raise CorruptFile("a stored probability is not positive")
    if entry["present"] is None:
        return np.asarray(values.reshape(rows, used))
    bits = decoder.tensor(entry["present"])
    size = rows * used
    present = np.unpackbits(bits, bitorder="little")
    if bits.shape != (-(-size // 8),) or present[size:].any() or present[:size].sum() != len(values):
        raise CorruptFile("its bits do not say where the probabilities belong")
    block = np.zeros(size)
    block[present[:size].astype(bool)] = values
    return block.reshape(rows, used)


def _counts(entry: Entry, decoder: Decoder, rows: int) -> Floats:
    bits: Any = entry["bits"]
    counts = decoder.tensor(entry["counts"])
    if not isinstance(bits, int) or not FEWEST_BITS <= bits <= MOST_BITS or counts.dtype.kind != "u":
        raise CorruptFile(f"its probabilities are whole numbers of {bits!r} bits")
    if counts.ndim != 2 or np.any(counts > 2**bits) or np.any(counts.sum(axis=1, dtype=np.uint64) != 2**bits):
        raise CorruptFile(f"a row of counts does not sum to 2**{bits}")
    return np.ldexp(counts.astype(np.float64), -bits)
