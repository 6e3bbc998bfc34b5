"""Builders by name: what the command lets people choose, and how it calls the builder they chose."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from metricdp.cli.choices import numbers_from
from metricdp.design.builders import BUILDERS, Builder
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.spaces.finite import MOST_DISTANCES
from metricdp.units import parse_distance
from metricdp.wording import Objective

if TYPE_CHECKING:
    from metricdp.solvers import Progress  # scipy is imported where something is solved


@dataclass(frozen=True)
class Options:
    """What only some builders take; None where it was not asked for.

    Attributes:
        prior: A CSV file with a header and one number a point: how likely each is.
        gap: How far the loss may be from the proven optimum, as a share; for optimal, spanner and decomposed. On
            windows (see there) 0.05 unless said, elsewhere 0.001.
        seconds: When to stop searching; for optimal, spanner and decomposed.
        objective: expected (the default of optimal and spanner) or worst (that of constopt); for these three.
        solver: auto, interior, first_order or gpu, among others; on windows first_order or gpu; for optimal.
        window: How far from every report rows are stored, such as 2.2km; for optimal, which solves on windows above
            4,096 points or where one is given, and chooses it so that what lies beyond hardly costs.
        stretch: How much longer paths may be than the distance; for spanner. The published one is --stretch 3
            --objective worst.
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
    solver: str | None = None
    window: str | None = None
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
FINE_GAP, ROUGH_GAP = 1e-3, 0.05  # where nobody asked for a gap: of dense programs, and on windows


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
    if builder.dense and len(space) ** 2 > MOST_DISTANCES:
        raise InvalidInput(
            f"{builder.name} holds a matrix of all pairs, for at most {math.isqrt(MOST_DISTANCES):,} secrets, and here "
            f"are {len(space):,}: use --builder optimal, which solves on windows, or fewer of them (--roads with "
            "--nodes)."
        )
    if wanted.get("executor") == "threads":
        del wanted["executor"]  # the builder's own choice
    for option in {"neighbours", "window"} & set(wanted):
        wanted[option] = distance_in(wanted[option], space.unit, option)
    if "solver" in wanted:
        from metricdp.solvers.choice import named

        wanted["solver"] = named(wanted["solver"])
    for file in {"prior", "weights"} & set(wanted):
        wanted[file] = numbers_from(wanted[file])
    if builder.start == "space":
        return builder.function(space, epsilon, **wanted, **own)
    problem = Problem(space, epsilon, prior=wanted.pop("prior", None))
    if builder.progress:
        wanted["gap"], wanted["progress"] = gap_for(builder, space, options), progress
    return builder.function(problem, **wanted, **own)


def gap_for(builder: Builder, space: FiniteSpace, options: Options) -> float:
    """Return how close to the optimum a search goes: as asked, or as far as its size lets one wait for."""
    if options.gap is not None:
        return options.gap
    return ROUGH_GAP if options.window or on_windows(builder, space) else FINE_GAP


def on_windows(builder: Builder, space: FiniteSpace) -> bool:
    """Tell whether a builder solves on windows by itself, since there are too many secrets for a matrix."""
    from metricdp.design.local import FEW

    return "window" in builder.options and len(space) > FEW


def distance_in(text: str, unit: str, option: str) -> float:
    """Return a distance of the command line; where distances have a unit it has to name one."""
    if unit and not text.strip()[-1:].isalpha():
        raise InvalidInput(f"--{option} {text} has no unit, and distances here are in {unit}: write {text}{unit}.")
    return parse_distance(text, unit)


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
