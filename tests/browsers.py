"""Real JavaScript engines for tests: headless Chromium and Node, given work over HTTP on this machine."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[1]
SCRIPTS = {
    "/metricdp.js": PROJECT / "js" / "dist" / "metricdp.js",
    "/checks.js": PROJECT / "tests" / "js" / "checks.js",
    "/page.html": PROJECT / "tests" / "js" / "page.html",
    **{f"/src/{path.name}": path for path in (PROJECT / "js" / "src").glob("*.js")},
}
TYPES = {".js": "text/javascript", ".html": "text/html", ".mdp": "application/octet-stream"}
CHROMIUM_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
)  # fmt: skip


def chromium() -> str | None:
    """Return the program, or None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((found for name in names if (found := shutil.which(name))), None)


def node() -> str | None:
    """Return Node where it is new enough (20: Ed25519 and fetch without flags)."""
    found = shutil.which("node")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    return found if int(version.strip().lstrip("v").split(".")[0] or 0) >= 20 else None


def in_node(script: str, **given: Any) -> Any:
    """Run a script in Node; it finds `given` and what the modules export, and leaves its answer in `answer`."""
    program = node()
    if program is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    code = f"""
      import * as words from "{(PROJECT / "js" / "src" / "messages.js").as_uri()}";
      import {{ open, openTree, planDay, protectGeolocation }} from
        "{(PROJECT / "js" / "dist" / "metricdp.js").as_uri()}";
      import {{ readFileSync }} from "node:fs";
      const given = JSON.parse(readFileSync(0, "utf8"));
      const plain = (value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value);
      let answer;
      {script}
      console.log(JSON.stringify(answer, (key, value) => plain(value)));
    """
    done = subprocess.run(
        [program, "--input-type=module", "--eval", code],
        input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def outcomes(folder: Path, *, seconds: float = 10.0, draws: int = 3) -> dict[str, dict[str, Any]]:
    """Put every file of a folder before the JavaScript reader, in Node, under a watchdog: what became of each."""
    program = node()
    if program is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    done = subprocess.run(
        [program, PROJECT / "tests" / "js" / "forged.js", folder, "--seconds", str(seconds), "--draws", str(draws)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return {answer["file"]: answer for answer in map(json.loads, done.stdout.splitlines())}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, address: Any) -> None:
        """Say nothing: an engine that is stopped drops its connection."""


class Engine:
    """A running engine: `ask(check, **parameters)` gives the value, or raises with the engine's own stack."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = dict(SCRIPTS)
        self._work: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers: dict[str, queue.Queue[dict[str, Any]]] = {}
        self._count = 0
        self.server = Server(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def offer(self, path: Path) -> str:
        """Serve a file and return its address within the server."""
        name = f"/file{len(self.files)}{path.suffix}"
        self.files[name] = path
        return name

    def ask(self, check: str, *, seconds: float = 120.0, **parameters: Any) -> Any:
        self._count += 1
        number = str(self._count)
        self._answers[number] = queue.Queue()
        self._work.put({"id": number, "check": check, "parameters": parameters})
        answer = self._answers[number].get(timeout=seconds)
        if "failure" in answer:
            raise AssertionError(answer["failure"])
        return answer["value"]

    def stop(self) -> None:
        self._work.put({"stop": True})
        self.server.shutdown()
        self.server.server_close()

    def _handler(engine) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/work":
                    self._reply(json.dumps(engine._work.get()).encode(), "application/json")
                elif self.path in engine.files:
                    place = engine.files[self.path]
                    self._reply(place.read_bytes(), TYPES.get(place.suffix, "application/octet-stream"))
                else:
                    self.send_error(404)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                engine._answers[self.path.rpartition("/")[2]].put(json.loads(body))
                self._reply(b"", "text/plain")

            def _reply(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        return Handler


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine and give its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def running(name: str) -> Iterator[Engine]:
    """Start an engine ("chromium" or "node") and stop it in the end."""
    engine = Engine()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if name == "chromium":
            program = [str(chromium()), *CHROMIUM_OPTIONS, f"--user-data-dir={folder}", f"{engine.address}/page.html"]
        else:
            for name_there, script in SCRIPTS.items():
                place = Path(folder, name_there.lstrip("/"))
                place.parent.mkdir(exist_ok=True)
                shutil.copy(script, place)
            (Path(folder) / "package.json").write_text('{"type": "module"}')
            start = f"import('{Path(folder).as_posix()}/checks.js').then((m) => m.serve('{engine.address}'))"
            program = [str(node()), "--eval", start]
        process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield engine
        finally:
            engine.stop()
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
