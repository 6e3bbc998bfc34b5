"""Questions and answers of the page: JSON in, JSON out, and a sentence for whatever goes wrong."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from metricdp.errors import InvalidInput, MetricdpError
from metricdp.rendering import plain_values
from metricdp.service.refusals import Refused

MOST_QUESTION = 32 << 20  # bytes of a question that is no file
Endpoint = Callable[[Request], Awaitable[Response]]


def answer(content: Any, status: int = 200) -> Response:
    """Return plain values as JSON; `metricdp.rendering.plain_values` says how infinity is written."""
    return Response(json.dumps(plain_values(content), allow_nan=False), status, media_type="application/json")


def answer_errors(endpoint: Endpoint) -> Endpoint:
    """Answer what goes wrong with its sentence."""

    @wraps(endpoint)
    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except MetricdpError as error:
            return answer({"message": str(error)}, 422)
        except Refused as refusal:
            return refusal.response()

    return answered


async def body_of(request: Request, most: int) -> bytes:
    """Return what was sent, or refuse it when it is too much."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise InvalidInput(f"what was sent is larger than {most / 1e6:,.0f} MB: use the command for it.")
        parts.append(part)
    return b"".join(parts)


async def question(request: Request) -> dict[str, Any]:
    """Return the JSON object that was sent."""
    body = await body_of(request, MOST_QUESTION)
    try:
        found = json.loads(body)
        if b"\\u" in body:  # halves of a character, which no text can hold
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
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
