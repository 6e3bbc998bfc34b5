"""The files of the page, and its rooms, as two applications behind one door."""

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

from metricdp.studio.json_requests import answer

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}


class Panel(Protocol):
    """A room of Studio: what it is asked, and where."""

    def routes(self) -> list[Route]:
        """Return what is asked where."""


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


def panel_application(panels: Sequence[Panel]) -> Starlette:
    """Return the rooms, without a door."""
    routes = [route for panel in panels for route in panel.routes()]
    return _compress([*routes, Route("/{path:path}", not_found)])


def _compress(routes: Sequence[Route]) -> Starlette:
    return Starlette(routes=routes, middleware=[Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=4)])
