"""Builders by name: what the command lets people choose, and how it calls the builder they chose."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metricdp.arrays import Floats
from metricdp.cli import choices, starts
from metricdp.cli.choices import ConcentratedLevel, Level, Places, Where
from metricdp.cli.stakes import BY_DISTANCE, Cost, loss_from, numbers_for, prior_from, scaled_by
from metricdp.design.builders import BUILDERS, Builder
from metricdp.errors import InvalidInput, check_extra
from metricdp.mechanisms import Mechanism
from metricdp.metrics.balls import is_real
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.spaces.finite import MOST_DISTANCES
from metricdp.wording import Objective

if TYPE_CHECKING:
    from metricdp.solvers import Progress  # scipy is imported where something is solved


@dataclass(frozen=True)
class Options:
    """What only some builders take; None where it was not asked for.

    Attributes:
        prior: A table that says how likely every place is: shares or counts, one row a place in their order, or with
            the columns of the places (lat and lon), where rows count for the nearest one. It must be public.
        sensitivity: A table of regions in which less may be told: lat, lon, radius (in km) and scale, or tiles south,
            west, north, east and scale, or one scale a place. With scale 0.2 distances there count a fifth, so that
            epsilon does; the loss stays in the places' own distances. It must be public. Or a scale for every category,
            with --categories.
        categories: With sensitivity by category: the category of every place, column:kind of the points, or a table
            with the column category, one row a place in their order, or with lat and lon, where rows count for the
            nearest place; of several the most sensitive counts.
        reach: With sensitivity on more than 4,096 places without streets: the longest single step between two, such as
            250m; ways of such steps count in between.
        prior_column: Which column of the prior holds the numbers, where there are several.
        prior_within: How far a row of the prior may lie from its place, such as 300m; rows beyond are left out. As far
            as places lie apart unless given.
        loss: What a report costs: distance (the default), squared (its square), ground (the distance on the map, where
            --policy counts hops), time (to drive there, with --roads), or a file with a matrix, one row per place and
            one column per report.
        speed: With --loss time: km/h on streets that do not say how fast they are.
        gap: How far the loss may be from the proven optimum, as a share; for builders that search. On windows and with
            --anchors refine (see there) 0.05 unless said, elsewhere 0.001.
        seconds: When to stop searching: what was found by then is written, with the gap that it reached.
        objective: expected (the default of optimal and spanner) or worst (that of constopt); for these three.
        solver: auto, interior, first_order or gpu, among others; on windows first_order or gpu; for optimal.
        window: How far from every report rows are stored, such as 2.2km; for optimal, which solves on windows above
            4,096 points or where one is given, and chooses it so that what lies beyond hardly costs.
        stretch: How much longer paths may be than the distance; for spanner. The published one is --stretch 3
            --objective worst.
        nearest: How many nearest reports are free; for constopt, 10 unless said.
        weights: A CSV file with a header and one positive number a point; for weighted_exponential.
        base: What is remapped: the name of another builder (exponential unless said), or a mechanism file.
        parts: The mechanism files of a product, with commas between.
        matrix: A file with one's own matrix, one row per place and one column per report; for from_matrix.
        dimension: How many coordinates noise is added to; for laplace on l1, l2, linf, angular and hyperbolic.
        anchors: Cells along each axis, such as 7,7, or refine, which adds some until the gap is reached; on roads
            pieces of every street, or their longest length such as 200m; for interpolated, like the next four.
        rule: exact, direction, log (as published) or relaxed (keeps no promise between anchors).
        split: How axes share the budget: even, grid, or one number per axis; searched unless given.
        budget: half (as published) or certified; for --rule log.
        box: The corners of the box, such as 0,0,10,10; the one around all points unless given.
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
    sensitivity: str | None = None
    categories: str | None = None
    reach: str | None = None
    prior_column: str | None = None
    prior_within: str | None = None
    loss: str | None = None
    speed: float | None = None
    gap: float | None = None
    seconds: float | None = None
    objective: Objective | None = None
    solver: str | None = None
    window: str | None = None
    stretch: float | None = None
    nearest: int | None = None
    weights: str | None = None
    base: str | None = None
    parts: str | None = None
    matrix: str | None = None
    dimension: int | None = None
    anchors: str | None = None
    rule: str | None = None
    split: str | None = None
    budget: str | None = None
    box: choices.Corners | None = None
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
        return {
            name: value for name, value in values.items() if value is not None and value is not False and value != ()
        }


