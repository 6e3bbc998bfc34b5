"""Malformed requests: drawn by schemathesis from the OpenAPI file, and good ones with their bytes broken.

Every answer must be a refusal in a sentence, or as described: no error of the server, no word of what was sent.
"""

from __future__ import annotations

import contextlib
import json
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

OPENAPI = Path(__file__).parents[1] / "js" / "service" / "openapi.json"
NUMBER, WORD, PERSON = 47.1928374, "zanzibarquatsch", "annabolikaperson"
CANARIES = ("47.1928", WORD, PERSON)
GOOD: dict[str, Any] = {
    "/v1/release": {"person": PERSON, "request": "one", "secret": {"lat": NUMBER, "lon": NUMBER}, "purpose": WORD},
    "/v1/release/batch": {"request": "two", "rows": [{"person": PERSON, "secret": [NUMBER, NUMBER]}], "purpose": WORD},
    "/v1/budget": {"person": PERSON, "mechanism": WORD},
    "/v1/audit": {"kind": "matrix", "matrix": [[0.5, NUMBER]] * 2, "points": [[0.0], [NUMBER]], "epsilon": 1.0},
    "/v1/design": {"points": [[NUMBER], [1.0]], "epsilon": 1.0, "builder": WORD},
}
TOKENS = ["1e999", "NaN", "null", "[]", "{}", '"x"', "-1", "true", '"\\ud800"', "1" * 400, "[" * 300, '""', "0.0000001"]


def drawn(each: int, seed: int = 0) -> Iterator[Any]:
    """Yield requests from the OpenAPI file: for every operation some that break it, and some as it describes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = schemathesis.openapi.from_dict(json.loads(OPENAPI.read_text(encoding="utf-8")))
        for operation in (result.ok() for result in found.get_all_operations()):
            begins = operation.label == "POST /v1/design"
            for mode in (GenerationMode.NEGATIVE,) if begins else (GenerationMode.NEGATIVE, GenerationMode.POSITIVE):
                yield from _cases(operation.as_strategy(generation_mode=mode), each, seed)


def _cases(strategy: Any, count: int, seed: int) -> list[Any]:
    cases: list[Any] = []

    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck), derandomize=not seed,
    )  # fmt: skip
    @given(case=strategy)
    def collect(case: Any) -> None:
        cases.append(case)

    with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with it
        collect()
    return cases


def broken(count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yield good bodies, with canaries in them, whose bytes were changed, cut, doubled or replaced."""
    rng = random.Random(seed)
    paths = list(GOOD)
    for _ in range(count):
        path = rng.choice(paths)
        body = json.dumps(GOOD[path])
        for _ in range(rng.randint(1, 3)):
            at, end = sorted(rng.randrange(len(body) + 1) for _ in range(2))
            body = rng.choice(
                [
                    body[:at],
                    body[:at] + rng.choice(TOKENS) + body[end:],
                    body[:at] + body[end:],
                    body[:end] + body[at:],
                    body.replace(":", f': {rng.choice(TOKENS)}, "{WORD}":', 1),
                    body[:at] + chr(rng.randrange(1, 0xD7FF)) + body[at:],
                ]
            )
            body = body or "{"
        yield path, body.encode("utf-8", "surrogatepass")


def judged(answer: httpx.Response, seen: Counter[int]) -> str:
    """Count an answer, and return what is wrong with it: nothing, where it is as it must be."""
    seen[answer.status_code] += 1
    if answer.status_code >= 500:
        return f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text[:200]}"
    if answer.status_code >= 400:
        try:
            found = answer.json()
            good = isinstance(found["message"], str) and found["message"].endswith(".") and found["error"]
        except (ValueError, KeyError, TypeError):
            good = False
        if not good:
            return f"no sentence: {answer.status_code} {answer.text[:200]}"
        leaks = [word for word in CANARIES if word in answer.text]
        if leaks:
            return f"leaks {leaks}: {answer.text[:300]}"
    return ""


def sent(url: str, token: str, *, each: int, count: int, seed: int = 0) -> tuple[Counter[int], list[str]]:
    """Send malformed requests to a service; return the statuses, and what was wrong with answers."""
    seen: Counter[int] = Counter()
    faults: list[str] = []
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60.0) as client:
        for case in drawn(each, seed):
            asked = case.as_transport_kwargs(base_url=url)
            headers = {name: value for name, value in asked["headers"].items() if name.lower() != "authorization"}
            try:
                request = client.build_request(
                    asked["method"], asked["url"], params=asked.get("params"), headers=headers,
                    content=asked.get("data"), json=asked.get("json"),
                )  # fmt: skip
            except (ValueError, TypeError, UnicodeError, httpx.InvalidURL):
                continue  # cannot be written as a request at all
            try:
                faults += filter(None, [judged(client.send(request), seen)])
            except (httpx.LocalProtocolError, httpx.InvalidURL):
                continue
        for path, body in broken(count, seed):
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            faults += filter(None, [judged(answer, seen)])
    return seen, faults
