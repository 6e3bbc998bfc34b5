"""Asking a service from Python.

    from metricdp.service import Client

    with Client("https://privacy.example", token) as service:
        answer = service.release("anna", {"lat": 41.9, "lon": 12.48}, mechanism="rome")
        answer.report, answer.left.words, answer.accuracy[0].radius

Every release gets a request id of its own. Where no answer comes, or the service is busy, the same request is sent
again with the same id: what was charged is then answered with the stored report, and nothing is charged twice.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from metricdp.errors import MetricdpError, import_extra
from metricdp.files import replace_file
from metricdp.service.answers import Budget, Job, Released, ReleasedBatch

if TYPE_CHECKING:
    import httpx
    import pyarrow as pa

ARROW = "application/vnd.apache.arrow.stream"
AGAIN = (429, 503)
Value = float | str
Secret = Mapping[str, Value] | Sequence[Value] | float | str
T = TypeVar("T")


class ServiceError(MetricdpError):
    """The service gave nothing: `status` and `error` are for programs, the text is its sentence.

    `error` is `unreachable` where no answer came at all. `micro_left` and `refreshes` say what is left of a budget that
    did not suffice.
    """

    def __init__(
        self, message: str, *, status: int = 0, error: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.error, self.details = status, error, dict(details or {})

    @property
    def micro_left(self) -> int | None:
        """What is left of the budget that did not suffice, in millionths."""
        found = self.details.get("micro_left")
        return found if isinstance(found, int) else None


class Client:
    """A service at an address, asked with a key; safe to use from many threads."""

    def __init__(
        self, url: str, token: str, *, seconds: float = 30.0, tries: int = 5, verify: Any = True, transport: Any = None
    ) -> None:
        """Begin to ask.

        Args:
            url: Where the service is, such as https://privacy.example.
            token: A key from `metricdp serve keys make`.
            seconds: How long to wait for one answer.
            tries: How often to send a request that got no answer or found the service busy.
            verify: As in httpx: a file of certificates to trust, or True for those of the system.
            transport: As in httpx, for tests.
        """
        self._httpx = import_extra("httpx", "service")
        headers = {"authorization": f"Bearer {token}"}
        self._client: httpx.Client = self._httpx.Client(
            base_url=url, headers=headers, timeout=seconds, verify=verify, transport=transport
        )
        self._tries = max(1, tries)

    def __repr__(self) -> str:
        return f"Client({str(self._client.base_url)!r})"  # never the token

    def release(
        self,
        person: str,
        secret: Secret,
        *,
        mechanism: str | None = None,
        request: str | None = None,
        purpose: str | None = None,
    ) -> Released:
        """Release one secret; `request` is an id of your own where a release must survive this program."""
        body = {"person": person, "secret": secret, "request": request or uuid.uuid4().hex}
        found = self._post("/v1/release", body | _without_none(mechanism=mechanism, purpose=purpose))
        return _make_record(Released, found)

    def release_batch(
        self,
        rows: Sequence[tuple[str, Secret]],
        *,
        mechanism: str | None = None,
        request: str | None = None,
        purpose: str | None = None,
        partial: bool = False,
    ) -> ReleasedBatch:
        """Release many secrets, each with its person; with `partial` rows beyond a person's budget are None."""
        body = {
            "request": request or uuid.uuid4().hex,
            "rows": [{"person": person, "secret": secret} for person, secret in rows],
            "on_refusal": "null" if partial else "fail",
        }
        found = self._post("/v1/release/batch", body | _without_none(mechanism=mechanism, purpose=purpose))
        return _make_record(ReleasedBatch, found)

    def release_table(
        self,
        table: pa.Table,
        *,
        person: str = "person",
        mechanism: str | None = None,
        request: str | None = None,
        partial: bool = False,
    ) -> pa.Table:
        """Release a table of secrets as Arrow; the answer has the columns of the report and `left`, row by row."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        query = {"person": person, "on_refusal": "null" if partial else "fail"} | _without_none(mechanism=mechanism)
        headers = {"content-type": ARROW, "idempotency-key": request or uuid.uuid4().hex}
        content = sink.getvalue().to_pybytes()
        answer = self._send("POST", "/v1/release/batch", content=content, headers=headers, params=query)
        try:
            return pa.ipc.open_stream(answer.content).read_all()
        except (pa.ArrowException, OSError):
            raise _unreadable(answer.status_code) from None

    def budget(self, person: str, *, mechanism: str | None = None, purpose: str | None = None) -> Budget:
        """Return what is left to a person."""
        found = self._post("/v1/budget", {"person": person} | _without_none(mechanism=mechanism, purpose=purpose))
        return _make_record(Budget, found)

    def mechanisms(self) -> list[dict[str, Any]]:
        """Return what is served, with guarantees and certificates."""
        return cast(list[dict[str, Any]], _json(self._send("GET", "/v1/mechanisms"), list))

    def audit(self, **request: Any) -> dict[str, Any]:
        """Return what an audit finds: `kind="matrix"` with matrix and points, or `kind="samples"`."""
        return self._post("/v1/audit", request)

    def design(self, points: Sequence[Sequence[float]], epsilon: float, **options: Any) -> Job:
        """Begin a design on points; options are those of the service: metric, builder, prior, gap, ..."""
        body = {"points": [list(point) for point in points], "epsilon": epsilon, **options}
        return _make_record(Job, self._post("/v1/design", body, repeat=False))

    def job(self, job: str) -> Job:
        """Return how a design stands."""
        return _make_record(Job, _json(self._send("GET", f"/v1/design/{job}")))

    def events(self, job: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what happens to a design until it ends, by kind; a line that breaks is taken up where it broke."""
        last, tries = "0", 0
        while tries < self._tries:
            tries += 1
            broken = (self._httpx.RequestError, ValueError, KeyError, RecursionError)
            asked = {"headers": {"last-event-id": last}, "timeout": self._httpx.Timeout(30.0, read=60.0)}
            with suppress(*broken), self._client.stream("GET", f"/v1/design/{job}/events", **asked) as answer:
                found: dict[str, str] = {}
                for line in answer.iter_lines():
                    name, _, value = line.partition(": ")
                    if line:
                        found[name] = value
                    elif "data" in found:
                        event = found["event"], json.loads(found["data"])
                        last, tries = found["id"], 0
                        yield event
                        if found["event"] in ("done", "failed", "cancelled"):
                            return
                        found = {}
        raise ServiceError("the events of the design broke off.", error="unreachable")

    def result(self, job: str, path: str | Path) -> Path:
        """Write the mechanism file of a design that is done; `mdp.load` verifies it."""
        answer = self._send("GET", f"/v1/design/{job}/result")
        with replace_file(path) as partial:
            partial.write_bytes(answer.content)
        return Path(path)

    def cancel(self, job: str) -> Job:
        """End a design that runs, or forget one that has ended."""
        return _make_record(Job, _json(self._send("DELETE", f"/v1/design/{job}")))

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _post(self, path: str, body: Mapping[str, Any], *, repeat: bool = True) -> dict[str, Any]:
        content = json.dumps(body, allow_nan=False).encode()
        headers = {"content-type": "application/json"}
        answer = self._send("POST", path, content=content, headers=headers, repeat=repeat)
        return cast(dict[str, Any], _json(answer))

    def _send(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        repeat: bool = True,
    ) -> httpx.Response:
        """Send a request until it is answered; what is sent again is the very same."""
        last = self._tries if repeat else 1
        for attempt in range(1, last + 1):
            try:
                answer = self._client.request(method, path, content=content, headers=headers, params=params)
            except self._httpx.RequestError as error:
                if attempt == last:
                    raise ServiceError(
                        f"the service does not answer ({type(error).__name__}). Asking again with the same request id "
                        "is safe.", error="unreachable",
                    ) from None  # fmt: skip
                time.sleep(min(5.0, 0.1 * 2**attempt))
                continue
            if answer.status_code not in AGAIN or attempt == last:
                break
            time.sleep(_seconds(answer.headers.get("retry-after", "")))
        if answer.is_success:
            return answer
        raise _refusal(answer)


