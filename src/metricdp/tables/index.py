"""The index of a pandas frame as columns: it leaves with the table, so it is looked at like any other column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FrameIndex:
    """The index of a frame, and the columns that stand for its levels while the frame is protected.

    An index that only counts the rows from 0 has none: it says no more than their order.
    """

    index: Any
    columns: tuple[str, ...]

    @classmethod
    def of(cls, frame: Any) -> FrameIndex:
        """Return the index of a frame; a level without a name is called `index`, or `level_1` among several."""
        index = frame.index
        counts = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 and index.name is None
        taken, columns = {str(name) for name in frame.columns}, []
        for number, given in enumerate([] if counts else index.names):
            name = str(given) if given is not None else "index" if index.nlevels == 1 else f"level_{number}"
            while name in taken:
                name = f"{name}_index"
            taken.add(name)
            columns.append(name)
        return cls(index, tuple(columns))

    def as_columns(self, frame: Any) -> Any:
        """Return the frame with its levels as columns and rows that are counted from 0."""
        plain = frame.reset_index(drop=True)
        for number, name in enumerate(self.columns):
            level = self.index.get_level_values(number)
            if type(level).__name__ in ("PeriodIndex", "IntervalIndex"):  # Arrow knows neither; they are put back whole
                level = level.astype(str)
            plain[name] = level.array
        plain.attrs = dict(frame.attrs)
        return plain

    def put_back(self, frame: Any, touched: frozenset[str]) -> Any:
        """Return a protected frame with its index: levels that were `touched` as they are now, others as they were."""
        if not self.columns:
            return frame
        rows, staying = frame.index, [name for name in self.columns if name in frame.columns]
        if not touched & set(self.columns):
            frame = frame.drop(columns=staying)
            frame.index = self.index.take(rows)
        elif staying:
            frame = frame.set_index(staying)
            given = dict(zip(self.columns, self.index.names, strict=True))
            frame.index = frame.index.set_names([given[name] for name in staying])
        else:
            frame = frame.reset_index(drop=True)
        if hasattr(frame.index, "remove_unused_levels"):
            frame.index = frame.index.remove_unused_levels()
            for number, level in enumerate(frame.index.levels):
                if hasattr(level, "remove_unused_categories"):
                    frame.index = frame.index.set_levels(level.remove_unused_categories(), level=number)
        if hasattr(frame.index, "remove_unused_categories"):
            frame.index = frame.index.remove_unused_categories()
        return frame
