"""Which rows are looked at: all of few, and of many some blocks of neighbours, spread evenly over the whole table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Integers
from metricdp.tables.views import taken

SAMPLED = 20_000  # rows, in blocks
BLOCKS = 16
NUMBERS_LOOKED_AT = 2_000_000  # of rows that are wider than a hundred numbers fewer are looked at
FEWEST_ROWS = 1_000
BLOCK_BYTES = 4 << 20  # of a block of long rows fewer are kept


def rows_sampled(width: int) -> int:
    """Return how many rows are looked at, where a secret has so many numbers."""
    return min(SAMPLED, max(FEWEST_ROWS, NUMBERS_LOOKED_AT // width))


def sample_rows(rows: int, most: int = SAMPLED) -> Integers:
    """Return which rows of a table are looked at."""
    if rows <= most:
        return np.arange(rows)
    size = most // BLOCKS
    starts = np.linspace(0, rows - size, BLOCKS).astype(np.int64)
    return np.asarray((starts[:, None] + np.arange(size)).ravel())


def sample_of(table: Any, most: int = SAMPLED) -> Any:
    """Return the rows of a table that are looked at."""
    if table.num_rows <= most:
        return table
    size = most // BLOCKS
    whole = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    return pa.concat_tables([whole.slice(int(start), size) for start in sample_rows(table.num_rows, most)[::size]])


class Sample:
    """The rows that are looked at of a table that comes in batches, whose length is known at its end.

    It keeps every second block of those it had whenever there are too many: memory does not grow with the table.
    """

    def __init__(self, most: int = SAMPLED) -> None:
        self._size = most // BLOCKS
        self._blocks: dict[int, list[pa.RecordBatch]] = {}
        self._stride = 1
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in the next rows."""
        start, end = self.rows, self.rows + batch.num_rows
        self.rows = end
        for block in range(start // self._size, -(-end // self._size)):
            if block % self._stride == 0:
                low, high = max(start, block * self._size), min(end, (block + 1) * self._size)
                self._blocks.setdefault(block, []).append(_copied(batch.slice(low - start, high - low)))
        while len(self._blocks) > 2 * BLOCKS:
            self._stride *= 2
            self._blocks = {block: held for block, held in self._blocks.items() if block % self._stride == 0}

    def table(self, schema: pa.Schema) -> pa.Table:
        """Return the rows that are looked at."""
        blocks = list(self._blocks.values())
        chosen = np.unique(np.linspace(0, len(blocks) - 1, min(BLOCKS, len(blocks))).astype(int))
        return pa.Table.from_batches([part for number in chosen for part in blocks[number]], schema)


def _copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that keep no others in memory; few of them where they are long."""
    fitting = max(1, int(BLOCK_BYTES * rows.num_rows / max(1, rows.nbytes)))
    copied: pa.RecordBatch = taken(rows, pa.array(np.arange(min(fitting, rows.num_rows))))
    return copied