def _seconds(retry_after: str) -> float:
    """Return how long to wait by a Retry-After header, a number of seconds or a date: at most 5 s, else 1 s."""
    try:
        if retry_after.strip().isdigit():
            found = float(retry_after)
        else:
            found = parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        found = 1.0
    return min(5.0, max(0.0, found))


def _refusal(answer: httpx.Response) -> ServiceError:
    try:
        found = dict(answer.json())
    except (ValueError, TypeError, RecursionError):
        found = {}
    sentence = str(found.pop("message", f"the service answered {answer.status_code}."))
    return ServiceError(sentence, status=answer.status_code, error=str(found.pop("error", "")), details=found)


def _json(answer: httpx.Response, kind: type[Any] = dict) -> Any:
    """Return the JSON of an answer; something else may come from what stands between, such as a page to log in."""
    try:
        found = answer.json()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise _unreadable(answer.status_code)
    return found


def _unreadable(status: int) -> ServiceError:
    sentence = "what answers there is no service of metricdp, or its answer came broken: check the address."
    return ServiceError(sentence, status=status, error="unreadable")


def _without_none(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}


def _make_record(kind: type[T], values: Any) -> T:
    """Return a record of an answer, without fields that a newer service adds."""
    if not isinstance(values, Mapping):
        raise _unreadable(200)
    hints = get_type_hints(kind)
    return kind(**{name: _part(hints[name], values.get(name)) for name in hints})


def _part(hint: Any, value: Any) -> Any:
    """Return a part of an answer: a record, several of them, or plain values."""
    inner = get_args(hint)[0] if get_origin(hint) is tuple else hint
    if not (isinstance(inner, type) and is_dataclass(inner)):
        return tuple(value) if isinstance(value, list) else value
    if inner is hint:
        return _make_record(inner, value or {})
    if value is not None and not isinstance(value, list):
        raise _unreadable(200)
    return tuple(_make_record(inner, one) for one in value or ())
