"""From words on the command line to metrics, spaces, priors and mechanisms."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import metricdp
from metricdp.arrays import Floats
from metricdp.errors import Infeasible, InvalidInput
from metricdp.mechanisms import MatrixMechanism, Mechanism
from metricdp.metrics import Metric
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.units import HOW_TO_WRITE, parse_epsilon, parse_protection

Progress = Callable[[float], None]
CLOSED_FORMS = ("exponential", "truncated_exponential", "tight_constraints")
BUILDERS = (*CLOSED_FORMS, "optimal", "madlib")
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


def epsilon_from(epsilon: str | None, protect: str | None, unit: str) -> float:
    """Return epsilon from `--epsilon` or `--protect`."""
    if (epsilon is None) == (protect is None):
        how = HOW_TO_WRITE if unit else "Write --epsilon 1.0, or --protect 2x@0.5 for a factor of two at distance 0.5."
        raise InvalidInput(f"say how much may leak, with either --epsilon or --protect. {how}")
    return parse_epsilon(epsilon, unit) if epsilon is not None else parse_protection(str(protect), unit)


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
    from metricdp.tables.reading import read_points

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


def prior_from(path: str | None) -> Floats | None:
    """Return the prior in a file."""
    from metricdp.tables.reading import read_numbers

    return None if path is None else read_numbers(path)


def seeded(seed: int | None) -> np.random.Generator | None:
    """Return a generator for simulations, where a seed was asked for."""
    return None if seed is None else np.random.default_rng(seed)


def mechanism_from(
    path: str | None, epsilon: str | None, protect: str | None, metric: str, columns: Sequence[str] | None
) -> Mechanism:
    """Return the mechanism of a file, or Laplace noise at the epsilon that was asked for."""
    if path is not None:
        if epsilon is not None or protect is not None:
            raise InvalidInput("a mechanism file brings its own epsilon: leave --epsilon and --protect away.")
        from metricdp.artifacts import load

        return load(path)
    chosen = metric_named(metric)
    level = epsilon_from(epsilon, protect, chosen.unit)
    if isinstance(chosen, metricdp.Haversine):
        return metricdp.laplace(chosen, level)
    return metricdp.laplace(chosen, level, dimension=2 if columns is None else len(columns))


def built(
    builder: str, space: FiniteSpace, epsilon: float, *, prior: Floats | None, gap: float, progress: Progress | None
) -> Mechanism:
    """Build a mechanism by the name of its builder."""
    name = builder.strip().replace("-", "_")
    make: Any = getattr(metricdp, name, None) if name in BUILDERS else None
    if make is None:
        known = ", ".join(known for known in BUILDERS if hasattr(metricdp, known))
        raise InvalidInput(f"unknown builder {builder!r}: use one of {known}.")
    if name in CLOSED_FORMS:
        mechanism: Mechanism = make(space, epsilon, prior=prior)
    elif name == "madlib":
        mechanism = make(space, epsilon)
    else:
        mechanism = make(Problem(space, epsilon, prior=prior), gap=gap, progress=progress)
    return mechanism


def comparison(
    space: FiniteSpace,
    epsilons: Sequence[float],
    builders: Sequence[str],
    *,
    prior: Floats | None,
    gap: float,
    progress: Progress | None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return one row per builder and epsilon, and a line for each that does not exist there.

    The lower bound is the best one proven at that epsilon.
    """
    if not epsilons or not builders:
        raise InvalidInput("name at least one epsilon and one builder, such as --epsilon 0.5,1,2.")
    rows: list[dict[str, Any]] = []
    missing: list[str] = []
    for done, (epsilon, builder) in enumerate((e, b) for e in epsilons for b in builders):
        try:
            mechanism = built(builder, space, epsilon, prior=prior, gap=gap, progress=None)
        except Infeasible as error:
            missing.append(f"{builder} at epsilon {epsilon:g}: {error}")
            continue
        if not isinstance(mechanism, MatrixMechanism):
            raise InvalidInput(f"{builder} has no matrix and so no exact loss: leave it out of the comparison.")
        certificate = mechanism.certificate
        rows.append(
            {
                "builder": builder,
                "epsilon": epsilon,
                "unit": space.unit,
                "loss": metricdp.expected_loss(mechanism, prior=prior),
                "lower_bound": certificate.lower_bound,
                "certified_epsilon": certificate.epsilon,
                "seconds": certificate.seconds,
            }
        )
        if progress is not None:
            progress((done + 1) / (len(epsilons) * len(builders)))
    if not rows:
        raise Infeasible("; ".join(missing))
    for row in rows:
        proven = max(other["lower_bound"] for other in rows if other["epsilon"] == row["epsilon"])
        row["lower_bound"] = proven
        row["gap"] = (row["loss"] - proven) / row["loss"] if row["loss"] > 0 else 0.0
    return rows, missing


def studies() -> list[str]:
    """Return the names of the studies there are."""
    try:
        package = importlib.import_module("metricdp.experiments")
    except ImportError:
        return []
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return sorted(name for name in names if name != "demo" and not name.startswith("_"))


def study(name: str) -> Any:
    """Return the module of a study."""
    if name != "demo" and name not in studies():
        raise InvalidInput(f"unknown study {name!r}. There are: {', '.join(studies()) or 'none'}.")
    try:
        return importlib.import_module(f"metricdp.experiments.{name}")
    except ModuleNotFoundError as error:
        if error.name not in ("metricdp.experiments", f"metricdp.experiments.{name}"):
            raise
        raise InvalidInput(f"{name!r} is not part of this installation.") from error
