"""Designs and audits from plain data: what the service lets programs ask for. No path, address or command is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metricdp.design import builder_named
from metricdp.errors import InvalidInput
from metricdp.mechanisms import Mechanism
from metricdp.metrics import parse_metric
from metricdp.specs import build, point_space

SERVICE = (
    "the service",
    "Protect tables with it and count rho by metricdp perturb --mechanism FILE --id COLUMN --ledger LEDGER, or serve "
    "Laplace noise with --epsilon",
)

OFFERED = ("exponential", "truncated_exponential", "tight_constraints", "optimal", "dictionary", "spanner", "constopt")
GAP = 1e-3


def build_design(request: dict[str, Any], progress: Callable[[float, float, float, int], None]) -> Mechanism:
    """Design what was asked for."""
    builder = builder_named(request["builder"], OFFERED)
    asked = {name: request[name] for name in ("objective", "gap") if request.get(name) is not None}
    for name in asked:
        if name not in builder.options:
            raise InvalidInput(f"`{name}` is no option of {builder.name}: remove it.")
    if builder.progress:
        asked.setdefault("gap", GAP)
    most = float(request["design_seconds"])
    if builder.searches:
        asked["seconds"] = min(most, request.get("seconds") or most)
    prior = None if request.get("prior") is None else np.array(request["prior"], dtype=np.float64)
    space = point_space(request["points"], request["metric"], request.get("streets"))
    loss = request.get("loss") or "distance"
    return build(builder.name, space, request["epsilon"], prior=prior, loss=loss, progress=progress, **asked)


def audit_data(request: dict[str, Any]) -> dict[str, Any]:
    """Audit a matrix or recorded samples, and return the findings as plain values."""
    from metricdp.auditing import audit, audit_samples

    if request["kind"] == "matrix":
        space = point_space(request["points"], request["metric"])
        metric = space.metric
        if len({len(row) for row in request["matrix"]}) != 1 or len(request["matrix"]) != len(space):
            raise InvalidInput("`matrix` must have one row for every point, all of the same length.")
        matrix = np.array(request["matrix"], dtype=np.float64)
        report = audit(matrix, metric=metric, points=space.points, epsilon=request["epsilon"])
    else:
        secrets, reports = (_rows(request[name], name) for name in ("secrets", "reports"))
        if len(secrets) != len(reports):
            raise InvalidInput("`secrets` and `reports` must have as many rows.")
        metric = parse_metric(request["metric"])
        report = audit_samples(
            secrets, reports, metric=metric, epsilon=request["epsilon"],
            slack=request["slack"], confidence=request["confidence"],
        )  # fmt: skip
    return report.to_dict(metric.unit)


def _rows(values: list[list[float]], name: str) -> Any:
    if len({len(row) for row in values}) != 1 or not values[0]:
        raise InvalidInput(f"`{name}` must have the same number of coordinates in every row, at least one.")
    return np.array(values, dtype=np.float64)
