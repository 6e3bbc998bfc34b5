"""Every builder, declared once: its public name, its name at the command line, its options and one line about it.

`mdp.name` is the builder called `name`; `metricdp design --builder name` runs those with `at_command`. A builder from
outside is declared the same way: `BUILDERS.declare(Builder(...))`, see docs/extend.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from metricdp.arrays import Floats
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.metrics import exponent_of, pairwise
from metricdp.problems import Problem
from metricdp.registry import NameRegistry, load_function
from metricdp.spaces import Box, FiniteSpace

LOSS_OPTIONS = ("prior", "loss", "sensitivity", "error")
SEARCH = (*LOSS_OPTIONS, "gap", "seconds")
HALF: Mapping[str, Callable[[str], Any]] = {"budget": str}  # certified, or half as published
FORM: Mapping[str, Callable[[str], Any]] = {"form": str, **HALF}  # of the mechanism: a matrix or a kernel
NEAREST = 10  # free reports of a builder that takes so many, where there are as many
KINDS = {int: "a whole number", float: "a number"}
OTHERWISE = {
    "protection_sets": "--error 100m --epsilon 1/diameter, with any builder",
    "pive": "--error 100m --epsilon 1/diameter, with any builder: protection sets, its sound form",
    "condensed": "--builder exponential --set budget=half",
    "cldp": "--builder exponential --set budget=half",
    "geomasking": "--builder masked --set inner=0.1 --set outer=0.5",
    "donut": "--builder masked --set inner=0.1 --set outer=0.5",
    "shuffling": "`metricdp audit --people` of a mechanism file, since a crowd is no mechanism",
    "policy": "--policy, with any builder",
    "benders": "--builder decomposed",
}  # families by the words of their papers, where these name no builder


@dataclass(frozen=True)
class Builder:
    """One way to make a mechanism.

    Attributes:
        name: `mdp.name` and `--builder name`.
        make: The function, or `module:function`, imported when it is first used.
        about: One line for people.
        start: What the function takes first: a finite `space` and epsilon, or a `problem` (which holds prior and
            loss); a `metric` and epsilon; a `mechanism`, made by another builder or read from a file; several
            `mechanisms`; a `matrix` on a space; a `box` with reports. `other` for those that `design` cannot call.
        elsewhere: For those: the command that makes them.
        options: Which of the command's own options it takes, by name (see `metricdp design --help`).
        own: Options of its own, each with what turns the text of `--set name=value` into its value.
        objective: Which loss it counts unless told otherwise.
        dense: Whether it holds a matrix of all secrets and reports, however many there are.
        kernel: Whether it is a kernel instead, without that matrix, where there are many secrets and their metric is
            one whose true distance is known.
        progress: Whether it tells its bounds while it searches (`progress=`).
        promise: What the number after the first argument is: the epsilon of a pure guarantee, or the rho of a
            concentrated one.
    """

    name: str
    make: str | Callable[..., Any]
    about: str
    start: Literal["space", "problem", "metric", "mechanism", "mechanisms", "matrix", "box", "other"] = "problem"
    options: tuple[str, ...] = ()
    own: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    objective: Literal["expected", "worst"] = "expected"
    dense: bool = False
    kernel: bool = False
    progress: bool = False
    elsewhere: str = ""
    promise: Literal["pure", "concentrated"] = "pure"

    @property
    def at_command(self) -> bool:
        """Whether `metricdp design` can build it."""
        return self.start != "other"

    @property
    def on_places(self) -> bool:
        """Whether places and an epsilon are enough to build it, as comparisons ask."""
        return self.start in ("space", "problem", "mechanism")

    @property
    def searches(self) -> bool:
        """Whether it goes on until a gap is reached or time is up."""
        return "seconds" in self.options

    @property
    def module(self) -> str:
        """Where the function lives."""
        return self.make.partition(":")[0] if isinstance(self.make, str) else self.make.__module__

    @property
    def function(self) -> Callable[..., Mechanism]:
        """The function itself, imported now."""
        return load_function(self.make)

    def build(
        self,
        space: FiniteSpace,
        epsilon: float,
        *,
        prior: Floats | None = None,
        loss: Any = None,
        outputs: Any = None,
        base: Mechanism | None = None,
        matrix: Floats | None = None,
        box: Box | None = None,
        **options: Any,
    ) -> Mechanism:
        """Return the mechanism that the function makes of finitely many places; `options` are what it takes.

        `outputs` are reports other than the places, for builders of problems; `base` is what is remapped, the
        exponential mechanism unless given; `matrix` is one's own; `box` holds the secrets of those that interpolate.
        """
        counted = {"prior": prior, "loss": loss}
        if "nearest" in self.options:
            options.setdefault("nearest", min(NEAREST, len(space)))
        if self.start == "space":
            taken = {name: value for name, value in counted.items() if name in self.options}
            return self.function(space, epsilon, **taken, **options)
        if self.start == "mechanism":
            usual = base or builder_named("exponential").build(space, epsilon, **counted)
            return self.function(usual, **counted, **options)
        if self.start == "matrix":
            return self.function(space, matrix, epsilon, **counted)
        if self.start == "box":
            inside, loss = self._inside(space, box, prior, loss)
            return self.function(inside, space, epsilon, prior=prior, loss=loss, **options)
        return self.function(Problem(space, epsilon, outputs=outputs, **counted), **options)

    def _inside(
        self, space: FiniteSpace, box: Box | None, prior: Floats | None, loss: Any
    ) -> tuple[FiniteSpace | Box, Any]:
        """Return what holds all secrets, streets or a box, and the losses as the builder takes them."""
        if space.network is not None:
            if box is not None:
                raise InvalidInput("--box belongs to places in the plane: on roads secrets are places along streets.")
            return space, space.distances if loss is None and prior is not None else loss
        if box is None or exponent_of(space.metric) is None:
            raise InvalidInput(
                f"{self.name} needs lengths along axes (--metric l1, l2 or linf) or roads (--roads): with "
                f"{type(space.metric).__name__} there are none. Project latitude and longitude to metres first, and "
                "name the columns x and y."
            )
        outside = np.flatnonzero(~box.legal(space.points))
        if len(outside) and (loss is not None or prior is not None):
            raise InvalidInput(
                f"--box leaves out {len(outside):,} of the places that a prior or a loss is given for, the first in "
                f"row {outside[0]}: make it larger."
            )
        if loss is None and prior is not None:
            loss = pairwise(space.metric, space.points, space.points)
        return box, None if loss is None else (space.points, loss)

    def own_options(self, pairs: tuple[str, ...]) -> dict[str, Any]:
        """Return the options that only this builder has, from texts such as `inner=0.1`."""
        found: dict[str, Any] = {}
        for pair in pairs:
            name, equals, text = pair.partition("=")
            if not equals or name not in self.own:
                its = ", ".join(f"--set {own}=..." for own in self.own) or "no option of this sort"
                raise InvalidInput(f"--set {pair} does not fit {self.name}, which has {its}.")
            reads: Any = self.own[name]
            try:
                found[name] = reads(text)
            except ValueError as error:
                wrong = f"{name} must be {KINDS[reads]}, got {text!r}." if reads in KINDS else str(error)
                raise InvalidInput(f"--set {pair}: {wrong}") from error
        return found


def builder_named(name: str, offered: tuple[str, ...] = ()) -> Builder:
    """Return a builder that can be called by its name: one of those that are `offered`, or of all."""
    if offered and name not in offered:
        raise InvalidInput(f"`builder` must be one of {', '.join(offered)}.")
    if name not in BUILDERS.names and (how := OTHERWISE.get(name.lower().replace("-", "_"))) is not None:
        raise InvalidInput(f"{name} is no builder of its own here: write {how}.")
    found = BUILDERS.named(name)
    if not found.at_command:
        known = ", ".join(builder.name for builder in BUILDERS if builder.at_command)
        how = f"is made by `{found.elsewhere}`" if found.elsewhere else f"is for Python (mdp.{found.name})"
        raise InvalidInput(f"{found.name} {how}; `metricdp design` builds {known}.")
    return found


def _own(name: str, module: str, about: str, *rest: Any, **more: Any) -> Builder:
    """Return a builder of the module that has a function of its name."""
    return Builder(name, f"metricdp.design.{module}:{name}", about, *rest, **more)


BUILDERS: NameRegistry[Builder] = NameRegistry("builder", [
    _own("laplace", "laplace", "Laplace noise on the Earth, in the plane or in any dimension, for unit vectors or in "
         "hyperbolic space, released on a lattice", "metric", ("dimension",)),
    _own("gaussian", "gaussian", "Gaussian noise on the Earth, in the plane or in any dimension; its guarantee is "
         "concentrated (rho per squared distance), approximate and not pure", "metric", ("dimension",),
         own={"rho": str, "delta": float, "pitch": float}, promise="concentrated"),
    _own("von_mises_fisher", "laplace", "noise for unit vectors that is private in their l_2 distance", "metric",
         ("dimension",)),
    _own("exponential", "exponential", "the exponential mechanism with the largest inner budget that keeps the "
         "guarantee, proven", "space", LOSS_OPTIONS, own=FORM, dense=True, kernel=True),
    _own("weighted_exponential", "exponential", "the same with a weight for every report", "space",
         (*LOSS_OPTIONS, "weights"), own=FORM, dense=True, kernel=True),
    _own("truncated_exponential", "exponential", "the exponential mechanism of distances that are cut off far away",
         "space", LOSS_OPTIONS, own=FORM, dense=True, kernel=True),
    _own("masked", "exponential", "a geographic mask, a disk or a ring around the secret, with tails that keep the "
         "guarantee", "space", (*LOSS_OPTIONS, "weights"), own={"inner": float, "outer": float, **HALF}, dense=True),
    _own("tight_constraints", "exponential", "every pair uses its ratio up, where such a mechanism exists", "space",
         LOSS_OPTIONS, dense=True),
    _own("remapped", "post_processing", "a mechanism whose reports are replaced by the best guess after seeing them",
         "mechanism", ("base", *LOSS_OPTIONS), dense=True),
    _own("madlib", "laplace", "noise on the vector of a word, then the nearest word", "space"),
    _own("optimal", "optimal", "the least loss for these reports, with a proven gap", "problem", (*SEARCH, "objective",
         "solver", "window", "reports"), progress=True),
    _own("dictionary", "optimal", "the best mixture of simple columns, in seconds", "problem",
         (*LOSS_OPTIONS, "reports"), dense=True),
    _own("hierarchical", "hierarchical", "several steps down a tree of places, whose budgets add up", "problem",
         LOSS_OPTIONS, own={"branching": int, "growth": float}, dense=True),
    _own("spanner", "spanner", "the optimum over the edges of a sparse graph, its detours charged", "problem",
         (*SEARCH, "objective", "stretch", "reports"), dense=True, progress=True),
    _own("constopt", "constopt", "an optimum whose far entries follow one kernel per report; it counts the worst loss "
         "unless told otherwise", "problem", (*LOSS_OPTIONS, "seconds", "nearest", "objective"), objective="worst",
         dense=True),
    _own("decomposed", "decomposed", "the optimum by blocks that are solved apart, in threads, processes or on Ray, "
         "with checkpoints", "problem", (*SEARCH, "blocks", "partition", "neighbours", "start", "executor",
         "checkpoint", "resume"), dense=True, progress=True),
    _own("interpolated", "interpolation.box", "private at every point of a box, from tables at the corners of a grid",
         "box", (*SEARCH, "anchors", "rule", "split", "budget", "box"), progress=True),
    _own("contextual", "contextual", "a mechanism that knows where somebody came from", "other",
         elsewhere="metricdp trajectories --mechanism"),
    _own("product", "product", "several mechanisms on separate parts of one secret", "mechanisms", ("parts",)),
    _own("from_matrix", "given", "one's own matrix: audited, then a mechanism like any other", "matrix",
         ("matrix", *LOSS_OPTIONS), dense=True),
    _own("quantised", "quantised", "a table in whole multiples of 1 / 2**bits, certified as such", "other",
         elsewhere="metricdp export --storage quantised"),
])  # fmt: skip
