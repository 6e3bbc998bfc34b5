"""The gate: everything is denied but what a key with the right scope asks for, within the limits."""

from __future__ import annotations

import json
import socket
import threading
import time
import uuid
from contextlib import ExitStack

import httpx
import pytest

import serving
from metricdp.service import (
    HEADERS,
    RateLimiter,
    Refused,
    RequestSlots,
    ServiceLimits,
    endpoints,
    keys,
    protocol,
    rule_for,
)

OPEN = {"/health", "/ready"}
NEEDED = {
    "/openapi.json": "read",
    "/metrics": "read",
    "/v1/mechanisms": "read",
    "/v1/budget": "read",
    "/v1/audit": "read",
    "/v1/release": "release",
    "/v1/release/batch": "release",
    "/v1/design": "admin",
    "/v1/design/{job}": "admin",
    "/v1/design/{job}/events": "admin",
    "/v1/design/{job}/result": "admin",
}


def operations():
    """Every path and method there is, as the application itself lists them."""
    found = endpoints().openapi()["paths"]
    listed = [(path, method.upper()) for path, methods in found.items() for method in methods]
    return [*listed, ("/openapi.json", "GET"), ("/docs", "GET"), ("/redoc", "GET"), ("/nowhere", "GET")]


def release(person=None):
    return {
        "person": person or uuid.uuid4().hex,
        "request": uuid.uuid4().hex,
        "mechanism": "earth",
        "secret": {"lat": 1.0, "lon": 2.0},
    }


@pytest.mark.parametrize(("path", "method"), operations())
def test_nothing_is_answered_without_a_key_and_nothing_without_the_scope(running, path, method):
    where = path.replace("{job}", "0" * 32)
    with running.client(None) as nobody:
        answer = nobody.request(method, where)
    if path in OPEN:
        assert answer.status_code == 200
        assert set(answer.json()) == {"status", "version"}
        return
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "docs" in path or "redoc" in path or "nowhere" in path or path in NEEDED
    for scope in ("release", "read", "admin"):
        if scope != NEEDED.get(path, "read"):
            with running.client(scope) as client:
                assert client.request(method, where).status_code == 403


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Basic dTpw", "bearer mdp_000000000000_" + "a" * 43, "Bearer \xff"]
)
def test_other_ways_to_name_a_key_open_nothing(running, header):
    answer = httpx.get(f"{running.url}/v1/mechanisms", headers={"authorization": header.encode("latin-1")})
    assert answer.status_code == 401


def test_paths_that_look_like_others_open_nothing(running):
    with running.client(None) as nobody:
        for path in (
            "/health/",
            "/HEALTH",
            "//health",
            "/health/../v1/mechanisms",
            "/v1/release/",
            "/ready%2f..%2fmetrics",
        ):
            assert nobody.get(path).status_code == 401, path
    assert rule_for("/v1/design/x/events").scope == "admin"


def test_every_answer_carries_the_headers_and_no_other_origin_is_let_in(running):
    origin = {"origin": "https://elsewhere.example"}
    asking = origin | {"access-control-request-method": "POST"}
    with running.client() as client:
        answers = [
            client.get("/health", headers=origin),
            client.get("/v1/mechanisms", headers=origin),
            client.options("/v1/release", headers=asking),
            client.post("/v1/release", content=b"{", headers=origin),
            client.get("/nowhere"),
        ]
    for answer in answers:
        for name, value in HEADERS:
            assert answer.headers[name.decode()] == value.decode()
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers


def test_large_bodies_are_refused_before_they_are_read_and_while_they_come(running):
    big = b"x" * 200_000
    assert running.post("/v1/release", {"a": "b" * 100_000}).status_code == 413
    with running.client() as client:
        answer = client.post("/v1/release", content=(big for _ in range(3)))  # without a length
        assert answer.status_code == 413
        assert answer.json()["error"] == "too_large"


def test_a_revoked_key_is_refused_by_the_service_that_runs(running):
    path = running.folder / "service.keys"
    token = keys.make_key(path, "short lived", ["read"])
    headers = {"authorization": f"Bearer {token}"}
    deadline = time.monotonic() + 5
    while httpx.get(f"{running.url}/v1/mechanisms", headers=headers).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    keys.revoke_key(path, token.split("_")[1])
    while httpx.get(f"{running.url}/v1/mechanisms", headers=headers).status_code != 401:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_who_asks_too_often_waits_and_others_do_not():
    rates = RateLimiter(10.0)
    assert [rates.take("a", 0.0) for _ in range(20)] == [0.0] * 20
    assert rates.take("a", 0.0) == pytest.approx(0.1)
    assert rates.take("b", 0.0) == 0.0
    assert rates.take("a", 0.1) == 0.0
    assert rates.take("a", 0.1) > 0
    assert not any(RateLimiter(0.0).take("a", 0.0) for _ in range(1000))


