"""One mechanism of a comparison: built for the same guarantee as all others, its loss found, and what bounds it."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import metricdp.design.laplace  # noqa: F401 - it registers which noise there is
from metricdp import deadlines
from metricdp.arrays import Floats, Integers
from metricdp.design.builders import BUILDERS, Builder
from metricdp.design.comparison.measures import Draw, Figure, Measure, exact_figure, simulated_figure
from metricdp.design.exponential import exponential
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.mechanisms.kinds.matrix import as_table
from metricdp.metrics import METRICS, Lp, exponent_of, graph_of, norm_of, points_are, protected_distance
from metricdp.problems import Problem
from metricdp.spaces import Box, FiniteSpace, require_space

MOST_ANCHORS = 3  # cells along an axis of an interpolated mechanism: a comparison is no place for a long search
OwnMechanism = Mechanism | Callable[[Problem], Mechanism]  # not declared: a mechanism, or a function that makes one
STARTS = ("space", "problem", "mechanism", "metric", "box")
NOWHERE = "noise needs coordinates, on the Earth, in a plane, on a sphere or in hyperbolic space"
UNIT = 1e-3  # how far from one the length of a unit vector may be, as noise on the sphere takes it
AT_ONCE = 2**20  # distances
PAIRED = 4  # vectors of a bag up to which all pairings are looked at


@dataclass(frozen=True, kw_only=True)
class Trial(Figure):
    """What one mechanism costs at one epsilon: plain values, so that a comparison can be kept and continued.

    `bound` is what its certificate proves for every mechanism of this comparison, None where it speaks about another
    objective, loss, prior or guarantee. `noise_epsilon` is the epsilon it was set to where its own distances differ.
    """

    builder: str
    epsilon: float
    measure: str
    objective: str
    bound: float | None = None
    certified: float | None = None
    noise_epsilon: float | None = None
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, eq=False)
class ComparisonSpec:
    """What all builders of a comparison are asked: where, under which prior, how close to the optimum, how long."""

    space: FiniteSpace
    prior: Floats | None = None
    gap: float = 1e-3
    seconds: float | None = None
    draws: int = 20_000

    def mismatch(self, builder: Builder) -> str:
        """Say why a builder does not fit these places, before anything is built; nothing where it does."""
        if builder.start not in STARTS:
            made = {"mechanisms": "it joins several mechanisms", "matrix": "it takes a matrix of one's own"}
            elsewhere = f"it is made elsewhere: `{builder.elsewhere}`" if builder.elsewhere else "it is for Python"
            return made.get(builder.start, elsewhere)
        if builder.start == "metric":
            return noise_mismatch(builder, self.space)
        if builder.start == "box":
            flat = exponent_of(self.space.metric) is not None and not self.space.is_text and self.space.dimension <= 2
            return "" if flat else "it needs places in the plane or on a line, under l1, l2 or linf"
        if builder.name == "madlib" and not self.space.is_text:
            return "for places it is laplace, which stands beside it"
        if builder.name == "weighted_exponential":
            return "without a weight for every report it is exponential, which stands beside it"
        if builder.dense and len(self.space) > _max_distances():
            return f"it holds a matrix of all pairs, for at most {_max_distances():,} places"
        return ""

    def trial(self, builder: Builder, epsilon: float, measure: Measure) -> Trial:
        """Build one mechanism and find its loss."""
        started = time.perf_counter()
        if builder.start == "metric":
            return self._noise(builder, epsilon, measure)
        with deadlines.time_limit(self.seconds):  # also for builders that take no seconds themselves
            mechanism = self.build(builder, epsilon, measure)
        if not isinstance(mechanism, Mechanism):
            raise InvalidInput(f"it must return a mechanism, and returned {type(mechanism).__name__}.")
        if not self._holds(mechanism):
            raise InvalidInput("it takes or reports other places than those that are compared.")
        guarantee, certificate = mechanism.guarantee, mechanism.certificate
        if certificate.interrupted:
            raise KeyboardInterrupt
        other = guarantee.radius != self.protected_distance or guarantee.slack > 0 or guarantee.epsilon > epsilon
        if other or guarantee.basis == "none":
            raise InvalidInput(f"it keeps another guarantee: {guarantee}.")
        figure = self._figure(mechanism, measure)
        return Trial(
            **self._entry(builder, epsilon, measure, figure, certificate.note),
            bound=certificate.lower_bound if self.bounds_all(mechanism, builder, epsilon, measure) else None,
            certified=certificate.epsilon,
            seconds=certificate.seconds or time.perf_counter() - started,
        )

    def _entry(self, builder: Builder, epsilon: float, measure: Measure, figure: Figure, note: str) -> dict[str, Any]:
        """Return what was asked and what came out, with a note on how it was measured."""
        draws = "" if figure.exact else f"measured on {figure.draws:,} draws"
        asked = {"builder": builder.name, "epsilon": epsilon, "measure": measure.name, "objective": measure.objective}
        return asked | asdict(figure) | {"note": "; ".join(part for part in (note, draws) if part)}

    def build(self, builder: Builder, epsilon: float, measure: Measure) -> Mechanism:
        """Build for this loss, prior and objective, as far as the builder takes them."""
        takes = builder.options
        wanted: dict[str, Any] = {}
        for name, value in (("gap", self.gap), ("seconds", self.seconds), ("objective", measure.objective)):
            if name in takes and value is not None:
                wanted[name] = value
        counted: dict[str, Any] = {"prior": self.prior, "loss": measure.loss}
        if builder.start == "mechanism":
            counted |= {"base": exponential(self.space, epsilon, prior=self.prior), "loss": measure.costs(self.space)}
        if builder.start == "box":
            points = np.asarray(self.space.points, dtype=np.float64)
            if not np.all(points.min(axis=0) < points.max(axis=0)):
                raise InvalidInput("the places lie on a line along an axis, and a box needs an inside.")
            box = Box(points.min(axis=0), points.max(axis=0), self.space.metric)
            counted |= {"box": box, "loss": measure.costs(self.space)}
            wanted = {"anchors": (MOST_ANCHORS,) * box.dimension, "seconds": self.seconds}
        return builder.build(self.space, epsilon, **counted, **wanted)

    def bounds_all(self, mechanism: Mechanism, builder: Builder, epsilon: float, measure: Measure) -> bool:
        """Tell whether the bound of a certificate speaks about every mechanism of this comparison.

        It must count the same loss over the same prior, and hold for a guarantee that is no stronger than the one
        asked for: the same pairs, no slack below it, and an epsilon that is not smaller. The bound of a box is about
        its points everywhere, of which places are only some. Nobody knows what a mechanism of one's own counted.
        """
        guarantee, takes = mechanism.guarantee, builder.options
        same_loss = measure.loss is None or "loss" in takes
        same_prior = measure.objective == "worst" or self.prior is None or "prior" in takes
        return (
            builder in tuple(BUILDERS)
            and builder.start != "box"
            and mechanism.certificate.objective == measure.objective
            and same_loss
            and same_prior
            and guarantee.radius == self.protected_distance
            and guarantee.epsilon >= epsilon
        )

    def _holds(self, mechanism: Mechanism) -> bool:
        """Tell whether a mechanism takes and reports the places that are compared; one on a box takes all of it."""
        sides = [mechanism.outputs] if mechanism.inputs.limits is not None else [mechanism.inputs, mechanism.outputs]
        places = [require_space(side.finite, FiniteSpace, "places") for side in sides if side.finite is not None]
        return len(places) == len(sides) and all(_are_same(one, self.space) for one in places)

    @cached_property
    def protected_distance(self) -> float | None:
        """How far apart secrets are protected: all of them, or those of one part of a policy."""
        return protected_distance(self.space.metric, self.space.points)

    def _figure(self, mechanism: Mechanism, measure: Measure) -> Figure:
        table = as_table(mechanism)
        if table is not None:
            distribution = table.matrix / table.matrix.sum(axis=1, keepdims=True)
            return exact_figure(table.inputs, distribution, measure, self.prior)
        if mechanism.inputs.limits is not None:
            box: Any = mechanism
            return exact_figure(self.space, box.probabilities(self.space.points), measure, self.prior)
        if mechanism.inputs.size is None:
            raise InvalidInput(f"what {type(mechanism).__name__} costs on these places is not known.")

        def draw(secrets: Integers, generator: np.random.Generator) -> Integers:
            return np.asarray(mechanism.sample(secrets, rng=generator))

        return simulated_figure(self.space, draw, measure, self.prior, self.draws)

    def _noise(self, builder: Builder, epsilon: float, measure: Measure) -> Trial:
        """Measure noise on draws."""
        started, space = time.perf_counter(), self.space
        if measure.loss is None and self.protected_distance is not None:
            raise InvalidInput(
                "noise may end in another part of the policy, to which no hops lead: compare --loss ground."
            )
        draw, ratio = noise_of(builder, space, epsilon)
        figure = simulated_figure(space, draw, measure, self.prior, self.draws)
        return Trial(
            **self._entry(builder, epsilon, measure, figure, "noise, then the nearest place"),
            certified=epsilon,
            noise_epsilon=None if ratio == 1.0 else epsilon / ratio,
            seconds=time.perf_counter() - started,
        )


def select_builders(
    question: ComparisonSpec, asked: Sequence[str | Builder | OwnMechanism] | None
) -> tuple[list[Builder], dict[str, str]]:
    """Return the builders of a comparison and why others are left out: those that were asked for, or all that fit."""
    if isinstance(asked, str):
        raise InvalidInput(f"`builders` must be a list, such as [{asked!r}].")
    wanted = list(BUILDERS) if asked is None else _requested_builders(question.space, asked)
    reasons = {builder.name: question.mismatch(builder) for builder in wanted}
    if asked is not None and "madlib" in reasons and reasons["madlib"].startswith("for places"):
        reasons["madlib"] = ""  # asked for by its name
    fit = [builder for builder in wanted if not reasons[builder.name]]
    return fit, {name: reason for name, reason in reasons.items() if reason}


def _requested_builders(space: FiniteSpace, asked: Sequence[str | Builder | OwnMechanism]) -> list[Builder]:
    """Return what was asked for as builders, each once; what is given under a name that is taken gets a number."""
    found: dict[str, Builder] = {}
    for one in asked:
        builder = BUILDERS.named(one) if isinstance(one, str) else _own_builder(space, one)
        if found.get(builder.name, builder) != builder:
            number = next(n for n in range(2, len(asked) + 2) if f"{builder.name}_{n}" not in found)
            builder = replace(builder, name=f"{builder.name}_{number}")
        found[builder.name] = builder
    return list(found.values())


def _own_builder(space: FiniteSpace, one: Builder | OwnMechanism) -> Builder:
    """Return the builder that stands for a mechanism of one's own, or for a function of a problem."""
    if isinstance(one, Builder):
        return one
    if isinstance(one, Mechanism):
        if not ComparisonSpec(space)._holds(one):
            raise InvalidInput("a mechanism of your own must take and report the places that are compared.")
        return Builder("own", lambda problem: one, "a mechanism of one's own")
    if callable(one):
        declared = next((builder for builder in BUILDERS if builder.make is one or builder.function is one), None)
        name = str(getattr(one, "__name__", "own"))
        return declared or Builder(name if name.isidentifier() else "own", one, "a function of one's own")
    raise InvalidInput(
        "`builders` must hold names of builders, mechanisms on these places, or functions of a problem that return a "
        f"mechanism, got {type(one).__name__}."
    )


