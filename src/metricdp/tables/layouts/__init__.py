"""From tables as they are stored to flat columns of numbers, and back."""

from metricdp.tables.layouts.base import PLAIN, Layout
from metricdp.tables.layouts.choosing import Table, layout_for

__all__ = ["PLAIN", "Layout", "Table", "layout_for"]
