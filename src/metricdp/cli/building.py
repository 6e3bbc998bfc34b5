"""Builders by name: what the command lets people choose, and how it calls the builder they chose."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metricdp.arrays import Floats
from metricdp.cli import choices, guarantees, starts
from metricdp.cli.choices import ConcentratedLevel, Level, Places, Where
from metricdp.cli.options import NOTHING_ASKED, Options
from metricdp.cli.stakes import BY_DISTANCE, Cost, hidden_in_sets, loss_from, numbers_for, prior_from, scaled_by
from metricdp.design.builders import BUILDERS, Builder
from metricdp.errors import InvalidInput, check_extra
from metricdp.mechanisms import Mechanism
from metricdp.metrics import METRICS
from metricdp.metrics.balls import is_real
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace
from metricdp.spaces.finite import MOST_DISTANCES
from metricdp.units import DIAMETER

if TYPE_CHECKING:
    from metricdp.solvers import Progress  # scipy is imported where something is solved


FINE_GAP, ROUGH_GAP = 1e-3, 0.05  # where nobody asked for a gap: of dense programs, and on windows
# options that say more about another
BESIDE = {"prior_column": "prior", "prior_within": "prior", "speed": "loss"}
BESIDE |= {"categories": "sensitivity", "reach": "sensitivity"}
LEAST = {"stretch": 1.0, "nearest": 1, "blocks": 1, "dimension": 1}
NEAREST = 10
MOST_TABLED = 500  # words up to which a table of all pairs is kept: devices read it
POSITIVE = ("gap", "seconds", "speed")


LEVELS = ("rho", "delta")  # say how much may leak, and are no options of the noise


OTHERWISE = {
    "protection_sets": "--error 100m --epsilon 1/diameter, with any builder",
    "pive": "--error 100m --epsilon 1/diameter, with any builder: protection sets, its sound form",
    "condensed": "--builder exponential --set budget=half",
    "cldp": "--builder exponential --set budget=half",
    "geomasking": "--builder masked --set inner=0.1 --set outer=0.5",
    "donut": "--builder masked --set inner=0.1 --set outer=0.5",
    "shuffling": "`metricdp shuffle` of a mechanism file, since a crowd is no mechanism",
    "policy": "--policy, with any builder",
    "benders": "--builder decomposed",
}  # families by the words of their papers, where these name no builder
KINDS = {int: "a whole number", float: "a number"}


def builder_named(name: str) -> Builder:
    """Return the declaration of a builder that the command can call."""
    if name not in BUILDERS.names and (how := OTHERWISE.get(name.lower().replace("-", "_"))) is not None:
        raise InvalidInput(f"{name} is no builder of its own here: write {how}.")
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
    def snap(self) -> float:
        """How far positions are put on the middles of the cells of a map; zero where secrets are no such cells."""
        places, options = self.places, self.options
        if places is None or self.builder.start == "box":
            return 0.0
        if options.error is not None or options.sensitivity is not None or not guarantees.snaps(places.space):
            return 0.0
        return choices.cell_radius(places.where, places.space)

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
            asked = choices.concentrated_level(_own(builder, options.set), protect, metric.unit)
            return Order(builder, options, 0.0, metric=metric, rho=asked.rho), asked
        level = choices.level_from(epsilon, protect, metric.unit)
        return Order(builder, options, level.epsilon(), metric=metric), level
    places = where.places()
    if len(places.space) < 2:
        raise InvalidInput("a mechanism needs at least two places to choose between, and here is one.")
    level = choices.level_from(epsilon, protect, places.space.unit if options.error is None else DIAMETER)
    order = Order(builder, options, 1.0, places)
    moved = places.space.charge(order.snap)  # positions are put on cells first: a wish counts what that adds
    order = replace(order, epsilon=level.epsilon(lambda epsilon: epsilon * moved))
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
    wanted = _own(builder, options.set) | _arguments(order)
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
    asked = options.reports if outputs is None else outputs
    return builder.function(Problem(space, order.epsilon, outputs=asked, **stakes), **wanted)


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
    if options.error is not None:
        if places.before is not None:
            raise InvalidInput(
                "--error makes protection sets and --elastic counts levels: a promise is in one of them."
            )
        if order.parts or order.builder.start == "box" or options.sensitivity is not None:
            raise InvalidInput(
                "--error makes protection sets of finitely many places, not of a file, a box or a scale of one's own."
            )
        hidden, cost = hidden_in_sets(options.error, places, cost, epsilon=order.epsilon, prior=prior)
        return replace(order, prior=prior, cost=cost, places=hidden)
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
    for name in ("prior", "sensitivity", "error", *BESIDE, "loss", "gap", "base", "parts", "matrix", "set", "reports"):
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
    _own(builder, wanted.pop("set", ()))
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
    if needed := METRICS.find_facet("extra", order.places.space.metric):
        check_extra(*needed)


def on_windows(builder: Builder, space: FiniteSpace) -> bool:
    """Tell whether a builder solves on windows by itself, since there are too many secrets for a matrix."""
    from metricdp.design.local import FEW

    return "window" in builder.options and len(space) > FEW


def _own(builder: Builder, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that only this builder has, from `--set name=value`."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or name not in builder.own:
            its = ", ".join(f"--set {own}=..." for own in builder.own) or "no option of this sort"
            raise InvalidInput(f"--set {pair} does not fit {builder.name}, which has {its}.")
        reads: Any = builder.own[name]
        try:
            found[name] = reads(text)
        except ValueError as error:
            wrong = f"{name} must be {KINDS[reads]}, got {text!r}." if reads in KINDS else str(error)
            raise InvalidInput(f"--set {pair}: {wrong}") from error
    return found
