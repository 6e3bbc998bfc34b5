"""Many numbers of few kinds, in files: two bytes for each, and a table of what they stand for.

{"codes": tensor, "table": tensor}: number e is table[codes[e]]. The table decreases, so that there is one way to write
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metricdp.artifacts.container import Entry
from metricdp.artifacts.tensors import TensorReader, TensorWriter, checked_range, narrowest
from metricdp.errors import CorruptFile
from metricdp.registry import Array, Effort

CODED = ("codes", "table")
MOST_CODES = 1 << 16
CHUNK = 1 << 20  # numbers whose kinds are counted at a time
LEAST_SAVED = 1024  # bytes below which a second tensor does not pay


def distinct_values(array: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return the distinct numbers, increasing; None where there are more than codes."""
    table: NDArray[np.float32] = np.empty(0, dtype=np.float32)
    for start in range(0, array.size, CHUNK):
        table = np.union1d(table, array[start : start + CHUNK])
        if table.size > MOST_CODES:
            return None
    return table


def encode_codes(array: NDArray[np.float32], tensors: TensorWriter, name: str) -> Entry | None:
    """Store single floats as codes and table, without loss; None where there are too many kinds or little is saved."""
    table = distinct_values(array)
    if table is None:
        return None
    width = narrowest(max(table.size - 1, 0))
    if (4 - width.itemsize) * array.size < 4 * table.size + LEAST_SAVED:
        return None
    codes = np.empty(array.size, dtype=width)
    for start in range(0, array.size, CHUNK):
        codes[start : start + CHUNK] = table.size - 1 - np.searchsorted(table, array[start : start + CHUNK])
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
    checked_range(kind, table, where)
    tensors.budget.spend(Effort(values=codes.size / 2.0), "its weights")
    array: NDArray[Any] = table[codes]
    array.flags.writeable = False
    return array
