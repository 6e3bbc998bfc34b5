"""What all families of one domain are asked, and what they answer with: a distribution that was audited, or draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metricdp import from_matrix, optimal
from metricdp.arrays import Floats, Integers
from metricdp.design import ComparisonSpec, Measure
from metricdp.metrics import Lp
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp_papers.survey.domains import DOMAINS

DRAWS = 4_000  # of every secret, for noise whose masses have no closed form
SECONDS = 90.0  # of a search
GAP = 0.01


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Probabilities of reports, a row a secret, and what every report costs a secret.

    `bound` is what was proven for all mechanisms with these reports; `own` says another guarantee in words.
    """

    matrix: Floats
    costs: Floats
    bound: float | None = None
    own: str = ""
    note: str = ""


@dataclass(frozen=True, eq=False)
class ReportSampler:
    """A sampler whose masses have no closed form: reports are drawn for every secret."""

    draw: Callable[[Integers, np.random.Generator], Integers]  # codes of secrets in, codes of reports out
    own: str = ""
    note: str = ""


FamilyResult = ReportTable | ReportSampler
Build = Callable[[], FamilyResult]


@dataclass(frozen=True)
class ComparisonTask:
    """What all families of one domain are asked at one epsilon."""

    domain: str
    epsilon: float

    @cached_property
    def space(self) -> FiniteSpace:
        """The secrets."""
        return DOMAINS[self.domain].space()

    @cached_property
    def prior(self) -> Floats:
        """How likely they are."""
        return DOMAINS[self.domain].prior(self.space)

    @cached_property
    def loss(self) -> Floats:
        """What reporting one for another costs."""
        own = DOMAINS[self.domain].loss
        return self.space.distances if own is None else own(self.space)

    @cached_property
    def measure(self) -> Measure:
        """The loss as builders take it."""
        return Measure() if DOMAINS[self.domain].loss is None else Measure("loss", loss=self.loss)

    @cached_property
    def question(self) -> ComparisonSpec:
        """The same for builders by name."""
        return ComparisonSpec(self.space, self.prior, GAP, SECONDS, DRAWS)

    def check_table(
        self, matrix: Floats, costs: Floats | None = None, *, note: str = "", bound: float | None = None
    ) -> ReportTable:
        """Return a distribution after the exact audit at the guarantee of the comparison; refuse one that breaks it."""
        table = np.asarray(matrix) / np.sum(matrix, axis=1, keepdims=True)
        reports = None if table.shape[1] == len(self.space) else FiniteSpace(np.arange(table.shape[1])[:, None], Lp(1))
        free = np.zeros(table.shape)
        from_matrix(self.space, table, epsilon=self.epsilon, outputs=reports, loss=free)
        return ReportTable(table, self.loss if costs is None else costs, bound, note=note)

    def best_on(self, other: FiniteSpace, *, note: str = "") -> ReportTable:
        """Return the optimum under another metric, at the largest epsilon that keeps this guarantee."""
        apart, off = self.space.distances, ~np.eye(len(self.space), dtype=bool)
        ratio = float((other.distances[off] / apart[off]).max()) * (1.0 + 1e-9)
        problem = Problem(other, self.epsilon / ratio, loss=self.loss, prior=self.prior)
        made = optimal(problem, gap=GAP, seconds=SECONDS)
        return self.check_table(made.matrix, note=f"epsilon {self.epsilon / ratio:.4g} of its own distance{note}")
