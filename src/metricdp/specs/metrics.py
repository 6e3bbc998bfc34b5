"""Metrics by their names, for commands that need no places: little is loaded for it."""

from __future__ import annotations

from metricdp.metrics import Metric, parse_metric


def read_metric(name: str) -> Metric:
    """Return the metric a name stands for; numbers and files may stand behind a `=`."""
    from metricdp.tables.matrices import read_matrix

    return parse_metric(name, read=read_matrix)
