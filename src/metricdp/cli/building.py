"""Builders by name: what the command lets people choose, and how it calls the builder they chose."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from metricdp.cli.choices import Progress, numbers_from
from metricdp.design.builders import BUILDERS, Builder
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.units import parse_distance
from metricdp.wording import Objective


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
        set: name=value for an option that only this builder has, such as one of a plugin; may be repeated.
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
    set: tuple[str, ...] = ()

    def given(self) -> dict[str, Any]:
        """Return what was asked for."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value not in (None, False, ())}


NOTHING_ASKED = Options()


def builder_named(name: str) -> Builder:
    """Return the declaration of a builder that the command can call."""
    found = BUILDERS.named(name)
    if not found.at_command:
        offered = ", ".join(builder.name for builder in BUILDERS if builder.at_command)
        raise InvalidInput(f"{found.name} is for Python (mdp.{found.name}); the command builds {offered}.")
    return found


def built(
    name: str, space: FiniteSpace, epsilon: float, *, options: Options, progress: Progress | None = None
) -> Mechanism:
    """Build a mechanism by the name of its builder; an option that is not its own is refused."""
    builder, wanted = builder_named(name), options.given()
    own = _own(builder, wanted.pop("set", ()))
    for option in wanted:
        if option not in builder.options:
            owners = ", ".join(other.name for other in BUILDERS if option in other.options)
            raise InvalidInput(
                f"--{option} is not an option of {builder.name}: leave it away, or use --builder {owners}."
            )
    if wanted.get("executor") == "threads":
        del wanted["executor"]  # the builder's own choice
    if "neighbours" in wanted:
        wanted["neighbours"] = parse_distance(wanted["neighbours"], space.unit)
    for file in {"prior", "weights"} & set(wanted):
        wanted[file] = numbers_from(wanted[file])
    if builder.start == "space":
        return builder.function(space, epsilon, **wanted, **own)
    problem = Problem(space, epsilon, prior=wanted.pop("prior", None))
    if builder.progress and progress is not None:
        wanted["progress"] = closing(progress, wanted.get("gap", 1e-3))
    return builder.function(problem, **wanted, **own)


def _own(builder: Builder, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that only this builder has, from `--set name=value`."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in builder.own:
            its = ", ".join(f"--set {own}=..." for own in builder.own) or "no option of this sort"
            raise InvalidInput(f"--set {pair} does not fit {builder.name}, which has {its}.")
        try:
            found[name] = builder.own[name](text)
        except ValueError as error:
            raise InvalidInput(f"--set {pair}: {error}") from error
    return found


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
