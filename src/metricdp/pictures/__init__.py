"""Pictures, maps and the report, from finished results."""

from metricdp.pictures import palette as palette
from metricdp.pictures.comparing import comparison_plot as comparison_plot
from metricdp.pictures.comparing import write_comparison as write_comparison
from metricdp.pictures.figures import accuracy_plot as accuracy_plot
from metricdp.pictures.figures import certificate_card as certificate_card
from metricdp.pictures.figures import loss_bars as loss_bars
from metricdp.pictures.figures import map_plot as map_plot
from metricdp.pictures.figures import overview as overview
from metricdp.pictures.loss import loss_plot as loss_plot
from metricdp.pictures.palette import write_picture as write_picture
from metricdp.pictures.progress import progress as progress
from metricdp.pictures.report import write_report as write_report
from metricdp.pictures.story import Comparison as Comparison
from metricdp.pictures.story import Contender as Contender
from metricdp.pictures.story import Map as Map
from metricdp.pictures.story import Story as Story
