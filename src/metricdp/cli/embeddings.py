"""What the command lets people say about vectors: lengths that are dropped, a projection from a file."""

from __future__ import annotations

from dataclasses import dataclass

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput


@dataclass(frozen=True)
class Vectors:
    """How vectors are treated before noise.

    Attributes:
        normalise: With --metric angular: take vectors of any length. It is dropped: the promise is about angles, and
            nothing about lengths is reported.
        projection: With --metric l2: a file with a matrix (.npy, or any table of numbers), one row for every dimension
            that is left. It must be public, never one made from this table; the promise stays about the distance of the
            vectors themselves.
    """

    normalise: bool = False
    projection: str | None = None

    def matrix(self) -> Floats | None:
        """Return the matrix of the projection."""
        import numpy as np

        from metricdp.tables import holds_vectors, numbers_of, open_table, rows_of
        from metricdp.tables.formats import located, read_batches

        if self.projection is None:
            return None
        with open_table(located(self.projection), geographic=False, vectors=True) as opened:
            parts = []
            for batch in read_batches(opened):
                first = batch.schema.field(0)
                if holds_vectors(first.type):
                    parts.append(rows_of(batch.column(0), opened.layout.width or 1, first.name))
                else:
                    columns = zip(batch.columns, batch.schema.names, strict=True)
                    parts.append(np.column_stack([numbers_of(column, name) for column, name in columns]))
        if not parts:
            raise InvalidInput(f"{self.projection!r} holds no matrix: it is empty.")
        return np.concatenate(parts)


AS_THEY_ARE = Vectors()
