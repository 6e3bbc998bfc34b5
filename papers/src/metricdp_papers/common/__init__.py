"""What every study is made of: pieces that run anywhere, tables with the published number beside ours, one page."""

from metricdp_papers.common.pieces import PieceRecord as PieceRecord
from metricdp_papers.common.rows import Row as Row
from metricdp_papers.common.rows import average_repetitions as average_repetitions
from metricdp_papers.common.run import Outcome as Outcome
from metricdp_papers.common.run import StudyRequest as StudyRequest
from metricdp_papers.common.run import reproduce as reproduce
from metricdp_papers.common.shapes import DeferredStudy as DeferredStudy
from metricdp_papers.common.shapes import Piece as Piece
from metricdp_papers.common.shapes import Study as Study
from metricdp_papers.common.shapes import StudyTable as StudyTable