NOTHING_ASKED = Options()
FINE_GAP, ROUGH_GAP = 1e-3, 0.05  # where nobody asked for a gap: of dense programs, and on windows
# options that say more about another
BESIDE = {"prior_column": "prior", "prior_within": "prior", "speed": "loss"}
BESIDE |= {"categories": "sensitivity", "reach": "sensitivity"}
LEAST = {"stretch": 1.0, "nearest": 1, "blocks": 1, "dimension": 1}
NEAREST = 10
MOST_TABLED = 500  # words up to which a table of all pairs is kept: devices read it
POSITIVE = ("gap", "seconds", "speed")


LEVELS = ("rho", "delta")  # say how much may leak, and are no options of the noise


def builder_named(name: str) -> Builder:
    """Return the declaration of a builder that the command can call."""
    found = BUILDERS.named(name)
    if not found.at_command:
        offered = ", ".join(builder.name for builder in BUILDERS if builder.at_command)
        how = f"is made by `{found.elsewhere}`" if found.elsewhere else f"is for Python (mdp.{found.name})"
        raise InvalidInput(f"{found.name} {how}; `metricdp design` builds {offered}.")
    return found


@dataclass(frozen=True, eq=False)
class Order:
    """What is to be built, read and checked: a builder, its options, and what it starts from."""

    builder: Builder
    options: Options
    epsilon: float
    places: Places | None = None
    parts: tuple[Mechanism, ...] = ()
    metric: Any = None
    prior: Floats | None = None
    cost: Cost = BY_DISTANCE
    rho: float | None = None  # instead of an epsilon, of a concentrated promise

    @property
    def unit(self) -> str:
        """The unit of distances."""
        if self.places is not None:
            return self.places.space.unit
        return str(self.parts[0].guarantee.unit if self.parts else self.metric.unit)

    @property
    def words(self) -> str:
        """What it is built on."""
        if self.places is None:
            return f"on {len(self.parts)} mechanism files" if self.parts else "for secrets anywhere"
        if self.parts:
            return f"on {len(self.places.space):,} places of {Path(str(self.options.base)).name}"
        found = (self.places.where or Where()).called(self.places.space)
        if self.builder.start != "box":
            return f"on {found}"
        inside = "all places along streets" if self.places.space.network is not None else "all of a box"
        return f"for {inside}, reporting {found}"

    @property
    def gap(self) -> float:
        """How close to the optimum a search goes: as asked, or as far as its size lets one wait for."""
        if self.options.gap is not None:
            return self.options.gap
        wide = self.places is not None and on_windows(self.builder, self.places.space)
        refined = self.builder.start == "box" and self.options.anchors in (None, "refine")
        return ROUGH_GAP if self.options.window or wide or refined else FINE_GAP


def ordered(
    name: str, where: Where, options: Options, *, epsilon: str | None, protect: str | None
) -> tuple[Order, Level | ConcentratedLevel | None]:
    """Read what a builder starts from; all that can be refused is refused here, before any work."""
    builder = builder_named(name)
    check_options(builder, options)
    from_file = builder.start == "mechanism" and starts.is_file(options.base)
    if builder.start == "mechanisms" or from_file:
        starts.refuse_other(builder, where, epsilon or protect)
        paths = str(options.base) if from_file else str(options.parts or "")
        parts = starts.mechanisms_in(builder, paths.split(",") if not from_file else [paths])
        places = starts.places_of(parts[0]) if from_file else None
        order = Order(builder, options, parts[0].guarantee.epsilon, places, parts)
        return _with_stakes(order), None
    if builder.start == "metric":
        metric = starts.metric_alone(builder, where)
        if builder.promise == "concentrated":
            if epsilon is not None:
                raise InvalidInput(choices.NO_EPSILON)
            asked = choices.concentrated_level(starts.own_options(builder, options.set), protect, metric.unit)
            return Order(builder, options, 0.0, metric=metric, rho=asked.rho), asked
        level = choices.level_from(epsilon, protect, metric.unit)
        return Order(builder, options, level.epsilon(), metric=metric), level
    places = where.places()
    if len(places.space) < 2:
        raise InvalidInput("a mechanism needs at least two places to choose between, and here is one.")
    level = choices.level_from(epsilon, protect, places.space.unit)
    order = Order(builder, options, level.epsilon(), places)
    _check_size(order)
    check_extras(order)
    return _with_stakes(order), level


