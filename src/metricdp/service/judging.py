"""`/v1/audit`: a matrix or recorded samples as data; no command, address or path is taken."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from metricdp.errors import MetricdpError
from metricdp.service.bodies import judge
from metricdp.service.models import AuditAnswer, MatrixAudit, SamplesAudit
from metricdp.service.refusals import unfit
from metricdp.service.releasing import DENIED, body_of, check_media_type
from metricdp.service.state import state_of

router = APIRouter()


@router.post(
    "/v1/audit", operation_id="audit", summary="Judge a matrix or samples", tags=["read"],
    response_model=AuditAnswer, responses=DENIED, openapi_extra=body_of(MatrixAudit, SamplesAudit),
)  # fmt: skip
async def audit(request: Request) -> Response:
    """Say what a mechanism really leaks: exactly for a matrix, by evidence for samples."""
    check_media_type(request)
    state, body = state_of(request), await request.body()
    limits = state.limits
    try:
        found: dict[str, Any] = await state.apart.run(
            judge, body, limits.points, limits.rows, seconds=0.9 * limits.seconds
        )
    except MetricdpError as error:
        raise unfit(error) from None
    return Response(json.dumps(found, allow_nan=False), media_type="application/json")
