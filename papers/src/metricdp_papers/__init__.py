"""Studies of papers that run by name, each declared once, and the published variants that they measure.

They are made with the public names of `metricdp` alone: `metricdp reproduce` runs them where this package is installed.
A study from outside is declared the same way: `STUDIES.declare(Study(...))`, see docs/extend.md.
"""

from __future__ import annotations

from metricdp.registry import NameRegistry
from metricdp_papers.common import DeferredStudy as DeferredStudy
from metricdp_papers.common import Outcome as Outcome
from metricdp_papers.common import Piece as Piece
from metricdp_papers.common import Row as Row
from metricdp_papers.common import Study as Study
from metricdp_papers.common import StudyRequest as StudyRequest
from metricdp_papers.common import StudyTable as StudyTable
from metricdp_papers.common import average_repetitions as average_repetitions
from metricdp_papers.common import reproduce as reproduce

STUDIES: NameRegistry[Study | DeferredStudy] = NameRegistry("study", [
    DeferredStudy("aipo", "interpolated mechanisms: violations, loss and time on the maps of three cities",
        "metricdp_papers.aipo.study:STUDY"),
    DeferredStudy("benders",
        "decomposed mechanisms: the published decomposition as printed, put right, and beside other solvers",
        "metricdp_papers.benders.study:STUDY"),
    DeferredStudy("constopt", "ConstOPT beside the exponential mechanism, a spanner and the optimum on words and cells",
        "metricdp_papers.constopt.study:STUDY"),
    DeferredStudy("contextual", "trips: mechanisms that know the past, blankets and what they assume",
        "metricdp_papers.contextual.study:STUDY"),
    DeferredStudy("survey",
        "the survey's metrics, mechanisms, measures and data: where each is here, and all families at equal guarantee",
        "metricdp_papers.survey.study:STUDY"),
    DeferredStudy("text",
        "words of reviews protected one by one: accuracy, what an attacker recovers, and what is truly guaranteed",
        "metricdp_papers.text.study:STUDY"),
    DeferredStudy("leaks", "the leak board: samplers of others and our own, audited by the same auditor",
        "metricdp_papers.leaks.study:STUDY"),
])  # fmt: skip
