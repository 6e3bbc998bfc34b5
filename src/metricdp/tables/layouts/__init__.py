"""From tables as they are stored to flat columns of numbers, and back."""

from metricdp.tables.layouts.stages import PLAIN, ColumnLayout, TableInfo, layout_for

__all__ = ["PLAIN", "ColumnLayout", "TableInfo", "layout_for"]