def test_there_is_always_a_place_for_one_more_key():
    places = RequestSlots(12)
    with ExitStack() as stack:
        counts = []
        for key in "abc":
            count = 0
            while places.is_free(key):
                stack.enter_context(places.take_slot(key, "busy"))
                count += 1
            counts.append(count)
        assert counts == [6, 4, 2]  # a half, a third, and what is left
        with pytest.raises(Refused), places.take_slot("a", "busy"):
            pass
    assert places.is_free("a")
    assert not places._taken


def test_slow_bodies_of_one_key_hold_up_no_other_key(tmp_path):
    with ExitStack() as stack:
        running = stack.enter_context(
            serving.service(
                tmp_path, policy="1000/km ever, 10 ever", limits=ServiceLimits(rate=0, waiting=8, seconds=60)
            )
        )
        host, port = running.url.removeprefix("http://").split(":")
        for path in ["/v1/release"] * 8 + ["/v1/release/batch"] * 4:
            line = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {running.tokens['release']}\r\n"
            line.sendall(f"{head}content-length: 100\r\ncontent-type: application/json\r\n\r\n{{".encode())
        own = running.post("/v1/release", release("somebody"), "release")
        while own.status_code != 429:  # until the slow ones have arrived
            own = running.post("/v1/release", release("somebody"), "release")
        assert running.post("/v1/release", release("anybody")).status_code == 200
        batch = {"request": uuid.uuid4().hex, "mechanism": "earth", "rows": []}
        batch["rows"].append({"person": "anybody", "secret": {"lat": 41.0, "lon": 12.0}})
        assert running.post("/v1/release/batch", batch).status_code == 200


@pytest.mark.parametrize("where", ["header", "query"])
def test_a_head_that_is_too_large_is_refused_when_it_comes_at_once_too(running, where):
    large = "x" * 20_000
    with running.client() as client:
        given = {"headers": {"x-large": large}} if where == "header" else {"params": {"x": large}}
        assert client.get("/v1/mechanisms", **given).status_code in (400, 431)
        assert client.get("/v1/mechanisms", headers={"x-large": "x" * 8_000}).status_code == 200


def test_too_much_at_once_is_turned_away_at_once_and_costs_nothing(tmp_path):
    limits = ServiceLimits(rate=20, waiting=4)
    with serving.service(tmp_path, policy="1000/km ever, 10 ever", limits=limits) as running:
        person, seen = uuid.uuid4().hex, []

        def many():
            with running.client() as client:
                for _ in range(12):
                    started = time.perf_counter()
                    answer = client.post("/v1/release", json=release(person))
                    seen.append((answer.status_code, time.perf_counter() - started, answer.headers.get("retry-after")))

        threads = [threading.Thread(target=many) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        statuses = [status for status, _, _ in seen]
        assert set(statuses) == {200, 429}
        assert all(retry for status, _, retry in seen if status == 429)
        time.sleep(0.2)
        budget = running.post("/v1/budget", {"person": person, "mechanism": "earth"}).json()
        assert budget["left"]["micro_epsilon"] == 1_000_000_000 - 10_000_000 * statuses.count(200)


def test_who_never_finishes_a_head_is_hung_up_on(running, monkeypatch):
    monkeypatch.setattr(protocol, "PATIENCE", 0.2)
    host, port = running.url.removeprefix("http://").split(":")
    whole = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
    for sent in ([b""], [b"GET /health HTTP/1.1\r\nhost:"], [whole, b"GET /hea"]):
        with socket.create_connection((host, int(port)), timeout=5) as line:
            for part in sent[:-1]:
                line.sendall(part)
                assert line.recv(4096).startswith(b"HTTP/1.1 200 OK")
            line.sendall(sent[-1])
            while line.recv(4096):
                pass  # until the other side hangs up


def test_a_refused_request_with_an_unfinished_body_does_not_keep_its_connection(running, monkeypatch):
    monkeypatch.setattr(protocol, "UNFINISHED", 0.2)
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as line:
        line.sendall(b"POST /v1/release HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        answer = b""
        while part := line.recv(65536):  # until the other side hangs up, long before the 15 s of an idle connection
            answer += part
    assert b" 401 " in answer.split(b"\r\n")[0]


def test_a_body_that_never_ends_is_given_up(tmp_path):
    with serving.service(tmp_path, policy="1000/km ever, 10 ever", limits=ServiceLimits(seconds=0.3)) as running:
        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as line:
            token = running.tokens["release"]
            head = f"POST /v1/release HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 100\r\n"
            line.sendall(head.encode() + b"content-type: application/json\r\n\r\n{")
            answer = b""
            while part := line.recv(65536):  # until it hangs up: the rest of the body is of no use
                answer += part
        assert b" 503 " in answer.split(b"\r\n")[0]
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == "late"
