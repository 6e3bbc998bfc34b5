"""What the ConstOPT study measures, and what a measurement holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """How large the study is."""

    sizes: tuple[int, ...] = (50,)
    epsilons: tuple[float, ...] = (0.5, 0.75, 1.0)  # for words
    cell_epsilons: tuple[float, ...] = (0.3, 0.8, 1.5)  # a kilometre
    road_epsilons: tuple[float, ...] = (5.0, 10.0, 20.0)  # a kilometre
    scaling_sizes: tuple[int, ...] = (50,)
    ablation_size: int = 50
    penalties: tuple[float, ...] = (0.1, 1.0, 50.0)
    nearest: tuple[int, ...] = (1, 5, 9)
    vocabularies: int = 6  # samples of words on which ConstOPT and EXPMECH are compared
    draws: int = 100  # of Madlib, a word
    seconds: float = 20.0  # the most that OPT and Spanner may take
    largest_optimum: int = 60  # OPT is left out of the figure above

    def epsilons_of(self, domain: str) -> tuple[float, ...]:
        """Return the epsilons of a domain."""
        return {"words": self.epsilons, "cells": self.cell_epsilons}.get(domain, self.road_epsilons)


FULL = Plan(
    sizes=(50, 200),
    epsilons=(0.25, 0.5, 0.75, 1.0, 1.25, 1.5),
    cell_epsilons=(0.1, 0.3, 0.5, 0.8, 1.2, 2.0),
    road_epsilons=(2.0, 5.0, 10.0, 20.0, 40.0),
    scaling_sizes=(50, 150, 300, 400),
    ablation_size=200,
    penalties=(0.1, 1.0, 10.0, 50.0, 250.0),
    nearest=(1, 3, 5, 7, 9),
    draws=2000,
    seconds=600.0,
    largest_optimum=200,
)


@dataclass(frozen=True)
class Row:
    """One measurement; empty cells are None."""

    part: str  # "figure", "promised", "vocabularies", "scaling" or "ablation"
    domain: str
    secrets: int
    mechanism: str
    nearest: int | None
    penalty: float | None
    epsilon: float
    epsilon_tight: float | None
    loss: float  # 95 % quantile
    worst_loss: float | None
    seconds: float
    processor_seconds: float
    nonzeros: int | None = None
    published_loss: float | None = None
    published_seconds: float | None = None
    published_nonzeros: float | None = None
    note: str = ""
