"""What every study is made of: pieces that run anywhere, tables with the published number beside ours, one page."""

from metricdp_papers.common.pieces import PieceRecord
from metricdp_papers.common.rows import Row, average_repetitions
from metricdp_papers.common.run import Outcome, StudyRequest, reproduce
from metricdp_papers.common.shapes import DeferredStudy, Piece, Study, StudyTable

__all__ = [
    "DeferredStudy",
    "Outcome",
    "Piece",
    "PieceRecord",
    "Row",
    "Study",
    "StudyRequest",
    "StudyTable",
    "average_repetitions",
    "reproduce",
]
