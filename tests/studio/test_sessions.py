"""What a session of Studio leaves on the disk: nothing; what `kill -9` leaves goes at the next start."""

from __future__ import annotations

import asyncio
import fcntl
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import browsers
from metricdp.errors import OutputProblem
from metricdp.studio import (
    LOCK,
    MARK,
    PREFIX,
    Pages,
    SessionFolder,
    Studio,
    StudioOptions,
    panel_application,
    remove_orphans,
)

SECRET = b"lat,lon\n41.1234567,-8.7654321\n"
WAIT = 120.0


class Session:
    """A Studio in a process of its own, with the token of its address."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "TMPDIR": str(folder)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "metricdp", "studio", "--no-browser"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        self.said = self.token = self.place = self.code = ""

    def address(self) -> tuple[str, str]:
        """Wait for the address, and return its host and its code."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if "kill -9" in line:
                break
        found = re.search(r"http://(127\.0\.0\.1:\d+)/#open=(\S+)", self.said)
        assert found is not None, self.said
        self.place, self.code = found.groups()
        return self.place, self.code

    def enter(self) -> None:
        """Exchange the code for the token."""
        _, code = (self.place, self.code) if self.place else self.address()
        self.token = json.loads(self.ask("/open", json.dumps({"code": code}).encode()))["token"]

    def ask(self, path: str, body: bytes) -> bytes:
        """Ask as the page does; the socket listens before anybody answers."""
        connection = http.client.HTTPConnection(self.place, timeout=WAIT)
        headers = {"origin": f"http://{self.place}", "authorization": f"Bearer {self.token}"}
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        connection.close()
        return content

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT)


@contextmanager
def session(folder: Path, *, enter: bool = True) -> Iterator[Session]:
    found = Session(folder)
    try:
        if enter:
            found.enter()
        yield found
    finally:
        found.process.kill()
        found.process.communicate()


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGIO, signal.SIGRTMAX])
def test_a_signal_leaves_nothing_of_a_session(tmp_path: Path, number: int) -> None:
    with session(tmp_path) as studio:
        job = json.loads(studio.ask("/studio/files?name=raw.csv", SECRET + SECRET[8:] * 200_000))["id"]
        assert any(SECRET in content for content in contents(tmp_path))
        assert any(b"PRIVATE KEY" in content for content in contents(tmp_path))
        asked = {"columns": ["lat", "lon"], "epsilon": 3.5, "force": True}
        studio.ask(f"/studio/protect/{job}/run", json.dumps(asked).encode())  # it is at work when the signal comes
        studio.end(number)
        assert list(tmp_path.iterdir()) == []


def test_what_a_killed_session_leaves_is_said_before_and_goes_at_the_next_start(tmp_path: Path) -> None:
    with session(tmp_path) as studio:
        studio.ask("/studio/files?name=raw.csv", SECRET)
        [folder] = tmp_path.iterdir()
        assert str(folder) in studio.said
        assert "kill -9" in studio.said
        studio.end(signal.SIGKILL)
    assert SECRET in contents(tmp_path)
    with session(tmp_path) as studio:
        assert "Removed what 1 session of Studio left" in studio.said
        assert SECRET not in contents(tmp_path)
        studio.end(signal.SIGINT)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that takes the place of the temporary one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def orphan(folder: Path, name: str) -> Path:
    """Make what a killed session leaves."""
    place = folder / f"{PREFIX}{name}"
    place.mkdir(mode=0o700)
    (place / LOCK).write_bytes(MARK)
    (place / "raw.csv").write_bytes(SECRET)
    return place


def test_only_folders_that_a_dead_session_of_ours_left_are_removed(temporary: Path) -> None:
    dead, living = orphan(temporary, "dead"), SessionFolder()
    (temporary / "elsewhere").mkdir()
    (temporary / "elsewhere" / LOCK).write_bytes(MARK)
    (temporary / f"{PREFIX}link").symlink_to(temporary / "elsewhere")
    (temporary / f"{PREFIX}file").write_bytes(MARK)
    (temporary / f"{PREFIX}empty").mkdir(mode=0o700)
    open_to_all, marked, linked = (orphan(temporary, name) for name in ("open", "marked", "linked"))
    open_to_all.chmod(0o755)
    (marked / LOCK).write_bytes(b"of another program")
    (linked / LOCK).unlink()
    (linked / LOCK).symlink_to(temporary / "elsewhere" / LOCK)
    pipe = orphan(temporary, "pipe")
    (pipe / LOCK).unlink()
    os.mkfifo(pipe / LOCK)
    before = {path.name for path in temporary.iterdir()}
    assert remove_orphans() == 1
    assert {path.name for path in temporary.iterdir()} == before - {dead.name}
    assert (temporary / "elsewhere" / LOCK).exists()
    living.close()
    assert not living.path.exists()


