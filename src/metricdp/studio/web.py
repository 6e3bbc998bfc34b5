"""HTTP of the page: its files, JSON in, JSON out, and a sentence for every error."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from metricdp.errors import InvalidInput, MetricdpError
from metricdp.rendering import plain_values
from metricdp.service.refusals import Refused

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
MOST_QUESTION = 32 << 20  # bytes of a question that is no file


def answer(content: Any, status: int = 200) -> Response:
    """Return plain values as JSON; `metricdp.rendering.plain_values` says how infinity is written."""
    return Response(json.dumps(plain_values(content), allow_nan=False), status, media_type="application/json")


async def answer_error(request: Request, error: Exception) -> Response:
    """Answer an error of ours with its sentence."""
    return error.response() if isinstance(error, Refused) else answer({"message": str(error)}, 422)


async def body_of(request: Request, most: int) -> bytes:
    """Return what was sent, or refuse it when it is too much."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise InvalidInput(f"what was sent is larger than {most / 1e6:,.0f} MB: use the command for it.")
        parts.append(part)
    return b"".join(parts)


async def question(request: Request, most: int = MOST_QUESTION) -> dict[str, Any]:
    """Return the JSON object that was sent, of at most so many bytes."""
    body = await body_of(request, most)
    try:
        found = json.loads(body)
        if b"\\u" in body:  # halves of a character, which no text can hold
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
        found = None
    if not isinstance(found, dict):
        raise InvalidInput("the question must be a JSON object.")
    return found


def get(path: str, work: Callable[[], Any]) -> Route:
    """Return an endpoint that answers with what the work gives, in a thread: it may take long."""

    async def endpoint(request: Request) -> Response:
        return answer(await run_in_threadpool(work))

    return Route(path, endpoint)


def post(path: str, work: Callable[[dict[str, Any]], Any], *, status: int = 200) -> Route:
    """Return an endpoint that answers with what the work makes of a question, in a thread: it may take long."""

    async def endpoint(request: Request) -> Response:
        return answer(await run_in_threadpool(work, await question(request)), status)

    return Route(path, endpoint, methods=["POST"])


def number(values: dict[str, Any], name: str, low: float, high: float) -> float:
    """Return a number of a question within its range."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InvalidInput(f"`{name}` must be a number from {low:g} to {high:g}.")
    return float(value)


async def file(request: Request) -> Response:
    """Give a file of the page."""
    try:
        path = (PAGE / (request.path_params.get("path") or "index.html")).resolve()
        found = path.is_relative_to(PAGE) and path.suffix in TYPES and path.is_file()
    except (OSError, ValueError, RuntimeError):  # a name that no file can have: a zero byte, one too long, a loop
        found = False
    return FileResponse(path, media_type=TYPES[path.suffix]) if found else await not_found(request)


async def not_found(request: Request) -> Response:
    """Say that there is nothing."""
    return answer({"message": "there is nothing here."}, 404)


def page() -> Starlette:
    """Return the files of the page."""
    return _compress([Route("/{path:path}", file)])


def panel_application(routes: Sequence[Route]) -> Starlette:
    """Return the endpoints of all panels, without `StudioAuth`."""
    return _compress([*routes, Route("/{path:path}", not_found)])


def _compress(routes: Sequence[Route]) -> Starlette:
    return Starlette(
        routes=routes,
        middleware=[Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=4)],
        exception_handlers={MetricdpError: answer_error, Refused: answer_error},
    )
