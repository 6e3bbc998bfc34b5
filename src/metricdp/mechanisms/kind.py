"""The record of a mechanism kind: everything that the rest of the package asks of it, declared in the kind's own file.

A facet is a function of a mechanism. A caller looks it up here (`MECHANISMS.facet`), so no other module distinguishes
kinds. A facet that is not given is the method of the class by its name after `_facet_`, where there is one. A kind that
lacks a facet is refused with a sentence. A package above this one registers the facets that need it. For example,
auditing registers what follows from its proofs:

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
from metricdp.arrays import Floats, set_fields
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
    "theorem": "the guarantee of a {kind} follows from no theorem: its numbers are audited.",
    "audit_concentrated": "the divergences of a {kind} are not computed: "
    "mdp.auditing.concentrated_guarantee(mechanism) says what its pure guarantee is worth.",
    "accuracy": "how far reports lie from the truth is not known for {kind}.",
    "distribution": "the distribution of {kind} has no description.",
    "rescale": "this mechanism was designed for one epsilon, and an even spread needs one for every number of rows: "
    "limit the rows of every person with --max-rows, or use Laplace noise or the exponential mechanism.",
    "loss": "the loss of a {kind} follows from no formula: its certificate states it.",
    "bins": "reports of {kind} are decoded on the line, in the plane and on the Earth only; put them on a finite space "
    "first (mdp.madlib, mdp.exponential).",
    "rows": "the probabilities of the reports of a {kind} are not listed: its secrets lie anywhere, or its "
    "distribution has no closed form.",
    "report_probabilities": "the probabilities of the reports of a {kind} at a point are not listed: it is no "
    "mechanism on a box with finitely many reports, such as mdp.interpolated.",
    "mean_distances": "the mean distances of the reports of a {kind} are those of its rows.",
    "worst_ratio": "the worst pair of a {kind} is found among all its probabilities.",
    "operator": "a {kind} is decoded from its table of probabilities.",
    "storage": "the fields of a {kind} say how its file is stored.",
    "report_names": "the reports of a {kind} have no names of their own: they stand in the columns of the secrets.",
    "secret_pairs": "the secrets of a {kind} lie anywhere: it brings no pairs of its own.",
    "effort": "the effort of an audit of a {kind} was not declared: it is taken as little.",
}


@dataclass(frozen=True)
class RadiusBound:
    """How far reports lie from the truth, in a metric: one distance for every level that was asked for.

    `tight`: no smaller distance holds for every secret, up to the lattice.
    """

    values: Floats
    metric: Metric
    tight: bool


@dataclass(frozen=True)
class Distribution:
    """A distribution as plain values: its formula with its constants, and the lattice of its reports, if any."""

    density: Mapping[str, Any]
    lattice: Mapping[str, Any] | None = None


def table_distribution(formula: str) -> Distribution:
    """Return the description of a distribution whose numbers are those of a file."""
    return Distribution({"formula": formula, "numbers": "in the mechanism file: metricdp.load(file)"})


@dataclass(frozen=True)
class LossFigures:
    """The mean distance of reports from secrets, and a lower bound of it for every mechanism with these reports.

    `formula`: the loss follows from the parameters alone. A file that states another loss is broken.
    """

    loss: float
    lower_bound: float = 0.0
    formula: bool = True


@dataclass(frozen=True)
class BinDensity:
    """Noise as the decoder counts it in bins of its reports.

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
    """Why noise keeps a rate per distance for all secrets.

    Attributes:
        rate: The epsilon that it keeps.
        statement: The distribution that the theorem is about, in words.
        noise: The noise on a lattice whose densities the audit compares with the rate at some pairs, if any.
        largest_distance: The largest distance of two secrets. A smaller guarantee would be violated there. 0: the
            noise may keep less than the rate, so that nothing is refuted.
        certain_share: The share of the rate that some pair of secrets reaches for certain.
        template: The sentence of the audit, with {} for the statement.
        obstacle: Why the theorem does not apply here, if so.
    """

    rate: float
    statement: str
    noise: Any = None
    largest_distance: float = math.inf
    certain_share: float = 1.0
    template: str = "{}"
    obstacle: str = ""


@dataclass(frozen=True)
class Kind(Schema):
    """What the package knows about one kind of mechanism. None: it cannot do that.

    Attributes:
        audit: (mechanism, claim) -> AuditReport, from the numbers that are sampled.
        theorem: (mechanism) -> Theorem, for noise: the audit compares the claim with it.
        audit_concentrated: (mechanism, claimed rho or None) -> ConcentratedReport.
        accuracy: (mechanism, levels) -> RadiusBound.
        distribution: (mechanism) -> Distribution.
        rescale: (mechanism) -> a function from epsilon (rho) to the same mechanism at it; draws are never scaled.
        loss: (mechanism, spend) -> LossFigures, or None where measuring takes too long or no metric does it.
        bins: (mechanism) -> BinDensity.
        rows: (mechanism, codes of secrets) -> the probabilities of all reports, between finite spaces.
        report_probabilities: (mechanism, points) -> the probabilities of all reports, for secrets anywhere in a box or
            along streets.
        mean_distances: (mechanism) -> the mean distance of a report from every secret, where a table is too large.
        worst_ratio: (mechanism) -> the largest log-ratio per distance, where pairs are too many to be listed.
        operator: (mechanism) -> ReportOperator, where a table is too large.
        storage: How its file is stored, in words, with {vectors} for where its points lie.
        report_names: (mechanism) -> names of the columns of its reports, where they differ from those of the secrets.
        secret_pairs: (mechanism, reaches, generator) -> pairs of secrets at these distances, where not all numbers are
            secrets.
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
    mean_distances: Facet | None = None
    worst_ratio: Facet | None = None
    operator: Facet | None = None
    storage: str | None = None
    report_names: Facet | None = None
    secret_pairs: Facet | None = None

    def __post_init__(self) -> None:
        """Take from the class what is not given."""
        missing = [name for name in REFUSALS if getattr(self, name) is None]
        set_fields(self, **{name: getattr(self.thing, f"_facet_{name}", None) for name in missing})


MECHANISMS = Registry("mechanism", REFUSALS)


def declare_kind(thing: type, name: str, about: str, fields: Mapping[str, Field], **facts: Any) -> None:
    """Declare a kind of this package: a `Kind` with these facts."""
    MECHANISMS.declare(Kind(thing, name, about, fields, **facts))
