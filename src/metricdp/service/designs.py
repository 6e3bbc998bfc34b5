"""`/v1/design`, a mechanism designed as a job with events on the way, an end and a file; and `/v1/audit`.

An audit takes a matrix or recorded samples as data. It takes no command, address or path.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.responses import FileResponse, Response, StreamingResponse

from metricdp.design import builder_named
from metricdp.errors import MetricdpError
from metricdp.service.building import OFFERED
from metricdp.service.jobs import ENDED, DesignJob
from metricdp.service.models import AuditAnswer, DesignRequest, JobAnswer, MatrixAudit, Refusal, SamplesAudit
from metricdp.service.refusals import Refused, data_refusal
from metricdp.service.releases import DENIED, body_of, check_media_type, in_thread, parse_body
from metricdp.service.state import ServiceState, key_of, state_of
from metricdp.service.workers import audit_body, read_design
from metricdp.specs import point_space

router, audits = APIRouter(), APIRouter()
POLL_SECONDS = 0.2  # seconds between two looks at the events of a job
KEEPALIVE_SECONDS = 15.0  # seconds after which a comment keeps a quiet stream open
JOB: dict[int | str, dict[str, Any]] = {**DENIED, 404: {"model": Refusal, "description": "No such job of this key."}}
FILE: dict[int | str, dict[str, Any]] = {
    **JOB,
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}},
    409: {"model": Refusal, "description": "The job is not done."},
}
STREAM: dict[int | str, dict[str, Any]] = {
    **JOB, 200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}  # fmt: skip


@router.post(
    "/v1/design", operation_id="design", summary="Begin a design", tags=["admin"], status_code=202,
    response_model=JobAnswer, responses=DENIED, openapi_extra=body_of(DesignRequest),
)  # fmt: skip
async def design(request: Request) -> Response:
    """Begin to design a mechanism on points; what is asked for is checked now, the search runs as a job."""
    check_media_type(request)
    state = state_of(request)
    body = await parse_body(state, read_design, await request.body(), state.limits.points)
    try:
        builder_named(body["builder"], OFFERED)
        point_space(body["points"], body["metric"])
    except MetricdpError as error:
        raise data_refusal(error) from None
    job = await in_thread(state, lambda: state.jobs.start(key_of(request), body))
    return _answer(job, 202)


@router.get(
    "/v1/design/{job}", operation_id="designState", summary="How a design stands", tags=["admin"],
    response_model=JobAnswer, responses=JOB,
)  # fmt: skip
async def design_state(job: str, request: Request) -> Response:
    """Tell how a job stands: its bounds so far, and its certificate when it is done."""
    return _answer(await _find_job(state_of(request), request, job))


@router.get(
    "/v1/design/{job}/events", operation_id="designEvents", summary="Watch a design", tags=["admin"],
    response_class=StreamingResponse, responses=STREAM,
)  # fmt: skip
async def design_events(
    job: str, request: Request, last_event_id: Annotated[str | None, Header(max_length=20)] = None
) -> StreamingResponse:
    """Send what happens as server-sent events until the job ends; Last-Event-ID goes on where one left off."""
    state = state_of(request)
    found = await _find_job(state, request, job)
    after = int(last_event_id) if last_event_id and last_event_id.isdecimal() else 0
    return StreamingResponse(_events(state, found, after), media_type="text/event-stream")


async def _events(state: ServiceState, job: DesignJob, after: int) -> AsyncIterator[str]:
    quiet = 0.0
    while not state.stopping.is_set():
        try:
            status = await in_thread(state, job.current_status)
            fresh = await in_thread(state, partial(job.events, after))
        except (OSError, ValueError):
            return  # it was forgotten
        for after, event in fresh:
            kind = event.pop("event")
            yield _event(after, kind, event)
            if kind in ENDED:
                return
        quiet = 0.0 if fresh else quiet + POLL_SECONDS
        if status.state in ENDED and quiet > 1.0:  # its process was killed, or all events were sent before
            yield _event(after + 1, status.state, {"message": status.message})
            return
        if quiet >= KEEPALIVE_SECONDS:
            quiet = 0.0
            yield ": still at work\n\n"
        await asyncio.sleep(POLL_SECONDS)


def _event(number: int, kind: str, values: dict[str, Any]) -> str:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(values)}\n\n"


@router.get(
    "/v1/design/{job}/result", operation_id="designResult", summary="Fetch the mechanism file", tags=["admin"],
    response_class=FileResponse, responses=FILE,
)  # fmt: skip
async def design_result(job: str, request: Request) -> FileResponse:
    """Give the mechanism file of a design that is done."""
    found = await _find_job(state_of(request), request, job)
    if found.current_status().state != "done":
        raise Refused(409, "not_done", "this design has no file: it is not done.")
    return FileResponse(found.folder / "result.mdp", media_type="application/octet-stream", filename="design.mdp")


@router.delete(
    "/v1/design/{job}", operation_id="designCancel", summary="Cancel or forget a design", tags=["admin"],
    response_model=JobAnswer, responses=JOB,
)  # fmt: skip
async def design_cancel(job: str, request: Request) -> Response:
    """End a job that runs; forget one that has ended, its file included."""
    state = state_of(request)
    found = await _find_job(state, request, job)
    answer = _answer(found)
    await in_thread(state, lambda: state.jobs.remove(found))
    return answer


async def _find_job(state: ServiceState, request: Request, job: str) -> DesignJob:
    found: DesignJob = await in_thread(state, lambda: state.jobs.find(key_of(request), job))
    return found


def _answer(job: DesignJob, code: int = 200) -> Response:
    status = job.current_status()
    values = {name: getattr(status, name) for name in JobAnswer.model_fields if name != "job"}
    return Response(json.dumps({"job": job.id, **values}), code, media_type="application/json")


@audits.post(
    "/v1/audit", operation_id="audit", summary="Audit a matrix or samples", tags=["read"],
    response_model=AuditAnswer, responses=DENIED, openapi_extra=body_of(MatrixAudit, SamplesAudit),
)  # fmt: skip
async def audit(request: Request) -> Response:
    """Say what a mechanism really leaks: exactly for a matrix, by evidence for samples."""
    check_media_type(request)
    state, body = state_of(request), await request.body()
    limits = state.limits
    try:
        found: dict[str, Any] = await state.auditing.run(
            audit_body, body, limits.points, limits.rows, seconds=0.9 * limits.seconds
        )
    except MetricdpError as error:
        raise data_refusal(error) from None
    return Response(json.dumps(found, allow_nan=False), media_type="application/json")
