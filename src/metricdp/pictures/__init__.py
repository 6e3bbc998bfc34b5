"""Pictures, maps and the report, from finished results."""

from metricdp.pictures import palette
from metricdp.pictures.comparing import comparison_plot, write_comparison
from metricdp.pictures.figures import accuracy_plot, certificate_card, loss_bars, map_plot, overview
from metricdp.pictures.loss import loss_plot
from metricdp.pictures.palette import write_picture
from metricdp.pictures.progress import progress
from metricdp.pictures.report import write_report
from metricdp.pictures.story import Comparison, Contender, Map, Story

__all__ = [
    "Comparison",
    "Contender",
    "Map",
    "Story",
    "accuracy_plot",
    "certificate_card",
    "comparison_plot",
    "loss_bars",
    "loss_plot",
    "map_plot",
    "overview",
    "palette",
    "progress",
    "write_comparison",
    "write_picture",
    "write_report",
]
