"""Some reports of a table, kept while it is written, for the page about it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Points
from metricdp.tables.batch import secrets_of
from metricdp.tables.pipeline import ProtectedBatch
from metricdp.tables.plan import ColumnGroup, TableTask
from metricdp.tables.values import rows_of, whole

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


class Preview:
    """Told every batch of a file as it is written (`watch` of a `Job`); memory does not grow with its length.

    Without `secrets` it looks at what is released and at nothing else.
    """

    def __init__(self, *, secrets: bool = False) -> None:
        self._secrets = secrets
        self.groups: list[GroupPreview] = []

    def __call__(self, task: TableTask, step: ProtectedBatch) -> None:
        self.begin(task)
        for group_preview in self.groups:
            self.add_batch(group_preview, step.result, step.kept if self._secrets else None)

    def released(self, task: TableTask, batch: Any) -> None:
        """Take in reports that lie in a file already (`watch` of a `Job`)."""
        self.begin(task)
        for group_preview in self.groups:
            self.add_batch(group_preview, batch, None)

    def begin(self, task: TableTask) -> None:
        """Make room for what every group of a task reports."""
        if not self.groups:
            self.groups = [GroupPreview(group) for group in task.groups]

    def add_batch(self, group_preview: GroupPreview, released: Any, kept: Any | None) -> None:
        """Take in the reports of one batch, and what is behind them where it is passed in."""
        group, count = group_preview.group, released.num_rows
        columns = [whole(released.column(name)) for name in group.reports]
        if group.mechanism.outputs.is_text:
            group_preview.total += count - columns[0].null_count
            texts = columns[0].cast(pa.string()).drop_null()
            for entry in texts.value_counts().to_pylist():
                group_preview.words[entry["values"]] += entry["counts"]
            return
        width = group.mechanism.outputs.width
        rows = rows_of(columns[0], width, group.reports[0]) if group.packed else _numbers(columns)
        picked = np.arange(count)[(np.arange(count) + group_preview.total) % group_preview.stride == 0]
        picked = picked[np.isfinite(rows[picked]).all(axis=1)]
        group_preview.total += count
        group_preview.reports.append(rows[picked])
        if kept is not None and group.columns == group.reports and group.mechanism.inputs.width == width:
            group_preview.true.append(_true_places(group, kept)[picked])
        while sum(len(part) for part in group_preview.reports) > MOST_ROWS:
            group_preview.reports, group_preview.true = (
                [group_preview.rows()[::2]],
                [true[::2]] if (true := group_preview.secrets()) is not None else [],
            )
            group_preview.stride *= 2


def _true_places(group: ColumnGroup, kept: Any) -> Floats:
    """Return the secrets of rows as tables hold them; where values were snapped, where they were put."""
    secrets = secrets_of([whole(kept.column(name)) for name in group.columns], group)
    places: Points = np.full((kept.num_rows, group.mechanism.inputs.width), np.nan)
    places[secrets.good] = np.asarray(group.mechanism.inputs.decode(secrets.of(secrets.good)), dtype=np.float64)
    return places


def _numbers(columns: list[Any]) -> Floats:
    return np.column_stack([column.cast(pa.float64()).to_numpy(zero_copy_only=False) for column in columns])


def _join(parts: list[Floats], width: int) -> Floats:
    return np.concatenate(parts) if parts else np.empty((0, width))
