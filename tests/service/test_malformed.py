"""A few hundred malformed requests; benchmarks/service.py sends ten thousand."""

from __future__ import annotations

import uuid

import malformed


def test_malformed_requests_are_refused_in_a_sentence_and_the_service_serves_on(running):
    seen, faults = malformed.sent(running.url, running.tokens["all"], each=2, count=120)
    assert not faults
    assert sum(seen.values()) > 130
    assert seen[422] > 80
    body = {"person": uuid.uuid4().hex, "request": "r", "mechanism": "earth", "secret": [41.0, 12.0]}
    assert running.post("/v1/release", body).status_code == 200
