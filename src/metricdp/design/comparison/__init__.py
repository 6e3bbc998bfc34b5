"""Mechanisms beside each other: one promise, one loss, and the bound that belongs to both."""

from metricdp.design.comparison.compare import Compared, compare
from metricdp.design.comparison.measures import Figure, Measure
from metricdp.design.comparison.trials import Question, Trial

__all__ = ["Compared", "Figure", "Measure", "Question", "Trial", "compare"]
