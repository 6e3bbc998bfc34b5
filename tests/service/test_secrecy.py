"""No secret, key or report in logs, errors, metrics or traces: canaries go in everywhere, nothing of them comes out."""

from __future__ import annotations

import json
import logging
import time
import uuid

import pyarrow as pa
import pytest

from metricdp.service import body_refusal, logs, scrub

NUMBER, BEYOND, WORD, PERSON = 47.1928374, 97.3829174, "zanzibarquatsch", "annabolikaperson"
DIGITS = ("47.19", "97.38", "471928", WORD[:9], PERSON[:9])
KIND = "application/vnd.apache.arrow.stream"


@pytest.fixture
def lines(running):
    """Everything that is logged by anybody while the service answers, as it would be written."""
    written: list[str] = []
    handler = logging.Handler(level=0)
    handler.emit = lambda record: written.append(logs.JsonFormatter().format(record))
    root, levels = logging.getLogger(), {}
    for name in ("", "metricdp.service", "uvicorn", "uvicorn.error", "sqlalchemy", "fastapi", "asyncio"):
        levels[name] = logging.getLogger(name).level
        logging.getLogger(name).setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield written
    root.removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def release(**changes):
    body = {
        "person": PERSON,
        "request": uuid.uuid4().hex,
        "mechanism": "earth",
        "secret": {"lat": NUMBER, "lon": NUMBER},
    }
    return body | changes


def bad_bodies():
    for body in (
        release(secret={"lat": BEYOND, "lon": NUMBER}),
        release(secret={"lat": WORD, "lon": NUMBER}),
        release(secret={WORD: NUMBER, "lon": NUMBER}),
        release(secret=[NUMBER] * 3),
        release(secret=[[NUMBER]]),
        release(secret={"lat": {"x": NUMBER}, "lon": 1}),
        release(secret=None),
        release(mechanism=WORD),
        release(mechanism=[WORD]),
        release(person=[PERSON]),
        release(person=PERSON * 40),
        release(person=""),
        release(request=f"{WORD} with spaces"),
        release(request=[NUMBER]),
        release(purpose=WORD),
        release(**{WORD: NUMBER}),
        release(mechanism="cells", secret={"x": NUMBER, "y": NUMBER}),
        release(mechanism="words", secret=WORD),
        release(mechanism="both", secret={"x": 1.0, "y": 0.0, "word": WORD}),
        {WORD: NUMBER},
        [NUMBER, WORD],
        WORD,
        NUMBER,
    ):
        yield "/v1/release", json.dumps(body).encode()
    yield "/v1/release", b'{"person": "' + PERSON.encode() + b'", ' + str(NUMBER).encode()
    yield "/v1/release", b"\xff\xfe" + WORD.encode()
    yield (
        "/v1/release",
        json.dumps(release(secret={"lat": NUMBER, "lon": NUMBER})).replace(str(NUMBER), "1e999").encode(),
    )
    yield "/v1/release", b"[" * 50_000
    for rows in ([{"person": PERSON, "secret": [NUMBER]}], [{"person": PERSON, WORD: NUMBER}], WORD, [NUMBER], []):
        yield "/v1/release/batch", json.dumps({"request": "r", "mechanism": "earth", "rows": rows}).encode()
    yield "/v1/budget", json.dumps({"person": [PERSON], "mechanism": WORD}).encode()
    yield "/v1/budget", json.dumps({"person": PERSON, "mechanism": WORD}).encode()
    for change in (
        {"kind": WORD},
        {"matrix": [[NUMBER, WORD]]},
        {"matrix": [[-NUMBER, NUMBER]] * 2, "points": [[NUMBER], [1.0]]},
        {"points": [[NUMBER], [NUMBER]], "matrix": [[0.5, 0.5]] * 2},
        {"metric": WORD},
        {"metric": f"haversine:{WORD}"},
        {"metric": "haversine", "points": [[2 * NUMBER, 0.0], [1.0, 1.0]]},
        {"kind": "samples", "secrets": [[NUMBER]], "reports": [[NUMBER], [NUMBER]]},
        {"kind": "samples", "secrets": [[NUMBER]], "reports": [[NUMBER]]},
    ):
        body = {"kind": "matrix", "matrix": [[0.5, 0.5]] * 2, "points": [[0.0], [1.0]], "epsilon": 1.0} | change
        if body["kind"] == "samples":
            body = {name: body[name] for name in ("kind", "secrets", "reports", "epsilon")}
        yield "/v1/audit", json.dumps(body).encode()
    for change in (
        {"points": [[NUMBER], [WORD]]},
        {"builder": WORD},
        {"metric": WORD},
        {"prior": [-NUMBER]},
        {WORD: 1},
    ):
        yield "/v1/design", json.dumps({"points": [[0.0], [1.0]], "epsilon": 1.0} | change).encode()


