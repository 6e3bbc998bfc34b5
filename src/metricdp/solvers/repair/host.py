"""Repair on this machine's cores: what the search uses unless a solver brings its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from metricdp import deadlines
from metricdp.arrays import Floats, Integers
from metricdp.solvers.edges import violated_pairs
from metricdp.solvers.repair.recombine import Repaired, kernel_mixture, recombine

REPAIR_SECONDS = 8.0e-9  # a repair of n x m takes about so many, times n^2 m


@runtime_checkable
class Repair(Protocol):
    """Turns what a solver found into matrices that keep all ratios, for one cost and its log ratios."""

    @property
    def seconds(self) -> float:
        """About how long the last repair takes after the time limit."""

    def recombine(self, matrix: Any, pairs: Integers | None, enough: float) -> Repaired:
        """Return a strictly feasible matrix, the cheaper the better, good enough at a cost of `enough`."""

    def violated(self, matrix: Floats, pairs: Integers, count: int) -> Integers:
        """Return up to `count` further pairs that the matrix violates most."""


@runtime_checkable
class Repairs(Protocol):
    """A solver that brings a repair of its own, such as one where its iterates live."""

    def repair(self, cost: Floats, log_ratios: Floats) -> Repair:
        """Return the repair for one program."""


@dataclass
class HostRepair:
    """The repair by numpy and compiled loops."""

    cost: Floats
    log_ratios: Floats
    longest: float = 0.0  # that one repair has taken without a combination

    @property
    def seconds(self) -> float:
        n, m = self.cost.shape
        return self.longest or REPAIR_SECONDS * float(n * n * m)  # what was measured, else a guess

    def first(self) -> Repaired:
        """Return an answer that needs no solver, and learn how long a repair takes on this machine now."""
        started = deadlines.clock()
        found = kernel_mixture(self.cost, self.log_ratios)
        self.longest = 2.0 * (deadlines.clock() - started)  # a closure takes about as long as the check of all ratios
        return found

    def recombine(self, matrix: Any, pairs: Integers | None, enough: float) -> Repaired:
        return recombine(np.asarray(matrix), self.cost, self.log_ratios, pairs=pairs, enough=enough)

    def violated(self, matrix: Floats, pairs: Integers, count: int) -> Integers:
        return violated_pairs(matrix, self.log_ratios, pairs, count)


def repair_of(solver: object, cost: Floats, log_ratios: Floats) -> Repair:
    """Return the solver's own repair, or that of the host."""
    return solver.repair(cost, log_ratios) if isinstance(solver, Repairs) else HostRepair(cost, log_ratios)
