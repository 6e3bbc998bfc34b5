"""Drawing for releases that are committed together: one call of the mechanism for all of them.

Noise of a mechanism costs nearly as much for one secret as for a hundred. What is drawn for a release that turns out to
be refused or repeated is thrown away; nobody has seen it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from metricdp.service.served import Served


class Drawing:
    """What one release draws, as the ledger calls it; it never shows itself."""

    __slots__ = ("_place", "_pool", "_row", "_served")

    def __init__(self, served: Served, row: tuple[Any, ...]) -> None:
        self._served, self._row = served, row
        self._pool, self._place = _Pool(served, [row]), 0

    def __call__(self) -> bytes:
        reports = self._pool.reports()
        return self._served.encoded(reports, self._place, self._place + 1)

    def __repr__(self) -> str:
        return "Drawing()"

    @staticmethod
    def together(drawings: Iterable[Any]) -> None:
        """Let those of one mechanism draw at once, when the first of them is asked."""
        pools: dict[int, _Pool] = {}
        for one in drawings:
            if isinstance(one, Drawing):
                pool = pools.setdefault(id(one._served), _Pool(one._served, []))
                one._pool, one._place = pool, len(pool.rows)
                pool.rows.append(one._row)


class _Pool:
    """Secrets that are drawn for at once, and their reports."""

    __slots__ = ("_reports", "_served", "rows")

    def __init__(self, served: Served, rows: list[tuple[Any, ...]]) -> None:
        self._served, self.rows = served, rows
        self._reports: Sequence[pa.Array] | None = None

    def reports(self) -> Sequence[pa.Array]:
        if self._reports is None:
            self._reports = self._served.drawn(self._served.arrays(self.rows))
        return self._reports
