"""The application: what is asked where, and what it has at hand."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from types import FrameType
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

import metricdp
from metricdp.ledger import Ledger
from metricdp.service import batches, designs, releases
from metricdp.service.auth import EXCHANGE, Auth
from metricdp.service.commits import CommitQueue
from metricdp.service.counters import Counters
from metricdp.service.jobs import DesignJobs
from metricdp.service.keys import Keyring
from metricdp.service.limits import ServiceLimits
from metricdp.service.models import (
    OF_COMMANDS,
    PUBLISHED,
    BatchRequest,
    DesignRequest,
    Health,
    MatrixAudit,
    SamplesAudit,
)
from metricdp.service.refusals import Refused, body_refusal, error_refusal
from metricdp.service.releases import DENIED
from metricdp.service.served_mechanisms import MechanismRegistry, ServedMechanism
from metricdp.service.state import ServiceState, state_of
from metricdp.service.workers import WorkerPool

ABOUT = (
    "Release locations, words and other secrets under metric differential privacy, with a ledger of what every person "
    "spent. Every answer states the guarantee, the cost, what is left and how far away the truth may be."
)
router = APIRouter()
PATIENCE = 3.0  # seconds in which a ledger that is well answers
UNWELL = 3.0  # seconds after a commit that failed
READY_SECONDS = 1.0  # seconds for which an answer of the ledger is taken as true, so that nobody can wear it out
LARGE = (BatchRequest, DesignRequest, MatrixAudit, SamplesAudit)
WORDS = {404: ("not_found", "there is nothing here."), 405: ("method", "this is asked for in another way.")}


@dataclass(frozen=True)
class LedgerSettings:
    """Where the ledger is, how it is begun, its key and its head file."""

    place: str = field(repr=False)  # an address may hold a password
    policy: str | None = None
    key_file: str | None = None
    head_file: str | None = None

    def open(self) -> Ledger:
        """Open the ledger."""
        return Ledger.open(self.place, policy=self.policy, key_file=self.key_file, head_file=self.head_file)


@dataclass(frozen=True)
class Settings:
    """What a service is made of: everything a process needs to begin."""

    ledger_settings: LedgerSettings
    keys: str
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    jobs: str | None = None


def application(settings: Settings, served: list[ServedMechanism]) -> Auth:
    """Return the whole application behind `Auth`; the ledger is opened when it starts."""
    counters, registry, keyring = Counters(), MechanismRegistry(served), Keyring(settings.keys)

    @asynccontextmanager
    async def manage_lifespan(app: FastAPI) -> AsyncIterator[None]:
        with tempfile.TemporaryDirectory(prefix="metricdp-jobs-") as folder:
            state = _open_state(settings, registry, counters, settings.jobs or folder)
            app.state.metricdp = state
            state.commits.open()
            for one in registry:
                _ = one.common, one.description  # computed now, not at the first request
            try:
                with _watch_for_stop(state.stopping):
                    yield
            finally:
                state.stopping.set()
                await state.commits.close()
                state.jobs.stop()
                state.auditing.end()
                state.reading.end()
                state.threads.shutdown()
                state.ledger.close()

    app = endpoints(manage_lifespan)
    return Auth(app, keys=keyring, limits=settings.limits, counters=counters)


@contextmanager
def _watch_for_stop(stopping: asyncio.Event) -> Iterator[None]:
    """Hear of a stop when the signal comes: streams of events end then, and do not hold the stop up."""
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}

    def hear(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stopping.set)
        handler = before[number]
        if callable(handler):
            handler(number, frame)

    if threading.current_thread() is threading.main_thread():
        for one in (signal.SIGTERM, signal.SIGINT):
            before[one] = signal.getsignal(one)
            signal.signal(one, hear)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _open_state(settings: Settings, registry: MechanismRegistry, counters: Counters, jobs: str) -> ServiceState:
    ledger, limits = settings.ledger_settings.open(), settings.limits
    return ServiceState(
        registry=registry,
        ledger=ledger,
        limits=limits,
        counters=counters,
        commits=CommitQueue(ledger, waiting=limits.waiting, counters=counters),
        jobs=DesignJobs(jobs, limits),
        auditing=WorkerPool(),
        reading=WorkerPool(),
        threads=ThreadPoolExecutor(4 + limits.batches, thread_name_prefix="service"),
    )


def endpoints(lifespan: Any = None) -> FastAPI:
    """Return the endpoints without anything behind them: enough for the OpenAPI file."""
    app = FastAPI(
        title="metricdp",
        summary="Metric differential privacy as a service",
        description=ABOUT,
        version=metricdp.__version__,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        separate_input_output_schemas=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # bodies and errors belong in no trace
    )
    for part in (releases.router, batches.router, designs.audits, designs.router, router):
        app.include_router(part)
    for kind in (Refused, RequestValidationError, HTTPException, Exception):
        app.exception_handler(kind)(_handle_error)
    app.openapi = lambda: _openapi_with_keys(app)  # type: ignore[method-assign]
    return app


async def _handle_error(request: Request, error: Exception) -> JSONResponse:
    exchange = request.scope.get(EXCHANGE)
    if isinstance(error, Refused):
        refusal = error
    elif isinstance(error, RequestValidationError):
        refusal = body_refusal(error.errors())
    elif isinstance(error, HTTPException):
        kind, sentence = WORDS.get(error.status_code, ("invalid", "the request cannot be read."))
        beyond = exchange.beyond if exchange is not None else None
        refusal = beyond or Refused(error.status_code, kind, sentence)
    else:
        refusal = error_refusal()  # `Auth` logs it: it is raised again behind this
    if exchange is not None:
        exchange.error = refusal.kind
    return refusal.response()


def _openapi_with_keys(app: FastAPI) -> dict[str, Any]:
    """Return the description with the key that everything but /health and /ready needs."""
    if app.openapi_schema is None:
        from fastapi.openapi.utils import get_openapi

        found = get_openapi(
            title=app.title, summary=app.summary, description=app.description, version=app.version, routes=app.routes
        )
        for model in LARGE:  # their endpoints read them by themselves
            schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
            found["components"]["schemas"] |= schema.pop("$defs", {}) | {model.__name__: schema}
        found["components"]["schemas"] |= _published_schemas()
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for path, methods in found["paths"].items():
            for operation in methods.values():
                operation["security"] = [] if path in ("/health", "/ready") else [{"key": []}]
        app.openapi_schema = found
    return app.openapi_schema


def _published_schemas() -> dict[str, Any]:
    """Return the records of metricdp.schema.json that are answered, under the names that they have here."""
    defined = json.loads(files("metricdp").joinpath("metricdp.schema.json").read_text(encoding="utf-8"))["$defs"]

    def rename(part: Any) -> Any:
        if isinstance(part, list):
            return [rename(one) for one in part]
        if not isinstance(part, dict):
            return part
        own = {name: rename(one) for name, one in part.items() if name not in ("$ref", *OF_COMMANDS)}
        if "$ref" not in part:
            return own
        name = part["$ref"].removeprefix("#/$defs/")
        return (
            {"$ref": f"#/components/schemas/{PUBLISHED[name]}"} if name in PUBLISHED else rename(defined[name])
        ) | own

    return {ours: rename(defined[name]) for name, ours in PUBLISHED.items()}


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
    failing = time.monotonic() - state.commits.failed < UNWELL  # it may still be read where it cannot be written
    good = not state.stopping.is_set() and not failing and await _is_ledger_answering(state)
    content = {"status": "ok" if good else "not ready", "version": metricdp.__version__}
    return JSONResponse(content, 200 if good else 503)


async def _is_ledger_answering(state: ServiceState) -> bool:
    now = time.monotonic()
    at, good = state.checked_at
    if now - at < READY_SECONDS:
        return good
    try:
        async with asyncio.timeout(PATIENCE):
            await asyncio.get_running_loop().run_in_executor(state.threads, state.ask_ledger)
        good = True
    except Exception:
        good = False
    state.checked_at = (time.monotonic(), good)
    return good


@router.get(
    "/metrics", operation_id="metrics", summary="Counters for Prometheus", tags=["watch"],
    response_class=PlainTextResponse, responses=DENIED,
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Give counts and times in the text form of Prometheus; no person, key, secret or report is in them."""
    text, kind = state_of(request).counters.text()
    return Response(text, media_type=kind)