def _are_same(side: FiniteSpace, space: FiniteSpace) -> bool:
    """Tell whether two spaces have the same points, and the same distances between as many of them as a row holds."""
    if side is space:
        return True
    if side.points.shape != space.points.shape or not np.array_equal(side.points, space.points):
        return False
    first, backwards = space.points, space.points[::-1]
    return side.unit == space.unit and np.array_equal(side.metric(first, backwards), space.metric(first, backwards))


def _max_distances() -> int:
    from metricdp.design.local import FEW

    return FEW


def noise_mismatch(builder: Builder, space: FiniteSpace) -> str:
    """Say why a noise does not fit these secrets, before anything is built; nothing where it does."""
    if builder.promise == "concentrated":
        return "its guarantee is concentrated, which is approximate: at no epsilon is it the same guarantee"
    if space.is_text:
        return "noise on words is madlib"
    if builder.name == "von_mises_fisher":
        units = points_are(space.metric, "directions") or exponent_of(space.metric) == 2.0
        if units and space.dimension >= 3 and space.coordinates is space.points and _are_unit(space.points):
            return ""
        return "it is for unit vectors of three numbers or more, under l2 or their angle"
    return "" if METRICS.has("laplace", space.ground) else NOWHERE


def noise_of(builder: Builder, space: FiniteSpace, epsilon: float) -> tuple[Draw, float]:
    """Return noise on the coordinates, then the nearest secret, which is post-processing, and a ratio.

    It guarantees epsilon along the ground (von Mises-Fisher: in l_2, which is never above the angle). Where that is not
    the metric (roads), ground distances are at most `ratio` times those of the metric, so noise of epsilon / ratio
    keeps the guarantee asked for. What is drawn under Frechet is an outline: the nearest secret is that of the nearest
    outline.
    """
    ratio = ground_ratio(space)
    under = Lp(2) if builder.name == "von_mises_fisher" else space.ground
    options: dict[str, Any] = {}
    if "dimension" in builder.options:
        options["dimension"] = None if points_are(space.ground, "degrees") else space.width
    noise: Any = builder.function(under, epsilon / ratio, **options)

    def draw(secrets: Integers, generator: np.random.Generator) -> Integers:
        reports = np.asarray(noise.sample(space.decode(secrets), rng=generator))
        if points_are(space.ground, "curves"):
            return _nearest_codes(lambda rows: _gaps(rows, noise.outline(space.points)), reports, len(space))
        if points_are(space.ground, "directions"):
            return np.asarray((reports @ space.points.T).argmax(axis=1))  # the least angle
        if norm_of(space.ground) is not None or points_are(space.ground, "degrees"):
            return space.nearest(reports)[0]
        return _nearest_codes(lambda rows: _secret_distances(space, rows), reports, len(space))

    return draw, ratio


