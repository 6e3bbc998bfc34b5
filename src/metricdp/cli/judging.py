"""The command that judges: a mechanism file, or anyone's matrix."""

from __future__ import annotations

from pathlib import Path

import metricdp
from metricdp import wording
from metricdp.auditing import AuditReport
from metricdp.cli import choices, terminal
from metricdp.cli.choices import Epsilon
from metricdp.errors import InvalidInput
from metricdp.units import parse_epsilon


def audit(
    source: str,
    /,
    *,
    points: str | None = None,
    metric: str | None = None,
    epsilon: Epsilon | None = None,
    key: str | None = None,
    again: bool = False,
    json: bool = False,
) -> int:
    """Say what a mechanism really leaks: exit code 0 if its promise holds, 1 if it is violated, 2 if nobody can tell.

    An example: `metricdp audit matrix.csv --points points.csv --metric l2 --epsilon 1.0 --json`

    Args:
        source: A mechanism file, or a CSV file with anyone's matrix: a header, then one row per secret.
        points: For a matrix: the secrets, one a row.
        metric: For a matrix: how far secrets are apart, such as l2; `metricdp metrics` lists the names.
        epsilon: The promise to judge; a mechanism file brings its own.
        key: A public key file: a mechanism file is refused unless this key signed it.
        again: Judge a mechanism file anew, also where an audit of it that took long is remembered.
        json: Print the report as JSON.
    """
    if Path(source).suffix.lower() in (".csv", ".tsv", ".txt"):
        if key is not None:
            raise InvalidInput("a matrix in a CSV file bears no signature: leave --key away.")
        report, unit = _audit_matrix(source, points, metric, epsilon)
    else:
        report, unit = _audit_file(source, epsilon, key, again=again)
    if json:
        print(terminal.report_json(report, unit))
    elif report.claimed is None:
        smallest = wording.number(report.epsilon, 12, "up")
        print(f"the smallest epsilon is {smallest}; name the promise with --epsilon to have it judged.")
    else:
        print(report)
    return {"holds": 0, "violated": 1}.get(report.verdict, 2)


def _audit_matrix(source: str, points: str | None, metric: str | None, epsilon: str | None) -> tuple[AuditReport, str]:
    from metricdp.cli.reading import read_matrix

    if points is None:
        raise InvalidInput("a matrix is judged with its secrets: --points points.csv --metric l2 --epsilon 1.0.")
    space = choices.space_from(points, metric)
    matrix = read_matrix(source, rows=len(space))
    if len(matrix) != len(space):
        raise InvalidInput(
            f"{source!r} has {len(matrix)} rows and {points!r} has {len(space)} points: one row belongs to one secret."
        )
    claimed = None if epsilon is None else parse_epsilon(epsilon, space.unit)
    with terminal.progress_bar("Auditing") as progress:
        report = metricdp.audit(matrix, metric=space.metric, points=space.points, epsilon=claimed, progress=progress)
    return report, space.unit


def _audit_file(source: str, epsilon: str | None, key: str | None, *, again: bool) -> tuple[AuditReport, str]:
    from metricdp.artifacts import inspect as open_file
    from metricdp.artifacts.remembered import audited

    found = open_file(source, judged=False, trusted=key)
    unit = found.mechanism.guarantee.unit
    claimed = None if epsilon is None else parse_epsilon(epsilon, unit)
    with terminal.progress_bar("Auditing") as progress:
        return audited(found.mechanism, found.sha256, epsilon=claimed, again=again, progress=progress), unit
