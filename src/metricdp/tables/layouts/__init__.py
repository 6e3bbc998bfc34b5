"""From tables as they are stored to flat columns of numbers, and back."""

from metricdp.tables.layouts.builder import TableInfo, layout_for
from metricdp.tables.layouts.stages import PLAIN, ColumnLayout

__all__ = ["PLAIN", "ColumnLayout", "TableInfo", "layout_for"]