def test_nothing_that_was_sent_comes_out_of_logs_errors_and_metrics(running, lines):
    said = []
    with running.client() as client:
        for path, body in bad_bodies():
            answer = client.post(path, content=body, headers={"content-type": "application/json"})
            if path != "/v1/audit" or answer.status_code >= 400:
                assert 400 <= answer.status_code < 500, (path, body[:200], answer.text)
            said += [answer.text, str(answer.headers)]
        for path in (f"/{WORD}", f"/v1/{PERSON}?lat={NUMBER}", f"/v1/design/{WORD}", f"/v1/release?secret={NUMBER}"):
            for method in ("GET", "PUT", "DELETE"):
                answer = client.request(method, path)
                said += [answer.text, str(answer.headers)]
        for table in (
            pa.table({"person": [PERSON], "lat": [BEYOND], "lon": [NUMBER]}),
            pa.table({"person": [PERSON], "lat": [WORD], "lon": [NUMBER]}),
            pa.table({"person": [PERSON], WORD: [NUMBER]}),
        ):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            headers = {"content-type": KIND, "idempotency-key": uuid.uuid4().hex}
            answer = client.post(
                "/v1/release/batch",
                content=sink.getvalue().to_pybytes(),
                headers=headers,
                params={"mechanism": "earth"},
            )
            assert answer.status_code == 422
            said += [answer.text, str(answer.headers)]
        said.append(client.get("/metrics").text)
    everything = "\n".join([*said, *lines])
    assert "answered" in everything
    for canary in DIGITS:
        at = everything.find(canary)
        assert at < 0, everything[max(0, at - 300) : at + 100]


def test_reports_persons_and_keys_stay_out_of_logs_and_metrics(running, lines):
    with running.client() as client:
        reports = [
            client.post("/v1/release", json=release(person=PERSON + uuid.uuid4().hex)).json()["report"]
            for _ in range(5)
        ]
        seen = client.get("/metrics").text
    everything = "\n".join([*lines, seen])
    assert 'metricdp_releases_total{mechanism="earth",outcome="drawn"}' in seen
    for value in (number for report in reports for number in report.values()):
        assert len(f"{value}") < 8 or f"{value}" not in everything  # shorter ones stand there by chance
    assert PERSON[:9] not in everything
    for token in running.tokens.values():
        assert token not in everything
        assert token.split("_", 2)[2] not in everything
        assert token.split("_")[1] not in seen  # not even the public id is a label


def test_an_error_of_the_service_itself_says_nothing_either(running, lines, monkeypatch):
    def broken(*arguments):
        raise RuntimeError(f"{WORD} {NUMBER} {PERSON}")

    monkeypatch.setattr("metricdp.service.served_mechanisms.ServedMechanism.row", broken)
    answer = running.post("/v1/release", release())
    assert answer.status_code == 500
    assert answer.json()["error"] == "internal"
    deadline = time.monotonic() + 30  # the line is written behind the answer
    while "RuntimeError at test_secrecy.py" not in (everything := "\n".join([answer.text, *lines])):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    for canary in DIGITS:
        assert canary not in everything


def test_errors_while_drawing_or_charging_say_nothing_either(running, lines, monkeypatch):
    def broken(*arguments):
        raise RuntimeError(f"{WORD} {NUMBER} {PERSON}")

    monkeypatch.setattr("metricdp.service.served_mechanisms.ServedMechanism.draw", broken)
    person = uuid.uuid4().hex
    answer = running.post("/v1/release", release(person=person))
    assert answer.status_code in (500, 503)
    everything = "\n".join([answer.text, *lines])
    for canary in DIGITS:
        assert canary not in everything
    budget = running.post("/v1/budget", {"person": person, "mechanism": "earth"}).json()
    assert budget["left"]["micro_epsilon"] == 40_000_000


def test_sentences_of_other_rooms_lose_their_values():
    sentence = (
        "`prior` must be 49 numbers, got 'zanzibar' of [1.25, 2.5] at 47.1928374 and 1e-07; use `space.why(row)`."
    )
    plain = scrub(sentence)
    assert plain.startswith("`prior` must be 49 numbers, got (a value) of (values) at (a number) and (a number)")
    for canary in ("zanzibar", "1.25", "47.19", "e-07"):
        assert canary not in plain


def test_a_malformed_body_is_described_by_names_of_ours_only():
    refusal = body_refusal(
        [{"type": "extra_forbidden", "loc": ("body", "rows", 3, WORD), "msg": WORD, "input": NUMBER}]
    )
    assert refusal.sentence.startswith("`rows[3]` holds a field that is not known here")
    assert WORD not in refusal.sentence
