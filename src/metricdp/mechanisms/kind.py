"""One record of a mechanism kind: all that the rest of the package asks of it, declared in the kind's own file.

A facet is a function of a mechanism. What is asked for a facet looks it up here (`MECHANISMS.facet`), so nobody else
tells one kind from another; what a kind cannot do is refused with a sentence. A facet that needs an upper package is
registered from there, as auditing does it for what follows from its proofs:

    MECHANISMS.declare(Kind(Staircase, "staircase", "noise in steps, for a number", FIELDS, accuracy=..., bins=...))
    MECHANISMS.register(Staircase, audit=audit_staircase)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from metricdp import constants
from metricdp.arrays import Floats
from metricdp.metrics import Metric
from metricdp.registry import Array, Effort, Facet, Field, Number, Part, Registry, Schema

FINITE = Part("space", ("finite",))
RATE = Number(least=1 / constants.LARGEST_RATE, most=constants.LARGEST_RATE)
NOISE: dict[str, Field] = {"inputs": Part("space", ("unbounded",)), "epsilon": RATE, "pitch": RATE}
RATIOS = Array(sides=1, least=0, most=constants.LARGEST_RATIO)
WEIGHTS = Array("single", sides=1, least=0, most=float(np.finfo(np.float32).max))

Spend = Callable[[Effort, str], None]
REFUSALS = {
    "audit": "{kind} has no proof that could be checked: its densities can only refute.",
    "theorem": "what a {kind} promises follows from no theorem: its numbers are audited.",
    "audit_concentrated": "the divergences of a {kind} are not computed: mdp.concentrated(mechanism) says what its "
    "pure promise is worth.",
    "accuracy": "how far reports lie from the truth is not known for {kind}.",
    "distribution": "the law of {kind} has no description.",
    "rescale": "this mechanism was designed for one epsilon, and an even spread needs one for every number of rows: "
    "keep so many rows of every person with --at-most, or use Laplace noise or the exponential mechanism.",
    "loss": "what a {kind} costs follows from no formula: its certificate states it.",
    "bins": "reports of {kind} are decoded on the line, in the plane and on the Earth only; put them on a finite space "
    "first (mdp.madlib, mdp.exponential).",
    "rows": "the probabilities of the reports of a {kind} are not listed: its secrets lie anywhere, or its law has no "
    "closed form.",
    "report_probabilities": "the probabilities of the reports of a {kind} at a point are not listed: it is no "
    "mechanism on a box with finitely many reports, such as mdp.interpolated.",
    "distances": "the mean distances of the reports of a {kind} are those of its rows.",
    "worst": "the worst pair of a {kind} is found among all its probabilities.",
    "operator": "a {kind} is decoded from its table of probabilities.",
    "stored": "how the file of a {kind} is stored is said by its fields.",
    "reports": "the reports of a {kind} have no names of their own: they stand in the columns of the secrets.",
    "pairs": "the secrets of a {kind} are taken anywhere: no pairs of its own are looked at.",
    "effort": "what judging a {kind} takes was not declared: it is taken as little.",
}


@dataclass(frozen=True)
class RadiusBound:
    """How far reports lie from the truth, in a metric: one distance for every level that was asked for.

    `tight` says that no smaller distance holds for every secret, up to the lattice.
    """

    values: Floats
    metric: Metric
    tight: bool


@dataclass(frozen=True)
class Distribution:
    """A distribution as plain values: its formula with its constants, and the lattice of its reports, if any."""

    density: Mapping[str, Any]
    lattice: Mapping[str, Any] | None = None


def stored(formula: str) -> Distribution:
    """Return the description of a law whose numbers are those of a file."""
    return Distribution({"formula": formula, "numbers": "in the mechanism file: metricdp.load(file)"})


@dataclass(frozen=True)
class LossFigures:
    """The mean distance of reports from secrets, and what no mechanism with these reports goes below.

    `formula`: it follows from the parameters alone, so that a file that states another loss is broken.
    """

    loss: float
    lower_bound: float = 0.0
    formula: bool = True


@dataclass(frozen=True)
class BinDensity:
    """Noise as it is counted in bins of its reports: its density, its width, where it ends.

    Attributes:
        density: f(y | x) per volume of coordinates, places x points.
        rate: How many units of noise a unit of distance is.
        smooth: Whether the density has no kink at the secret itself.
        ends: The largest size of each coordinate of a report, where there is one.
    """

    density: Callable[[Floats, Floats], Floats]
    rate: float
    smooth: bool = False
    ends: tuple[float, ...] = ()


@dataclass(frozen=True)
class Theorem:
    """Why noise keeps a rate per distance, whichever its secrets are.

    Attributes:
        rate: The epsilon that it keeps.
        law: What it is proven for, in words.
        noise: The noise on a lattice whose densities are compared with the rate at some pairs; None: there are none.
        widest: The largest distance of two secrets, where all of a smaller promise would show; 0 where less than the
            rate may be kept.
        shown: Which share of the rate shows for certain.
        said: What is said of it, with {} for the law.
        obstacle: Why it is not proven here, where it is not.
    """

    rate: float
    statement: str
    noise: Any = None
    widest: float = math.inf
    shown: float = 1.0
    said: str = "{}"
    obstacle: str = ""


def foreign_obstacle(mechanism: Any) -> str:
    """Return the obstacle of a theorem that is about other metrics."""
    return f"This noise does not belong to the metric {type(mechanism.inputs.metric).__name__}."


@dataclass(frozen=True)
class Kind(Schema):
    """What the package knows about one kind of mechanism; None: it does not do that.

    Attributes:
        audit: (mechanism, claim) -> AuditReport, from the numbers that are sampled.
        theorem: (mechanism) -> Theorem, for noise: what its audit compares it with.
        audit_concentrated: (mechanism, claimed rho or None) -> ConcentratedReport.
        accuracy: (mechanism, levels) -> Reach.
        distribution: (mechanism) -> Distribution.
        rescale: (mechanism) -> a function from epsilon (rho) to the same mechanism at it; draws are never scaled.
        loss: (mechanism, spend) -> Figures, or None where measuring takes too long or no metric does it.
        bins: (mechanism) -> Heights.
        rows: (mechanism, codes of secrets) -> the probabilities of all reports, between finite spaces.
        laws: (mechanism, points) -> the probabilities of all reports, for secrets anywhere in a box or along streets.
        distances: (mechanism) -> the mean distance of a report from every secret, where a table would be too large.
        worst: (mechanism) -> the largest log-ratio per distance, where pairs are too many to be listed.
        operator: (mechanism) -> the law of its reports as an operator, where a table would be too large.
        stored: How its file is stored, in words, with {vectors} for where its points lie.
        reports: (mechanism) -> names of the columns of its reports, where they do not read like those of the secrets.
        pairs: (mechanism, reaches, generator) -> pairs of secrets so far apart, where not all numbers are secrets.
        effort: (fields) -> Effort of the audit, as for every declaration.
    """

    audit: Facet | None = None
    theorem: Facet | None = None
    audit_concentrated: Facet | None = None
    accuracy: Facet | None = None
    distribution: Facet | None = None
    rescale: Facet | None = None
    loss: Facet | None = None
    bins: Facet | None = None
    rows: Facet | None = None
    report_probabilities: Facet | None = None
    distances: Facet | None = None
    worst: Facet | None = None
    operator: Facet | None = None
    stored: str | None = None
    reports: Facet | None = None
    pairs: Facet | None = None


MECHANISMS = Registry("mechanism", REFUSALS)
