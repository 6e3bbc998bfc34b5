"""The page and its rooms as one application, behind its door."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from metricdp.studio.asking import answer

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


class Room(Protocol):
    """A room of Studio: what it is asked, and where."""

    def routes(self) -> list[Route]:
        """Return what is asked where."""


async def file(request: Request) -> Response:
    """Give a file of the page."""
    path = (PAGE / (request.path_params.get("path") or "index.html")).resolve()
    if not path.is_relative_to(PAGE) or path.suffix not in TYPES or not path.is_file():
        return answer({"message": "there is nothing here."}, 404)
    return FileResponse(path, media_type=TYPES[path.suffix])


def house(rooms: Sequence[Room]) -> Starlette:
    """Return the page and its rooms, without a door."""
    routes = [route for room in rooms for route in room.routes()]
    packed = Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=4)
    return Starlette(routes=[*routes, Route("/{path:path}", file)], middleware=[packed])
