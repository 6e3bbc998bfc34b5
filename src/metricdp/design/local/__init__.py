"""Optimal mechanisms of whole cities: variables near every report, a bound for these reports, nothing n x n."""

from metricdp.design.local.build import FEW, optimal_local, prefers_windows

__all__ = ["FEW", "optimal_local", "prefers_windows"]
