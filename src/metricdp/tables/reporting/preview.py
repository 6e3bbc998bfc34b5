"""What a page shows of a table while it is written: some of its reports, and true values only where asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.arrays import Floats, Points
from metricdp.tables.batch import secrets_of
from metricdp.tables.pipeline import Step
from metricdp.tables.plan import ColumnGroup, Task
from metricdp.tables.values import rows_of, whole

MOST_ROWS = 20_000  # reports that are kept for a picture
MOST_SECRETS = 260  # true positions that are drawn where they were asked for


@dataclass
class Seen:
    """Some reports of one group, evenly picked from all, and words with their numbers; `true` row by row with them."""

    group: ColumnGroup
    total: int = 0
    reports: list[Floats] = field(default_factory=list)
    true: list[Floats] = field(default_factory=list)
    words: Counter[str] = field(default_factory=Counter)
    stride: int = 1

    def rows(self) -> Floats:
        """Return the reports as rows of numbers."""
        return _joined(self.reports, self.group.mechanism.outputs.width)

    def secrets(self) -> Floats | None:
        """Return the true values of those rows, where they were kept."""
        return _joined(self.true, self.group.mechanism.outputs.width) if self.true else None


class Preview:
    """Told every batch of a file as it is written (`watch` of a `Job`); memory does not grow with its length.

    Without `secrets` it looks at what is released and at nothing else.
    """

    def __init__(self, *, secrets: bool = False) -> None:
        self._secrets = secrets
        self.groups: list[Seen] = []

    def __call__(self, task: Task, step: Step) -> None:
        self.begin(task)
        for seen in self.groups:
            self.look(seen, step.result, step.kept if self._secrets else None)

    def released(self, task: Task, batch: Any) -> None:
        """Take in reports that lie in a file already (`watch` of a `Job`)."""
        self.begin(task)
        for seen in self.groups:
            self.look(seen, batch, None)

    def begin(self, task: Task) -> None:
        """Make room for what every group of a task reports."""
        if not self.groups:
            self.groups = [Seen(group) for group in task.groups]

    def look(self, seen: Seen, released: Any, kept: Any | None) -> None:
        """Take in the reports of one batch, and what is behind them where it is passed in."""
        group, count = seen.group, released.num_rows
        columns = [whole(released.column(name)) for name in group.reports]
        if group.mechanism.outputs.is_text:
            seen.total += count - columns[0].null_count
            texts = columns[0].cast(pa.string()).drop_null()
            for entry in texts.value_counts().to_pylist():
                seen.words[entry["values"]] += entry["counts"]
            return
        width = group.mechanism.outputs.width
        rows = rows_of(columns[0], width, group.reports[0]) if group.packed else _numbers(columns)
        picked = np.arange(count)[(np.arange(count) + seen.total) % seen.stride == 0]
        picked = picked[np.isfinite(rows[picked]).all(axis=1)]
        seen.total += count
        seen.reports.append(rows[picked])
        if kept is not None and group.columns == group.reports and group.mechanism.inputs.width == width:
            seen.true.append(_true(group, kept)[picked])
        while sum(len(part) for part in seen.reports) > MOST_ROWS:
            seen.reports, seen.true = [seen.rows()[::2]], [true[::2]] if (true := seen.secrets()) is not None else []
            seen.stride *= 2


def _true(group: ColumnGroup, kept: Any) -> Floats:
    """Return the secrets of rows as tables hold them; where values were snapped, where they were put."""
    secrets = secrets_of([whole(kept.column(name)) for name in group.columns], group)
    places: Points = np.full((kept.num_rows, group.mechanism.inputs.width), np.nan)
    places[secrets.good] = np.asarray(group.mechanism.inputs.decode(secrets.of(secrets.good)), dtype=np.float64)
    return places


def _numbers(columns: list[Any]) -> Floats:
    return np.stack(
        [column.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64) for column in columns], axis=1
    )


def _joined(parts: list[Floats], width: int) -> Floats:
    return np.concatenate(parts) if parts else np.empty((0, width))
