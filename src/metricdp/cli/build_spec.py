"""What is to be built: a builder by its name, its options and what it starts from, read and checked before any work."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp import messages, spaces
from metricdp.arrays import Floats
from metricdp.cli import guarantees
from metricdp.cli.options import NO_BUILDER_OPTIONS, BuilderOptions, distance_in, mechanism_in, metric_of, numbers
from metricdp.cli.places import PlaceOptions, PlaceSet
from metricdp.cli.terminal import note
from metricdp.design import BUILDERS, Builder, ConcentratedLevel, PrivacyLevel, builder_named
from metricdp.design.privacy_levels import NO_EPSILON
from metricdp.errors import InvalidInput, check_extra
from metricdp.mechanisms import Mechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.metrics import METRICS, exponent_of
from metricdp.metrics.balls import is_real
from metricdp.problems import BY_DISTANCE, LossSpec
from metricdp.spaces import Box, FiniteSpace
from metricdp.spaces.finite import MOST_DISTANCES
from metricdp.units import DIAMETER

if TYPE_CHECKING:
    from metricdp.solvers import Progress  # scipy is imported where something is solved

FINE_GAP, ROUGH_GAP = 1e-3, 0.05  # where nobody asked for a gap: of dense programs, and on windows
# options that say more about another
BESIDE = {"prior_column": "prior", "prior_within": "prior", "speed": "loss"}
BESIDE |= {"categories": "sensitivity", "reach": "sensitivity"}
# options that are read before the builder is called, or that it is given in another way
READ = ("prior", "sensitivity", "error", *BESIDE, "loss", "gap", "base", "parts", "matrix", "set", "reports", "box")
LEAST = {"stretch": 1.0, "nearest": 1, "blocks": 1, "dimension": 1}
MOST_TABLED = 500  # words up to which a table of all pairs is kept: devices read it
POSITIVE = ("gap", "seconds", "speed")
LEVELS = ("rho", "delta")  # say how much may leak, and are no options of the noise
LOSSES = ("distance", "squared", "ground", "time")


@dataclass(frozen=True, eq=False)
class BuildSpec:
    """What is to be built, read and checked: a builder, its options, and what it starts from."""

    builder: Builder
    options: BuilderOptions
    epsilon: float
    places: PlaceSet | None = None
    parts: tuple[Mechanism, ...] = ()
    metric: Any = None
    prior: Floats | None = None
    cost: LossSpec = BY_DISTANCE
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
        found = (self.places.where or PlaceOptions()).describe(self.places.space)
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
        if options.error is not None or options.sensitivity is not None or not guarantees.can_snap(places.space):
            return 0.0
        return places.cell

    @property
    def gap(self) -> float:
        """How close to the optimum a search goes: as asked, or as far as its size lets one wait for."""
        if self.options.gap is not None:
            return self.options.gap
        wide = self.places is not None and solves_on_windows(self.builder, self.places.space)
        refined = self.builder.start == "box" and self.options.anchors in (None, "refine")
        return ROUGH_GAP if self.options.window or wide or refined else FINE_GAP


def read_spec(
    name: str, where: PlaceOptions, options: BuilderOptions, *, epsilon: str | None, protect: str | None
) -> tuple[BuildSpec, PrivacyLevel | ConcentratedLevel | None]:
    """Read what a builder starts from; all that can be refused is refused here, before any work."""
    builder = builder_named(name)
    check_options(builder, options)
    from_file = builder.start == "mechanism" and _is_file(options.base)
    if builder.start == "mechanisms" or from_file:
        _refuse_other(builder, where, epsilon or protect)
        parts = _mechanisms(builder, [str(options.base)] if from_file else str(options.parts or "").split(","))
        places = PlaceSet(spaces.require_space(parts[0].inputs, FiniteSpace, "the secrets")) if from_file else None
        return _read_prior_and_loss(BuildSpec(builder, options, parts[0].guarantee.epsilon, places, parts)), None
    if builder.start == "metric":
        metric = _noise_metric(builder, where)
        if builder.promise == "concentrated":
            if epsilon is not None:
                raise InvalidInput(NO_EPSILON)
            asked = ConcentratedLevel.parse(builder.own_options(options.set), protect, metric.unit)
            return BuildSpec(builder, options, 0.0, metric=metric, rho=asked.rho), asked
        level = PrivacyLevel.parse(epsilon, protect, metric.unit)
        return BuildSpec(builder, options, level.epsilon(), metric=metric), level
    found = where.places()
    if len(found.space) < 2:
        raise InvalidInput("a mechanism needs at least two places to choose between, and here is one.")
    level = PrivacyLevel.parse(epsilon, protect, found.space.unit if options.error is None else DIAMETER)
    spec = BuildSpec(builder, options, 1.0, found)
    moved = found.space.charge(spec.snap)  # positions are put on cells first: a wish counts what that adds
    spec = replace(spec, epsilon=level.epsilon(lambda epsilon: epsilon * moved))
    _check_size(spec)
    check_extras(spec)
    return _read_prior_and_loss(spec), level


def build_at(name: str, space: FiniteSpace, epsilon: float) -> Mechanism:
    """Build a mechanism on finitely many places by the name of its builder, with its usual options."""
    builder = builder_named(name)
    if not builder.on_places:
        raise InvalidInput(f"{builder.name} is not built from places and an epsilon alone; use `metricdp design`.")
    spec = BuildSpec(builder, NO_BUILDER_OPTIONS, epsilon, PlaceSet(space))
    check_options(builder, NO_BUILDER_OPTIONS)
    _check_size(spec)
    return made(spec)


def made(spec: BuildSpec, *, progress: Progress | None = None, outputs: FiniteSpace | None = None) -> Mechanism:
    """Call the builder; `outputs` are reports other than the secrets, for builders of problems."""
    builder, options = spec.builder, spec.options
    wanted = builder.own_options(options.set) | _arguments(spec)
    if builder.progress:
        wanted |= {"gap": spec.gap, "progress": progress}
    if builder.start == "metric":
        rate = spec.epsilon if spec.rho is None else spec.rho
        return builder.function(spec.metric, rate, **{name: wanted[name] for name in wanted if name not in LEVELS})
    if builder.start == "mechanisms":
        return builder.function(*spec.parts)
    assert spec.places is not None
    space = spec.places.space
    words = builder.kernel and space.is_text and is_real(space.metric)
    if builder.start == "space" and words and len(space) > MOST_TABLED:
        wanted.setdefault("form", "kernel")  # much smaller than a table of all pairs
    if builder.start == "problem":
        wanted["outputs"] = options.reports if outputs is None else outputs
    if builder.start == "mechanism":
        wanted["base"] = _base(spec)
    if builder.start == "matrix":
        from metricdp.tables.matrices import read_matrix

        wanted["matrix"] = read_matrix(str(options.matrix), rows=len(space))
    if builder.start == "box":
        wanted |= _continuous_arguments(spec.places, options, wanted)
    return builder.build(space, spec.epsilon, prior=spec.prior, loss=spec.cost.loss, **wanted)


def loss_of(name: str | None, places: PlaceSet, *, speed: float | None = None) -> LossSpec:
    """Return the loss that `--loss` names: distance, squared, ground, time (on roads), or a file with a matrix."""
    if speed is not None and name != "time":
        raise InvalidInput("--speed says how fast streets are driven and belongs to --loss time.")
    if name in (None, "distance", "squared", "ground"):
        known: Any = name or "distance"
        return LossSpec.named(known, places.space, before=places.before)
    if name == "time":
        from metricdp.places import travel_time

        where = places.where
        if where is None or where.roads is None:
            raise InvalidInput("--loss time is the time to drive along streets: it belongs to --roads.")
        metric = travel_time(where.roads, nodes=where.nodes, speed_kmh=speed)
        words = "the time to drive from the truth to the report"
        return LossSpec.from_metric(metric, places.space.points, words, "min")
    path = str(name)
    if not Path(path).exists() and not Path(path).suffix:
        near = difflib.get_close_matches(path, LOSSES, 1, 0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"--loss must be {', '.join(LOSSES)} or a file with a matrix, got {path!r}.{hint}")
    return LossSpec(places.from_table(lambda table: table.losses(path)), f"what {Path(path).name} says")


def prior_of(path: str, places: PlaceSet, *, column: str | None = None, within: float | None = None) -> Floats:
    """Return how likely every place is, from a table of counts or shares."""
    shares: Floats = places.from_table(lambda table: table.shares(path, column=column, within=within))
    return shares


def _numbers_of(path: str, places: PlaceSet, option: str) -> Floats:
    """Return one number a place from a file with one column, in the order of the places."""
    found: Floats = places.from_table(lambda table: table.numbers(path), option)
    return found


def _is_file(base: str | None) -> bool:
    """Tell whether `--base` names a mechanism file rather than a builder."""
    return base is not None and (Path(base).suffix == ".mdp" or Path(base).exists())


def _other_options(where: PlaceOptions, but: str = "") -> list[str]:
    """Return what was said about places, but for one option."""
    return [one.name for one in fields(where) if one.name != but and getattr(where, one.name) != one.default]


def _refuse_other(builder: Builder, where: PlaceOptions, level: str | None) -> None:
    """Refuse places and an epsilon where mechanism files bring both."""
    if given := [*_other_options(where), *([] if level is None else ["epsilon"])]:
        raise InvalidInput(
            f"{builder.name} takes places and epsilon from its mechanism files: leave --{given[0]} away."
        )


def _mechanisms(builder: Builder, paths: Sequence[str]) -> tuple[Mechanism, ...]:
    """Return the mechanisms of files, each audited again as it is read."""
    names = [path.strip() for path in paths if path.strip()]
    found = tuple(mechanism_in(name, trusted=None) for name in names)
    if builder.start == "mechanism" and as_table(found[0]) is None:
        raise InvalidInput(f"{names[0]!r} must hold a table of probabilities to be {builder.name}, and holds none.")
    return found


def _noise_metric(builder: Builder, where: PlaceOptions) -> Any:
    """Return the metric of noise, which needs no places."""
    if given := _other_options(where, "metric"):
        raise InvalidInput(
            f"{builder.name} is noise for secrets anywhere and needs no places: leave --{given[0]} away, or choose a "
            "builder for places, such as optimal."
        )
    return metric_of(where.metric or "haversine")


def _base(spec: BuildSpec) -> Mechanism:
    """Return the mechanism whose reports are replaced: that of a file, or built at once."""
    if spec.parts:
        return spec.parts[0]
    name = spec.options.base or "exponential"
    base = builder_named(name)
    if base.start not in ("space", "problem") or name == "madlib":
        raise InvalidInput(f"--base must be a builder of tables, such as exponential or dictionary, got {name}.")
    return made(replace(spec, builder=base, options=NO_BUILDER_OPTIONS))


def _continuous_arguments(places: PlaceSet, options: BuilderOptions, wanted: dict[str, Any]) -> dict[str, Any]:
    """Return what a builder takes that is private at every place of a box, or along streets."""
    split = wanted.get("split")
    if split is not None and split not in ("even", "grid"):
        wanted["split"] = numbers(split, "split", "even, grid or one number per axis, such as 1,2")
    space = places.space
    if space.network is not None:
        box: Any = options.box
        return {"anchors": _pieces(options.anchors), "box": box}
    if exponent_of(space.metric) is None:
        return {"anchors": None}  # refused by the builder
    box = _box(options.box, places)
    return {"anchors": _cells(options.anchors, box.dimension), "box": box}


def _box(corners: str | None, places: PlaceSet) -> Box:
    """Return the box that was named, the map of a grid, or the one around all places."""
    space = places.space
    if corners is None and places.where is not None and places.where.grid is not None:
        corners = places.where.grid
    if corners is None:
        low, high = space.points.min(axis=0), space.points.max(axis=0)
    else:
        values = np.array(numbers(corners, "box", "the lower and then the upper corner, such as 0,0,10,10"))
        if values.size != 2 * space.dimension:
            raise InvalidInput(
                f"--box must be {2 * space.dimension} numbers, two corners of the places, got {corners!r}."
            )
        low, high = values.reshape(2, -1)
    if not np.all(low < high):
        raise InvalidInput(
            "the box must have a lower and an upper corner that differ along every axis; name it with --box."
        )
    return Box(low, high, space.metric)


def _cells(anchors: str | None, dimension: int) -> Any:
    if anchors is None or anchors == "refine":
        return "refine"
    counts = numbers(anchors, "anchors", "refine, or cells along each axis such as 7,7")
    if len(counts) not in (1, dimension) or any(count < 1 or count != int(count) for count in counts):
        raise InvalidInput(f"--anchors must be refine or {dimension} whole numbers of at least 1, got {anchors!r}.")
    return tuple(int(count) for count in counts) * (dimension if len(counts) == 1 else 1)


def _pieces(anchors: str | None) -> int | float:
    if anchors is None:
        return 1
    if anchors.strip()[-1:].isalpha() and anchors != "refine":
        return distance_in(anchors, "km", "anchors")
    meaning = "pieces of every street, or their longest length"
    counts = [] if anchors == "refine" else numbers(anchors, "anchors", meaning)
    if len(counts) != 1 or counts[0] < 1 or counts[0] != int(counts[0]):
        raise InvalidInput(
            f"--anchors on roads must be the number of pieces of every street, or their longest length such as 200m, "
            f"got {anchors!r}."
        )
    return int(counts[0])


def _read_prior_and_loss(spec: BuildSpec) -> BuildSpec:
    """Read prior and loss, and lay protection sets or scales over the places; the loss stays in distances of before."""
    options, places = spec.options, spec.places
    if places is None:
        return spec
    prior = None
    if options.prior is not None:
        within = options.prior_within
        reach = None if within is None else distance_in(within, places.space.ground.unit, "prior-within")
        prior = prior_of(options.prior, places, column=options.prior_column, within=reach)
    spec = replace(spec, prior=prior, cost=loss_of(options.loss, places, speed=options.speed))
    if options.error is not None:
        if places.before is not None:
            raise InvalidInput(
                "--error makes protection sets and --elastic counts levels: a promise is in one of them."
            )
        if spec.parts or spec.builder.start == "box" or options.sensitivity is not None:
            raise InvalidInput(
                "--error makes protection sets of finitely many places, not of a file, a box or a scale of one's own."
            )
        return _divide_into_sets(spec, places, options.error)
    if options.sensitivity is not None:
        if spec.parts or spec.builder.start == "box":
            raise InvalidInput("--sensitivity scales the distances of finitely many places, not of a file or a box.")
        if places.before is not None:
            raise InvalidInput(
                "--sensitivity scales distances and --elastic counts levels: a promise is in one of them."
            )
        return _scale_regions(spec, places, options.sensitivity)
    return spec


def _apply_distances(spec: BuildSpec, space: FiniteSpace) -> BuildSpec:
    """Return an order on other distances between the same places: a loss in distances stays in those of before."""
    assert spec.places is not None
    cost, before = spec.cost, spec.places.space
    if cost.is_distance:
        cost = replace(cost, loss=LossSpec.named("distance", before, before=before).loss)
    return replace(spec, cost=cost, places=replace(spec.places, space=space))


def _scale_regions(spec: BuildSpec, places: PlaceSet, path: str) -> BuildSpec:
    """Let distances count less in sensitive regions; how many places lie in one is said."""
    from metricdp.places import scaled

    categories, reach, space = spec.options.categories, spec.options.reach, places.space
    scale = places.from_table(lambda table: table.scales(path, categories))
    inside = int((scale != 1.0).sum())
    note(f"{inside:,} of {len(space):,} places lie in regions of their own scale, from {scale.min():g}.")
    longest = None if reach is None else distance_in(reach, space.unit, "reach")
    return _apply_distances(spec, scaled(space, scale, reach=longest))


def _divide_into_sets(spec: BuildSpec, places: PlaceSet, error: str) -> BuildSpec:
    """Divide the places into protection sets; what was made is said."""
    from metricdp.places import protection_sets

    space = places.space
    is_file = Path(error).exists() or (Path(error).suffix != "" and Path(error).suffix[1:2].isalpha())
    wanted: Any = _numbers_of(error, places, "error") if is_file else distance_in(error, space.unit, "error")
    sets = protection_sets(space, spec.epsilon, error=wanted, prior=spec.prior)
    least = messages.distance(float(sets.least.min()), space.unit, "down")
    widths = [messages.distance(float(one), space.unit, "up") for one in (sets.diameters.min(), sets.diameters.max())]
    many = "one protection set" if len(sets) == 1 else f"{len(sets):,} protection sets"
    known = "that all places are alike" if spec.prior is None else "the prior"
    note(
        f"{len(space):,} places in {many}, {widths[0]} to {widths[1]} wide. Somebody who knows {known} and the "
        f"set still errs by {least} on average at least, with the best guess after any report."
    )
    return _apply_distances(spec, sets.space)


def _arguments(spec: BuildSpec) -> dict[str, Any]:
    """Return the keyword arguments behind the options, other than those that are read before."""
    options = spec.options
    wanted = {name: value for name, value in options.given().items() if name not in READ}
    if wanted.get("executor") == "threads":
        del wanted["executor"]  # the builder's own choice
    for option in {"neighbours", "window"} & set(wanted):
        wanted[option] = distance_in(wanted[option], spec.unit, option)
    if options.solver is not None:
        from metricdp.solvers.choice import named

        wanted["solver"] = named(options.solver)
    if options.weights is not None and spec.places is not None:
        wanted["weights"] = _numbers_of(options.weights, spec.places, "weights")
    return wanted


def check_options(builder: Builder, options: BuilderOptions) -> None:
    """Refuse options that a builder does not take, and values that none can take."""
    wanted = options.given()
    builder.own_options(wanted.pop("set", ()))
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


def _check_size(spec: BuildSpec) -> None:
    assert spec.places is not None
    space = spec.places.space
    kernel = spec.builder.kernel and is_real(space.metric)
    if spec.builder.dense and not kernel and len(space) ** 2 > MOST_DISTANCES:
        raise InvalidInput(
            f"{spec.builder.name} holds a matrix of all pairs, for at most {math.isqrt(MOST_DISTANCES):,} secrets, "
            f"and here are {len(space):,}: use --builder optimal, which solves on windows, or fewer of them (--roads "
            "with --nodes, --grid with a larger --cell)."
        )


def check_extras(spec: BuildSpec) -> None:
    """Notice a package that is missing before the work that needs it, rather than after."""
    options = spec.options
    solver, executor = options.solver or "auto", (options.executor or "").partition(":")[0]
    assert spec.places is not None
    space = spec.places.space
    windows = options.window is not None or solves_on_windows(spec.builder, space)
    if (windows and solver != "gpu") or solver == "first_order":
        check_extra("numba", "fast")
    if solver == "gpu":
        check_extra("cupy", "gpu")
    if executor == "ray":
        check_extra("ray", "ray")
    if "partition" in spec.builder.options:
        balanced = options.partition in (None, "balanced")
        check_extra(*(("pymetis", "decompose") if balanced else ("sklearn", "decompose")))
    if needed := METRICS.find_facet("extra", space.metric):
        check_extra(*needed)


def solves_on_windows(builder: Builder, space: FiniteSpace) -> bool:
    """Tell whether a builder solves on windows by itself, since there are too many secrets for a matrix."""
    from metricdp.design.local import FEW

    return "window" in builder.options and len(space) > FEW
