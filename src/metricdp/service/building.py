"""Designs and audits from plain data: what the service lets programs ask for. No path, address or command is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from metricdp import wording
from metricdp.auditing import AuditReport
from metricdp.design.builders import BUILDERS, Builder
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Certificate, Guarantee, Mechanism
from metricdp.metrics import METRICS, Metric, ShortestPath, points_are
from metricdp.problems import Problem
from metricdp.spaces import FiniteSpace

SERVICE = (
    "the service",
    "Protect tables with it and count rho by metricdp perturb --mechanism FILE --id COLUMN --ledger BOOKS, or serve "
    "Laplace noise with --epsilon",
)

OFFERED = ("exponential", "truncated_exponential", "tight_constraints", "optimal", "dictionary", "spanner", "constopt")
GAP = 1e-3


def metric_of(name: str) -> Metric:
    """Return the metric of a name such as l2, haversine or haversine:mi."""
    word, colon, unit = name.strip().partition(":")
    words = METRICS.words()
    found = words.get(word.strip().lower())
    if found is None:
        raise InvalidInput(f"`metric` must be one of {', '.join(words)}.")
    metric: Any = found()
    if colon and (not unit.strip() or not is_dataclass(metric)):
        raise InvalidInput("`metric` names no unit that it can take; write haversine:mi, or its name alone.")
    chosen: Metric = replace(metric, unit=unit.strip()) if colon else metric
    return chosen


def space_of(points: list[list[float]], metric: str, streets: dict[str, Any] | None = None) -> FiniteSpace:
    """Return the space of points, which must all have as many coordinates; along streets where there are any."""
    if len({len(point) for point in points}) != 1 or not points[0]:
        raise InvalidInput("`points` must have the same number of coordinates in every row, at least one.")
    chosen = metric_of(metric)
    if streets is not None:
        roads = ShortestPath(streets["edges"], streets["lengths"], nodes=len(points))
        places = np.array(points, dtype=np.float64)
        return FiniteSpace(np.arange(len(points))[:, None], roads, coordinates=places, ground=chosen)
    return FiniteSpace(np.array(points, dtype=np.float64), chosen, columns=("lat", "lon") if _earth(chosen) else ())


def _earth(metric: Metric) -> bool:
    return points_are(metric, "degrees")


def built(request: dict[str, Any], progress: Callable[[float, float, float, int], None]) -> Mechanism:
    """Design what was asked for."""
    builder = builder_of(request["builder"])
    space = space_of(request["points"], request["metric"], request.get("streets"))
    loss = space.distances**2 if request.get("loss") == "squared" else None
    prior = None if request.get("prior") is None else np.array(request["prior"], dtype=np.float64)
    wanted: dict[str, Any] = {}
    for name in ("objective", "gap"):
        if request.get(name) is not None:
            if name not in builder.options:
                raise InvalidInput(f"`{name}` is no option of {builder.name}: leave it away.")
            wanted[name] = request[name]
    most = float(request["design_seconds"])
    if "seconds" in builder.options:
        wanted["seconds"] = min(most, request.get("seconds") or most)
    if builder.start == "space":
        if prior is not None:
            wanted["prior"] = prior
        return builder.function(space, request["epsilon"], **wanted)
    if builder.progress:
        wanted = {"gap": GAP, **wanted, "progress": progress}
    return builder.function(Problem(space, request["epsilon"], loss=loss, prior=prior), **wanted)


def builder_of(name: str) -> Builder:
    """Return a builder that is offered."""
    if name not in OFFERED:
        raise InvalidInput(f"`builder` must be one of {', '.join(OFFERED)}.")
    return BUILDERS.named(name)


def audited(request: dict[str, Any]) -> dict[str, Any]:
    """Judge a matrix or recorded samples, and return what was found as plain values."""
    from metricdp.auditing import audit, audit_samples

    if request["kind"] == "matrix":
        space = space_of(request["points"], request["metric"])
        if len({len(row) for row in request["matrix"]}) != 1 or len(request["matrix"]) != len(space):
            raise InvalidInput("`matrix` must have one row for every point, all of the same length.")
        matrix = np.array(request["matrix"], dtype=np.float64)
        report = audit(matrix, metric=space.metric, points=space.points, epsilon=request["epsilon"])
    else:
        secrets, reports = (_rows(request[name], name) for name in ("secrets", "reports"))
        if len(secrets) != len(reports):
            raise InvalidInput("`secrets` and `reports` must have as many rows.")
        report = audit_samples(
            secrets, reports, metric=metric_of(request["metric"]), epsilon=request["epsilon"],
            slack=request["slack"], confidence=request["confidence"],
        )  # fmt: skip
    return report_values(report)


def report_values(report: AuditReport) -> dict[str, Any]:
    """Return what an audit found as plain values."""
    witness = report.witness
    return {
        "verdict": report.verdict,
        "epsilon": finite(report.epsilon),
        "claimed": finite(report.claimed),
        "slack": report.slack,
        "basis": report.basis,
        "method": report.method,
        "confidence": report.confidence,
        "pairs": report.pairs,
        "draws": report.draws,
        "reason": report.reason,
        "power": report.power,
        "findings": [str(finding) for finding in report.findings],
        "witness": None
        if witness is None
        else {
            "secret": witness.secret,
            "other": witness.other,
            "report": witness.report,
            "ratio": finite(witness.ratio),
        },
    }


def _rows(values: list[list[float]], name: str) -> Any:
    if len({len(row) for row in values}) != 1 or not values[0]:
        raise InvalidInput(f"`{name}` must have the same number of coordinates in every row, at least one.")
    return np.array(values, dtype=np.float64)


def finite(value: float | None) -> float | None:
    """Return a number that JSON has, or None."""
    return None if value is None or not math.isfinite(value) else float(value)


def promise_values(promise: Guarantee) -> dict[str, Any]:
    """Return a promise in numbers and in words."""
    return {
        "epsilon": promise.epsilon,
        "unit": promise.unit,
        "slack": promise.slack,
        "radius": promise.radius,
        "metric": type(promise.metric).__name__,
        "basis": promise.basis,
        "sentence": wording.short(promise),
    }


def certificate_values(certificate: Certificate) -> dict[str, Any]:
    """Return what was verified."""
    return {
        "loss": finite(certificate.loss),
        "lower_bound": finite(certificate.lower_bound),
        "gap": finite(certificate.gap),
        "objective": certificate.objective,
        "epsilon": finite(certificate.epsilon),
        "pairs": certificate.pairs,
        "method": certificate.method,
        "note": certificate.note,
        "unverified": list(certificate.stated),
    }
