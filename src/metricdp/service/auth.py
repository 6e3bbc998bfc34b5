"""Keys, scopes and limits of requests: everything is denied that no rule allows.

`Auth` wraps the whole application, so that nothing is routed, read or validated before the key is checked. It bounds
bytes and time, refuses requests at once when the service is busy, adds the security headers, counts and logs. An error
becomes an answer without values.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metricdp.service import logs
from metricdp.service.counters import Counters
from metricdp.service.keys import ApiKey, Keyring
from metricdp.service.limits import LARGEST_HEAD, ServiceLimits
from metricdp.service.refusals import Refused, busy_refusal, error_refusal

logger = logging.getLogger("metricdp.service")

HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"strict-transport-security", b"max-age=31536000"),
]
BUSY = "the service has enough to do, or enough of this key; ask again in a moment. Nothing was charged."
BUSY_LARGE = "enough large requests are at work, or enough of this key; ask again in a moment. Nothing was charged."
LATE = "this took longer than it may. Asking again with the same request id is safe: nothing is charged twice."
MOST_BUCKETS = 10_000
KEY, EXCHANGE = "metricdp.key", "metricdp.exchange"  # what the application finds in the scope of a request


@dataclass(frozen=True)
class Rule:
    """What an endpoint takes: a scope (None: no key needed), a large body or not, and whether it may last."""

    name: str
    scope: str | None
    large: bool = False
    lasting: bool = False


RULES = {
    "/health": Rule("health", None),
    "/ready": Rule("ready", None),
    "/openapi.json": Rule("openapi", "read"),
    "/metrics": Rule("metrics", "read"),
    "/v1/mechanisms": Rule("mechanisms", "read"),
    "/v1/budget": Rule("budget", "read"),
    "/v1/release": Rule("release", "release"),
    "/v1/release/batch": Rule("batch", "release", large=True),
    "/v1/audit": Rule("audit", "read", large=True),
    "/v1/design": Rule("design", "admin", large=True),
}
JOB = Rule("design_job", "admin")
EVENTS = Rule("design_events", "admin", lasting=True)
ELSEWHERE = Rule("elsewhere", "read")


def rule_for(path: str) -> Rule:
    """Return the rule of a path; an unknown path has one too, so that the answer does not say which paths exist."""
    if path.startswith("/v1/design/"):
        return EVENTS if path.endswith("/events") else JOB
    return RULES.get(path, ELSEWHERE)


class RateLimiter:
    """A limit of requests per second for every key: a bucket of tokens each, filled at a rate."""

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(1.0, 2.0 * rate)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str, now: float) -> float:
        """Take a token and return 0, or return how many seconds it is until there is one."""
        if not self._rate:
            return 0.0
        left, since = self._buckets.get(key, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.clear()
        self._buckets[key] = (left - 1.0, now) if left >= 1.0 else (left, now)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._rate


class RequestSlots:
    """Slots for requests at work, with a share for every key.

    With n keys at work a key has at most 1 / (n + 1) of all slots. So there is always a slot for one more key, however
    many requests one key sends and however slowly their bodies arrive.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: dict[str, int] = {}

    def is_free(self, key: str) -> bool:
        """Tell whether there is a place for a request of a key."""
        keys = len(self._taken) + (key not in self._taken)
        share = max(1, self._most // (keys + 1))
        return sum(self._taken.values()) < self._most and self._taken.get(key, 0) < share

    @contextmanager
    def take_slot(self, key: str, sentence: str) -> Iterator[None]:
        """Take a place for as long as a request is at work, or refuse it with a sentence."""
        if not self.is_free(key):
            raise busy_refusal(sentence)
        self._taken[key] = self._taken.get(key, 0) + 1
        try:
            yield
        finally:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]


class CheckedApplication:
    """An application behind checks of every request; `answer` makes them. Nothing but HTTP is answered."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self.answer(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, if it passes the checks."""
        raise NotImplementedError


