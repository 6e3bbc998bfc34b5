"""What is asked where: the page and its rooms."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from metricdp.errors import InvalidInput, MetricdpError
from metricdp.studio.feel import Feel

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
MOST_QUESTION = 1 << 20  # bytes of a question that is no file
MOST_CLOUD = 2_000
Endpoint = Callable[[Request], Awaitable[Response]]


def answer(content: Any, status: int = 200) -> Response:
    """Return plain values as JSON; what is not finite is null."""
    return Response(json.dumps(_plain(content), allow_nan=False), status, media_type="application/json")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def in_sentences(endpoint: Endpoint) -> Endpoint:
    """Answer what goes wrong with its sentence."""

    @wraps(endpoint)
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except MetricdpError as error:
            return answer({"message": str(error)}, 422)

    return answered


async def question(request: Request) -> dict[str, Any]:
    """Return the JSON object that was sent."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_QUESTION:
            raise InvalidInput("the question is too large.")
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInput("the question must be a JSON object.")
    return found


def number(values: dict[str, Any], name: str, low: float, high: float) -> float:
    """Return a number of a question within its range."""
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise InvalidInput(f"`{name}` must be a number from {low:g} to {high:g}.")
    return float(value)


async def file(request: Request) -> Response:
    """Give a file of the page."""
    path = (PAGE / (request.path_params.get("path") or "index.html")).resolve()
    if not path.is_relative_to(PAGE) or path.suffix not in TYPES or not path.is_file():
        return answer({"message": "there is nothing here."}, 404)
    return FileResponse(path, media_type=TYPES[path.suffix])


class FeelRoom:
    """The endpoints of the room Feel."""

    def __init__(self) -> None:
        self._feel = Feel()

    def routes(self) -> list[Route]:
        """Return what is asked where."""
        return [
            Route("/studio/streets", in_sentences(self.streets)),
            Route("/studio/feel", in_sentences(self.cloud), methods=["POST"]),
        ]

    async def streets(self, request: Request) -> Response:
        """Give the streets of the map."""
        return answer(await run_in_threadpool(lambda: self._feel.streets))

    async def cloud(self, request: Request) -> Response:
        """Draw a cloud of reports at a place."""
        asked = await question(request)
        place = asked.get("place")
        if not isinstance(place, list) or len(place) != 2:
            raise InvalidInput("`place` must be a latitude and a longitude.")
        where = np.array([number({"place": x}, "place", -180.0, 180.0) for x in place])
        factor, km = number(asked, "factor", 1.01, 1000.0), number(asked, "metres", 1.0, 1e6) / 1000.0
        count = int(number(asked, "count", 1, MOST_CLOUD))
        draw = {"noise": self._feel.noise, "optimal": self._feel.optimum}.get(str(asked.get("kind")))
        if draw is None:
            raise InvalidInput("`kind` must be noise or optimal.")
        return answer(await run_in_threadpool(partial(draw, where, factor, km, count)))


def rooms(*others: Any) -> Starlette:
    """Return the page and its rooms as one application, without its door."""
    parts = [FeelRoom(), *others]
    routes = [route for part in parts for route in part.routes()]
    return Starlette(routes=[*routes, Route("/{path:path}", file)])
