"""Some reports of a table, kept while it is written, for the page about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Points
from metricdp.tables.batch import secret_columns, secrets_of
from metricdp.tables.pipeline import ProtectedBatch
from metricdp.tables.plan import ColumnGroup, TableTask
from metricdp.tables.values import doubles_of, rows_of, whole

MOST_ROWS = 20_000  # reports that are kept for a picture


@dataclass
class GroupPreview:
    """Some reports of one group, evenly picked from all, and words with their numbers; `true` row by row with them."""

    group: ColumnGroup
    total: int = 0
    reports: list[Floats] = field(default_factory=list)
    true: list[Floats] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    stride: int = 1

    def rows(self) -> Floats:
        """Return the reports as rows of numbers."""
        return _join(self.reports, self.group.mechanism.outputs.width)

    def secrets(self) -> Floats | None:
        """Return the true values of those rows, where they were kept."""
        return _join(self.true, self.group.mechanism.outputs.width) if self.true else None

    def add_batch(self, released: Any, kept: Any | None) -> None:
        """Take in the reports of one batch, and what is behind them where it is passed in."""
        group, count = self.group, released.num_rows
        columns = [whole(released.column(name)) for name in group.reports]
        if group.mechanism.outputs.is_text:
            self.total += count - columns[0].null_count
            for entry in columns[0].cast(pa.string()).drop_null().value_counts().to_pylist():
                self.words[entry["values"]] += entry["counts"]
            return
        width = group.mechanism.outputs.width
        if group.packed:
            rows = rows_of(columns[0], width, group.reports[0])
        else:
            rows = np.column_stack([doubles_of(column) for column in columns])
        picked = np.arange(count)[(np.arange(count) + self.total) % self.stride == 0]
        picked = picked[np.isfinite(rows[picked]).all(axis=1)]
        self.total += count
        self.reports.append(rows[picked])
        if kept is not None and group.columns == group.reports and group.mechanism.inputs.width == width:
            self.true.append(_true_places(group, kept)[picked])
        while sum(len(part) for part in self.reports) > MOST_ROWS:
            true = self.secrets()
            self.reports, self.true = [self.rows()[::2]], [] if true is None else [true[::2]]
            self.stride *= 2


class Preview:
    """Told every batch of a file as it is written (`watch` of a `Job`); memory does not grow with its length.

    Without `secrets` it looks at what is released and at nothing else.
    """

    def __init__(self, *, secrets: bool = False) -> None:
        self._secrets = secrets
        self.groups: list[GroupPreview] = []

    def __call__(self, task: TableTask, step: ProtectedBatch) -> None:
        self.released(task, step.result, step.kept if self._secrets else None)

    def released(self, task: TableTask, batch: Any, kept: Any | None = None) -> None:
        """Take in reports that lie in a file already (`watch` of a `Job`), and what is behind them where it is kept."""
        self.groups = self.groups or [GroupPreview(group) for group in task.groups]
        for group_preview in self.groups:
            group_preview.add_batch(batch, kept)


def _true_places(group: ColumnGroup, kept: Any) -> Floats:
    """Return the secrets of rows as tables hold them; where values were snapped, where they were put."""
    secrets = secrets_of(secret_columns(kept, group), group)
    places: Points = np.full((kept.num_rows, group.mechanism.inputs.width), np.nan)
    places[secrets.good] = np.asarray(group.mechanism.inputs.decode(secrets.of(secrets.good)), dtype=np.float64)
    return places


def _join(parts: list[Floats], width: int) -> Floats:
    return np.concatenate(parts) if parts else np.empty((0, width))
