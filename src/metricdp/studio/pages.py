"""Which pages of Studio are open. When the last one was closed, the session ends.

A page says when it is there and, as it is closed, that it goes. A reload says both, in either order, so a page that
went counts as closed only after a while. A browser that crashes says nothing: the session then lasts until Studio is
ended in its terminal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metricdp.errors import InvalidInput
from metricdp.studio.asking import answer, in_sentences, question

GRACE = 20.0  # seconds in which a reload is over, or somebody comes back
MOST_PAGES = 100


class Pages:
    """The pages that are open, by names that they choose at random.

    Args:
        closed: Is called with the name of a page that was closed.
        ended: Is called when the last page was closed.
        grace: How many seconds after it went a page counts as closed.
    """

    def __init__(self, closed: Callable[[str], None], ended: Callable[[], None], *, grace: float = GRACE) -> None:
        self._closed, self._ended, self._grace = closed, ended, grace
        self._open: set[str] = set()
        self._going: dict[str, asyncio.TimerHandle] = {}

    def routes(self) -> list[Route]:
        """Return what is asked where."""
        return [
            Route("/studio/here", in_sentences(self.here), methods=["POST"]),
            Route("/studio/gone", in_sentences(self.gone), methods=["POST"]),
        ]

    async def here(self, request: Request) -> Response:
        """Note that a page is there."""
        page = await _page(request)
        if len(self._open | {page}) > MOST_PAGES:
            raise InvalidInput(f"more than {MOST_PAGES} pages of Studio are open: close some.")
        self._open.add(page)
        self._stay(page)
        return answer({"pages": len(self._open)})

    async def gone(self, request: Request) -> Response:
        """Note that a page goes; it is closed unless it is back soon."""
        page = await _page(request)
        if page in self._open:
            self._stay(page)
            self._going[page] = asyncio.get_running_loop().call_later(self._grace, self._close, page)
        return answer({"pages": len(self._open)})

    def _stay(self, page: str) -> None:
        timer = self._going.pop(page, None)
        if timer is not None:
            timer.cancel()

    def _close(self, page: str) -> None:
        self._going.pop(page, None)
        self._open.discard(page)
        self._closed(page)
        if not self._open:
            self._ended()


async def _page(request: Request) -> str:
    page = (await question(request)).get("page")
    if not isinstance(page, str) or not 1 <= len(page) <= 64:
        raise InvalidInput("`page` must be a name of 1 to 64 characters.")
    return page
