"""Services that are killed at any moment, and what must hold when they are back.

    python tests/felled.py FOLDER      for every line that comes in, fork a service and say its process and port

Starting Python takes longer than anything else here, so one process imports everything and forks a service when asked.
Visitors release from several threads and keep every answer. Afterwards every request that may have been made is sent
again, with another secret: what was answered must be answered the same, and nobody may be charged twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from typing import Any

POLICY = "100000000/km ever"
THREADS, PEOPLE = 6, 5
COST = 10_000_000  # millionths of epsilon per kilometre


@dataclass
class Tally:
    """What was seen over all ends."""

    ends: int = 0
    answered: int = 0
    stored_unanswered: int = 0
    asked: Counter[str] = field(default_factory=Counter)  # requests of every person, each counted once


@dataclass
class Answers:
    """What visitors were answered, by request, and how far each of them had come."""

    reports: dict[str, Any] = field(default_factory=dict)
    begun: int = 0  # requests that may have been made
    broken: int = 0


class Nest:
    """Where services come from: a process that has imported everything."""

    def __init__(self, folder: Path, place: str = "", key_file: str = "") -> None:
        from metricdp.service import make_key

        self.folder, self.place, self.key_file = folder, place or str(folder / "budget.db"), key_file
        self.token = make_key(folder / "service.keys", "visitor", ["release", "read"])
        program = [sys.executable, __file__, str(folder), self.place, key_file]
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.child, self.port = 0, 0

    def start(self) -> None:
        """Fork a service and wait until it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("start", file=self._process.stdin, flush=True)
        self.child, self.port = (int(word) for word in self._process.stdout.readline().split())
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                with closing(HTTPConnection("127.0.0.1", self.port, timeout=5)) as link:
                    link.request("GET", "/ready")
                    if link.getresponse().status == 200:
                        return
            except (OSError, HTTPException):
                pass
            time.sleep(0.02)
        raise AssertionError("the service did not come back")

    def end(self, how: signal.Signals) -> None:
        """Send a signal and wait until the process is gone."""
        os.kill(self.child, how)
        until = time.monotonic() + 60
        while Path(f"/proc/{self.child}").exists() and time.monotonic() < until:
            time.sleep(0.005)

    def close(self) -> None:
        with self._process:  # closes its pipes and waits
            pass

    def release(self, link: HTTPConnection, request: str, place: float) -> tuple[int, dict[str, Any]]:
        body = {"person": person_of(request), "request": request, "secret": [place, place]}
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        link.request("POST", "/v1/release", json.dumps(body), headers)
        answer = link.getresponse()
        return answer.status, json.loads(answer.read())


def person_of(request: str) -> str:
    return f"person {int(request.rpartition('-')[2]) % PEOPLE}"


def ended(nest: Nest, name: str, how: signal.Signals, seconds: float, victim: Any = None) -> Answers:
    """Let visitors release, end the service after so many seconds, and return what was answered."""
    answers, lock, stop = Answers(), threading.Lock(), threading.Event()
    first = threading.Event()

    def visitor() -> None:
        with closing(HTTPConnection("127.0.0.1", nest.port, timeout=30)) as link:
            asking(link)

    def asking(link: HTTPConnection) -> None:
        while not stop.is_set():
            with lock:
                request, answers.begun = f"{name}-{answers.begun}", answers.begun + 1
            try:
                status, answer = nest.release(link, request, 41.0)
            except (OSError, HTTPException, ValueError):
                answers.broken += 1
                return
            if status == 200:
                answers.reports[request] = answer["report"]
                first.set()
            else:
                assert status in (429, 503), answer

    threads = [threading.Thread(target=visitor) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    first.wait(30)
    time.sleep(seconds)
    (victim or (lambda: nest.end(how)))()
    stop.set()
    for thread in threads:
        thread.join(60)
    return answers


def repeated(nest: Nest, name: str, answers: Answers, tally: Tally) -> None:
    """Send every request again, with another secret."""
    with closing(HTTPConnection("127.0.0.1", nest.port, timeout=60)) as link:
        for number in range(answers.begun):
            _again(nest, link, f"{name}-{number}", answers, tally)
    tally.ends += 1


def _again(nest: Nest, link: HTTPConnection, request: str, answers: Answers, tally: Tally) -> None:
    status, answer = nest.release(link, request, -10.0)
    while status == 503:
        time.sleep(0.05)
        status, answer = nest.release(link, request, -10.0)
    assert status == 200, answer
    tally.asked[person_of(request)] += 1
    if request in answers.reports:
        assert answer["repeated"], f"{request} was answered and not stored: a report without a charge"
        assert answer["report"] == answers.reports[request], f"{request} was drawn twice"
        tally.answered += 1
    elif answer["repeated"]:
        assert answer["report"]["lat"] > 0, "a request that was stored was drawn again"
        tally.stored_unanswered += 1


def balanced(nest: Nest, tally: Tally) -> None:
    """Everybody was charged once for every request, and the books verify."""
    from metricdp.ledger import Ledger

    with Ledger.open(nest.place, key_file=nest.key_file or None) as ledger:
        for person, requests in tally.asked.items():
            (account,) = ledger.budget(person).accounts
            assert account.spent == requests * COST, f"{person}: {account.spent} for {requests} requests"
        assert ledger.verify().holds


def kills(nest: Nest, count: int, dice: Random, *, patience: float = 0.3, tell: Any = None) -> Tally:
    """Kill services at random moments, one after the other, and repeat what each was asked."""
    tally = Tally()
    nest.start()
    for number in range(count):
        answers = ended(nest, f"run-{number}", signal.SIGKILL, dice.uniform(0.0, patience))
        nest.start()
        repeated(nest, f"run-{number}", answers, tally)
        if tell is not None:
            tell(number + 1, tally)
    nest.end(signal.SIGTERM)
    balanced(nest, tally)
    return tally


def main(folder: str, place: str, key_file: str) -> None:
    """Fork a service for every line."""
    import uvicorn

    import metricdp as mdp
    from metricdp.service import ServedMechanism, ServiceLimits, app, logs, server

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    settings = app.Settings(
        app.LedgerSettings(place, POLICY, key_file or None), f"{folder}/service.keys", ServiceLimits(rate=0)
    )
    served = [ServedMechanism("earth", mdp.laplace(mdp.Haversine(), 10.0))]
    for _ in sys.stdin:
        door = server.ListenOptions(port=0)
        bound = door.bound_socket()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.setswitchinterval(server.SWITCH)
            logs.set_up("error")
            made = app.application(settings, served)
            uvicorn.Server(server.configuration(made, door, settings.limits)).run(sockets=[bound])
            os._exit(0)
        print(child, bound.getsockname()[1], flush=True)
        bound.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