def with_headers(send: Send, headers: Sequence[tuple[bytes, bytes]]) -> Send:
    """Return a way to send that adds headers to every answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *headers]
        await send(message)

    return send_with_headers


def bearer_token(scope: Scope) -> str:
    """Return the token that a request shows, empty where there is none."""
    kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


class Auth(CheckedApplication):
    """The service behind all checks."""

    def __init__(self, app: ASGIApp, *, keys: Keyring, limits: ServiceLimits, counters: Counters) -> None:
        super().__init__(app)
        self._keys, self._limits, self._counters = keys, limits, counters
        self._rates = RateLimiter(limits.rate)
        self._at_work = 0
        self._places, self._large = RequestSlots(limits.waiting), RequestSlots(limits.batches + 2)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request within its limits, count and log it."""
        started, rule = time.perf_counter(), rule_for(scope["path"])
        exchange = _Exchange(scope, receive, send, self._body_limit(rule))
        self._at_work += 1
        self._counters.at_work.set(self._at_work)
        try:
            await self._admit(exchange, rule)
        except Refused as refusal:
            await exchange.refuse(refusal)
        except TimeoutError:
            await exchange.refuse(Refused(503, "late", LATE, retry=1.0))
        except asyncio.CancelledError:
            exchange.status = exchange.status or 499
            raise
        except Exception:
            logger.exception("an error of the service itself")
            await exchange.refuse(error_refusal())
        finally:
            self._at_work -= 1
            self._counters.at_work.set(self._at_work)
            self._note(exchange, rule, time.perf_counter() - started)

    async def _admit(self, exchange: _Exchange, rule: Rule) -> None:
        exchange.check_head()
        if rule.scope is None:
            exchange.check_length()
            await self._time_answer(exchange)
            return
        exchange.key = self._authenticate(exchange.scope, rule.scope)
        wait = self._rates.take(exchange.key.id, time.monotonic())
        if wait:
            raise busy_refusal("this key asks more often than it may. Nothing was charged.", retry=wait)
        exchange.scope[KEY] = exchange.key.identity
        exchange.check_length()
        with self._places.take_slot(exchange.key.id, BUSY):
            if rule.lasting:
                await self.app(exchange.scope, exchange.receive, exchange.send)
            elif rule.large:
                with self._large.take_slot(exchange.key.id, BUSY_LARGE):  # few, since each is held in memory whole
                    await self._time_answer(exchange)
            else:
                await self._time_answer(exchange)

    async def _time_answer(self, exchange: _Exchange) -> None:
        async with asyncio.timeout(self._limits.seconds):
            await self.app(exchange.scope, exchange.receive, exchange.send)

    def _authenticate(self, scope: Scope, needed: str) -> ApiKey:
        """Return the key of a request that may do what it asks for."""
        key = self._keys.find(bearer_token(scope))
        if key is None:
            raise Refused(401, "unauthorised", "this needs a key: send `Authorization: Bearer` and a valid token.")
        if needed not in key.scopes:
            raise Refused(403, "forbidden", f"this key may not do that: it needs the scope {needed}.")
        return key

    def _body_limit(self, rule: Rule) -> int:
        return self._limits.batch_body if rule.large else self._limits.body

    def _note(self, exchange: _Exchange, rule: Rule, seconds: float) -> None:
        self._counters.requests.labels(rule.name, str(exchange.status)).inc()
        self._counters.seconds.labels(rule.name).observe(seconds)
        if exchange.error:
            self._counters.refused.labels(exchange.error).inc()
        if rule.scope is not None or exchange.status >= 400:
            logs.log_request(
                rule.name, exchange.status, seconds, exchange.key.id if exchange.key else "", exchange.error
            )


class _Exchange:
    """One request and its answer on their way through `Auth`."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, largest: int) -> None:
        self.scope, self._receive, self._body_limit = scope, receive, largest
        self._send = with_headers(send, HEADERS)
        self.key: ApiKey | None = None
        self.beyond: Refused | None = None  # what the application must answer where it hides why a body broke off
        self.status, self.error, self._read = 0, "", 0
        scope[EXCHANGE] = self  # a refusal further inside notes its word here

    def check_head(self) -> None:
        """Refuse a head that is too large; h11 bounds only one that has not arrived whole."""
        parts = [self.scope.get("raw_path") or b"", self.scope["query_string"]]
        parts += [part for header in self.scope["headers"] for part in header]
        if sum(len(part) + 2 for part in parts) > LARGEST_HEAD:
            raise Refused(
                431, "head", f"the address and the headers are larger than {LARGEST_HEAD:,} bytes together: send less."
            )

    def check_length(self) -> None:
        """Refuse a body by the length it names, before it is read."""
        length = Headers(scope=self.scope).get("content-length", "")
        if length.isdigit() and int(length) > self._body_limit:
            raise self._too_large()

    def _too_large(self) -> Refused:
        return Refused(413, "too_large", f"the request is larger than {self._body_limit:,} bytes: send it in parts.")

    async def receive(self) -> Message:
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > self._body_limit:
            self.beyond = self._too_large()
            raise self.beyond
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    async def refuse(self, refusal: Refused) -> None:
        """Answer with a refusal, unless an answer has begun."""
        if self.status:
            return
        self.error = refusal.kind
        await refusal.response()(self.scope, self._receive, self.send)
