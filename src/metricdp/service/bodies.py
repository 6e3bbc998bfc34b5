"""Large JSON bodies as what they are described as.

Parsing tens of megabytes holds the interpreter for seconds, and with it every release. So bodies beyond `SMALL` bytes
are handed as they came to a process of their own, which parses them and gives back plain values.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from metricdp.service.building import audited
from metricdp.service.models import AuditRequest, BatchRequest, DesignRequest, MatrixAudit, SamplesAudit
from metricdp.service.refusals import Refused, malformed

SMALL = 256 * 1024  # bytes that are parsed where they arrive, in milliseconds
DIMENSIONS = 64  # of points, secrets and reports
T = TypeVar("T")
AUDIT: TypeAdapter[MatrixAudit | SamplesAudit] = TypeAdapter(AuditRequest)
BATCH, DESIGN = TypeAdapter(BatchRequest), TypeAdapter(DesignRequest)


def validated(adapter: TypeAdapter[T], body: bytes) -> T:
    """Return JSON as what it is described as, or refuse it without its values."""
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        raise malformed(error.errors(include_input=False, include_context=False, include_url=False)) from None


class Rows(NamedTuple):
    """What a batch asks for, as plain values."""

    mechanism: str | None
    request: str
    purpose: str | None
    partial: bool
    persons: list[str]
    secrets: list[Any]


def read_batch(body: bytes, most: int) -> Rows:
    """Return the rows of a batch, at most so many."""
    asked = validated(BATCH, body)
    if len(asked.rows) > most:
        raise Refused(413, "too_large", f"a batch has at most {most:,} rows: send it in parts.")
    persons, secrets = [row.person for row in asked.rows], [row.secret for row in asked.rows]
    return Rows(asked.mechanism, asked.request, asked.purpose, asked.on_refusal == "null", persons, secrets)


def read_design(body: bytes, most: int) -> dict[str, Any]:
    """Return what a design asks for, on at most so many points."""
    asked = validated(DESIGN, body)
    if len(asked.points) > most or max(len(point) for point in asked.points) > DIMENSIONS:
        raise Refused(413, "too_large", f"a design takes at most {most:,} points of {DIMENSIONS} coordinates.")
    return asked.model_dump()


def judge(body: bytes, points: int, rows: int) -> dict[str, Any]:
    """Read an audit, of at most so many secrets of a matrix or rows of samples, and return what it finds."""
    asked = validated(AUDIT, body)
    if isinstance(asked, MatrixAudit):
        sides = max(len(asked.matrix), len(asked.points), max(len(row) for row in asked.matrix))
        width = max(len(row) for row in asked.points)
        _check(sides, points, "secrets and reports")
    else:
        _check(max(len(asked.secrets), len(asked.reports)), rows, "rows")
        width = max(len(row) for row in (*asked.secrets, *asked.reports))
    _check(width, DIMENSIONS, "coordinates")
    return audited(dict(asked))


def _check(count: int, most: int, what: str) -> None:
    if count > most:
        raise Refused(413, "too_large", f"an audit takes at most {most:,} {what}.")