def test_the_lock_is_what_tells_a_living_session(temporary: Path) -> None:
    place = orphan(temporary, "session")
    with (place / LOCK).open("rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert remove_orphans() == 0
    assert remove_orphans() == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_folders_of_other_users_stay(temporary: Path) -> None:
    place = orphan(temporary, "theirs")
    os.chown(place, 65534, 65534)
    assert remove_orphans() == 0


def test_the_folder_of_a_session_is_for_its_user_only(temporary: Path) -> None:
    found = SessionFolder()
    assert stat.S_IMODE(found.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(found.part("files").stat().st_mode) == 0o700
    found.close()


def test_a_studio_that_cannot_begin_leaves_nothing(temporary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OutputProblem, match="cannot listen on port"):
        Studio(StudioOptions(port=taken.getsockname()[1]))
    assert list(temporary.iterdir()) == []


Say = Callable[[str, Any], Awaitable[int]]


def with_pages(pages: Pages, told: Callable[[Say], Awaitable[None]]) -> None:
    """Let pages say that they are there and that they go, in one loop, as in a server."""
    app = panel_application(pages.routes())

    async def say(what: str, page: Any) -> int:
        sent: list[Any] = []
        scope = {
            "type": "http", "method": "POST", "path": f"/studio/{what}", "raw_path": b"", "query_string": b"",
            "root_path": "", "headers": [], "http_version": "1.1", "scheme": "http",
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps({"page": page}).encode(), "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        status = int(sent[0]["status"])
        return int(json.loads(sent[1]["body"])["pages"]) if status == 200 else status

    async def all_told() -> None:
        await told(say)

    with ThreadPoolExecutor(1) as pool:  # a browser of other tests may have a loop of its own in this thread
        pool.submit(lambda: asyncio.run(all_told())).result()


def test_pages_that_go_and_come_back_are_not_closed() -> None:
    """The order of a reload is not known: the new page may come before the old one says that it goes."""
    closed: list[str] = []
    ends: list[int] = []

    async def told(say: Say) -> None:
        assert await say("here", "one") == 1
        assert await say("here", "two") == 2
        assert await say("gone", "one") == 2
        assert await say("here", "one") == 2
        assert await say("gone", "stranger") == 2
        for wrong in ("", "x" * 65, None, 7):
            assert await say("here", wrong) == 422

    with_pages(Pages(closed.append, lambda: ends.append(1), grace=3600.0), told)
    assert (closed, ends) == ([], [])


def test_the_last_page_that_is_closed_ends_the_session() -> None:
    closed: list[str] = []
    ended: list[int] = []

    async def told(say: Say) -> None:
        for page in ("one", "two"):
            await say("here", page)
        await say("gone", "one")
        while closed != ["one"]:
            await asyncio.sleep(0)
        assert not ended
        await say("gone", "two")
        while not ended:
            await asyncio.sleep(0)

    with_pages(Pages(closed.append, lambda: ended.append(1), grace=0.0), told)
    assert closed == ["one", "two"]


def test_closing_the_page_removes_its_file_and_ends_the_session(tmp_path: Path) -> None:
    """In a real browser: nothing but the page tells Studio that it goes."""
    import uvicorn

    program = browsers.chromium()
    if program is None:
        pytest.skip("chromium is not installed (Debian: apt install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    ended = threading.Event()
    studio = Studio(StudioOptions(), ended=ended.set, grace=0.0)
    server = uvicorn.Server(uvicorn.Config(studio.auth, log_config=None, access_log=False, lifespan="on", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [studio.socket]}, daemon=True)
    thread.start()
    (tmp_path / "raw.csv").write_bytes(SECRET)

    def in_a_browser() -> None:
        with playwright.sync_playwright() as play:
            chromium = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = chromium.new_page()
            page.goto(f"{studio.address}")
            page.wait_for_selector("body[data-ready]", timeout=1000 * WAIT)
            assert "open=" not in page.evaluate("() => location.href + document.referrer + document.cookie")
            page.click("a[href='#protect']")
            page.set_input_files("#file", str(tmp_path / "raw.csv"))
            page.wait_for_selector("#column-0", timeout=1000 * WAIT)
            assert SECRET in contents(studio.folder)
            assert not ended.is_set()
            page.close(run_before_unload=True)
            assert ended.wait(WAIT)
            chromium.close()

    with ThreadPoolExecutor(1) as pool:  # the browser of other tests has a loop of its own in this thread
        pool.submit(in_a_browser).result()
    until(lambda: SECRET not in contents(studio.folder))
    server.should_exit = True
    thread.join(WAIT)
    studio.close()
    assert not studio.folder.exists()


def until(done: Callable[[], bool]) -> None:
    """Wait for something that happens by itself."""
    end = time.monotonic() + WAIT
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


STRANGER = """
import http.client, json, socket, sys
host, code, address = sys.argv[1:]
port = int(host.partition(":")[2])
connection = http.client.HTTPConnection(host)
connection.sock = socket.create_connection((address, port))
connection.request("POST", "/open", json.dumps({"code": code}).encode(), {"origin": f"http://{host}", "host": host})
print(connection.getresponse().status)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root can be somebody else")
def test_a_code_that_another_user_read_in_the_list_of_processes_opens_nothing(tmp_path: Path) -> None:
    with session(tmp_path, enter=False) as studio:
        place, code = studio.address()
        for address in ("127.0.0.1", "::ffff:127.0.0.1"):
            words = ["/usr/bin/env", "python3", "-c", STRANGER, place, code, address]
            found = subprocess.run(words, capture_output=True, text=True, user=65534, timeout=WAIT, cwd="/")
            assert found.stdout.strip() == "403", found.stderr
        studio.enter()  # it was not used up
        studio.end(signal.SIGTERM)