def ground_ratio(space: FiniteSpace) -> float:
    """Return the most that two places lie apart on the ground for a distance of one in the metric.

    At least 1, unless the two are counted in different units (hops).
    """
    if space.same_ground:
        return 1.0
    least = 1.0 if space.unit == space.ground.unit else 0.0
    if (graph := graph_of(space.metric)) is not None:  # along every path the ground distances of its edges add up
        codes = np.full(graph.nodes, -1)
        codes[space.points[:, 0].astype(int)] = np.arange(len(space))
        ends = codes[graph.edges]
        if np.any(ends < 0):
            raise InvalidInput(
                "the streets between these places lead outside: noise cannot be set to the same guarantee."
            )
        away = space.ground(space.coordinates[ends[:, 0]], space.coordinates[ends[:, 1]])
        return max(least, float((away / graph.lengths).max()) * (1.0 + 1e-9))
    apart = space.distances
    away = np.asarray(space.ground(space.coordinates[:, None], space.coordinates[None]))
    off = ~np.eye(len(space), dtype=bool)
    return max(least, float((away[off] / apart[off]).max()) * (1.0 + 1e-9))


def _are_unit(vectors: Floats) -> bool:
    return bool(np.all(np.abs(np.linalg.norm(vectors, axis=1) - 1.0) <= UNIT))


def _gaps(rows: Floats, others: Floats) -> Floats:
    return np.asarray(np.abs(rows[:, None] - others[None]).max(axis=2))


def _secret_distances(space: FiniteSpace, rows: Floats) -> Floats:
    """Return the distances of rows to all secrets; those of small bags by all pairings at once."""
    metric: Any = space.ground
    if not points_are(metric, "bags") or space.width // metric.dimension > PAIRED:
        return np.asarray(metric(rows[:, None], space.points[None]))
    count = space.width // metric.dimension
    first, second = (bags.reshape(len(bags), count, metric.dimension) for bags in (rows, space.points))
    apart = np.asarray(metric.ground(first[:, None, :, None], second[None, :, None]))
    pairings = (apart[:, :, np.arange(count), order].sum(axis=2) for order in itertools.permutations(range(count)))
    return np.asarray(functools.reduce(np.minimum, pairings))


def _nearest_codes(distances: Any, rows: Floats, size: int) -> Integers:
    """Return the code of the nearest secret of every row, some rows at a time."""
    step = max(1, AT_ONCE // size)
    found = [np.asarray(distances(rows[at : at + step])).argmin(axis=1) for at in range(0, len(rows), step)]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
