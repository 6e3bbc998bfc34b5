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
from numpy.typing import NDArray

from metricdp import constants
from metricdp.arrays import Floats, row_slices
from metricdp.artifacts.container import Entry
from metricdp.artifacts.tensors import TensorReader, TensorWriter, check_range, decode_whole, narrowest
from metricdp.design.quantised import FEWEST_BITS, MOST_BITS, smallest_bits
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.mechanisms import MECHANISMS
from metricdp.registry import Array, Effort, Whole

# A codebook {"codes": tensor, "table": tensor} stores many numbers with few distinct values: number e is
# table[codes[e]], with two bytes for a code. The table decreases, so that there is one way to write it.
CODED = ("codes", "table")
MOST_CODES = 1 << 16
CHUNK = 1 << 20  # numbers whose kinds are counted at a time
LEAST_SAVED = 1024  # bytes below which a second tensor does not pay


def distinct_values(array: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return the distinct numbers, increasing; None if there are more of them than codes."""
    table: NDArray[np.float32] = np.empty(0, dtype=np.float32)
    for part in row_slices(array.size, 1, CHUNK):
        table = np.union1d(table, array[part])
        if table.size > MOST_CODES:
            return None
    return table


def encode_codes(array: NDArray[np.float32], tensors: TensorWriter, name: str) -> Entry | None:
    """Store single floats as codes and table, without loss; None for too many distinct values or a small saving."""
    table = distinct_values(array)
    if table is None:
        return None
    width = narrowest(max(table.size - 1, 0))
    if (4 - width.itemsize) * array.size < 4 * table.size + LEAST_SAVED:
        return None
    codes = np.empty(array.size, dtype=width)
    for part in row_slices(array.size, 1, CHUNK):
        codes[part] = table.size - 1 - np.searchsorted(table, array[part])
    return {
        "codes": tensors.narrow(codes, f"{name}.codes"),
        "table": tensors.array(table[::-1], f"{name}.table", single=True),
    }


def decode_codes(kind: Array, entry: Entry, tensors: TensorReader, where: str) -> NDArray[Any]:
    """Return the stored numbers, exactly."""
    codes, table = tensors.array(entry["codes"], "u", where, kind.sides), tensors.array(entry["table"], "s", where, 1)
    if not 0 < table.size <= MOST_CODES or not np.all(table[1:] < table[:-1]):
        raise CorruptFile(f"{where} has a table that is empty, too long or not decreasing")
    if codes.size and int(codes.max()) >= table.size:
        raise CorruptFile(f"{where} has a code that its table does not hold")
    check_range(kind, table, where)
    tensors.budget.spend(Effort(values=codes.size / 2.0), "its weights")
    array: NDArray[Any] = table[codes]
    array.flags.writeable = False
    return array


Storage = Literal["dense", "sparse", "quantised"]
STORAGES = constants.STORAGES
COMMON = ("storage", "shape", "columns")
STORAGE_FIELDS = {"sparse": ("values", "present"), "quantised": ("bits", "counts")}


@dataclass(frozen=True)
class StorageLayout:
    """How probabilities lie in a file: which storage, and whole multiples of 2**-bits."""

    storage: Storage = "dense"
    bits: int | None = None


def layout_of(mechanism: Any, storage: Storage | None) -> StorageLayout:
    """Return how to store a mechanism's probabilities without loss: as requested, or in the smallest way."""
    if storage is not None and storage not in STORAGES:
        raise InvalidInput(f"`storage` must be one of {', '.join(STORAGES)}, got {storage!r}.")
    kind = MECHANISMS.kind(mechanism)
    if kind is not None and kind.is_sparse:
        if storage == "dense":
            raise InvalidInput(
                "a LocalMechanism is stored sparse, as near reports and a background; 'dense' is not possible."
            )
        if storage == "quantised" and distinct_values(mechanism.values) is None:
            raise InvalidInput(
                f"these weights have more than {MOST_CODES:,} values, and saving never changes a distribution: "
                "round them first with mdp.quantised(mechanism), which certifies the rounded distribution."
            )
        return StorageLayout("sparse")
    # a kernel could write its table out, but what it holds are points and weights
    matrix = mechanism.matrix if kind is not None and kind.holds_table else None
    if matrix is None:
        if storage in (None, "dense"):
            return StorageLayout()
        raise InvalidInput(
            f"a {type(mechanism).__name__} holds no table of probabilities of its own that could be {storage}: "
            "omit `storage`."
        )
    bits = smallest_bits(matrix) if storage in (None, "quantised") else None
    if storage == "quantised" and bits is None:
        raise InvalidInput(
            "these probabilities are not whole multiples of a power of two, and saving never changes a distribution: "
            "round them first with mdp.quantised(mechanism, bits=...), which certifies the rounded distribution."
        )
    return StorageLayout(storage, bits) if storage is not None else _smallest(matrix, bits)


def stored_layout(manifest: Entry) -> StorageLayout:
    """Return how the probabilities of a file that was read lie in it."""
    kind = MECHANISMS.find(manifest["kind"])
    if kind is not None and kind.is_sparse:
        return StorageLayout("sparse")
    stored = manifest["body"].get("matrix")
    return StorageLayout(stored["storage"], stored.get("bits")) if isinstance(stored, dict) else StorageLayout()


def _smallest(matrix: Floats, bits: int | None) -> StorageLayout:
    """Return the storage that takes the fewest bytes; whole numbers, which devices draw fastest, on a tie."""
    used = int((matrix > 0).any(axis=0).sum())
    cells, filled = len(matrix) * used, int(np.count_nonzero(matrix))
    sizes: dict[StorageLayout, float] = {}
    if bits is not None:
        sizes[StorageLayout("quantised", bits)] = cells * narrowest(int(np.ldexp(matrix.max(), bits))).itemsize
    sizes[StorageLayout()] = 8 * matrix.size
    sizes[StorageLayout("sparse")] = 8 * filled + (cells / 8 if filled < cells else 0) + 8 * used
    return min(sizes, key=lambda layout: sizes[layout])


def encode_table(matrix: Floats, tensors: TensorWriter, layout: StorageLayout) -> str | Entry:
    """Store a matrix and return what its body says about it."""
    if layout.storage == "dense":
        return tensors.array(matrix, "matrix")
    used = np.flatnonzero((matrix > 0).any(axis=0))
    entry: Entry = {
        "storage": layout.storage,
        "shape": list(matrix.shape),
        "columns": tensors.narrow(used, "matrix.columns"),
    }
    block = matrix[:, used]
    if layout.storage == "sparse":
        present = block > 0
        entry["values"] = tensors.array(block[present], "matrix.values")
        packed = np.packbits(present.ravel(), bitorder="little")
        return entry | {"present": None if present.all() else tensors.narrow(packed, "matrix.present")}
    bits = 0 if layout.bits is None else layout.bits
    return entry | {"bits": bits, "counts": tensors.narrow(np.ldexp(block, bits).astype(np.uint64), "matrix.counts")}


def outline(entry: object, tensors: TensorReader, where: str) -> Floats:
    """Return a matrix of the shape of the stored one that takes no room, to ask what its audit would take."""
    if isinstance(entry, str):
        return tensors.array(entry, "f", where, 2)
    sides = entry.get("shape") if isinstance(entry, dict) else None
    if not isinstance(sides, list) or len(sides) != 2:
        raise CorruptFile("its matrix has no shape")
    shape = tuple(decode_whole(Whole(1, constants.LARGEST_MATRIX), side, "a side of its matrix") for side in sides)
    if shape[0] * shape[1] > 2**60:
        raise CorruptFile("its matrix is larger than any memory")
    return np.broadcast_to(np.float64(0.0), shape)


def decode_table(entry: object, tensors: TensorReader, where: str) -> Floats:
    """Return the stored matrix as doubles, exactly; its size is charged before it is made."""
    rows, reports = outline(entry, tensors, where).shape
    if isinstance(entry, str):
        tensors.budget.spend(Effort(values=2.0 * rows * reports), "its probabilities")
        return tensors.array(entry, "f", where, 2)
    storage = entry.get("storage") if isinstance(entry, dict) else None
    if (
        not isinstance(entry, dict)
        or not isinstance(storage, str)
        or storage not in STORAGE_FIELDS
        or set(entry) != {*COMMON, *STORAGE_FIELDS[storage]}
    ):
        raise CorruptFile("its probabilities are stored in an unknown way")
    columns = tensors.array(entry["columns"], "u", where, 1)
    if columns.size == 0 or columns.max() >= reports or np.any(columns[1:] <= columns[:-1]):
        raise CorruptFile("the used reports are not listed in order")
    # the table itself, the block of its used reports, and what checking them holds
    tensors.budget.spend(Effort(values=2.0 * rows * reports + 3.0 * rows * columns.size), "its probabilities")
    size = (rows, int(columns.size))
    block = _sparse(entry, tensors, size, where) if storage == "sparse" else _counts(entry, tensors, size, where)
    if not np.all((block > 0).any(axis=0)):
        raise CorruptFile("a report is listed as used and no secret uses it")
    matrix = np.zeros((rows, reports))
    matrix[:, columns.astype(np.int64)] = block
    matrix.flags.writeable = False
    return matrix


def _sparse(entry: Entry, tensors: TensorReader, shape: tuple[int, int], where: str) -> Floats:
    values = tensors.array(entry["values"], "f", where, 1)
    size = shape[0] * shape[1]
    if not np.all(values > 0):
        raise CorruptFile("a stored probability is not positive")
    if entry["present"] is None:
        if values.size != size:
            raise CorruptFile("its probabilities do not fill the reports that are listed")
        return values.reshape(shape)
    bits = tensors.array(entry["present"], "u", where, 1)
    if bits.dtype != np.uint8 or bits.size != -(-size // 8):
        raise CorruptFile("its bits do not say where the probabilities belong")
    present = np.unpackbits(bits, bitorder="little").astype(bool)
    if present[size:].any() or np.count_nonzero(present) != values.size:
        raise CorruptFile("its bits do not say where the probabilities belong")
    block = np.zeros(size)
    block[present[:size]] = values
    return block.reshape(shape)


def _counts(entry: Entry, tensors: TensorReader, shape: tuple[int, int], where: str) -> Floats:
    bits = decode_whole(Whole(FEWEST_BITS, MOST_BITS), entry["bits"], "the number of bits of its probabilities")
    counts = tensors.array(entry["counts"], "u", where, 2)
    if counts.shape != shape:
        raise CorruptFile("its probabilities do not fill the reports that are listed")
    if np.any(counts > 2**bits) or np.any(counts.sum(axis=1, dtype=np.uint64) != 2**bits):
        raise CorruptFile(f"a row of counts does not sum to 2**{bits}")
    return np.ldexp(counts.astype(np.float64), -bits)
