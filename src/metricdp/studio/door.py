"""The door of Studio: who gets in, and what a browser may do with the page.

The address that `metricdp studio` opens carries a token. The first visit exchanges it for a cookie; then the token is
worth nothing, so that it does no harm in a history or a log. Every other request needs the cookie. The Host header
must name this machine, so that no foreign name can be made to point here (DNS rebinding), and what changes something
must come from the page itself. Requests to `/v1/` go on to the service under a key that no browser ever
sees.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "metricdp-studio"
SAFE_METHODS = {"GET", "HEAD"}
# Scripts and data from here only; the map draws in a worker made of a blob, and sets styles and pictures of its own.
POLICY = (
    "default-src 'none'; script-src 'self'; worker-src blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self' blob: data:; font-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
USED = "This address was used already: one address opens one browser. Start `metricdp studio` again for a new one."
STRANGER = "Studio opens with the address that `metricdp studio` prints; this browser has not been given one."
OTHER_NAME = "Studio answers only under the name of this machine, such as 127.0.0.1."
OTHER_PAGE = "Studio takes changes only from its own page."


class Door:
    """Studio with a door in front of it."""

    def __init__(self, inside: App, *, service: App | None, key: str, port: int) -> None:
        self._inside, self._service, self._key = inside, service, key
        self._names = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self.address = f"http://127.0.0.1:{port}/open?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await (self._service or self._inside)(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._visit(scope, receive, send)

    async def _visit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get(b"host", "").lower() not in self._names:
            await refuse(send, 421, OTHER_NAME)
        elif scope["path"] == "/open":
            await self._exchange(scope, send)
        elif not self._knows(headers.get(b"cookie", "")):
            await refuse(send, 403, STRANGER)
        elif scope["method"] not in SAFE_METHODS and not self._from_here(headers):
            await refuse(send, 403, OTHER_PAGE)
        elif scope["path"].startswith("/v1/") and self._service is not None:
            kept = [(name, value) for name, value in scope["headers"] if name not in (b"cookie", b"authorization")]
            inner = {**scope, "headers": [*kept, (b"authorization", f"Bearer {self._key}".encode())]}
            await self._service(inner, receive, send)
        else:
            await self._inside(scope, receive, _with_headers(send))

    async def _exchange(self, scope: Scope, send: Send) -> None:
        """Take the token once and give a cookie for it."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._token is None or not hmac.compare_digest(given.encode(), self._token.encode()):
            await refuse(send, 403, USED if self._token is None else STRANGER)
            return
        self._token = None
        cookie = f"{COOKIE}={self._session}; Path=/; HttpOnly; SameSite=Strict"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), *HEADERS]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    def _knows(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(COOKIE)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._session.encode())

    def _from_here(self, headers: dict[bytes, str]) -> bool:
        origin = headers.get(b"origin")
        if origin is not None:
            return origin.lower() in {f"http://{name}" for name in self._names}
        return headers.get(b"sec-fetch-site") == "same-origin"


async def refuse(send: Send, status: int, sentence: str) -> None:
    """Answer with a sentence and nothing else."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": sentence.encode()})


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
        await send(message)

    return sending
