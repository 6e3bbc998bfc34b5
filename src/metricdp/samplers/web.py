"""An address on the web as a sampler: one call, one report, or several where the address can.

Every secret leaves this machine, so secrets must be made up, and the caller has to say that they are. Calls are few and
slow by default, redirects are not followed, and the size and the time of an answer are limited.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote, urlsplit

import numpy as np

from metricdp.arrays import Points, as_positive
from metricdp.errors import InvalidInput, SamplerFailure
from metricdp.rendering import address, is_address, place
from metricdp.samplers.reports import json_reports, line_of, plain, printable

LARGEST = 16 << 20  # bytes of one answer
SEVERAL = 1000  # reports asked for in one call, where the request has a place for their number
_PLACEHOLDER = re.compile(r"\{([A-Za-z_0-9]+)\}")


class WebSampler:
    """Draw reports from an address that is called with JSON (`body`), or with the secret in the address itself.

    Args:
        url: An address of http or https. Without `body` it is called by GET and holds the places of the secret, such as
            `https://example.org/report?lat={lat}&lon={lon}`.
        body: JSON with places to fill, sent by POST: `{"at": ["{lat}", "{lon}"]}`. A place is the name of a column, its
            number from 0, `{secret}` for the whole secret, or `{count}` for how many reports are wanted at once.
        found: Where in the answer the report is, such as `result.point`, or `result.lat,result.lon`.
        columns: The names of the coordinates of a secret.
        synthetic: Must be True: it says that the secrets are made up, since they leave this machine.
        rate: Calls a second at most.
        patience: Seconds that one call may take.
        headers: More headers of every call, such as one that identifies the caller.
    """

    def __init__(
        self,
        url: str,
        *,
        synthetic: bool,
        body: str | None = None,
        found: str = "",
        columns: Sequence[str] = (),
        rate: float = 5.0,
        patience: float = 10.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if synthetic is not True:
            raise InvalidInput(
                "what is sent to an address leaves this machine: it is only asked about made-up secrets. Use points "
                "that belong to nobody and say so, with synthetic=True (--synthetic on the command line)."
            )
        self.where = _address(url)
        self.columns, self.found = tuple(columns), [path.strip() for path in found.split(",") if path.strip()]
        self.rate, self.patience = as_positive(rate, "rate"), as_positive(patience, "patience")
        self.calls = 0
        self._body = None if body is None else _template(body)
        self._target = (self.where.path or "/") + (f"?{self.where.query}" if self.where.query else "")
        placeholders = set(_PLACEHOLDER.findall(self._target if body is None else f"{body}{self._target}"))
        _check_placeholders(placeholders, self.columns)
        self.several = SEVERAL if "count" in placeholders else 1
        self._headers = {"Accept": "application/json", "User-Agent": "metricdp-audit", **(headers or {})}
        self._connection: http.client.HTTPConnection | None = None
        self._next = 0.0

    def announcement(self, draws: int, secrets: int, *, independent: bool = False, probes: tuple[int, int]) -> str:
        """Say how many calls an audit will make at most, how fast, and what they hold.

        `probes` is how many calls for several reports compare calls with each other, and how many reports these are.
        """
        together = independent and self.several > 1
        calls = -(-draws // self.several) + secrets if together else draws
        calls += probes[0] if self.several > 1 else probes[0] * probes[1]
        return (
            f"{self.where.netloc} will be called at most {calls:,} times, at most {self.rate:g} times a second "
            f"({_duration(calls / self.rate)}). It gets {secrets} secrets, which you said are made up."
        )

    def __call__(self, secret: Any, count: int) -> Points:
        """Return at least `count` reports for a secret, one a row: what a call brings beyond is given too."""
        items: list[Any] = []
        wanted = 1 if count == 1 else self.several
        while len(items) < count:
            came = self._reports(self._answer(secret, wanted), many=self.several > 1)
            if not came:
                raise SamplerFailure(f"{self._who} was asked for {wanted} reports and gave none.")
            items += came
        return json_reports(items, self._who, columns=self.columns) if items else np.empty((0, 1))

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    @property
    def _who(self) -> str:
        return f"the address at {self.where.netloc}"

    def _answer(self, secret: Any, count: int) -> Any:
        """Call once, no earlier than the rate allows, and return the parsed answer."""
        values = _values(secret, self.columns, count)
        target = _PLACEHOLDER.sub(lambda found: quote(_text(values[found[1]]), safe=",.-"), self._target)
        body = None if self._body is None else json.dumps(_fill_template(self._body, values)).encode()
        time.sleep(max(0.0, self._next - time.monotonic()))
        self._next = time.monotonic() + 1.0 / self.rate
        self.calls += 1
        status, reason, text = self._call(target, body)
        if 300 <= status < 400:
            raise SamplerFailure(f"{self._who} answered with a redirect ({status}), which is not followed: {_FINAL}")
        if not 200 <= status < 300:
            advice = " Lower --rate." if status in (429, 503) else ""
            said = printable(text.decode(errors="replace"), line_of(secret), longest=200)
            raise SamplerFailure(f"{self._who} answered {status} {reason}: {said}{advice}")
        try:
            return json.loads(text)
        except ValueError as error:
            raise SamplerFailure(
                f"{self._who} answered something that is no JSON: {printable(text.decode(errors='replace'))!r}"
            ) from error

    def _call(self, target: str, body: bytes | None) -> tuple[int, str, bytes]:
        """Return status, reason and body; a connection that was closed since the last call is opened once more."""
        headers = self._headers if body is None else {"Content-Type": "application/json", **self._headers}
        fresh = self._connection is None
        until = time.monotonic() + self.patience
        try:
            if self._connection is None:
                kind = http.client.HTTPSConnection if self.where.scheme == "https" else http.client.HTTPConnection
                self._connection = kind(str(self.where.hostname), self.where.port, timeout=self.patience)
            self._connection.request("GET" if body is None else "POST", target, body, headers)
            answer = self._connection.getresponse()
            text = bytearray()
            while chunk := answer.read1(1 << 16):
                text += chunk
                if len(text) > LARGEST:
                    raise SamplerFailure(f"{self._who} answered with more than {LARGEST:,} bytes.")
                if time.monotonic() > until:
                    raise TimeoutError
            answer.read()  # nothing is left; only this frees the connection for the next call
            return answer.status, answer.reason, bytes(text)
        except TimeoutError as error:
            self.close()
            raise SamplerFailure(
                f"{self._who} took more than {self.patience:g} s to answer; raise --timeout if it is slow."
            ) from error
        except ssl.SSLError as error:
            self.close()
            raise SamplerFailure(f"{self._who} offers no connection that can be trusted: {error.reason}.") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not fresh:
                return self._call(target, body)
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise SamplerFailure(f"{self._who} cannot be reached: {said}.") from error
        except SamplerFailure:
            self.close()
            raise

    def _reports(self, answer: Any, *, many: bool) -> list[Any]:
        """Return the reports of an answer: one, or a list of them where several were asked for."""
        parts = [_value_at(answer, path, self._who) for path in self.found] or [answer]
        if not many:
            return parts if len(parts) == 1 else [parts]
        if not all(isinstance(part, list) for part in parts):
            raise SamplerFailure(f"{self._who} was asked for several reports and must answer with a list.")
        return list(parts[0]) if len(parts) == 1 else [list(row) for row in zip(*parts, strict=False)]


_FINAL = "give the address that it leads to."


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _address(url: str) -> Any:
    where = urlsplit(url.strip())
    if where.scheme not in ("http", "https") or not where.hostname:
        got = address(url) if is_address(url) else place(url.partition("?")[0])  # what follows may hold a token
        raise InvalidInput(f"`url` must be an address such as https://example.org/report, got {printable(got)!r}.")
    if where.username is not None or where.password is not None:
        raise InvalidInput("`url` must not hold a name or a password: addresses end in logs. Use a header.")
    return where


def _template(body: str) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise InvalidInput(
            f'`body` must be JSON with places in quotation marks, such as {{"at": ["{{lat}}", "{{lon}}"]}}: {error}.'
        ) from error


def _check_placeholders(placeholders: set[str], columns: Sequence[str]) -> None:
    known = {*columns, "secret", "count"}
    strange = sorted(found for found in placeholders if found not in known and not found.isdigit())
    if strange:
        there = ", ".join(f"{{{name}}}" for name in (*columns, "secret"))
        raise InvalidInput(
            f"there is no {{{strange[0]}}} to fill in: use {there}, a coordinate by its number from 0, or {{count}}."
        )
    if not placeholders - {"count"}:
        raise InvalidInput(
            "nothing says where the secret goes: put {secret}, or {0} and {1}, into the body or the url."
        )


def _values(secret: Any, columns: Sequence[str], count: int) -> dict[str, Any]:
    value = plain(secret)
    parts: list[Any] = [value] if isinstance(value, str) else list(value)
    named = dict(zip(columns, parts, strict=False))
    whole = parts[0] if len(parts) == 1 else parts
    numbered = _MissingKeys({str(number): part for number, part in enumerate(parts)})
    return _MissingKeys({**numbered, **named, "secret": whole, "count": count})


class _MissingKeys(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        raise InvalidInput(f"a secret here has no coordinate {{{name}}}: they are counted from 0.")


def _fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """Return the template with its places filled: a place alone becomes a number, one inside a text becomes text."""
    if isinstance(template, dict):
        return {name: _fill_template(item, values) for name, item in template.items()}
    if isinstance(template, list):
        return [_fill_template(item, values) for item in template]
    if not isinstance(template, str):
        return template
    alone = _PLACEHOLDER.fullmatch(template)
    return values[alone[1]] if alone else _PLACEHOLDER.sub(lambda found: _text(values[found[1]]), template)


def _text(value: Any) -> str:
    return ",".join(map(repr, value)) if isinstance(value, list) else str(value)


def _value_at(answer: Any, path: str, who: str) -> Any:
    """Return what stands at a path such as `result.points.0`."""
    for step in path.split("."):
        if isinstance(answer, dict) and step in answer:
            answer = answer[step]
        elif isinstance(answer, list) and step.isdigit() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            there = f"the fields {', '.join(list(answer)[:8])}" if isinstance(answer, dict) else "no fields"
            raise SamplerFailure(f"{who} answered without {path!r}: at {step!r} there are {there}. Correct --found.")
    return answer
