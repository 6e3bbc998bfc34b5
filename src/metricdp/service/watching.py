"""`/health`, `/ready` and `/metrics`: for those who keep the service running."""

from __future__ import annotations

import asyncio
import time

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

import metricdp
from metricdp.service.models import Health
from metricdp.service.releasing import DENIED
from metricdp.service.state import State, state_of

router = APIRouter()
PATIENCE = 3.0  # seconds in which a ledger that is well answers
UNWELL = 3.0  # seconds after a commit that failed
REMEMBERED = 1.0  # seconds for which an answer of the ledger is taken as true, so that nobody can wear it out


@router.get("/health", operation_id="health", summary="Is it there", tags=["watch"], response_model=Health)
async def health() -> JSONResponse:
    """Answer as long as the process runs; no key is needed and nothing else is said."""
    return JSONResponse({"status": "ok", "version": metricdp.__version__})


@router.get(
    "/ready", operation_id="ready", summary="Can it release", tags=["watch"], response_model=Health,
    responses={503: {"model": Health, "description": "The ledger is out of reach, or the service stops."}},
)  # fmt: skip
async def ready(request: Request) -> JSONResponse:
    """Tell whether releases can be made: the ledger answers and the service does not stop."""
    state = state_of(request)
    failing = time.monotonic() - state.till.failed < UNWELL  # it may still be read where it cannot be written
    good = not state.stopping.is_set() and not failing and await _answers(state)
    content = {"status": "ok" if good else "not ready", "version": metricdp.__version__}
    return JSONResponse(content, 200 if good else 503)


async def _answers(state: State) -> bool:
    now = time.monotonic()
    at, good = state.looked
    if now - at < REMEMBERED:
        return good
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().run_in_executor(state.threads, state.ask_ledger)
        good = True
    except Exception:
        good = False
    state.looked = (time.monotonic(), good)
    return good


@router.get(
    "/metrics", operation_id="metrics", summary="Counters for Prometheus", tags=["watch"],
    response_class=PlainTextResponse, responses=DENIED,
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Give counts and times in the text form of Prometheus; no person, key, secret or report is in them."""
    text, kind = state_of(request).counters.text()
    return Response(text, media_type=kind)
