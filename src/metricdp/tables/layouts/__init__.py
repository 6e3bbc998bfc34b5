"""From tables as they are stored to flat columns of numbers, and back."""

from metricdp.tables.layouts.builder import Table, layout_for
from metricdp.tables.layouts.stages import PLAIN, Layout

__all__ = ["PLAIN", "Layout", "Table", "layout_for"]
