"""What every study is made of: pieces that run anywhere, tables with the published number beside ours, one page."""

from metricdp_papers.common.pieces import Done
from metricdp_papers.common.rows import Row, averaged
from metricdp_papers.common.run import Outcome, Request, reproduce
from metricdp_papers.common.shapes import Deferred, Piece, Study, Table

__all__ = [
    "Deferred",
    "Done",
    "Outcome",
    "Piece",
    "Request",
    "Row",
    "Study",
    "Table",
    "averaged",
    "reproduce",
]
