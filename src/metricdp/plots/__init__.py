"""Figures, maps and the report, from finished results."""

from metricdp.plots import palette as palette
from metricdp.plots.comparison_plots import comparison_plot as comparison_plot
from metricdp.plots.comparison_plots import loss_plot as loss_plot
from metricdp.plots.comparison_plots import write_comparison as write_comparison
from metricdp.plots.figures import accuracy_plot as accuracy_plot
from metricdp.plots.figures import certificate_card as certificate_card
from metricdp.plots.figures import loss_bars as loss_bars
from metricdp.plots.figures import map_plot as map_plot
from metricdp.plots.figures import overview as overview
from metricdp.plots.palette import write_picture as write_picture
from metricdp.plots.progress import progress as progress
from metricdp.plots.report import write_report as write_report
from metricdp.plots.report_content import Comparison as Comparison
from metricdp.plots.report_content import Contender as Contender
from metricdp.plots.report_content import Map as Map
from metricdp.plots.report_content import ReportContent as ReportContent
