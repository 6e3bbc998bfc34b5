"""The command that judges: a mechanism file, anyone's matrix, recorded samples, or a sampler that is asked."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from cyclopts import Parameter

import metricdp
from metricdp import wording
from metricdp.auditing import AuditReport, ConcentratedReport
from metricdp.cli import choices, guarantees, sampling, tables, terminal
from metricdp.cli.matrices import is_matrix_file, read_distances, read_matrix
from metricdp.cli.sampling import Foreign, Promise, Recorded
from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.mechanisms import ConcentratedGuarantee
from metricdp.metrics import Precomputed
from metricdp.spaces import FiniteSpace
from metricdp.tables.formats import is_table
from metricdp.units import parse_epsilon


def audit(
    source: str | None = None,
    /,
    *,
    points: str | None = None,
    promise: Annotated[Promise, Parameter(name="*")] = sampling.NOTHING,
    recorded: Annotated[Recorded, Parameter(name="*")] = sampling.NOT_RECORDED,
    foreign: Annotated[Foreign, Parameter(name="*")] = sampling.NOBODY,
    key: str | None = None,
    again: bool = False,
    json: bool = False,
    table: Annotated[tables.Source, Parameter(name="*")] = tables.AS_IT_IS,
) -> int:
    """Say what a mechanism really leaks: exit code 0 if its promise holds, 1 if it is violated, 2 if nobody can tell.

    A mechanism file: `metricdp audit cells.mdp`

    Anyone's matrix: `metricdp audit matrix.csv --points points.csv --metric l2 --epsilon 1.0 --json`

    Recorded samples: `metricdp audit samples.csv --secret x,y --report u,v --metric l2 --epsilon 1.0`

    A command: `metricdp audit --command "python their_sampler.py" --secrets points.csv --metric l2 --epsilon 1.0`

    An address: `metricdp audit --url https://example.org/report --body '{"at": ["{lat}", "{lon}"]}' --found point
    --secrets made_up.csv --synthetic --epsilon 10/km`

    JavaScript: `metricdp audit --module sampler.mjs --secrets points.csv --epsilon 1.0`, or `metricdp audit cells.mdp
    --module metricdp.js` to have metricdp for JavaScript draw from a mechanism file.

    Samples can refute a promise and never prove it: where they find nothing the verdict is "not refuted", which is exit
    code 2, and it says which leak would have been found.

    Args:
        source: A mechanism file, a matrix (CSV, Parquet, .npy; one row per secret), or a table of recorded samples.
        points: For a matrix: the secrets, one a row.
        promise: What is judged.
        recorded: Which columns of a table hold what.
        foreign: Who is asked.
        key: A public key file: a mechanism file is refused unless this key signed it.
        again: Judge a mechanism file anew, also where an audit of it that took long is remembered.
        json: Print the report as JSON.
        table: How points, secrets and samples are read.
    """
    report, unit = _judged(source, points, promise, recorded, foreign, key, again=again, how=table)
    if json:
        terminal.say_json(guarantees.report_values(report, unit), sort_keys=True)
    elif report.claimed is None and isinstance(report, AuditReport):
        smallest = wording.number(report.epsilon, 12, "up")
        terminal.say(f"the smallest epsilon is {smallest}; name the promise with --epsilon to have it judged.")
    else:
        terminal.say(report)
    return {"holds": 0, "violated": 1}.get(report.verdict, 2)


def _judged(
    source: str | None,
    points: str | None,
    promise: Promise,
    recorded: Recorded,
    foreign: Foreign,
    key: str | None,
    *,
    again: bool,
    how: tables.Source,
) -> tuple[AuditReport | ConcentratedReport, str]:
    """Find out what is to be judged, and by whom."""
    table = source is not None and (is_matrix_file(source) or is_table(source))
    named = recorded.secret is not None or recorded.report is not None
    if foreign.way:
        _refuse(points is not None, f"--points is for matrices: with {foreign.way} the secrets are named by --secrets.")
        _refuse(named, f"--secret and --report name columns of recorded samples; {foreign.way} needs --secrets FILE.")
        _refuse(
            table, f"{source!r} and {foreign.way} are two things to judge: name the secrets with --secrets {source}."
        )
        return sampling.audit_asked(source, foreign, promise, key, how)
    if source is None:
        raise InvalidInput(
            "say what to judge: a mechanism file, a matrix, a table of samples, or a sampler with --command, --url or "
            "--module. `metricdp audit --help` has an example of each."
        )
    _refuse(table and key is not None, "a matrix or a table bears no signature: leave --key away.")
    if foreign.secrets is not None:
        raise InvalidInput(
            "--secrets is for samplers that are asked (--command, --url, --module): the secrets of a matrix are named "
            "by --points, the columns of recorded samples by --secret and --report."
        )
    if table and named:
        return sampling.audit_recorded(source, recorded, promise, points, how)
    _refuse(named, f"--secret and --report are for tables of samples (`metricdp formats`), not for {source!r}.")
    asked = next(
        (name for name in ("slack", "confidence", "draws") if getattr(promise, name) != getattr(Promise(), name)), ""
    )
    _refuse(bool(asked), f"--{asked} is for samples: a matrix and a mechanism file are judged exactly.")
    if table:
        return _audit_matrix(source, points, promise, how)
    _refuse(points is not None, f"--points is for a matrix, and {source!r} is none: it brings its own secrets.")
    return _audit_file(source, promise.epsilon, key, again=again)


def _refuse(wrong: bool, sentence: str) -> None:
    if wrong:
        raise InvalidInput(sentence)


def _audit_matrix(source: str, points: str | None, promise: Promise, how: tables.Source) -> tuple[AuditReport, str]:
    if is_matrix_file(source):
        existing_file(source)  # before anything is said about what belongs to it
    space = _secrets_of_matrix(points, promise, how)
    matrix = read_matrix(source, rows=len(space))
    if len(matrix) != len(space):
        where = promise.distances if points is None else points
        raise InvalidInput(
            f"{source!r} has {len(matrix)} rows and {where!r} has {len(space)} points: one row belongs to one secret."
        )
    claimed = None if promise.epsilon is None else parse_epsilon(promise.epsilon, space.unit)
    with terminal.progress_bar("Auditing") as progress:
        report = metricdp.audit(matrix, metric=space.metric, points=space.points, epsilon=claimed, progress=progress)
    return report, space.unit


def _secrets_of_matrix(points: str | None, promise: Promise, how: tables.Source) -> FiniteSpace:
    if promise.distances is None:
        if points is None:
            raise InvalidInput(
                "a matrix is judged with its secrets: --points points.csv --metric l2 --epsilon 1.0, or --distances "
                "distances.npy. A table of samples is judged with --secret x,y --report u,v."
            )
        return choices.space_from(points, promise.metric, how)
    _refuse(promise.metric is not None, "--distances says how far secrets are apart: leave --metric away.")
    _refuse(points is not None, "--distances is given in the order of the rows of the matrix: leave --points away.")
    metric = Precomputed(read_distances(promise.distances))
    return FiniteSpace(np.arange(float(len(metric.distances)))[:, None], metric)


def _audit_file(
    source: str, epsilon: str | None, key: str | None, *, again: bool
) -> tuple[AuditReport | ConcentratedReport, str]:
    from metricdp.artifacts import inspect as open_file
    from metricdp.artifacts.remembered import audited

    found = open_file(source, judged=False, trusted=key)
    unit = found.mechanism.guarantee.unit
    claimed = None if epsilon is None else parse_epsilon(epsilon, unit)
    if isinstance(found.mechanism.guarantee, ConcentratedGuarantee):
        if claimed is None:
            return metricdp.audit_concentrated(found.mechanism), unit
        return metricdp.audit(found.mechanism, epsilon=claimed), unit
    with terminal.progress_bar("Auditing") as progress:
        return audited(found.mechanism, found.sha256, epsilon=claimed, again=again, progress=progress), unit
