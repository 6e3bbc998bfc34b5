"""From words on the command line to metrics, spaces, priors and mechanisms."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import metricdp
from metricdp import wording
from metricdp.arrays import Floats
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.mechanisms import Guarantee, Mechanism
from metricdp.metrics import Metric
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.units import HOW_TO_WRITE, Wish, parse_distance, parse_epsilon, parse_wish
from metricdp.wording import Objective

Progress = Callable[[float], None]
# builder -> the options it takes beyond epsilon
BUILDERS: dict[str, tuple[str, ...]] = {
    "exponential": ("prior",),
    "weighted_exponential": ("prior", "weights"),
    "truncated_exponential": ("prior",),
    "tight_constraints": ("prior",),
    "madlib": (),
    "optimal": ("prior", "gap", "seconds", "objective"),
    "spanner": ("prior", "gap", "seconds", "stretch"),
    "constopt": ("prior", "nearest", "objective"),
    "decomposed": (
        *("prior", "gap", "seconds", "blocks", "partition", "neighbours"),
        *("start", "executor", "checkpoint", "resume"),
    ),
}
FROM_SPACES = ("exponential", "weighted_exponential", "truncated_exponential", "tight_constraints", "madlib")
SHOW_PROGRESS = ("optimal", "spanner", "decomposed")
METRICS: dict[str, Callable[[], Metric]] = {
    "l1": lambda: metricdp.Lp(1),
    "l2": lambda: metricdp.Lp(2),
    "linf": lambda: metricdp.Lp(math.inf),
    "haversine": metricdp.Haversine,
    "angular": metricdp.Angular,
    "hyperbolic": metricdp.Hyperbolic,
    "hamming": metricdp.Hamming,
    "levenshtein": metricdp.Levenshtein,
}


def metric_named(name: str) -> Metric:
    """Return the metric a name stands for."""
    found = METRICS.get(name.strip().lower())
    if found is None:
        raise InvalidInput(f"unknown metric {name!r}: use one of {', '.join(METRICS)}.")
    return found()


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


def space_from(points: str, metric: str | None) -> FiniteSpace:
    """Return the space of the points in a file; latitude and longitude are measured along the Earth."""
    from metricdp.cli.reading import read_points

    found = read_points(points)
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
    """Return Laplace noise at the epsilon asked for, or at the one that keeps a wish with the slack of its lattice."""
    dimension = None if isinstance(metric, metricdp.Haversine) else 2 if columns is None else len(columns)

    def noise(epsilon: float) -> Mechanism:
        return metricdp.laplace(metric, epsilon, dimension=dimension)

    return noise(level.epsilon(lambda epsilon: noise(epsilon).guarantee.slack))


@dataclass(frozen=True)
class Options:
    """What only some builders take; None where it was not asked for.

    Attributes:
        prior: A CSV file with a header and one number a point: how likely each is.
        gap: How far the loss may be from the proven optimum, as a share; for optimal, spanner and decomposed.
        seconds: When to stop searching; for optimal, spanner and decomposed.
        objective: expected (the default of optimal) or worst (that of constopt); for optimal and constopt.
        stretch: How much longer paths may be than the distance; for spanner.
        nearest: How many nearest reports are free; for constopt.
        weights: A CSV file with a header and one positive number a point; for weighted_exponential.
        blocks: Into how many blocks the points are cut; for decomposed, like all that follows.
        partition: How they are cut: balanced, distances, records, neighbours or spectral.
        neighbours: The distance up to which pairs are constrained directly, such as 2km; its detours are charged.
        start: Where it begins: engine or kernels.
        executor: Who solves the blocks: threads, processes, ray, or ray:address.
        checkpoint: A file for the state of a long run.
        resume: Go on from the checkpoint, where there is one.
    """

    prior: str | None = None
    gap: float | None = None
    seconds: float | None = None
    objective: Objective | None = None
    stretch: float | None = None
    nearest: int | None = None
    weights: str | None = None
    blocks: int | None = None
    partition: str | None = None
    neighbours: str | None = None
    start: str | None = None
    executor: str | None = None
    checkpoint: str | None = None
    resume: bool = False

    def given(self) -> dict[str, Any]:
        """Return what was asked for."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None and value is not False}


NOTHING_ASKED = Options()


def options_of(builder: str) -> tuple[str, ...]:
    """Return the options that a builder takes."""
    name = builder.strip().replace("-", "_")
    if name not in BUILDERS:
        raise InvalidInput(f"unknown builder {builder!r}: use one of {', '.join(BUILDERS)}.")
    return BUILDERS[name]


def built(
    builder: str, space: FiniteSpace, epsilon: float, *, options: Options, progress: Progress | None = None
) -> Mechanism:
    """Build a mechanism by the name of its builder; an option that is not its own is refused."""
    name, takes = builder.strip().replace("-", "_"), options_of(builder)
    wanted = options.given()
    for option in wanted:
        if option not in takes:
            owners = ", ".join(other for other, its in BUILDERS.items() if option in its)
            raise InvalidInput(f"--{option} is not an option of {name}: leave it away, or use --builder {owners}.")
    if wanted.get("executor") == "threads":
        del wanted["executor"]  # the builder's own choice
    if "neighbours" in wanted:
        wanted["neighbours"] = parse_distance(wanted["neighbours"], space.unit)
    for file in {"prior", "weights"} & set(wanted):
        wanted[file] = numbers_from(wanted[file])
    make: Any = getattr(metricdp, name)
    if name in FROM_SPACES:
        made: Mechanism = make(space, epsilon, **wanted)
        return made
    problem = Problem(space, epsilon, prior=wanted.pop("prior", None))
    if name in SHOW_PROGRESS and progress is not None:
        wanted["progress"] = closing(progress, wanted.get("gap", 1e-3))
    made = make(problem, **wanted)
    return made


def closing(progress: Progress, gap: float) -> Callable[[float, float, float, int], None]:
    """Return a progress of bounds that shows how much of the way from the first gap to the asked one is done."""
    first: list[float] = []

    def show(lower: float, upper: float, seconds: float, steps: int) -> None:
        if not (math.isfinite(lower) and math.isfinite(upper) and upper > 0.0):
            return
        left = max((upper - lower) / upper, gap)
        first.append(max(left, 1.0001 * gap))
        progress(min(1.0, max(0.0, 1.0 - math.log(left / gap) / math.log(first[0] / gap))))

    return show


def studies() -> list[str]:
    """Return the names of the studies there are."""
    package = importlib.import_module("metricdp.experiments")
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg)


def study(name: str) -> Any:
    """Return the module of a study."""
    if name not in studies():
        raise InvalidInput(f"unknown study {name!r}. There are: {', '.join(studies())}.")
    return importlib.import_module(f"metricdp.experiments.{name}.study")
