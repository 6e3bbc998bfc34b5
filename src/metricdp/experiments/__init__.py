"""Studies of papers that run by name from an installed package, each declared once.

A study from outside is declared the same way: `STUDIES.declare(Study(...))`, see docs/extend.md.
"""

from __future__ import annotations

from metricdp.catalogue import Catalogue
from metricdp.experiments.common import Deferred, Piece, Study, Table

__all__ = ["STUDIES", "Deferred", "Piece", "Study", "Table"]

STUDIES: Catalogue[Study | Deferred] = Catalogue("study", [
    Deferred("aipo", "interpolated mechanisms: violations, loss and time on the maps of three cities",
             "metricdp.experiments.aipo.study:STUDY"),
    Deferred("benders", "decomposed mechanisms: the published decomposition as printed, put right, and beside other "
             "solvers", "metricdp.experiments.benders.study:STUDY"),
    Deferred("constopt", "ConstOPT beside the exponential mechanism, a spanner and the optimum on words and cells",
             "metricdp.experiments.constopt.study:STUDY"),
    Deferred("contextual", "trips: mechanisms that know the past, blankets and what they assume",
             "metricdp.experiments.contextual.study:STUDY"),
    Deferred("survey", "the survey's metrics, mechanisms, measures and data: where each is here, and all families at "
             "equal promise",
             "metricdp.experiments.survey.study:STUDY"),
    Deferred("text", "words of reviews protected one by one: accuracy, what an attacker recovers, and what is truly "
             "promised", "metricdp.experiments.text.study:STUDY"),
    Deferred("leaks", "the leak board: samplers of others and our own, judged by the same auditor",
             "metricdp.experiments.leaks.study:STUDY"),
])  # fmt: skip
