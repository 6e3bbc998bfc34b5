"""Studies of papers that run by name from an installed package, each declared once.

A study from outside is declared the same way: `STUDIES.declare(Study(...))`, see docs/extend.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metricdp.catalogue import Catalogue, loaded


@dataclass(frozen=True)
class Study:
    """A study: `metricdp reproduce name ...` calls its function with the words that follow."""

    name: str
    main: str | Callable[..., Any]
    about: str

    def run(self, *arguments: str) -> None:
        """Run it."""
        loaded(self.main)(*arguments)


STUDIES: Catalogue[Study] = Catalogue("study", [
    Study("aipo", "metricdp.experiments.aipo.study:main", "interpolated mechanisms: loss and violations on the map"),
    Study("benders", "metricdp.experiments.benders.study:main", "decomposed mechanisms: sizes, rounds and bounds"),
    Study("constopt", "metricdp.experiments.constopt.study:main", "ConstOPT beside the exponential mechanism on words"),
    Study("contextual", "metricdp.experiments.contextual.study:main", "trips: mechanisms that know the past, blankets "
          "and what they assume"),
])  # fmt: skip
