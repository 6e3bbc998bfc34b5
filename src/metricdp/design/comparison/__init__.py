"""Mechanisms beside each other: one guarantee, one loss, and the bound that belongs to both."""

from metricdp.design.comparison.compare import ComparisonResult, compare
from metricdp.design.comparison.measures import Figure, Measure
from metricdp.design.comparison.trials import ComparisonSpec, Trial

__all__ = ["ComparisonResult", "ComparisonSpec", "Figure", "Measure", "Trial", "compare"]
