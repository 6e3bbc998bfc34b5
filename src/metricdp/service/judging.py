"""`/v1/audit`: a matrix or recorded samples as data; no command, address or path is taken."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from metricdp.errors import MetricdpError
from metricdp.service.building import audited
from metricdp.service.models import AuditAnswer, AuditRequest, MatrixAudit, SamplesAudit
from metricdp.service.refusals import Refused, unfit
from metricdp.service.releasing import DENIED, body_of, read
from metricdp.service.state import state_of

router = APIRouter()
ASKED: TypeAdapter[MatrixAudit | SamplesAudit] = TypeAdapter(AuditRequest)
DIMENSIONS = 64  # of points, secrets and reports


@router.post(
    "/v1/audit", operation_id="audit", summary="Judge a matrix or samples", tags=["read"],
    response_model=AuditAnswer, responses=DENIED, openapi_extra=body_of(MatrixAudit, SamplesAudit),
)  # fmt: skip
async def audit(request: Request) -> Response:
    """Say what a mechanism really leaks: exactly for a matrix, by evidence for samples."""
    state, body = state_of(request), await read(request, ASKED)
    limits = state.limits
    if isinstance(body, MatrixAudit):
        sides = max(len(body.matrix), len(body.points), max(len(row) for row in body.matrix))
        width = max(len(row) for row in body.points)
        _bounded(sides, limits.points, "secrets and reports")
    else:
        _bounded(max(len(body.secrets), len(body.reports)), limits.rows, "rows")
        width = max(len(row) for row in (*body.secrets, *body.reports))
    _bounded(width, DIMENSIONS, "coordinates")
    try:
        found: dict[str, Any] = await state.apart.run(audited, body.model_dump(), 0.9 * limits.seconds)
    except MetricdpError as error:
        raise unfit(error) from None
    return Response(json.dumps(found, allow_nan=False), media_type="application/json")


def _bounded(count: int, most: int, what: str) -> None:
    if count > most:
        raise Refused(413, "too_large", f"an audit takes at most {most:,} {what}.")
