"""Refusals: a status, a word for programs and a sentence for people.

No sentence holds what was sent, since errors end in logs. Sentences of other packages may quote a value: they lose
quotes and long numbers first (`scrub`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from starlette.responses import JSONResponse

from metricdp.errors import MetricdpError

REQUIRED = "is missing"
SENTENCES = {  # the kinds of pydantic that say more than "is not what was expected"; its own texts may quote the value
    "missing": REQUIRED,
    "extra_forbidden": "holds a field that is not known here",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "string_too_long": "is too long",
    "string_pattern_mismatch": "is not written as it must be",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "literal_error": "must be one of the words listed in the description",
    "too_long": "has too many entries",
    "too_short": "has too few entries",
    "greater_than": "is too small",
    "greater_than_equal": "is too small",
    "less_than": "is too large",
    "less_than_equal": "is too large",
    "json_invalid": "is no JSON",
}
_QUOTED = re.compile(r"(['\"`])(?:(?!\1).){1,400}\1")
_WORD = re.compile(r"^`[a-z_]{1,30}`$")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d{2,}|\d{5,})(?:[eE][-+]?\d+)?|[-+]?\d+(?:\.\d+)?[eE][-+]?\d+")
_LISTED = re.compile(r"[\[(][^\])]*\d[^\])]*[\])]")


class Refused(Exception):
    """A request that gets an answer of its own: `kind` is for programs, the sentence for people."""

    def __init__(self, status: int, kind: str, sentence: str, *, retry: float | None = None, **details: Any) -> None:
        super().__init__(kind)
        self.status, self.kind, self.sentence, self.retry, self.details = status, kind, sentence, retry, details

    def __reduce__(self) -> tuple[Any, ...]:  # a refusal may come from a process of its own
        return partial(Refused, retry=self.retry, **self.details), (self.status, self.kind, self.sentence)

    def response(self) -> JSONResponse:
        """Return the answer."""
        headers = {} if self.retry is None else {"Retry-After": str(max(1, round(self.retry)))}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.kind in ("late", "too_large"):
            headers["Connection"] = "close"  # the rest of the body is not waited for
        content = {"error": self.kind, "message": self.sentence, **self.details}
        return JSONResponse(content, self.status, headers=headers)


def busy_refusal(sentence: str, *, retry: float = 1.0) -> Refused:
    """Return the refusal of a service that is busy."""
    return Refused(429, "busy", sentence, retry=retry)


def error_refusal() -> Refused:
    """Return the refusal after an error of the service itself."""
    sentence = "the service made a mistake; it is in its log. Asking again with the same request id is safe."
    return Refused(500, "internal", sentence)


def data_refusal(error: MetricdpError) -> Refused:
    """Return the refusal of data that another package refused, its sentence without values."""
    return Refused(422, "invalid", scrub(str(error)))


def body_refusal(errors: Iterable[Mapping[str, Any]]) -> Refused:
    """Return the refusal of a body that is not as described: which field, never what was in it."""
    first = next(iter(errors), {})
    kind, place = str(first.get("type", "")), list(first.get("loc", ()))
    if kind == "extra_forbidden":
        place = place[:-1]  # its name is the sender's
    if kind == "json_invalid":
        place = ["body"]
    known = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in place if _is_ours(part)]
    name = "".join(known).removeprefix(".").removeprefix("body.") or "body"
    sentence = f"`{name}` {SENTENCES.get(kind, 'is not what is described')}; /openapi.json describes every request."
    return Refused(422, "invalid", sentence)


def _is_ours(part: object) -> bool:
    """Tell whether a part of a place is a name of ours or a number: names in objects may be the sender's."""
    return isinstance(part, int) or part in FIELDS


FIELDS: set[str] = {"body", "query", "header"}  # `models` adds the names of its fields


def scrub(sentence: str) -> str:
    """Return a sentence without what may be a value: quoted text, lists of numbers, numbers of many digits."""
    plain = _QUOTED.sub(lambda found: found[0] if _WORD.match(found[0]) else "(a value)", sentence)
    return _NUMBER.sub("(a number)", _LISTED.sub("(values)", plain))
