"""Audits by names: of a matrix, a mechanism file, recorded samples, a sampler that is asked, or a shuffled crowd."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metricdp.arrays import Floats, Points
from metricdp.artifacts import inspect, load
from metricdp.artifacts.audit_cache import cached_audit
from metricdp.auditing import (
    PROBED,
    AuditReport,
    ConcentratedReport,
    audit,
    audit_concentrated,
    audit_sampler,
    audit_samples,
    shuffled_epsilon,
)
from metricdp.auditing.report import locate_secrets
from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.mechanisms import ConcentratedGuarantee, Mechanism, require_pure
from metricdp.metrics import Metric, Precomputed, listed_metric, pairwise, points_are
from metricdp.spaces import FiniteSpace, require_space
from metricdp.spaces.finite import MOST_DISTANCES
from metricdp.specs.metrics import read_metric
from metricdp.specs.options import ClaimSpec, CrowdSpec, PlaceSpec, RecordedSpec, SamplerSpec, parse_names
from metricdp.tables.matrices import is_matrix_file, read_distances, read_matrix
from metricdp.tables.points import PointFile, is_geographic, read_columns, read_points
from metricdp.units import parse_distance, parse_epsilon

FEW_CALLS = 2000  # draws by default where each is a call over the network
MOST_SECRETS = 200  # of a mechanism file, where no others were named
FEW_ROWS = 100  # below these it is not told whether columns look exchanged

Share = Callable[[float], None]
Bound = Callable[[float, float], None]


def audit_matrix_file(
    source: str, how: PlaceSpec, claim: ClaimSpec, *, progress: Share | None = None
) -> tuple[AuditReport, str, list[str]]:
    """Audit the matrix of a file, and return the report, the unit and notes; `how` names the secrets, one a row."""
    if is_matrix_file(source):
        existing_file(source)  # before anything is said about what belongs to it
    space, notes = _matrix_space(how, claim)
    matrix = read_matrix(source, rows=len(space))
    if len(matrix) != len(space):
        where = claim.distances if how.points is None else how.points
        raise InvalidInput(
            f"{source!r} has {len(matrix)} rows and {where!r} has {len(space)} points: one row belongs to one secret."
        )
    claimed = None if claim.epsilon is None else parse_epsilon(claim.epsilon, space.unit)
    report = audit(matrix, metric=space.metric, points=space.points, epsilon=claimed, progress=progress)
    found = report if claim.distances is not None else locate_secrets(report, space)
    return found, space.unit, notes


def _matrix_space(how: PlaceSpec, claim: ClaimSpec) -> tuple[FiniteSpace, list[str]]:
    if claim.distances is None:
        if how.points is None:
            raise InvalidInput(
                "a matrix is judged with its secrets: --points points.csv --metric l2 --epsilon 1.0, or --distances "
                "distances.npy. A table of samples is judged with --secret x,y --report u,v."
            )
        file = _read_file(how.points, how)
        space = file.space(claim.metric)
        return space, [*file.notes, *_degree_notes(file, space)]
    if claim.metric is not None:
        raise InvalidInput("--distances says how far secrets are apart: remove --metric.")
    if how.points is not None:
        raise InvalidInput("--distances is given in the order of the rows of the matrix: remove --points.")
    metric = Precomputed(read_distances(claim.distances))
    return FiniteSpace(np.arange(float(len(metric.distances)))[:, None], metric), []


def _degree_notes(file: PointFile, space: FiniteSpace) -> list[str]:
    """Return which columns became degrees without names that say so."""
    if file.geographic or len(file.columns) != 2 or not points_are(space.metric, "degrees"):
        return []
    first, second = file.columns
    return [f"the metric takes {first} as the latitude and {second} as the longitude, in degrees."]


def _read_file(path: str, how: PlaceSpec) -> PointFile:
    return read_points(path, how.columns, how.reading, force=how.force)


def audit_mechanism_file(
    source: str,
    epsilon: str | None = None,
    *,
    key: str | None = None,
    again: bool = False,
    progress: Share | None = None,
) -> tuple[AuditReport | ConcentratedReport, str]:
    """Audit a mechanism file, and return the report and the unit; with `again` also where the result is stored."""
    found = inspect(source, verify=False, trusted=key)
    unit = found.mechanism.guarantee.unit
    claimed = None if epsilon is None else parse_epsilon(epsilon, unit)
    if isinstance(found.mechanism.guarantee, ConcentratedGuarantee):
        if claimed is None:
            return audit_concentrated(found.mechanism), unit
        return audit(found.mechanism, epsilon=claimed), unit
    return cached_audit(found.mechanism, found.sha256, epsilon=claimed, again=again, progress=progress), unit


def audit_recorded(
    source: str, columns: RecordedSpec, claim: ClaimSpec, how: PlaceSpec
) -> tuple[AuditReport, str, list[str]]:
    """Audit recorded samples, and return the report, the unit and notes.

    The points that `how` names are the secrets that the rows of `distances` are about.
    """
    if columns.secret is None or columns.report is None:
        missing, there = ("--report", "--secret") if columns.report is None else ("--secret", "--report")
        raise InvalidInput(
            f"recorded samples are pairs of a secret and a report: {there} names columns, and {missing} must too, such "
            "as --secret x,y --report u,v."
        )
    if claim.draws is not None:
        raise InvalidInput("--draws is for samplers that are asked: of recorded samples all rows are used.")
    planar = claim.metric is not None and not claim.metric.startswith("haversine")
    found = {}
    for option, text in (("secret", columns.secret), ("report", columns.report)):
        if not text.strip(", "):
            raise InvalidInput(f"--{option} names no column: write --{option} x,y.")
        names = parse_names(text, "columns", "columns", "lat,lon")
        found[option] = read_columns(source, names, how.reading, option=f"--{option}", planar=planar)
    secrets, reports = found["secret"], found["report"].points
    if claim.distances is not None:
        if how.points is None:
            raise InvalidInput(
                "--distances is about a list of secrets: name its file with --points, in the same order."
            )
        metric = read_secrets(how.points, claim, None, how).metric
    else:
        if not secrets.geographic and is_geographic(secrets.columns[::-1]):
            raise InvalidInput(
                f"--secret {','.join(secrets.columns)} names the longitude first: latitude comes first, and in "
                "--report as well."
            )
        metric = secrets.metric(claim.metric)
    report = audit_samples(
        secrets.points, reports, metric=metric, epsilon=_claimed_epsilon(claim, metric), confidence=claim.confidence,
        slack=claim.slack,
    )  # fmt: skip
    return report, metric.unit, _exchange_notes(secrets.points, reports)


def _exchange_notes(points: Points, reports: Points) -> list[str]:
    """Return a note where it looks as if secrets and reports were exchanged: secrets repeat, noisy reports do not."""
    if len(points) < FEW_ROWS:
        return []
    kinds = [len(np.unique(part, axis=0)) for part in (points, reports)]
    if 2 * kinds[0] <= len(points) or 10 * kinds[1] >= len(points):
        return []
    return [
        f"there are {kinds[0]:,} different secrets and only {kinds[1]:,} different reports: are --secret and --report "
        "exchanged?"
    ]


def _claimed_epsilon(claim: ClaimSpec, metric: Metric) -> float:
    """Return the epsilon in the unit of the metric."""
    if claim.epsilon is None:
        example = "--epsilon 10/km" if metric.unit else "--epsilon 1.0"
        raise InvalidInput(f"samples can only refute a promise: name it, such as {example}.")
    return parse_epsilon(claim.epsilon, metric.unit)


@dataclass(frozen=True)
class SecretList:
    """Secrets, one a row, the names of their columns, and the metric between them."""

    points: Points
    columns: tuple[str, ...]
    metric: Metric


def read_secrets(path: str, claim: ClaimSpec, vectors: str | None, how: PlaceSpec) -> SecretList:
    """Return the secrets of a file, measured by a named metric, a matrix of distances or vectors of their own."""
    found, metric = _read_file(path, how), claim.metric
    if claim.distances is None and vectors is None:
        return SecretList(found.points, found.columns, found.space(metric).metric)
    if claim.distances is not None:
        if vectors is not None or metric is not None:
            other = "--vectors" if vectors is not None else "--metric"
            raise InvalidInput(f"--distances says how far secrets are apart: remove {other}.")
        apart: Floats = Precomputed(read_distances(claim.distances)).distances
        name, unit = claim.distances, ""
    else:
        rows = read_matrix(str(vectors), rows=len(found.points))
        chosen = read_metric(metric or "l2")
        chosen.check(rows)
        apart, name, unit = pairwise(chosen, rows, rows), str(vectors), chosen.unit
    if len(found.points) != len(apart):
        raise InvalidInput(
            f"{name!r} has {len(apart)} rows for {len(found.points)} secrets: one row belongs to one secret."
        )
    return SecretList(found.points, found.columns, listed_metric(found.points, apart, unit=unit))


@dataclass(frozen=True)
class SamplerAudit:
    """A sampler that is to be asked about secrets.

    Attributes:
        sampler: Whom to ask.
        claim: What is claimed.
        secrets: What it is asked about.
        epsilon: What is claimed, in the unit of the metric.
        slack: What is claimed beside it.
        source: The mechanism file that a module draws from.
    """

    sampler: SamplerSpec
    claim: ClaimSpec
    secrets: SecretList
    epsilon: float
    slack: float
    source: str | None = None

    @property
    def unit(self) -> str:
        """The unit of distances."""
        return self.secrets.metric.unit

    @property
    def draws(self) -> int:
        """How many reports are asked for at most."""
        asked = self.sampler
        several = asked.independent and "{count}" in f"{asked.body}{asked.url}"
        return self.claim.draws or (FEW_CALLS if asked.url is not None and not several else 100_000)

    def run(self, *, progress: Bound | None = None, announce: Callable[[str], None] | None = None) -> AuditReport:
        """Ask and judge; `announce` hears what an address is sent before it is asked."""
        points = self.secrets.points
        with self._open(announce) as draw:
            return audit_sampler(
                draw,
                secrets=points if points.dtype.kind != "U" else points[:, 0].tolist(),
                metric=self.secrets.metric,
                epsilon=self.epsilon,
                confidence=self.claim.confidence,
                draws=self.draws,
                slack=self.slack,
                independent=self.sampler.independent,
                progress=progress,
            )

    @contextmanager
    def _open(self, announce: Callable[[str], None] | None) -> Iterator[Callable[[Any, int], Points]]:
        """Start the sampler and end it, whatever happens in between."""
        from metricdp.samplers import CommandSampler, NodeSampler, WebSampler

        asked, patience = self.sampler, self.sampler.timeout or (10.0 if self.sampler.url is not None else 60.0)
        made: CommandSampler | NodeSampler | WebSampler
        if asked.command is not None:
            made = CommandSampler(asked.command, patience=patience)
        elif asked.module is not None:
            made = NodeSampler(asked.module, function=asked.function, mechanism=self.source, patience=patience)
        else:
            made = WebSampler(
                str(asked.url), synthetic=asked.synthetic, body=asked.body, found=asked.found,
                columns=self.secrets.columns, rate=asked.rate, patience=patience, headers=_header(asked.header),
            )  # fmt: skip
            if announce is not None:
                count = len(self.secrets.points)
                announce(made.announcement(self.draws, count, independent=asked.independent, probes=PROBED))
        with made as draw:
            yield draw


def read_sampler_audit(
    sampler: SamplerSpec, claim: ClaimSpec, how: PlaceSpec, *, source: str | None = None, key: str | None = None
) -> SamplerAudit:
    """Return what is to be asked of a sampler; a module may draw from the mechanism file `source`."""
    if source is not None and sampler.module is None:
        raise InvalidInput(
            f"{source!r} and {sampler.way} are two things to judge: remove one. The secrets to ask about are named "
            "with --secrets."
        )
    if sampler.secrets is None and source is None:
        raise InvalidInput(
            f"{sampler.way} is asked about secrets: name a file with two or more, such as --secrets points.csv."
        )
    if source is None:
        asked = read_secrets(str(sampler.secrets), claim, sampler.vectors, how)
        epsilon, slack = _claimed_epsilon(claim, asked.metric), claim.slack
    else:
        asked, epsilon, slack = _secrets_of_mechanism(source, sampler, claim, key)
    if len(asked.points) < 2:
        raise InvalidInput(f"{sampler.secrets!r} holds one secret: nothing can be told apart. Give two or more.")
    return SamplerAudit(sampler, claim, asked, epsilon, slack, source)


def _secrets_of_mechanism(
    source: str, sampler: SamplerSpec, claim: ClaimSpec, key: str | None
) -> tuple[SecretList, float, float]:
    """Return the secrets and the guarantee of a mechanism file, which a JavaScript module is asked to keep."""
    mechanism = inspect(source, verify=False, trusted=key).mechanism
    guarantee, space, finite = mechanism.guarantee, mechanism.inputs, mechanism.inputs.finite
    listed = None if finite is None else require_space(finite, FiniteSpace, "inputs")
    if claim.metric is not None or claim.distances is not None:
        raise InvalidInput("a mechanism file brings its metric: remove --metric and --distances.")
    epsilon = guarantee.epsilon if claim.epsilon is None else parse_epsilon(claim.epsilon, guarantee.unit)
    slack = max(claim.slack, guarantee.slack)
    if sampler.secrets is not None:
        file = read_points(sampler.secrets)
        rows, columns = file.space().points, file.columns
    elif listed is not None:
        chosen = np.unique(np.linspace(0, len(listed) - 1, min(len(listed), MOST_SECRETS)).astype(int))
        rows, columns = np.asarray(space.decode(chosen)), space.columns
    else:
        raise InvalidInput("this mechanism takes any value: name the ones to ask about with --secrets points.csv.")
    metric = space.metric
    if listed is not None:  # distances are between codes, what is asked and answered are values
        measured = listed.points[np.asarray(space.encode(rows))]
        metric = listed_metric(rows, pairwise(metric, measured, measured), unit=guarantee.unit)
    return SecretList(rows, columns, metric), epsilon, slack


def _header(words: str | None) -> dict[str, str]:
    """Return a header whose value an environment variable holds: command lines are seen by everybody."""
    if words is None:
        return {}
    name, equals, variable = (part.strip() for part in words.partition("="))
    if not equals or not name or variable not in os.environ:
        raise InvalidInput(
            f"--header must be a name and an environment variable that holds its value, such as "
            f"Authorization=API_TOKEN; {variable!r} is not set."
        )
    return {name: os.environ[variable]}


@dataclass(frozen=True)
class CrowdAudit:
    """What shuffling the reports of a crowd adds; it is approximate, never a pure guarantee.

    Attributes:
        epsilon: What one person who moves by `distance` changes, except with probability `delta`.
        delta: That probability.
        without_shuffling: What it is without a shuffler, for certain.
        people: How many people report.
        distance: How far the secret of one person may move.
        diameter: How far apart all secrets lie at most.
        unit: The unit of distances.
        approximate: That it is no pure guarantee.
    """

    epsilon: float
    delta: float
    without_shuffling: float
    people: int
    distance: float
    diameter: float
    unit: str
    approximate: bool = field(default=True, init=False)


def audit_crowd(source: str | None, crowd: CrowdSpec, *, key: str | None = None) -> CrowdAudit:
    """Return what shuffling the reports of a crowd adds to a mechanism file."""
    if source is None or crowd.people is None or crowd.distance is None:
        raise InvalidInput(
            "a crowd needs a mechanism file, its size and a distance: metricdp audit cells.mdp --people 10000 "
            "--distance 200m."
        )
    made = load(source, trusted=key)
    guarantee = require_pure(made.guarantee, "`audit --people`")
    if guarantee.slack > 0 or guarantee.radius is not None:
        raise InvalidInput(f"a crowd is counted for a guarantee of all pairs without slack, and this is {guarantee}.")
    unit, epsilon = guarantee.unit, guarantee.epsilon
    moved = parse_distance(crowd.distance, unit, option="distance")
    wide = (
        _largest_distance(made) if crowd.diameter is None else parse_distance(crowd.diameter, unit, option="diameter")
    )
    found = shuffled_epsilon(epsilon, crowd.people, distance=moved, diameter=wide, delta=crowd.delta)
    return CrowdAudit(found, crowd.delta, epsilon * moved, crowd.people, moved, wide, unit)


def _largest_distance(made: Mechanism) -> float:
    """Return the largest distance of two secrets of a mechanism."""
    places: Any = made.inputs.finite
    if places is None or len(places) ** 2 > MOST_DISTANCES:
        many = "places anywhere" if places is None else f"{len(places):,} places, too many to measure all pairs"
        raise InvalidInput(
            "say how far apart the secrets of two people may be, with --diameter such as 5km: this mechanism is for "
            f"{many}."
        )
    return float(places.distances.max())
