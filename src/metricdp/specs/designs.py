"""A mechanism by names: a builder, its options and what it starts from, read and checked before any work."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats
from metricdp.auditing import position_guarantee
from metricdp.design import BUILDERS, Builder, ConcentratedLevel, PrivacyLevel, builder_named
from metricdp.design.privacy_levels import NO_EPSILON
from metricdp.errors import InvalidInput, check_extra
from metricdp.mechanisms import AnyGuarantee, Mechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.metrics import METRICS, exponent_of, tree_of
from metricdp.metrics.balls import is_real
from metricdp.problems import BY_DISTANCE, LossSpec
from metricdp.rendering import plural
from metricdp.spaces import Box, FiniteSpace, require_space
from metricdp.spaces.finite import MOST_DISTANCES
from metricdp.specs.metrics import read_metric
from metricdp.specs.options import NO_OPTIONS, BuilderOptions, PlaceSpec
from metricdp.specs.places import Places, read_places
from metricdp.tables.matrices import read_matrix
from metricdp.units import DIAMETER, parse_distance, parse_numbers

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
class DesignSpec:
    """What is to be built, read and checked.

    Attributes:
        builder: The builder.
        options: Its options.
        epsilon: What it promises.
        places: The places it starts from, where it starts from places.
        parts: The mechanisms it starts from.
        metric: The metric of noise.
        prior: How likely every place is.
        cost: What a report costs.
        rho: Instead of an epsilon, of a concentrated promise.
        level: The wish that whatever is built has to keep.
    """

    builder: Builder
    options: BuilderOptions
    epsilon: float
    places: Places | None = None
    parts: tuple[Mechanism, ...] = ()
    metric: Any = None
    prior: Floats | None = None
    cost: LossSpec = BY_DISTANCE
    rho: float | None = None
    level: PrivacyLevel | ConcentratedLevel | None = None

    @property
    def notes(self) -> list[str]:
        """What was done without being asked for, a sentence each."""
        return [] if self.places is None else self.places.notes

    @property
    def space(self) -> FiniteSpace:
        """The places, for builders that start from places."""
        assert self.places is not None
        return self.places.space

    @property
    def unit(self) -> str:
        """The unit of distances."""
        if self.places is not None:
            return self.space.unit
        return str(self.parts[0].guarantee.unit if self.parts else self.metric.unit)

    @property
    def words(self) -> str:
        """What it is built on."""
        if self.places is None:
            return f"on {plural(len(self.parts), 'mechanism file')}" if self.parts else "for secrets anywhere"
        if self.parts:
            return f"on {len(self.space):,} places of {Path(str(self.options.base)).name}"
        if self.builder.start != "box":
            return f"on {self.places.words}"
        inside = "all places along streets" if self.space.network is not None else "all of a box"
        return f"for {inside}, reporting {self.places.words}"

    @property
    def snap(self) -> float:
        """How far positions are put on the middles of the cells of a map; zero where secrets are no such cells."""
        changed = self.options.error is not None or self.options.sensitivity is not None
        if self.places is None or self.builder.start == "box" or changed or not can_snap(self.space):
            return 0.0
        return self.places.cell

    @property
    def gap(self) -> float:
        """How close to the optimum a search goes: as asked, or as far as its size lets one wait for."""
        if self.options.gap is not None:
            return self.options.gap
        wide = self.places is not None and solves_on_windows(self.builder, self.space)
        refined = self.builder.start == "box" and self.options.anchors in (None, "refine")
        return ROUGH_GAP if self.options.window or wide or refined else FINE_GAP

    def check_level(self, guarantee: AnyGuarantee, *, short: bool = False) -> list[str]:
        """Return the sentence that compares a guarantee with the wish, if there was one; raise if it is broken.

        Positions that are put on places first have the wider guarantee.
        """
        if self.level is None:
            return []
        stated = position_guarantee(guarantee, self.space, snap=self.snap) if self.snap else guarantee
        return self.level.check(stated, short=short)

    def build(self, *, progress: Progress | None = None, outputs: FiniteSpace | None = None) -> Mechanism:
        """Call the builder; `outputs` are reports other than the secrets, for builders of problems."""
        builder, options = self.builder, self.options
        wanted = builder.own_options(options.set) | _plain_arguments(self)
        if builder.progress:
            wanted |= {"gap": self.gap, "progress": progress}
        if builder.start == "metric":
            rate = self.epsilon if self.rho is None else self.rho
            return builder.function(self.metric, rate, **{name: wanted[name] for name in wanted if name not in LEVELS})
        if builder.start == "mechanisms":
            return builder.function(*self.parts)
        space = self.space
        words = builder.kernel and space.is_text and is_real(space.metric)
        if builder.start == "space" and words and len(space) > MOST_TABLED:
            wanted.setdefault("form", "kernel")  # much smaller than a table of all pairs
        if builder.start == "problem":
            wanted["outputs"] = options.reports if outputs is None else outputs
        if builder.start == "mechanism":
            wanted["base"] = _build_base(self)
        if builder.start == "matrix":
            wanted["matrix"] = read_matrix(str(options.matrix), rows=len(space))
        if builder.start == "box":
            wanted |= _box_arguments(self, wanted.get("split"))
        return builder.build(space, self.epsilon, prior=self.prior, loss=self.cost.loss, **wanted)


def build(
    builder: str,
    where: PlaceSpec | FiniteSpace,
    epsilon: float | str | None = None,
    *,
    protect: str | None = None,
    prior: Floats | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Mechanism:
    """Build a mechanism by names, as `metricdp design` does.

        build("optimal", PlaceSpec(points="cells.csv", metric="l2"), 1.0, gap=0.01)
        build("exponential", PlaceSpec(roads="rome", nodes=400), "10/km", loss="squared")

    Args:
        builder: The name of a builder.
        where: Where secrets are, or a space.
        epsilon: How much may leak: a number in the unit of distances, or a text such as 10/km.
        protect: Instead of epsilon, a wish such as 2x@200m.
        prior: How likely every place is, instead of a table.
        progress: What hears the bounds of a search.
        options: Those of `BuilderOptions`.
    """
    return read_design(builder, where, BuilderOptions(**options), epsilon=epsilon, protect=protect, prior=prior).build(
        progress=progress
    )


def read_design(
    name: str,
    where: PlaceSpec | FiniteSpace,
    options: BuilderOptions = NO_OPTIONS,
    *,
    epsilon: float | str | None = None,
    protect: str | None = None,
    prior: Floats | None = None,
) -> DesignSpec:
    """Read what a builder starts from; all that can be refused is refused here, before any work."""
    builder = builder_named(name)
    check_options(builder, options)
    if isinstance(where, PlaceSpec):
        if builder.start == "mechanisms" or (builder.start == "mechanism" and _is_file(options.base)):
            return _read_parts(builder, where, options, epsilon or protect)
        if builder.start == "metric":
            return _read_noise(builder, where, options, epsilon, protect)
        places = read_places(where)
    else:
        if not builder.on_places:
            raise InvalidInput(f"{builder.name} is not built from places and an epsilon alone; use `metricdp design`.")
        places = Places(where)
    try:
        if len(places.space) < 2:
            raise InvalidInput("a mechanism needs at least two places to choose between, and here is one.")
        level = PrivacyLevel.parse(epsilon, protect, places.space.unit if options.error is None else DIAMETER)
        spec = DesignSpec(builder, options, 1.0, places, prior=prior, level=level)
        moved = places.space.charge(spec.snap)  # positions are put on cells first: a wish counts what that adds
        spec = replace(spec, epsilon=level.epsilon(lambda epsilon: epsilon * moved))
        _check_size(spec)
        _check_extras(spec)
        return _read_prior_and_loss(spec)
    except InvalidInput as error:  # what was done to the places may explain it
        for note in places.notes:
            error.add_note(note)
        raise


def _read_parts(builder: Builder, where: PlaceSpec, options: BuilderOptions, level: object) -> DesignSpec:
    """Return what starts from mechanism files, which bring places and epsilon; each is audited as it is read."""
    from metricdp.artifacts import load

    if given := [*_other_options(where), *([] if level is None else ["epsilon"])]:
        raise InvalidInput(f"{builder.name} takes places and epsilon from its mechanism files: remove --{given[0]}.")
    from_file = builder.start == "mechanism"
    paths = [str(options.base)] if from_file else str(options.parts or "").split(",")
    names = [path.strip() for path in paths if path.strip()]
    parts = tuple(load(name) for name in names)
    if from_file and as_table(parts[0]) is None:
        raise InvalidInput(f"{names[0]!r} must hold a table of probabilities to be {builder.name}, and holds none.")
    places = Places(require_space(parts[0].inputs, FiniteSpace, "the secrets")) if from_file else None
    return _read_prior_and_loss(DesignSpec(builder, options, parts[0].guarantee.epsilon, places, parts))


def _read_noise(
    builder: Builder, where: PlaceSpec, options: BuilderOptions, epsilon: float | str | None, protect: str | None
) -> DesignSpec:
    """Return what starts from a metric: noise needs no places."""
    if given := _other_options(where, "metric"):
        raise InvalidInput(
            f"{builder.name} is noise for secrets anywhere and needs no places: remove --{given[0]}, or choose a "
            "builder for places, such as optimal."
        )
    metric = read_metric(where.metric or "haversine")
    if builder.promise == "concentrated":
        if epsilon is not None:
            raise InvalidInput(NO_EPSILON)
        asked = ConcentratedLevel.parse(builder.own_options(options.set), protect, metric.unit)
        return DesignSpec(builder, options, 0.0, metric=metric, rho=asked.rho, level=asked)
    level = PrivacyLevel.parse(epsilon, protect, metric.unit)
    return DesignSpec(builder, options, level.epsilon(), metric=metric, level=level)


def loss_of(name: str | None, places: Places, *, speed: float | None = None) -> LossSpec:
    """Return the loss of a name: distance, squared, ground, time (on roads), or a file with a matrix."""
    if speed is not None and name != "time":
        raise InvalidInput("--speed says how fast streets are driven and belongs to --loss time.")
    if name in (None, "distance", "squared", "ground"):
        known: Any = name or "distance"
        return LossSpec.named(known, places.space, before=places.before)
    if name == "time":
        from metricdp.places import travel_time

        spec = places.spec
        if spec is None or spec.roads is None:
            raise InvalidInput("--loss time is the time to drive along streets: it belongs to --roads.")
        metric = travel_time(spec.roads, nodes=spec.nodes, speed_kmh=speed)
        words = "the time to drive from the truth to the report"
        return LossSpec.from_metric(metric, places.space.points, words, "min")
    path = str(name)
    if not Path(path).exists() and not Path(path).suffix:
        near = difflib.get_close_matches(path, LOSSES, 1, 0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"--loss must be {', '.join(LOSSES)} or a file with a matrix, got {path!r}.{hint}")
    return LossSpec(places.table().losses(path), f"what {Path(path).name} says")


def can_snap(places: FiniteSpace) -> bool:
    """Tell whether positions can be put on the nearest of these places by the distances of the promise itself."""
    return not places.is_text and len(places) > 1 and tree_of(places.metric) is not None and places.same_ground


def _is_file(base: str | None) -> bool:
    """Tell whether `--base` names a mechanism file rather than a builder."""
    return base is not None and (Path(base).suffix == ".mdp" or Path(base).exists())


def _other_options(where: PlaceSpec, but: str = "") -> list[str]:
    """Return what was said about places, but for one option."""
    return [one.name for one in fields(where) if one.name != but and getattr(where, one.name) != one.default]


def _build_base(spec: DesignSpec) -> Mechanism:
    """Return the mechanism whose reports are replaced: that of a file, or built at once."""
    if spec.parts:
        return spec.parts[0]
    name = spec.options.base or "exponential"
    base = builder_named(name)
    if base.start not in ("space", "problem") or name == "madlib":
        raise InvalidInput(f"--base must be a builder of tables, such as exponential or dictionary, got {name}.")
    return replace(spec, builder=base, options=NO_OPTIONS).build()


def _box_arguments(spec: DesignSpec, split: str | None) -> dict[str, Any]:
    """Return what a builder takes that is private at every place of a box, or along streets."""
    space, options = spec.space, spec.options
    found: dict[str, Any] = {}
    if split is not None and split not in ("even", "grid"):
        found["split"] = parse_numbers(split, "split", "even, grid or one number per axis, such as 1,2")
    if space.network is not None:
        return found | {"anchors": _parse_pieces(options.anchors), "box": options.box}
    if exponent_of(space.metric) is None:
        return found | {"anchors": None}  # refused by the builder
    grid = None if spec.places is None or spec.places.spec is None else spec.places.spec.grid
    box = _parse_box(options.box or grid, space)
    return found | {"anchors": _parse_cells(options.anchors, box.dimension), "box": box}


def _parse_box(corners: str | None, space: FiniteSpace) -> Box:
    """Return the box of two corners, or the one around all places."""
    if corners is None:
        low, high = space.points.min(axis=0), space.points.max(axis=0)
    else:
        values = np.array(parse_numbers(corners, "box", "the lower and then the upper corner, such as 0,0,10,10"))
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


def _parse_cells(anchors: str | None, dimension: int) -> Any:
    if anchors is None or anchors == "refine":
        return "refine"
    counts = parse_numbers(anchors, "anchors", "refine, or cells along each axis such as 7,7")
    if len(counts) not in (1, dimension) or any(count < 1 or count != int(count) for count in counts):
        raise InvalidInput(f"--anchors must be refine or {dimension} whole numbers of at least 1, got {anchors!r}.")
    return tuple(int(count) for count in counts) * (dimension if len(counts) == 1 else 1)


def _parse_pieces(anchors: str | None) -> int | float:
    if anchors is None:
        return 1
    if anchors.strip()[-1:].isalpha() and anchors != "refine":
        return parse_distance(anchors, "km", option="anchors")
    meaning = "the number of pieces of every street, or their longest length such as 200m"
    counts = [] if anchors == "refine" else parse_numbers(anchors, "anchors", meaning)
    if len(counts) != 1 or counts[0] < 1 or counts[0] != int(counts[0]):
        raise InvalidInput(f"--anchors on roads must be {meaning}, got {anchors!r}.")
    return int(counts[0])


def _read_prior_and_loss(spec: DesignSpec) -> DesignSpec:
    """Read prior and loss, and lay protection sets or scales over the places; the loss stays in distances of before."""
    options, places = spec.options, spec.places
    if places is None:
        return spec
    prior = spec.prior
    if options.prior is not None:
        within = options.prior_within
        reach = None if within is None else parse_distance(within, places.space.ground.unit, option="prior-within")
        prior = places.table().shares(options.prior, column=options.prior_column, within=reach)
    spec = replace(spec, prior=prior, cost=loss_of(options.loss, places, speed=options.speed))
    fixed = bool(spec.parts) or spec.builder.start == "box"
    if options.error is not None:
        if places.before is not None:
            raise InvalidInput(
                "--error makes protection sets and --elastic counts levels: a promise is in one of them."
            )
        if fixed or options.sensitivity is not None:
            raise InvalidInput(
                "--error makes protection sets of finitely many places, not of a file, a box or a scale of one's own."
            )
        return _divide_into_sets(spec, places, options.error)
    if options.sensitivity is not None:
        if fixed:
            raise InvalidInput("--sensitivity scales the distances of finitely many places, not of a file or a box.")
        if places.before is not None:
            raise InvalidInput(
                "--sensitivity scales distances and --elastic counts levels: a promise is in one of them."
            )
        return _scale_regions(spec, places, options.sensitivity)
    return spec


def _with_distances(spec: DesignSpec, places: Places, space: FiniteSpace) -> DesignSpec:
    """Return a spec on other distances between the same places: a loss in distances stays in those of before."""
    cost = spec.cost
    if cost.is_distance:
        cost = replace(cost, loss=LossSpec.named("distance", places.space, before=places.space).loss)
    return replace(spec, cost=cost, places=replace(places, space=space))


def _scale_regions(spec: DesignSpec, places: Places, path: str) -> DesignSpec:
    """Let distances count less in sensitive regions; a note says how many places lie in one."""
    from metricdp.places import scaled

    reach, space = spec.options.reach, places.space
    scale = places.table().scales(path, spec.options.categories)
    inside = int((scale != 1.0).sum())
    places.notes.append(f"{inside:,} of {len(space):,} places lie in regions of their own scale, from {scale.min():g}.")
    longest = None if reach is None else parse_distance(reach, space.unit, option="reach")
    return _with_distances(spec, places, scaled(space, scale, reach=longest))


def _divide_into_sets(spec: DesignSpec, places: Places, error: str) -> DesignSpec:
    """Divide the places into protection sets; a note says what was made."""
    from metricdp.places import protection_sets

    space = places.space
    is_file = Path(error).exists() or Path(error).suffix[1:2].isalpha()
    wanted: Any = places.table("error").numbers(error) if is_file else parse_distance(error, space.unit, option="error")
    sets = protection_sets(space, spec.epsilon, error=wanted, prior=spec.prior)
    least = messages.distance(float(sets.least.min()), space.unit, "down")
    widths = [messages.distance(float(one), space.unit, "up") for one in (sets.diameters.min(), sets.diameters.max())]
    known = "that all places are alike" if spec.prior is None else "the prior"
    places.notes.append(
        f"{len(space):,} places in {plural(len(sets), 'protection set')}, {widths[0]} to {widths[1]} wide. Somebody "
        f"who knows {known} and the set still errs by {least} on average at least, with the best guess "
        "after any report."
    )
    return _with_distances(spec, places, sets.space)


def _plain_arguments(spec: DesignSpec) -> dict[str, Any]:
    """Return the keyword arguments behind the options, other than those that are read before."""
    options = spec.options
    wanted = {name: value for name, value in options.given().items() if name not in READ}
    if wanted.get("executor") == "threads":
        del wanted["executor"]  # the builder's own choice
    for option in {"neighbours", "window"} & set(wanted):
        wanted[option] = parse_distance(wanted[option], spec.unit, option=option)
    if options.solver is not None:
        from metricdp.solvers.choice import named

        wanted["solver"] = named(options.solver)
    if options.weights is not None and spec.places is not None:
        wanted["weights"] = spec.places.table("weights").numbers(options.weights)
    return wanted


def check_options(builder: Builder, options: BuilderOptions) -> None:
    """Refuse options that a builder does not take, and values that none can take."""
    wanted = options.given()
    builder.own_options(wanted.pop("set", ()))
    for option, value in wanted.items():
        shown, belongs = option.replace("_", "-"), BESIDE.get(option, option)
        if belongs not in builder.options:
            owners = ", ".join(other.name for other in BUILDERS if belongs in other.options)
            searches = ", which computes its answer without a search" if option in ("seconds", "gap") else ""
            take = "one that searches, " if searches else ""
            raise InvalidInput(
                f"--{shown} is not an option of {builder.name}{searches}: remove it, or use {take}--builder {owners}."
            )
        if belongs != option and belongs not in wanted:
            raise InvalidInput(f"--{shown} says more about --{belongs}, which is not given.")
        if option in POSITIVE and not 0 < value < math.inf:
            raise InvalidInput(f"--{shown} must be a number above 0, got {value:g}.")
        if option in LEAST and not LEAST[option] <= value < math.inf:
            raise InvalidInput(f"--{shown} must be at least {LEAST[option]:g}, got {value:g}.")
    for option, start, files in (("parts", "mechanisms", "place.mdp,hour.mdp"), ("matrix", "matrix", "matrix.csv")):
        if builder.start == start and option not in wanted:
            raise InvalidInput(f"{builder.name} needs --{option}, such as --{option} {files}.")


def _check_size(spec: DesignSpec) -> None:
    space = spec.space
    kernel = spec.builder.kernel and is_real(space.metric)
    if spec.builder.dense and not kernel and len(space) ** 2 > MOST_DISTANCES:
        raise InvalidInput(
            f"{spec.builder.name} holds a matrix of all pairs, for at most {math.isqrt(MOST_DISTANCES):,} secrets, "
            f"and here are {len(space):,}: use --builder optimal, which solves on windows, or fewer of them (--roads "
            "with --nodes, --grid with a larger --cell)."
        )


def _check_extras(spec: DesignSpec) -> None:
    """Notice a package that is missing before the work that needs it, rather than after."""
    options, space = spec.options, spec.space
    solver, executor = options.solver or "auto", (options.executor or "").partition(":")[0]
    windows = options.window is not None or solves_on_windows(spec.builder, space)
    if (windows and solver != "gpu") or solver == "first_order":
        check_extra("numba", "fast")
    if solver == "gpu":
        check_extra("cupy", "gpu")
    if executor == "ray":
        check_extra("ray", "ray")
    if "partition" in spec.builder.options:
        check_extra("pymetis" if options.partition in (None, "balanced") else "sklearn", "decompose")
    if needed := METRICS.find_facet("extra", space.metric):
        check_extra(*needed)


def solves_on_windows(builder: Builder, space: FiniteSpace) -> bool:
    """Tell whether a builder solves on windows by itself, since there are too many secrets for a matrix."""
    from metricdp.design.local import FEW

    return "window" in builder.options and len(space) > FEW
