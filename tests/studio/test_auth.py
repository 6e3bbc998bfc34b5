"""The door: one browser, one machine, one page; and a page that asks nobody else."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import browsers
from metricdp.studio import PAGE, StudioAuth, page, panel_application

STRINGS = json.loads((PAGE / "strings.json").read_text(encoding="utf-8"))
SOURCES = [*PAGE.glob("*.js"), *(PAGE / "rooms").glob("*.js")]


def asked(
    door: StudioAuth, path: str, *, method: str = "GET", body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Ask the door as a browser would and return the status, the headers and the body."""
    sent: list[Any] = []
    named = {"host": "127.0.0.1:4000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(errors="replace"), "query_string": b"",
        "root_path": "", "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 4000), "headers": [(k.encode(), v.encode()) for k, v in named.items()],
    }  # fmt: skip

    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

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
def door() -> StudioAuth:
    return StudioAuth(page=page(), panels=panel_application([]), service=echo, key="the-key", port=4000)


OURS = "http://127.0.0.1:4000"


def exchanged(door: StudioAuth, code: str | None = None, **headers: str) -> tuple[int, bytes]:
    """Exchange the code of the address, or another one."""
    given = door.address.partition("#open=")[2] if code is None else code
    body = json.dumps({"code": given}).encode()
    status, _, answer = asked(door, "/open", method="POST", body=body, **{"origin": OURS, **headers})
    return status, answer


def entered(door: StudioAuth) -> str:
    """Return the header that lets a page in."""
    status, answer = exchanged(door)
    assert status == 200
    return f"Bearer {json.loads(answer)['token']}"


def test_the_address_opens_one_page_once(door: StudioAuth) -> None:
    assert asked(door, "/v1/mechanisms")[0] == 403
    assert exchanged(door, "guess")[0] == 403
    token = entered(door)
    assert asked(door, "/v1/mechanisms", authorization=token)[0] == 200
    status, answer = exchanged(door)
    assert status == 403
    assert b"used already" in answer


def test_the_code_is_in_a_part_of_the_address_that_browsers_send_to_nobody(door: StudioAuth) -> None:
    sent, _, kept = door.address.partition("#")
    assert sent == f"{OURS}/"
    assert kept.startswith("open=")


def test_nothing_is_left_to_a_cookie(door: StudioAuth) -> None:
    status, headers, answer = asked(
        door, "/open", method="POST", origin=OURS,
        body=json.dumps({"code": door.address.partition("#open=")[2]}).encode(),
    )  # fmt: skip
    assert status == 200
    assert "set-cookie" not in headers
    token = json.loads(answer)["token"]
    assert asked(door, "/v1/mechanisms", cookie=f"metricdp-studio={token}")[0] == 403


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'"code"', b'{"code": 1}', b'{"code": "\\ud800"}', b"[" * 900, b"x" * 5_000]
)
def test_questions_for_the_token_that_are_none_get_a_sentence(door: StudioAuth, body: bytes) -> None:
    status, _, answer = asked(door, "/open", method="POST", body=body, origin=OURS)
    assert status == 403
    assert b"Studio opens with the address" in answer
    assert exchanged(door)[0] == 200  # and the code is still good


def test_a_foreign_page_cannot_exchange_the_code(door: StudioAuth) -> None:
    for origin in ("http://evil.example", "http://127.0.0.1:4001", "null"):
        assert exchanged(door, origin=origin)[0] == 403
    assert exchanged(door)[0] == 200


def test_the_files_of_the_page_are_for_everybody_and_all_else_is_not(door: StudioAuth) -> None:
    assert asked(door, "/")[0] == 200
    assert asked(door, "/app.js")[0] == 200
    for path in ("/studio/budget", "/studio/", "/v1/", "/v1/release", "/studio/nothing"):
        for header in ("", "Bearer ", "Bearer guess", "Basic x", "bearer"):
            assert asked(door, path, authorization=header)[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:4001", "127.0.0.1.evil.example:4000", ""])
def test_other_names_are_turned_away_even_with_the_token(door: StudioAuth, host: str) -> None:
    token = entered(door)
    for path in ("/", "/v1/mechanisms", "/studio/budget"):
        assert asked(door, path, authorization=token, host=host)[0] == 421
    assert asked(door, "/v1/mechanisms", authorization=token, host="localhost:4000")[0] == 200


def test_changes_are_taken_from_the_page_only(door: StudioAuth) -> None:
    ask = {"method": "POST", "authorization": entered(door)}
    assert asked(door, "/v1/release", **ask)[0] == 403
    assert asked(door, "/v1/release", origin="http://evil.example", **ask)[0] == 403
    assert asked(door, "/v1/release", origin="null", **ask)[0] == 403
    assert asked(door, "/v1/release", sec_fetch_site="cross-site", **ask)[0] == 403
    assert asked(door, "/v1/release", origin=OURS, **ask)[0] == 200


def test_the_service_sees_a_key_that_the_browser_does_not(door: StudioAuth) -> None:
    _, headers, body = asked(door, "/v1/mechanisms", cookie="a=b", authorization=entered(door))
    seen = json.loads(body)
    assert seen["authorization"] == "Bearer the-key"
    assert "cookie" not in seen
    assert "the-key" not in json.dumps(headers)


def test_answers_forbid_other_sources_frames_and_caches(door: StudioAuth) -> None:
    _, headers, _ = asked(door, "/")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe-eval" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    ["/../app.py", "/vendor/../../door.py", "/rooms/%2e%2e/%2e%2e/app.py", "/nothing.js", "/etc/passwd", "/\0",
     "/a\0.js", f"/{'x' * 300}.js", f"/{'x/' * 3000}a.js", "/\udcff.js"],
)  # fmt: skip
def test_only_files_of_the_page_are_given(door: StudioAuth, path: str) -> None:
    status, _, body = asked(door, path)
    assert status == 404
    assert json.loads(body) == {"message": "there is nothing here."}


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
