"""What every study is made of: pieces that run anywhere, tables with the published number beside ours, one page."""

from metricdp_papers.common.data import GLOVE as GLOVE
from metricdp_papers.common.data import DataSource as DataSource
from metricdp_papers.common.data import at_hand as at_hand
from metricdp_papers.common.data import data_file as data_file
from metricdp_papers.common.data import glove as glove
from metricdp_papers.common.figures import COLOURS as COLOURS
from metricdp_papers.common.figures import draw_panels as draw_panels
from metricdp_papers.common.figures import group_rows as group_rows
from metricdp_papers.common.figures import plot_line as plot_line
from metricdp_papers.common.outcome import Outcome as Outcome
from metricdp_papers.common.outcome import StudyRequest as StudyRequest
from metricdp_papers.common.pieces import PieceRecord as PieceRecord
from metricdp_papers.common.rows import Row as Row
from metricdp_papers.common.rows import RowList as RowList
from metricdp_papers.common.rows import average_repetitions as average_repetitions
from metricdp_papers.common.rows import is_number as is_number
from metricdp_papers.common.rows import row as row
from metricdp_papers.common.run import reproduce as reproduce
from metricdp_papers.common.shapes import DeferredStudy as DeferredStudy
from metricdp_papers.common.shapes import Piece as Piece
from metricdp_papers.common.shapes import Study as Study
from metricdp_papers.common.shapes import StudyTable as StudyTable
