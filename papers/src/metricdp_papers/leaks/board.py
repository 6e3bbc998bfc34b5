"""The board: every sampler with what it claims, judged by asking it, or exactly where it is a matrix."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import metricdp
from metricdp.arrays import Floats, Points
from metricdp.auditing import AuditReport
from metricdp.errors import MetricdpError
from metricdp.metrics import Metric
from metricdp.samplers import CommandSampler
from metricdp_papers.common import Row, row
from metricdp_papers.leaks import packages

DRAWS, FEW_DRAWS = 100_000, 20_000
CONFIDENCE = 0.99


@dataclass(frozen=True)
class BoardEntry:
    """A sampler on the board.

    Attributes:
        key: Its name, for files.
        who: The package, or the paper or program that is re-implemented.
        mechanism: Which of its mechanisms.
        claim: What is claimed, in words.
        epsilon: The claim as a number, per unit of the metric; where nothing is claimed, what it is held against.
        metric: How far secrets are apart; given when it is judged.
        secrets: What is asked about, given when it is judged.
        draw: A sampler `draw(secret, count)`; or
        matrix: a matrix whose rows are the distributions of the secrets, judged exactly.
        package: The name of the package that has to be installed; empty where nothing has to be.
        note: What is behind it, precisely and kindly.
        draws: How many reports are asked for at most.
        slack: What the claim allows beside epsilon times the distance.
        claims: Whether anything is claimed: what nobody guaranteed is not violated, it would not be kept.
    """

    key: str
    who: str
    mechanism: str
    claim: str
    epsilon: float
    metric: Callable[[], Metric]
    secrets: Callable[[], Any]
    draw: Callable[[], Any] | None = None
    matrix: Callable[[], Floats] | None = None
    package: str = ""
    note: str = ""
    draws: int = DRAWS
    slack: float = 0.0
    claims: bool = True


def audit_entry(entry: BoardEntry, scale: float) -> list[Row]:
    """Return the row of an entry; what cannot be run here is a row that says why."""
    about: Row = {"who": entry.who, "mechanism": entry.mechanism, "claim": entry.claim, "version": ""}
    try:
        about["version"] = packages.version(entry.package) if entry.package else ""
        started = time.perf_counter()  # without the installation
        report, more = _by_matrix(entry) if entry.matrix is not None else _by_draws(entry, scale)
    except MetricdpError as error:
        nothing = {"verdict": "not run", "draws": None, "leaks_at_least": None, "witness": ""}
        return [row({**about, **nothing}, "epsilon", note=" ".join(str(error).split()))]
    verdict = "would not keep it" if report.refuted and not entry.claims else report.verdict
    about |= {"verdict": verdict, "draws": report.draws or None, "leaks_at_least": float(report.epsilon)}
    seconds, note = round(time.perf_counter() - started, 1), " ".join([entry.note, *more]).strip()
    return [row({**about, "witness": _witness(report)}, "epsilon", seconds=seconds, note=note)]


def _by_matrix(entry: BoardEntry) -> tuple[AuditReport, list[str]]:
    assert entry.matrix is not None
    points = np.asarray(entry.secrets(), dtype=float)
    matrix = entry.matrix()
    sums = matrix.sum(axis=1)
    said = []
    if np.abs(sums - 1.0).max() > 1e-9:  # the distribution that is judged is row / sum(row)
        said.append(f"Rows sum to 1 only within {np.abs(sums - 1.0).max():.2g}; they were divided by their sums.")
        matrix = matrix / sums[:, None]
    report = metricdp.audit(matrix, metric=entry.metric(), points=points, epsilon=entry.epsilon)
    if 0 < report.epsilon - entry.epsilon < 1e-6:
        said.append(f"Above the claim by {report.epsilon - entry.epsilon:.1g} only.")
    seen = report.witness
    if seen is not None:  # codes are rows of the matrix
        one, two = (tuple(points[code].ravel().tolist()) for code in (seen.secret, seen.other))
        report = replace(report, witness=replace(seen, secret_at=one, other_at=two))
    return report, [*said, "Judged exactly, from the matrix."]


def _by_draws(entry: BoardEntry, scale: float) -> tuple[AuditReport, list[str]]:
    assert entry.draw is not None
    draw = entry.draw()
    with draw if isinstance(draw, CommandSampler) else nullcontext(draw) as asked:
        report = metricdp.audit_sampler(
            asked,
            secrets=entry.secrets(),
            metric=entry.metric(),
            epsilon=entry.epsilon,
            confidence=CONFIDENCE,
            draws=max(1000, int(scale * entry.draws)),
            slack=entry.slack,
            rng=np.random.default_rng(2026),
        )
    convicting = [str(finding) for finding in report.findings if finding.convicts]
    return report, [*convicting[:1], *(str(finding) for finding in report.findings if not finding.convicts)]


def _witness(report: AuditReport) -> str:
    seen = report.witness
    if seen is None or report.verdict == "not refuted":
        return ""
    places = [_place(code, at) for code, at in (
        (seen.secret, seen.secret_at), (seen.other, seen.other_at), (seen.report, seen.report_at))]  # fmt: skip
    column = "report" if seen.report_at is not None else "report of column"
    return f"{places[0]} against {places[1]}, {column} {places[2]}"


def _place(code: int, at: Any) -> str:
    if at is None:
        return str(code)
    cells = [cell if isinstance(cell, str) else f"{cell:.6g}" for cell in np.ravel(np.asarray(at)).tolist()]
    return cells[0] if len(cells) == 1 else f"({', '.join(cells)})"


def of_mechanism(mechanism: Any) -> Callable[[Any, int], Points]:
    """Return one of our mechanisms as a sampler of values, as tables hold them."""

    def draw(secret: Any, count: int) -> Points:
        row = np.atleast_1d(np.asarray(secret))[None]
        codes = mechanism.inputs.encode(row)
        return np.asarray(mechanism.outputs.decode(mechanism.sample(np.repeat(codes, count, axis=0))))

    return draw
