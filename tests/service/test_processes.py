"""Several processes on one PostgreSQL, as the command runs them: one budget, one set of counters, a clean end."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import books
from metricdp.service import make_key

RUN = "import sys; from metricdp.cli import main; sys.exit(main())"


def wait_for(address: str, process: subprocess.Popen[str]) -> None:
    """Return once a service answers; one that ends before is told by what it said."""
    while process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(address).status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError(f"the service ended: {process.communicate()[1]}")


@pytest.mark.skipif(books.postgres() is None, reason="PostgreSQL is not installed (Debian: apt install postgresql)")
def test_two_processes_never_give_one_release_more_than_the_budget_holds(tmp_path):
    token = make_key(tmp_path / "service.keys", "app", ["release", "read", "admin"])
    headers = {"authorization": f"Bearer {token}", "connection": "close"}  # a new connection may meet either process
    with books.server() as server:
        options = [
            *("--ledger", server.url, "--ledger-key", str(tmp_path / "books.key"), "--policy", "200/km ever"),
            *("--keys", str(tmp_path / "service.keys"), "--epsilon", "10/km", "--port", "0", "--processes", "2"),
        ]
        program = [sys.executable, "-u", "-c", RUN, "serve", *options, "--log", "error"]
        with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                url = re.search(r"http://\S+?(?=;)", process.stdout.readline())[0]

                wait_for(f"{url}/ready", process)

                def release(number: int) -> int:
                    body = {"person": "anna", "request": uuid.uuid4().hex, "secret": [41.0, 12.0 + number / 100]}
                    return httpx.post(f"{url}/v1/release", json=body, headers=headers, timeout=600).status_code

                with ThreadPoolExecutor(8) as visitors:
                    seen = Counter(visitors.map(release, range(40)))
                assert seen == {200: 20, 409: 20}
                text = httpx.get(f"{url}/metrics", headers=headers).text
                assert 'metricdp_releases_total{mechanism="laplace",outcome="drawn"} 20.0' in text
            finally:
                process.send_signal(signal.SIGTERM)
                _, log = process.communicate()
        assert process.returncode == 0
        assert not log
