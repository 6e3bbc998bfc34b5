"""Addresses as samplers, against a server that really listens."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from metricdp.errors import InvalidInput, SamplerFailure
from metricdp.samplers import WebSampler

Respond = Callable[[BaseHTTPRequestHandler, Any], tuple[int, Any]]


class Server:
    """A local server whose answer the test decides; it keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.respond: Respond = lambda handler, body: (200, body)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else parse_qs(urlsplit(self.path).query)
                outer.asked.append(body)
                status, content = outer.respond(self, body)
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = answer

            def log_message(self, *unused: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *unused: None  # type: ignore[method-assign]  # callers that hang up
        self.url = f"http://127.0.0.1:{self.server.server_port}/report"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()


def sampler(server: Server, body: str | None = '{"at": ["{lat}", "{lon}"]}', **options: Any) -> WebSampler:
    options = {"found": "at", "columns": ("lat", "lon"), "rate": 1000.0, **options}
    return WebSampler(server.url, body=body, synthetic=True, **options)


def complaint(draw: WebSampler) -> str:
    with draw, pytest.raises(SamplerFailure) as caught:
        draw((41.25, -8.5), 2)
    return str(caught.value)


def test_the_secret_goes_where_the_template_says(server: Server) -> None:
    with sampler(
        server, '{"at": ["{lat}", "{1}"], "all": "{secret}", "text": "at {0} north", "fixed": [1, null]}'
    ) as draw:
        assert draw((41.25, -8.5), 2).tolist() == [[41.25, -8.5]] * 2
    sent = {"at": [41.25, -8.5], "all": [41.25, -8.5], "text": "at 41.25 north", "fixed": [1, None]}
    assert server.asked == [sent] * 2
    assert draw.calls == 2


def test_an_address_may_hold_the_secret_itself(server: Server) -> None:
    server.respond = lambda handler, asked: (200, {"lat": float(asked["lat"][0]), "lon": 2.0})
    with WebSampler(server.url + "?lat={lat}&lon={lon}", synthetic=True, columns=("lat", "lon"), rate=1000.0) as draw:
        assert draw((-0.5, 3.0), 1).tolist() == [[-0.5, 2.0]]
    assert server.asked == [{"lat": ["-0.5"], "lon": ["3.0"]}]


def test_several_reports_come_in_one_call_where_the_address_is_told_how_many(server: Server) -> None:
    server.respond = lambda handler, asked: (200, {"lats": [1.0] * asked["n"], "lons": [2.0] * asked["n"]})
    with sampler(server, '{"n": "{count}", "x": "{secret}"}', found="lats,lons") as draw:
        said = draw.announcement(2500, 2, independent=True, probes=(8, 32))
        assert "at most 13 times, at most 1000 times a second (0 s). It gets 2 secrets" in said
        assert "at most 2,508 times" in draw.announcement(2500, 2, probes=(8, 32))
        assert draw((0.0, 0.0), 1500).tolist() == [[1.0, 2.0]] * 2000  # what is paid for is used
        assert draw((0.0, 0.0), 1).tolist() == [[1.0, 2.0]]
    assert [one["n"] for one in server.asked] == [1000, 1000, 1]


def test_the_number_of_calls_is_said_before_any(server: Server) -> None:
    draw = sampler(server, rate=5.0)
    said = draw.announcement(2000, 7, probes=(8, 32))
    assert "at most 2,256 times, at most 5 times a second (7 min 31 s)" in said
    assert "gets 7 secrets, which you said are made up" in said
    assert server.asked == []


def test_words_go_in_and_come_out(server: Server) -> None:
    server.respond = lambda handler, asked: (200, {"word": asked["w"].upper()})
    with sampler(server, '{"w": "{secret}"}', found="word", columns=()) as draw:
        assert draw("naïve", 2).tolist() == ["NAÏVE"] * 2


def test_no_more_calls_a_second_than_were_allowed(server: Server) -> None:
    start = time.monotonic()
    with sampler(server, rate=50.0) as draw:
        draw((1.0, 2.0), 6)
    assert time.monotonic() - start >= 5 / 50
    assert len(server.asked) == 6


def test_secrets_must_be_said_to_be_made_up() -> None:
    with pytest.raises(InvalidInput, match="made-up secrets"):
        WebSampler("http://127.0.0.1:1/", synthetic=False, body='{"x": "{0}"}')


def test_a_redirect_is_not_followed(server: Server) -> None:
    server.respond = lambda handler, asked: (302, b"")
    assert "redirect (302), which is not followed" in complaint(sampler(server))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (422, {"detail": "41.25 is not a number"}, "answered 422"),
        (429, {}, "Lower --rate"),
        (200, b"<html>", "no JSON"),
        (200, {"result": 1}, "without 'at'"),
        (200, {"at": {"north": 1}}, "no report (an object with the fields north)"),
        (200, {"at": [[1, "two"]]}, "more than numbers"),
    ],
)
def test_answers_that_are_no_reports_are_sentences(server: Server, status: int, content: Any, words: str) -> None:
    server.respond = lambda handler, asked: (status, content)
    said = complaint(sampler(server))
    assert words in said
    assert "41.25" not in said  # it repeats no secret


def test_an_answer_has_a_time_and_a_size(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.respond = lambda handler, asked: (time.sleep(0.5), (200, {}))[1]
    assert "more than 0.1 s" in complaint(sampler(server, patience=0.1))
    monkeypatch.setattr("metricdp.samplers.web.LARGEST", 1000)
    server.respond = lambda handler, asked: (200, b"1" * 2000)
    assert "more than 1,000 bytes" in complaint(sampler(server))


def test_drops_are_counted_together(server: Server) -> None:
    def slowly(handler: BaseHTTPRequestHandler, asked: Any) -> tuple[int, Any]:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(20):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.03)
        raise ConnectionAbortedError

    server.respond = slowly
    assert "more than 0.2 s" in complaint(sampler(server, patience=0.2))


def test_a_connection_that_was_closed_is_opened_once_more(server: Server) -> None:
    def once(handler: BaseHTTPRequestHandler, asked: Any) -> tuple[int, Any]:
        handler.close_connection = True
        return 200, asked

    server.respond = once
    with sampler(server) as draw:
        assert len(draw((1.0, 2.0), 3)) == 3


def test_an_address_that_nobody_answers_is_a_sentence() -> None:
    draw = WebSampler("http://127.0.0.1:9/", synthetic=True, body='{"x": "{0}"}', rate=1000.0)
    assert "cannot be reached" in complaint(draw)


@pytest.mark.parametrize(
    ("url", "body", "words"),
    [
        ("ftp://example.org/x", None, "must be an address"),
        ("http://me:secret@example.org/", '{"x": "{0}"}', "password"),
        ("http://example.org/", '{"x": {0}}', "quotation marks"),
        ("http://example.org/", '{"x": "{north}"}', r"no \{north\}"),
        ("http://example.org/", '{"x": 1}', "where the secret goes"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_a_call(url: str, body: str | None, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        WebSampler(url, synthetic=True, body=body, columns=("lat", "lon"))


def test_a_coordinate_that_is_not_there_is_named(server: Server) -> None:
    with sampler(server, '{"at": "{7}"}') as draw, pytest.raises(InvalidInput, match=r"\{7\}"):
        draw((1.0, 2.0), 1)