def built(
    name: str,
    space: FiniteSpace | Places,
    epsilon: float,
    *,
    options: Options = NOTHING_ASKED,
    prior: Floats | None = None,
    progress: Progress | None = None,
) -> Mechanism:
    """Build a mechanism on finitely many places by the name of its builder; an option that is not its own is refused.

    `prior` is one that was read before.
    """
    builder = builder_named(name)
    if not builder.on_places:
        raise InvalidInput(f"{builder.name} is not built from places and an epsilon alone; use `metricdp design`.")
    check_options(builder, options)
    order = Order(builder, options, epsilon, space if isinstance(space, Places) else Places(space))
    _check_size(order)
    order = _with_stakes(order)
    return made(order if prior is None else replace(order, prior=prior), progress=progress)


def made(order: Order, *, progress: Progress | None = None, outputs: FiniteSpace | None = None) -> Mechanism:
    """Call the builder; `outputs` are reports other than the secrets, for builders of problems."""
    builder, options = order.builder, order.options
    wanted = starts.own_options(builder, options.set) | _arguments(order)
    if builder.progress:
        wanted |= {"gap": order.gap, "progress": progress}
    stakes = {"prior": order.prior, "loss": order.cost.loss}
    if builder.start == "metric" and order.rho is not None:
        return builder.function(
            order.metric, order.rho, **{name: wanted[name] for name in wanted if name not in LEVELS}
        )
    if builder.start == "metric":
        return builder.function(order.metric, order.epsilon, **wanted)
    if builder.start == "mechanisms":
        return builder.function(*order.parts)
    assert order.places is not None
    space = order.places.space
    if builder.start == "space":
        if builder.kernel and space.is_text and len(space) > MOST_TABLED and is_real(space.metric):
            wanted.setdefault("form", "kernel")  # words and vectors are much smaller than a table of all pairs
        taken = {name: value for name, value in stakes.items() if name in builder.options}
        return builder.function(space, order.epsilon, **taken, **wanted)
    if builder.start == "matrix":
        return builder.function(space, starts.own_matrix(options.matrix, space), order.epsilon, **stakes)
    if builder.start == "mechanism":
        return builder.function(_base(order), **stakes)
    if builder.start == "box":
        return starts.in_box(order.builder, order.places, order.epsilon, stakes, wanted)
    return builder.function(Problem(space, order.epsilon, outputs=outputs, **stakes), **wanted)


def _base(order: Order) -> Mechanism:
    """Return the mechanism whose reports are replaced: that of a file, or built at once."""
    if order.parts:
        return order.parts[0]
    name = order.options.base or "exponential"
    base = builder_named(name)
    if base.start not in ("space", "problem") or name == "madlib":
        raise InvalidInput(f"--base must be a builder of tables, such as exponential or dictionary, got {name}.")
    return made(replace(order, builder=base, options=NOTHING_ASKED))


def _with_stakes(order: Order) -> Order:
    """Read prior and loss."""
    options, places = order.options, order.places
    if places is None:
        return order
    prior = None
    if options.prior is not None:
        within = options.prior_within
        ground = places.space.ground.unit
        reach = None if within is None else choices.distance_in(within, ground, "prior-within")
        prior = prior_from(options.prior, places, column=options.prior_column, within=reach)
    cost = loss_from(options.loss, places, speed=options.speed)
    if options.sensitivity is not None:
        if order.parts or order.builder.start == "box":
            raise InvalidInput("--sensitivity scales the distances of finitely many places, not of a file or a box.")
        if places.before is not None:
            raise InvalidInput(
                "--sensitivity scales distances and --elastic counts levels: a promise is in one of them."
            )
        scaled, cost = scaled_by(options.sensitivity, places, cost, categories=options.categories, reach=options.reach)
        return replace(order, prior=prior, cost=cost, places=scaled)
    return replace(order, prior=prior, cost=cost)


