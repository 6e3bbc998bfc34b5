"""Access to Studio: who gets in, and what a browser may do with the page.

The address that `metricdp studio` opens ends in a code, behind a #: browsers send that part to nobody. The page takes
the code out of its address and exchanges it, once, for a token. The page keeps the token for its tab and sends it in a
header with all it asks; a cookie would go to every port of this machine. The files of the page are the same for
everybody and need no token. The Host header must name this machine, so that no foreign name can be made to point here
(DNS rebinding), and what changes something must come from the page itself. Requests to `/v1/` go on to the service
under a key that no browser ever sees.

The address that opens Studio stands in the command line of the browser until the page is there, and every user of a
machine can read the command lines of all others. So the code in it is taken from programs of the same user only (and of
root, who can read everything). Systems that do not say whose a connection is take it from everybody.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from metricdp.errors import InvalidInput
from metricdp.service.auth import CheckedApplication, bearer_token, with_headers
from metricdp.studio.web import question

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")  # an IPv6 socket can reach an IPv4 address too
UID = 7  # the field of a line


def is_another_user(scope: Mapping[str, Any]) -> bool:
    """Tell whether a request comes from a program of another user of this machine; False where nobody says."""
    try:
        here, there = (_in_table(*scope[side]) for side in ("client", "server"))
    except (KeyError, TypeError, ValueError, OSError):
        return False
    owners = set[int]()
    for table in TABLES:
        with suppress(OSError, ValueError, IndexError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(here) and fields[2].endswith(there):
                    owners.add(int(fields[UID]))
    return bool(owners) and not owners <= {0, os.geteuid()}


def _in_table(host: str, port: int) -> str:
    """Return an address as the table ends it: an IPv4 address inside IPv6 ends in the same digits."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"


MOST_CODE = 1_000  # bytes of a question for the token
SAFE_METHODS = {"GET", "HEAD"}
# Scripts and data from here only; the map draws in a worker made of a blob, and sets styles and images of its own.
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
USED = "This address was used already: one address opens one page. Start `metricdp studio` again for a new one."
STRANGER = "Studio opens with the address that `metricdp studio` prints; this page has not been given one."
OTHER_USER = "Studio opens for the user who started it, and this request comes from another user of this machine."
OTHER_NAME = "Studio answers only under the name of this machine, such as 127.0.0.1."
OTHER_PAGE = "Studio takes changes only from its own page."


class StudioAuth(CheckedApplication):
    """Studio behind its checks of address, token and origin.

    Args:
        page: The files of the page, for every request under the name of this machine.
        panels: The endpoints under `/studio/`, with the token only.
        service: The endpoints under `/v1/`, with the token only.
        key: The key for requests to the service.
        port: The port on this machine.
    """

    def __init__(self, *, page: ASGIApp, panels: ASGIApp, service: ASGIApp | None, key: str, port: int) -> None:
        super().__init__(service or panels)
        self._page, self._panels, self._service, self._key = page, panels, service, key
        self._names = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._code: str | None = secrets.token_urlsafe(32)
        self._token = secrets.token_urlsafe(32)
        self.home = f"http://127.0.0.1:{port}/"
        self.address = f"{self.home}#open={self._code}"

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request under the name of this machine, with the token, from the page itself."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        asks, inner = path.startswith(("/studio/", "/v1/")), _strip_secrets(scope)
        target, safe = self._panels, with_headers(send, HEADERS)
        if headers.get("host", "").lower() not in self._names:
            target = _refusal(421, OTHER_NAME)
        elif asks and not hmac.compare_digest(bearer_token(scope).encode(), self._token.encode()):
            target = _refusal(403, STRANGER)
        elif method not in SAFE_METHODS and not self._is_same_origin(headers):
            target = _refusal(403, OTHER_PAGE)
        elif path == "/open" and method == "POST":
            target = _refusal(403, OTHER_USER) if is_another_user(scope) else await self._exchange(scope, receive)
        elif not asks:
            target = self._page
        elif path.startswith("/v1/") and self._service is not None:
            inner["headers"] = [*inner["headers"], (b"authorization", f"Bearer {self._key}".encode())]
            target, safe = self._service, send  # it has headers of its own
        await target(inner, receive, safe)

    async def _exchange(self, scope: Scope, receive: Receive) -> Response:
        """Exchange the code, once, for the token."""
        given: Any = None
        with suppress(InvalidInput, ClientDisconnect):
            given = (await question(Request(scope, receive), MOST_CODE)).get("code")
        if (
            self._code is None
            or not isinstance(given, str)
            or not hmac.compare_digest(given.encode(), self._code.encode())
        ):
            return _refusal(403, USED if self._code is None else STRANGER)
        self._code = None
        return JSONResponse({"token": self._token})

    def _is_same_origin(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is not None:
            return origin.lower() in {f"http://{name}" for name in self._names}
        return headers.get("sec-fetch-site") == "same-origin"


def _strip_secrets(scope: Scope) -> dict[str, Any]:
    """Return a request without its cookie and token: nothing behind `StudioAuth` needs them."""
    headers = [(name, value) for name, value in scope["headers"] if name not in (b"cookie", b"authorization")]
    return {**scope, "headers": headers}


def _refusal(status: int, sentence: str) -> Response:
    """Return an answer of a sentence and nothing else."""
    return PlainTextResponse(sentence, status)
