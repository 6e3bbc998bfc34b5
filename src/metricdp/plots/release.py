"""The content of the page of a protected table: finished sentences, public numbers, and released reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from metricdp.arrays import Floats
from metricdp.mechanisms import Guarantee

SceneKind = Literal["map", "plane", "line", "words", "none"]  # how reports can be drawn


@dataclass(frozen=True, eq=False)
class Example:
    """Draws of the mechanism for a public place, such as a crossing of the design: it is no person's position.

    Coordinates as tables hold them; `radius` (in the unit of the distribution) holds the place around 95 % of its
    reports.
    """

    place: Floats
    reports: Floats
    words: str


@dataclass(frozen=True)
class WordExample:
    """What a public word may be reported as: the likeliest reports and their probabilities."""

    word: str
    reports: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class ReleaseScene:
    """The reports of one part of a secret: rows of coordinates, or words with how often each was reported.

    `reports` are some of `total`. `true` are the secrets behind them, row by row, only on request.
    """

    kind: SceneKind
    columns: tuple[str, ...]
    total: int
    reports: Floats = field(default_factory=lambda: np.empty((0, 2)))
    words: tuple[tuple[str, int], ...] = ()
    streets: tuple[Floats, ...] = ()
    example: Example | None = None
    word_examples: tuple[WordExample, ...] = ()
    true: Floats | None = None
    unit: str = ""


@dataclass(frozen=True)
class NoiseDistribution:
    """How far reports lie from the truth: growing probabilities with their radii, and sentences about them."""

    curve: tuple[tuple[float, float], ...]  # probability, radius
    unit: str
    measured: str  # along what: "great circles"
    formula: str
    loss: str  # a sentence
    tight: bool = True


@dataclass(frozen=True)
class ShareOfBudget:
    """The share of each row of a person who divides a budget among so many rows, as words of the page."""

    rows: int
    persons: int
    epsilon: str
    radii: tuple[str, ...]  # around a report, one for every part of the secret


@dataclass(frozen=True, eq=False)
class TableRelease:
    """The whole content of the page of a protected table."""

    title: str
    guarantee: Guarantee
    mechanism: str
    rows: int  # written
    columns: tuple[str, ...]
    scenes: tuple[ReleaseScene, ...]
    distributions: tuple[NoiseDistribution, ...]
    together: float | None = None  # how far apart places may lie in every row of a person for a factor of two
    whole_history: str = ""  # what all rows of a person are worth, in distances
    person: str = ""  # what the rows of the person with the most add up to, in short
    people: tuple[str, ...] = ()  # sentences on rows of one person and on releasing twice
    kept: tuple[str, ...] = ()  # columns that stayed
    remarks: tuple[str, ...] = ()  # sentences on what stayed, what was left out and what else should be known
    promise: tuple[str, ...] = ()  # sentences on the guarantee of one row
    files: tuple[tuple[str, str], ...] = ()
    repeat: tuple[str, ...] = ()
    citation: tuple[str, str] = ("", "")  # as text, as BibTeX
    simulated: str = ""
    shares: tuple[ShareOfBudget, ...] = ()  # `distributions` are then those of the most noise

    @property
    def shows_secrets(self) -> bool:
        """Whether true positions are on the page."""
        return any(scene.true is not None for scene in self.scenes)
