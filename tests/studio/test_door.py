"""The door: one browser, one machine, one page; and a page that asks nobody else."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

import browsers
from metricdp.studio.app import PAGE, house
from metricdp.studio.door import COOKIE, Door

STRINGS = json.loads((PAGE / "strings.json").read_text(encoding="utf-8"))
SOURCES = [*PAGE.glob("*.js"), *(PAGE / "rooms").glob("*.js")]


def asked(
    door: Door, path: str, *, method: str = "GET", query: str = "", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Ask the door as a browser would and return the status, the headers and the body."""
    sent: list[Any] = []
    named = {"host": "127.0.0.1:4000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "root_path": "", "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 4000), "headers": [(k.encode(), v.encode()) for k, v in named.items()],
    }  # fmt: skip

    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        if (message := next(messages, None)) is None:
            await asyncio.Event().wait()  # nobody leaves
        assert message is not None
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as pool:  # a browser of other tests may have a loop of its own in this thread
        pool.submit(lambda: asyncio.run(door(scope, receive, send))).result()
    start = next(message for message in sent if message["type"] == "http.response.start")
    body = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    return start["status"], {k.decode().lower(): v.decode() for k, v in start["headers"]}, body


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """A service that says which headers reached it."""
    content = json.dumps({k.decode(): v.decode() for k, v in scope["headers"]}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": content})


@pytest.fixture
def door() -> Door:
    return Door(house([]), service=echo, key="the-key", port=4000)


def entered(door: Door) -> str:
    """Exchange the address for the cookie."""
    status, headers, _ = asked(door, "/open", query=door.address.partition("?")[2])
    assert (status, headers["location"]) == (303, "/")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]
    return f"{COOKIE}={SimpleCookie(headers['set-cookie'])[COOKIE].value}"


def test_the_address_opens_one_browser_once(door: Door) -> None:
    assert asked(door, "/")[0] == 403
    assert asked(door, "/open", query="token=guess")[0] == 403
    cookie = entered(door)
    assert asked(door, "/", cookie=cookie)[0] == 200
    status, _, body = asked(door, "/open", query=door.address.partition("?")[2])
    assert status == 403
    assert b"used already" in body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:4001", "127.0.0.1.evil.example:4000", ""])
def test_other_names_are_turned_away_even_with_the_cookie(door: Door, host: str) -> None:
    cookie = entered(door)
    assert asked(door, "/", cookie=cookie, host=host)[0] == 421
    assert asked(door, "/", cookie=cookie, host="localhost:4000")[0] == 200


def test_changes_are_taken_from_the_page_only(door: Door) -> None:
    cookie = entered(door)
    ask = {"method": "POST", "cookie": cookie}
    assert asked(door, "/v1/release", **ask)[0] == 403
    assert asked(door, "/v1/release", origin="http://evil.example", **ask)[0] == 403
    assert asked(door, "/v1/release", origin="null", **ask)[0] == 403
    assert asked(door, "/v1/release", sec_fetch_site="cross-site", **ask)[0] == 403
    assert asked(door, "/v1/release", origin="http://127.0.0.1:4000", **ask)[0] == 200


def test_the_service_sees_a_key_that_the_browser_does_not(door: Door) -> None:
    cookie = entered(door)
    _, headers, body = asked(door, "/v1/mechanisms", cookie=cookie, authorization="Bearer of-the-browser")
    seen = json.loads(body)
    assert seen["authorization"] == "Bearer the-key"
    assert "cookie" not in seen
    assert "the-key" not in json.dumps(headers)


def test_answers_forbid_other_sources_frames_and_caches(door: Door) -> None:
    _, headers, _ = asked(door, "/", cookie=entered(door))
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/../app.py", "/vendor/../../door.py", "/rooms/%2e%2e/%2e%2e/app.py", "/nothing.js", "/etc/passwd"]
)
def test_only_files_of_the_page_are_given(door: Door, path: str) -> None:
    assert asked(door, path, cookie=entered(door))[0] == 404


def test_cookies_that_are_no_cookies_open_nothing(door: Door) -> None:
    entered(door)
    for cookie in ("", "x", f"{COOKIE}=", f"{COOKIE}=guess", 'a="b; c', "\\"):
        assert asked(door, "/", cookie=cookie)[0] == 403


def test_every_sentence_is_there_in_both_languages_with_the_same_parts() -> None:
    for key, sentence in STRINGS.items():
        assert set(sentence) == {"en", "de"}, key
        parts = [sorted(re.findall(r"\{(\w+)\}", words)) for words in sentence.values()]
        assert parts[0] == parts[1], key
        assert all(words.strip() for words in sentence.values()), key


def test_the_page_says_only_what_is_in_the_file_of_strings() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    for key in re.findall(r'say\("([\w. ]+)"', code):
        assert key in STRINGS, key
    stems = {re.sub(r"\$\{[^}]*\}", "*", key) for key in re.findall(r"say\(`([^`]+)`", code)}
    for stem in stems:
        pattern = re.compile(re.escape(stem).replace(r"\*", r"[\w ]+"))
        assert any(pattern.fullmatch(key) for key in STRINGS), stem


def test_the_first_view_is_light() -> None:
    first = ["index.html", "studio.css", "app.js", "words.js", "api.js", "map.js", "strings.json", "rooms/feel.js"]
    first += ["vendor/lit.js", "vendor/maplibre-gl.js", "vendor/maplibre-gl.css"]
    streets = 100_000  # GeoJSON of the bundled streets
    assert sum((PAGE / name).stat().st_size for name in first) + streets < 1_500_000


def test_vendored_files_carry_their_licences_and_ask_for_nothing() -> None:
    licences = (PAGE / "vendor" / "LICENCES.txt").read_text(encoding="utf-8")
    for name in ("maplibre-gl", "@observablehq/plot", "lit", "pmtiles", "d3"):
        assert re.search(rf"^{re.escape(name)} \d", licences, re.MULTILINE), name
    ours = (Path(__file__).parents[2] / "js" / "dist" / "metricdp.js").read_text(encoding="utf-8")
    assert (PAGE / "vendor" / "metricdp.js").read_text(encoding="utf-8").strip() == ours.strip()
    for path in SOURCES:
        assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path.name


def test_vendored_files_are_what_the_pinned_build_makes() -> None:
    folder = Path(__file__).parents[2] / "tools" / "studio"
    program = browsers.node()
    if program is None or not (folder / "node_modules").is_dir():
        pytest.skip("the build of the vendored files is not installed (npm ci in tools/studio)")
    done = subprocess.run(
        [program, "build.js", "--check"], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
