"""From words on the command line to metrics, spaces, priors and mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

import metricdp
from metricdp import wording
from metricdp.arrays import Floats
from metricdp.cli import tables
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Guarantee, Mechanism
from metricdp.metrics import METRICS, Metric
from metricdp.spaces import FiniteSpace
from metricdp.units import HOW_TO_WRITE, Wish, parse_epsilon, parse_wish

Progress = Callable[[float], None]


def _file_name(_: object, value: object) -> None:
    """Refuse an option in the place of a file; - alone is standard input or output."""
    if isinstance(value, str) and value.startswith("-") and value != "-":
        raise ValueError(f"A file is expected here, and {value} reads as an option; a file of that name is ./{value}.")


Output = Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True, validator=_file_name)]
Input = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_file_name)]
Epsilon = Annotated[str, Parameter(name="--epsilon", allow_leading_hyphen=True)]  # so that -1 gets our own answer


def metric_named(name: str) -> Metric:
    """Return the metric a name stands for; `haversine:mi` and `l2:m` name the unit of its distances too."""
    word, colon, unit = name.strip().partition(":")
    words = METRICS.words()
    found = words.get(word.strip().lower())
    if found is None:
        raise InvalidInput(f"unknown metric {word!r}: use one of {', '.join(words)}.")
    metric: Any = found()
    if colon and (not unit.strip() or not is_dataclass(metric)):
        raise InvalidInput(f"--metric {name} names no unit that {word} can take; write haversine:mi, or {word} alone.")
    chosen: Metric = replace(metric, unit=unit.strip()) if colon else metric
    return chosen


@dataclass(frozen=True)
class Level:
    """How much may leak: an epsilon, or a wish that whatever is built has to keep, its slack included."""

    asked: float | Wish

    def epsilon(self, slack: Callable[[float], float] | float = 0.0) -> float:
        """Return the epsilon that was named, or the largest one that keeps the wish with such a slack."""
        return self.asked.epsilon(slack) if isinstance(self.asked, Wish) else self.asked

    def kept(self, promise: Guarantee) -> list[str]:
        """Return the sentence that compares a promise with the wish, where there was one; raise where it is broken."""
        if not isinstance(self.asked, Wish):
            return []
        outside = promise.radius is not None and self.asked.distance > promise.radius
        if outside or not self.asked.kept(promise.epsilon, promise.slack):
            raise NotPrivate(
                f"the promise allows more than the factor {self.asked.level:g} asked for at {self.asked.distance:g} "
                f"{promise.unit}: {promise}. Nothing was written."
            )
        return [wording.wish(promise, self.asked.level, self.asked.distance)]


def level_from(epsilon: str | None, protect: str | None, unit: str) -> Level:
    """Return what `--epsilon` or `--protect` asks for."""
    if (epsilon is None) == (protect is None):
        how = HOW_TO_WRITE if unit else "Write --epsilon 1.0, or --protect 2x@0.5 for a factor of two at distance 0.5."
        raise InvalidInput(f"say how much may leak, with either --epsilon or --protect. {how}")
    return Level(parse_epsilon(epsilon, unit) if epsilon is not None else parse_wish(str(protect), unit))


def resumable(work: Callable[..., Any]) -> Callable[..., Any]:
    """Let an interruption say how the job goes on."""

    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return work(*arguments, **options)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("interrupted: the parts that are done stay; continue with --resume") from None

    return run


def names_many(source: str) -> bool:
    """Tell whether a source is a folder or a pattern rather than one file."""
    return Path(source).is_dir() or any(mark in source for mark in "*?[")


@dataclass(frozen=True)
class Where:
    """Where secrets are: the points of a file, or the crossings of a road network.

    Attributes:
        points: A table (`metricdp formats`) with one point a row and one coordinate a column (or lat, lon).
        metric: Its name (`metricdp metrics` lists them), with a unit where wanted: l2, haversine:mi; lat and lon mean
            haversine. On roads distances run along the roads.
        roads: Instead of points: a GraphML file as osmnx writes it, a folder with the tables nodes and edges (.parquet
            or .csv), or a city of the data folder such as rome.
        nodes: With roads: so many crossings around the centre, instead of all.
        table: How the points are read.
    """

    points: str | None = None
    metric: str | None = None
    roads: str | None = None
    nodes: int | None = None
    table: Annotated[tables.Source, Parameter(name="*")] = tables.AS_IT_IS

    def space(self) -> FiniteSpace:
        """Return the space of them."""
        if (self.points is None) == (self.roads is None):
            raise InvalidInput(
                "say where secrets are, with either --points cells.csv or --roads and a city, a folder or a GraphML "
                "file."
            )
        if self.points is not None:
            if self.nodes is not None:
                raise InvalidInput("--nodes counts crossings and belongs to --roads; leave it away with --points.")
            return space_from(self.points, self.metric, self.table)
        if self.metric is not None:
            raise InvalidInput("--metric belongs to --points: with --roads distances run along the roads, in km.")
        return metricdp.road_network(str(self.roads), nodes=self.nodes)

    def words(self, space: FiniteSpace) -> str:
        """Return what they are and how many."""
        return f"{len(space):,} {'points' if self.roads is None else 'crossings'}"


NOWHERE = Where()


def space_from(points: str, metric: str | None, table: tables.Source = tables.AS_IT_IS) -> FiniteSpace:
    """Return the space of the points in a file; latitude and longitude are measured along the Earth."""
    from metricdp.cli.reading import read_points

    found = read_points(points, table.names, table.reading())
    text = found.points.dtype.kind == "U"
    if metric is None:
        metric = "haversine" if found.geographic else "levenshtein" if text else "l2"
    chosen = metric_named(metric)
    if found.geographic and isinstance(chosen, metricdp.Lp):
        raise InvalidInput(
            f"{points!r} holds degrees ({', '.join(found.columns)}), which {metric} would take for lengths: use "
            "--metric haversine, or rename the columns to x and y if they are lengths."
        )
    return FiniteSpace(found.points, chosen, columns=found.columns)


def numbers_from(path: str) -> Floats:
    """Return the numbers in a file: a prior, or weights."""
    from metricdp.cli.reading import read_numbers

    return read_numbers(path)


def seeded(seed: int | None) -> np.random.Generator | None:
    """Return a generator for simulations, where a seed was asked for."""
    return None if seed is None else np.random.default_rng(seed)


def mechanism_in(path: str, *, trusted: str | None) -> Mechanism:
    """Return the mechanism of a file."""
    from metricdp.artifacts import load

    return load(path, trusted=trusted)


def noise_for(level: Level, metric: Metric, columns: Sequence[str] | None) -> Mechanism:
    """Return Laplace noise at the epsilon asked for, or at the one that keeps a wish."""
    dimension = None if isinstance(metric, metricdp.Haversine) else 2 if columns is None else len(columns)

    return metricdp.laplace(metric, level.epsilon(), dimension=dimension)
