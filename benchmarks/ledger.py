"""How fast the books are: releases a second with every commit on the disk, batches, many processes on a server.

python benchmarks/ledger.py [--seconds 10] [--record]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from record import Recorder, arguments, recorder  # noqa: E402

from books import postgres, server  # noqa: E402
from metricdp.ledger import Ledger  # noqa: E402

POLICY = "10000000/km ever, 10000000/km per day"
METRIC = "haversine/km"
PEOPLE = 2_000


def releases(ledger: Ledger, threads: int, seconds: float, name: str) -> tuple[float, list[float]]:
    """Release from several threads for a while; return how many a second, and how long each waited."""
    waits: list[float] = []
    until = time.perf_counter() + seconds

    def work(worker: int) -> None:
        number = 0
        while (begun := time.perf_counter()) < until:
            number += 1
            person, request = f"person {(worker * 7919 + number) % PEOPLE}", f"{name} {worker} {number}"
            ledger.release(person, request, key="app", metric=METRIC, epsilon=1.0, draw=lambda: b"x" * 64)
            waits.append(time.perf_counter() - begun)

    crew = [threading.Thread(target=work, args=(worker,)) for worker in range(threads)]
    started = time.perf_counter()
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return len(waits) / (time.perf_counter() - started), sorted(waits)


def in_a_file(keep: Recorder, seconds: float) -> None:
    with tempfile.TemporaryDirectory(dir=HERE) as folder, Ledger.open(f"{folder}/b.db", policy=POLICY) as ledger:
        for threads in (1, 16):
            rate, waits = releases(ledger, threads, seconds, f"t{threads}")
            slow = 1000 * waits[int(0.99 * len(waits))]
            measured = f"{rate:,.0f} a second, 99 % within {slow:.0f} ms"
            what = f"releases into a SQLite file, every commit on the disk, {threads} threads"
            keep("ledger", what, measured=measured, asked="1,000 a second" if threads > 1 else "", rate=rate, p99=slow)
            print(f"{what}: {measured}", flush=True)
        for people in (1_000, 10_000, 100_000):
            rows = {f"person {number}": 100_000 // people for number in range(people)}
            batch(ledger, rows, f"open {people}")
            taken = min(batch(ledger, rows, f"{people} {number}") for number in range(3))
            what = f"batch of 100,000 rows, one charge for each of {people:,} people, SQLite"
            measured = f"{100_000 / taken:,.0f} rows a second"
            keep("ledger", what, measured=measured, asked="200,000 rows a second", seconds=taken)
            print(f"{what}: {measured}", flush=True)
        started = time.perf_counter()
        verdict = ledger.verify()
        taken = time.perf_counter() - started
        assert verdict.holds
        print(f"verify: {verdict.entries:,} entries, {verdict.accounts:,} accounts in {taken:.1f} s", flush=True)


def batch(ledger: Ledger, rows: dict[str, int], request: str) -> float:
    started = time.perf_counter()
    ledger.release_batch(rows, request, key="app", metric=METRIC, epsilon=1.0, draw=lambda granted: b"x" * 1_600_000)
    return time.perf_counter() - started


def on_a_server(keep: Recorder, seconds: float, processes: int = 4, threads: int = 4) -> None:
    with server(disk=True) as running, tempfile.TemporaryDirectory() as folder:
        place, key = running.fresh("speed"), Path(folder) / "books.key"
        Ledger.open(place, policy=POLICY, key_file=key).close()

        def work(number: int) -> bytes:
            with Ledger.open(place, key_file=key) as ledger:
                rate, _ = releases(ledger, threads, seconds, f"p{number}")
            return f"{rate}".encode()

        rate = sum(float(text) for text in forked(processes, work))
        what = f"releases into PostgreSQL, {processes} processes with {threads} threads each, every commit on the disk"
        measured = f"{rate:,.0f} a second"
        keep("ledger", what, measured=measured, asked="300 a second", rate=rate)
        print(f"{what}: {measured}", flush=True)
        with Ledger.open(place, key_file=key) as ledger:
            people = 100_000
            rows = {f"person {number}": 1 for number in range(people)}
            first = batch(ledger, rows, "open")
            taken = min(batch(ledger, rows, f"again {number}") for number in range(3))
            what = f"batch of 100,000 rows, one charge for each of {people:,} people, PostgreSQL"
            measured = f"{people / taken:,.0f} rows a second; {people / first:,.0f} when their accounts are opened"
            keep("ledger", what, measured=measured, seconds=taken, first=first)
            print(f"{what}: {measured}", flush=True)
            assert ledger.verify().holds


def forked(count: int, work: Callable[[int], bytes]) -> list[bytes]:
    """Run work in processes of its own and return what each gave back."""
    pipes = []
    for number in range(count):
        here, there = os.pipe()
        if os.fork() == 0:
            try:
                os.write(there, work(number))
            finally:
                os._exit(0)
        os.close(there)
        pipes.append(here)
    answers = []
    for here in pipes:
        with os.fdopen(here, "rb") as file:
            answers.append(file.read())
        os.wait()
    return answers


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    in_a_file(keep, chosen.seconds)
    if postgres() is not None:
        on_a_server(keep, chosen.seconds)


if __name__ == "__main__":
    main()
