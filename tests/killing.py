"""Processes that release and are killed at any moment, and what must hold of the books afterwards.

A spender is forked: it opens the books, releases from several threads, and writes every answer to a pipe as soon as it
has it. Whoever watches kills it with signal 9, reads what was answered, and repeats every request it may have made.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from books import fork
from metricdp.errors import LedgerUnavailable
from metricdp.ledger import Ledger

POLICY = "1000000/km ever"
THREADS, PEOPLE, MOST = 4, 5, 4000
METRIC = "haversine/km"


@dataclass
class Tally:
    """What was seen over all kills."""

    kills: int = 0
    answered: int = 0
    stored_unanswered: int = 0
    asked: Counter[str] = field(default_factory=Counter)  # requests of every person, each counted once


def released(ledger: Ledger, request: str) -> bytes:
    """Ask for one request, with new randomness; who it is for follows from its name."""
    draw = secrets.token_hex(8).encode
    return ledger.release(person_of(request), request, key="app", metric=METRIC, epsilon=0.5, draw=draw).report


def person_of(request: str) -> str:
    return f"person {int(request.rpartition(' ')[2]) % PEOPLE}"


def spend(place: str, key_file: Path | None, name: str, out: int, stubborn: bool) -> None:
    """Release until killed; every answer is written in one piece. A stubborn one asks again when the books are gone."""
    ledger = Ledger.open(place, key_file=key_file)

    def work(worker: int) -> None:
        for number in range(worker, MOST, THREADS):
            request = f"{name} {number}"
            while True:
                try:
                    report = released(ledger, request)
                    break
                except LedgerUnavailable:
                    if not stubborn:
                        raise
                    time.sleep(0.02)
            os.write(out, f"{request}\t{report.decode()}\n".encode())

    for worker in range(THREADS):
        threading.Thread(target=work, args=(worker,)).start()


def killed(
    place: str, key_file: Path | None, name: str, tally: Tally, random: Random, *, victim=None, patience: float = 0.03
) -> dict[str, str]:
    """Let a spender run, kill it (or what `victim` kills meanwhile) at a random moment, and return what it answered."""
    here, there = os.pipe()
    child = fork()
    if child == 0:
        try:
            os.close(here)
            spend(place, key_file, name, there, stubborn=victim is not None)
            for thread in threading.enumerate():
                if thread is not threading.current_thread():
                    thread.join()
        finally:
            os._exit(1)
    os.close(there)
    try:
        select.select([here], [], [], 30)  # until it answers for the first time
        time.sleep(random.uniform(0.0, patience))
        if victim is not None:
            victim()
            time.sleep(random.uniform(0.0, patience))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    data = b""
    while piece := os.read(here, 1 << 20):
        data += piece
    os.close(here)
    tally.kills += 1
    return dict(line.split("\t") for line in data.decode().splitlines())


def repeated(ledger: Ledger, name: str, answers: dict[str, str], tally: Tally) -> None:
    """Repeat every request that may have been made: answers are the same, and nothing is drawn twice for one id."""
    last = max((int(request.rpartition(" ")[2]) for request in answers), default=-1)
    for number in range(last + 2 * THREADS + 1):
        request = f"{name} {number}"
        draws: list[bytes] = []

        def draw(draws: list[bytes] = draws) -> bytes:
            draws.append(secrets.token_hex(8).encode())
            return draws[-1]

        receipt, certain = None, True
        while receipt is None:
            try:
                receipt = ledger.release(person_of(request), request, key="app", metric=METRIC, epsilon=0.5, draw=draw)
            except LedgerUnavailable:  # a server that is still recovering: whether it committed will show
                certain = False
                time.sleep(0.05)
        tally.asked[person_of(request)] += 1
        if request in answers:
            assert receipt.repeated, f"{request!r} was answered and not stored: a report without a charge"
            assert receipt.report.decode() == answers[request], f"{request!r} was drawn twice"
            tally.answered += 1
        elif receipt.repeated:
            tally.stored_unanswered += 1
        if certain:
            assert receipt.repeated == (not draws)
        else:
            assert request in answers or receipt.repeated or receipt.report == draws[-1]


def back(place: str, key_file: Path | None = None) -> Ledger:
    """Open the books as soon as they can be opened again."""
    until = time.monotonic() + 30
    while True:
        try:
            return Ledger.open(place, key_file=key_file)
        except LedgerUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def balanced(ledger: Ledger, tally: Tally) -> None:
    """Everybody was charged once for every request, and the books verify."""
    for person, requests in tally.asked.items():
        (account,) = ledger.budget(person).accounts
        assert account.spent == requests * 500_000, f"{person} was charged twice, or not at all"
    verdict = ledger.verify()
    assert verdict.holds, verdict.faults
