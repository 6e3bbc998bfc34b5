"""Kill whatever charges and releases, at random moments, and repeat every request: nothing is lost, nothing twice.

    python benchmarks/kills.py [--file 250] [--server 250] [--service 100] [--seed 1] [--record]

`--file` counts kills (signal 9) of processes that release into books in a SQLite file; `--server` kills of PostgreSQL
backends under a process that releases, which is killed as well. After each, the books are opened again and every
request that may have been made is repeated: an answer must be the one that was given, and nobody is charged twice. The
server waits for the disk as in use. `--service` kills a service that six visitors ask over HTTP, and repeats their
requests, with other secrets, when it is back.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from record import Recorder, arguments, recorder  # noqa: E402

from books import postgres, server  # noqa: E402
from killing import POLICY, Tally, back, balanced, killed, repeated  # noqa: E402
from metricdp.ledger import Ledger  # noqa: E402

ASKED = "no report without a charge, no charge twice, no second draw for one id, books verify: all"


def in_a_file(count: int, seed: int) -> Tally:
    """Kill processes that release into books in a file."""
    tally, dice = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/budget.db"
        Ledger.open(place, policy=POLICY).close()
        for number in range(count):
            answers = killed(place, None, f"run {number}", tally, dice, patience=0.1)
            with Ledger.open(place) as ledger:
                repeated(ledger, f"run {number}", answers, tally)
            _told("file", tally, number, count)
        with Ledger.open(place) as ledger:
            balanced(ledger, tally)
    return tally


def on_a_server(count: int, seed: int) -> Tally:
    """Kill backends of a PostgreSQL server while a process releases, and the process too."""
    import psycopg

    tally, dice = Tally(), random.Random(seed)
    with server(disk=True) as running, tempfile.TemporaryDirectory() as folder:
        place, key = running.fresh("kills"), Path(folder) / "books.key"
        Ledger.open(place, policy=POLICY, key_file=key).close()

        def victim() -> None:
            """End a backend the hard way: the server restarts all of them and recovers from its log."""
            others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            with psycopg.connect(place) as connection:
                pids = [row[0] for row in connection.execute(others)]
            if pids:
                os.kill(dice.choice(pids), signal.SIGKILL)

        for number in range(count):
            answers = killed(place, key, f"run {number}", tally, dice, victim=victim, patience=0.5)
            with back(place, key) as ledger:
                repeated(ledger, f"run {number}", answers, tally)
            _told("server", tally, number, count)
        with back(place, key) as ledger:
            balanced(ledger, tally)
    return tally


def of_the_service(count: int, seed: int) -> Tally:
    """Kill services that are asked over HTTP, with a file behind them."""
    import felled

    def tell(number: int, tally: Any) -> None:
        _told("service", tally, number - 1, count)

    with tempfile.TemporaryDirectory() as folder:
        nest = felled.Nest(Path(folder))
        try:
            found = felled.kills(nest, count, random.Random(seed), tell=tell)
        finally:
            nest.close()
    return Tally(found.ends, found.answered, found.stored_unanswered)


def _told(what: str, tally: Tally, number: int, count: int) -> None:
    if (number + 1) % 25 == 0 or number + 1 == count:
        print(f"{what}: {number + 1} of {count} kills, {tally.answered:,} answers repeated", flush=True)


def _kept(keep: Recorder, what: str, tally: Tally, seconds: float) -> None:
    measured = (
        f"{tally.kills} of {tally.kills}: {tally.answered:,} answers repeated as given, {tally.stored_unanswered:,} "
        "stored ones answered afterwards"
    )
    keep("ledger", what, asked=ASKED, measured=measured, kills=tally.kills, answers=tally.answered, seconds=seconds)
    print(f"{what}: {measured}, {seconds:.0f} s", flush=True)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--file", type=int, default=250)
    parser.add_argument("--server", type=int, default=250)
    parser.add_argument("--service", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    started = time.perf_counter()
    if chosen.file:
        tally = in_a_file(chosen.file, chosen.seed)
        _kept(keep, "kill -9 of processes, SQLite file", tally, time.perf_counter() - started)
    if chosen.server and postgres() is not None:
        started = time.perf_counter()
        tally = on_a_server(chosen.server, chosen.seed)
        _kept(keep, "kill -9 of PostgreSQL backends and processes", tally, time.perf_counter() - started)
    if chosen.service:
        started = time.perf_counter()
        tally = of_the_service(chosen.service, chosen.seed)
        _kept(keep, "kill -9 of the service", tally, time.perf_counter() - started)


if __name__ == "__main__":
    main()