def _arguments(order: Order) -> dict[str, Any]:
    """Return the keyword arguments behind the options, other than prior, loss and gap."""
    wanted, options = order.options.given(), order.options
    for name in ("prior", "sensitivity", *BESIDE, "loss", "gap", "base", "parts", "matrix", "set"):
        wanted.pop(name, None)
    if wanted.get("executor") == "threads":
        del wanted["executor"]  # the builder's own choice
    for option in {"neighbours", "window"} & set(wanted):
        wanted[option] = choices.distance_in(wanted[option], order.unit, option)
    if options.solver is not None:
        from metricdp.solvers.choice import named

        wanted["solver"] = named(options.solver)
    if "nearest" in order.builder.options and options.nearest is None and order.places is not None:
        wanted["nearest"] = min(NEAREST, len(order.places.space))
    if options.weights is not None and order.places is not None:
        wanted["weights"] = numbers_for(options.weights, order.places, option="weights")
    return wanted


def check_options(builder: Builder, options: Options) -> None:
    """Refuse options that a builder does not take, and values that none can take."""
    wanted = options.given()
    starts.own_options(builder, wanted.pop("set", ()))
    for option, value in wanted.items():
        shown, belongs = option.replace("_", "-"), BESIDE.get(option, option)
        if belongs not in builder.options:
            owners = ", ".join(other.name for other in BUILDERS if belongs in other.options)
            if option in ("seconds", "gap"):
                raise InvalidInput(
                    f"--{shown} is not an option of {builder.name}, which computes its answer without a search: "
                    f"leave it away, or use one that searches, --builder {owners}."
                )
            raise InvalidInput(
                f"--{shown} is not an option of {builder.name}: leave it away, or use --builder {owners}."
            )
        if belongs != option and belongs not in wanted:
            raise InvalidInput(f"--{shown} says more about --{belongs}, which is not given.")
        if option in POSITIVE and not 0 < value < math.inf:
            raise InvalidInput(f"--{shown} must be a number above 0, got {value:g}.")
        if option in LEAST and not LEAST[option] <= value < math.inf:
            raise InvalidInput(f"--{shown} must be at least {LEAST[option]:g}, got {value:g}.")
    for option, start in (("parts", "mechanisms"), ("matrix", "matrix")):
        if builder.start == start and option not in wanted:
            files = "place.mdp,hour.mdp" if option == "parts" else "matrix.csv"
            raise InvalidInput(f"{builder.name} needs --{option}, such as --{option} {files}.")


def _check_size(order: Order) -> None:
    assert order.places is not None
    space = order.places.space
    kernel = order.builder.kernel and is_real(space.metric)
    if order.builder.dense and not kernel and len(space) ** 2 > MOST_DISTANCES:
        raise InvalidInput(
            f"{order.builder.name} holds a matrix of all pairs, for at most {math.isqrt(MOST_DISTANCES):,} secrets, "
            f"and here are {len(space):,}: use --builder optimal, which solves on windows, or fewer of them (--roads "
            "with --nodes, --grid with a larger --cell)."
        )


def check_extras(order: Order) -> None:
    """Notice a package that is missing before the work that needs it, rather than after."""
    options = order.options
    solver, executor = options.solver or "auto", (options.executor or "").partition(":")[0]
    assert order.places is not None
    windows = options.window is not None or on_windows(order.builder, order.places.space)
    if (windows and solver != "gpu") or solver == "first_order":
        check_extra("numba", "fast")
    if solver == "gpu":
        check_extra("cupy", "gpu")
    if executor == "ray":
        check_extra("ray", "ray")
    if order.builder.name == "decomposed":
        balanced = options.partition in (None, "balanced")
        check_extra(*(("pymetis", "decompose") if balanced else ("sklearn", "decompose")))
    if type(order.places.space.metric).__name__ == "Levenshtein":
        check_extra("rapidfuzz", "text")


def on_windows(builder: Builder, space: FiniteSpace) -> bool:
    """Tell whether a builder solves on windows by itself, since there are too many secrets for a matrix."""
    from metricdp.design.local import FEW

    return "window" in builder.options and len(space) > FEW
