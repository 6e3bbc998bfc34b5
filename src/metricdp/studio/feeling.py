"""The room Feel: streets for the map, and clouds of reports at a place."""

from __future__ import annotations

from functools import partial

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metricdp.errors import InvalidInput
from metricdp.studio.asking import answer, in_sentences, number, question
from metricdp.studio.feel import Feel

MOST_CLOUD = 2_000


class FeelRoom:
    """Where the room is asked."""

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
        ends = zip(place, (90.0, 180.0), strict=True)
        where = np.array([number({"place": x}, "place", -most, most) for x, most in ends])
        factor, km = number(asked, "factor", 1.01, 1000.0), number(asked, "metres", 1.0, 1e6) / 1000.0
        count = int(number(asked, "count", 1, MOST_CLOUD))
        draw = {"noise": self._feel.noise, "optimal": self._feel.optimum}.get(str(asked.get("kind")))
        if draw is None:
            raise InvalidInput("`kind` must be noise or optimal.")
        return answer(await run_in_threadpool(partial(draw, where, factor, km, count)))
