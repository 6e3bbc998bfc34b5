"""What the service bears: speed, load past its limits, a database that goes away, malformed requests, a soak.

python benchmarks/service.py rate      [--seconds 60] [--record]    16 clients, SQLite with full durability
python benchmarks/service.py pace      [--seconds 60] [--record]    200 releases a second, how long each takes
python benchmarks/service.py batch     [--record]                   100,000 rows as Arrow, one charge a person
python benchmarks/service.py postgres  [--seconds 30] [--record]    4 processes on one PostgreSQL, and the books
python benchmarks/service.py overload  [--seconds 20] [--record]    five times the limit
python benchmarks/service.py gone      [--record]                   the database stops for 30 s
python benchmarks/service.py malformed [--count 10000] [--record]   requests drawn from the OpenAPI file, broken
python benchmarks/service.py soak      [--minutes 20] [--record]    half load: memory flat, no error
python benchmarks/service.py rate pace batch postgres overload gone --record           several in one call

The service is the command itself, in processes of its own; visitors are another process on the same machine.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
from record import Recorder, arguments, recorder
from visitors import Visits, visit

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import books

POLICY = "100000000/km ever"
RUN = "import sys; from metricdp.cli import main; sys.exit(main())"


class Service:
    """The command, running."""

    def __init__(self, folder: Path, *options: str, ledger: str = "", policy: str = POLICY) -> None:
        self.folder = folder
        keys = folder / "service.keys"
        made = [sys.executable, "-c", RUN, "serve", "keys", "make", "bench", "--keys", str(keys)]
        scopes = ["--scope", "release", "--scope", "read", "--scope", "admin"]
        done = subprocess.run([*made, *scopes], capture_output=True, text=True, check=True)
        self.token = done.stdout.strip()
        self.ledger = ledger or str(folder / "budget.db")
        self.options = [
            *("--ledger", self.ledger, "--keys", str(keys), "--epsilon", "10/km", "--port", "0", "--log", "error"),
            *(["--policy", policy]),
            *options,
        ]
        self.start()

    def start(self) -> None:
        self.log = (self.folder / "service.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", RUN, "serve", *self.options],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        line = self.process.stdout.readline() if self.process.stdout else ""
        found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if found is None:
            raise SystemExit(f"the service did not start: {(self.folder / 'service.log').read_text()[-2000:]}")
        self.port = int(found[1])
        self.until_ready()

    def until_ready(self, seconds: float = 60.0) -> float:
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            try:
                if httpx.get(f"{self.url}/ready", timeout=5).status_code == 200:
                    return time.perf_counter() - started
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        raise SystemExit("the service was not ready in time")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"authorization": f"Bearer {self.token}"}, timeout=60.0)

    def memory(self) -> float:
        """Resident mebibytes of all its processes."""
        total = 0
        for process in [self.process.pid, *children(self.process.pid)]:
            try:
                status = Path(f"/proc/{process}/status").read_text()
            except OSError:
                continue
            total += int(re.search(r"VmRSS:\s+(\d+)", status)[1]) if "VmRSS" in status else 0
        return total / 1024

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found += [int(stat.parent.name), *children(int(stat.parent.name))]
    return found


@contextmanager
def running(*options: str, ledger: str = "", policy: str = POLICY) -> Iterator[Service]:
    with tempfile.TemporaryDirectory(prefix="metricdp-service-") as folder:
        service = Service(Path(folder), *options, ledger=ledger, policy=policy)
        try:
            yield service
        finally:
            if service.process.poll() is None:
                service.stop()


def said(visits: Visits) -> str:
    return (
        f"{visits.rate():.0f} a second, median {visits.quantile(0.5):.1f} ms, p99 {visits.quantile(0.99):.1f} ms, "
        f"answers {dict(visits.statuses)}, broken {visits.broken}"
    )


def rate(keep: Recorder, seconds: float) -> None:
    with running("--rate", "0") as service:
        visit(service.port, service.token, visitors=16, seconds=3)  # warm
        found = visit(service.port, service.token, visitors=16, seconds=seconds)
    print("16 clients:", said(found))
    keep(
        "service", "release over HTTP, 16 clients, SQLite with full durability", asked="400 a second",
        measured=f"{found.rate():.0f} a second for {found.seconds:.0f} s, p99 {found.quantile(0.99):.0f} ms",
        rate=found.rate(), p50=found.quantile(0.5), p99=found.quantile(0.99), seconds=found.seconds,
        other=sum(count for status, count in found.statuses.items() if status != 200) + found.broken,
    )  # fmt: skip


def pace(keep: Recorder, seconds: float) -> None:
    with running("--rate", "0") as service:
        visit(service.port, service.token, visitors=16, seconds=3)
        found = visit(service.port, service.token, visitors=16, seconds=seconds, rate=200)
    print("200 a second:", said(found))
    keep(
        "service", "release over HTTP at 200 a second", asked="p99 under 40 ms",
        measured=f"p99 {found.quantile(0.99):.1f} ms, median {found.quantile(0.5):.1f} ms, {found.rate():.0f} a second",
        rate=found.rate(), p50=found.quantile(0.5), p99=found.quantile(0.99), seconds=found.seconds,
    )  # fmt: skip


def batch(keep: Recorder) -> None:
    rng, rows = np.random.default_rng(0), 100_000
    with running("--rate", "0") as service, service.client() as client:
        for persons in (1_000, 100_000):
            rates = []
            for _ in range(5):
                table = pa.table(
                    {
                        "person": [f"person {number}" for number in np.arange(rows) % persons],
                        "lat": rng.uniform(41, 42, rows),
                        "lon": rng.uniform(12, 13, rows),
                    }
                )
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, table.schema) as writer:
                    writer.write_table(table)
                body = sink.getvalue().to_pybytes()
                headers = {"content-type": "application/vnd.apache.arrow.stream", "idempotency-key": uuid.uuid4().hex}
                started = time.perf_counter()
                answer = client.post("/v1/release/batch", content=body, headers=headers)
                seconds = time.perf_counter() - started
                assert answer.status_code == 200, answer.text
                assert pa.ipc.open_stream(answer.content).read_all().num_rows == rows
                rates.append(rows / seconds)
                print(f"{rows:,} rows of {persons:,} persons: {seconds:.3f} s, {rows / seconds:,.0f} rows a second")
            opened = f"; {rates[0]:,.0f} the first time, when their accounts are opened" if persons == rows else ""
            keep(
                "service", f"a batch of 100,000 rows of {persons:,} persons as Arrow, one charge a person",
                asked="200,000 rows a second",
                measured=f"{np.median(rates):,.0f} rows a second, median of five; the best {max(rates):,.0f}{opened}",
                rate=float(np.median(rates)), best=max(rates), first=rates[0], persons=persons,
            )  # fmt: skip


def postgres(keep: Recorder, seconds: float) -> None:
    """Measure the rate; then all ask about the same twenty persons until nothing is left: each gets 500, not 501."""
    with books.server(disk=True) as server, tempfile.TemporaryDirectory() as folder:
        key = str(Path(folder) / "books.key")
        options = ("--rate", "0", "--processes", "4", "--ledger-key", key)
        with running(*options, ledger=server.url, policy="5000/km ever") as service:
            visit(service.port, service.token, visitors=16, seconds=4)
            found = visit(service.port, service.token, visitors=16, seconds=seconds)
            print("PostgreSQL, 4 processes, 16 clients:", said(found))
            granted = refused = 0
            while not refused or granted < 20 * 500:
                some = visit(service.port, service.token, visitors=16, seconds=5, shared=20)
                granted, refused = granted + some.statuses[200], refused + some.statuses[409]
                print(f"the same 20 persons: {granted:,} of 10,000 granted, {refused:,} refused", flush=True)
                if not some.statuses[200]:
                    break
        verdict = verified(server.url, key)
        print(verdict)
    keep(
        "service", "PostgreSQL, 4 processes, 16 clients", asked="300 a second, never one unit over any budget",
        measured=f"{found.rate():.0f} a second; of budgets for exactly 10,000 releases {granted:,} were granted and "
        f"{refused:,} refused; books {verdict}", rate=found.rate(), granted=granted, refused=refused,
        p99=found.quantile(0.99), seconds=found.seconds,
    )  # fmt: skip


def verified(ledger: str, key: str) -> str:
    from metricdp.ledger import Ledger

    with Ledger.open(ledger, key_file=key) as found:
        verdict = found.verify()
    return f"verified, {verdict.entries:,} entries" if not verdict.faults else f"{len(verdict.faults)} faults"


def overload(keep: Recorder, seconds: float) -> None:
    with running("--rate", "100", "--waiting", "32") as service:
        visit(service.port, service.token, visitors=16, seconds=3, rate=90)
        before = service.memory()
        found = visit(service.port, service.token, visitors=200, seconds=seconds, rate=500)
        after = service.memory()
        ready = service.until_ready()
    print("five times the limit:", said(found), f"memory {before:.0f} to {after:.0f} MiB, ready after {ready:.1f} s")
    turned = found.statuses[429]
    keep(
        "service", "load of 500 a second where 100 are allowed", asked="429 at once, keeps serving, memory bounded",
        measured=f"{found.rate():.0f} served and {turned / found.seconds:.0f} turned away a second, median answer "
        f"{found.quantile(0.5):.1f} ms, memory {before:.0f} to {after:.0f} MiB",
        served=found.rate(), turned=turned, broken=found.broken, memory_before=before, memory_after=after,
    )  # fmt: skip


def gone(keep: Recorder, seconds: float = 30.0) -> None:
    with books.server(disk=True) as server, tempfile.TemporaryDirectory() as folder:
        key = str(Path(folder) / "books.key")
        with running("--rate", "0", "--processes", "2", "--ledger-key", key, ledger=server.url) as service:
            results: list[Visits] = []
            asking = threading.Thread(
                target=lambda: results.append(
                    visit(service.port, service.token, visitors=8, seconds=seconds + 25, rate=50)
                )
            )
            asking.start()
            time.sleep(8)
            server.stop()
            time.sleep(seconds)
            server.start()
            back = service.until_ready()
            asking.join()
            found = results[0]
            print("the database was gone:", said(found), f"ready {back:.1f} s after it was back")
        verdict = verified(server.url, key)
    statuses = dict(found.statuses)
    keep(
        "service", f"the database is gone for {seconds:.0f} s", asked="refused with a sentence, recovers by itself",
        measured=f"{statuses.get(503, 0)} answers 503 meanwhile, ready {back:.1f} s after it was back, books {verdict}",
        statuses={str(status): count for status, count in statuses.items()}, back=back, broken=found.broken,
    )  # fmt: skip


def malformed(keep: Recorder, count: int) -> None:
    import malformed as drawn  # tests/malformed.py

    with running("--rate", "0") as service, service.client() as client:
        seen, faults = drawn.sent(service.url, service.token, each=count // 45, count=count // 2, seed=1)
        after = client.post("/v1/release", json={"person": "a", "request": "b", "secret": [41.0, 12.0]}).status_code
        metrics, log = client.get("/metrics").text, (service.folder / "service.log").read_text()
    leaked = sum(word in text for word in drawn.CANARIES for text in (log, metrics))
    total, fives = sum(seen.values()), sum(number for status, number in seen.items() if status >= 500)
    print(
        f"{total} requests: {dict(seen)}; faults {len(faults)}: {faults[:5]}; in the log {leaked}; afterwards {after}"
    )
    keep(
        "service", "10,000 malformed requests drawn from the OpenAPI file", asked="refused, nothing leaks",
        measured=f"{total:,} requests: {fives} server errors, {len(faults)} answers not as described, {leaked} leaks; "
        "it serves on", statuses={str(one): seen[one] for one in seen}, faults=len(faults), leaks=leaked, after=after,
    )  # fmt: skip


def soak(keep: Recorder, minutes: float) -> None:
    with running("--rate", "0") as service:
        visit(service.port, service.token, visitors=16, seconds=20, rate=100)
        memory, statuses, slowest, started = [service.memory()], {}, 0.0, time.perf_counter()
        while time.perf_counter() - started < 60 * minutes:
            found = visit(service.port, service.token, visitors=16, seconds=30, rate=100)
            for status, count in found.statuses.items():
                statuses[status] = statuses.get(status, 0) + count
            statuses["broken"] = statuses.get("broken", 0) + found.broken
            slowest = max(slowest, found.quantile(0.99))
            memory.append(service.memory())
            print(f"{(time.perf_counter() - started) / 60:.1f} min: {memory[-1]:.0f} MiB, {statuses}", flush=True)
        half = len(memory) // 2
        drift = np.polyfit(np.arange(half, len(memory)), memory[half:], 1)[0] * 2 if len(memory) > 4 else 0.0
    keep(
        "service", f"a soak of {minutes:.0f} minutes at half load", asked="memory flat, no error",
        measured=f"{statuses.get(200, 0):,} releases, {sum(n for s, n in statuses.items() if s != 200)} errors, memory "
        f"{memory[0]:.0f} to {memory[-1]:.0f} MiB, {drift:+.2f} MiB a minute in the second half",
        memory=[round(one, 1) for one in memory], statuses={str(one): number for one, number in statuses.items()},
        p99=slowest, drift=drift,
    )  # fmt: skip


def main() -> None:
    parser = arguments(__doc__)
    kinds = ["rate", "pace", "batch", "postgres", "overload", "gone", "malformed", "soak"]
    parser.add_argument("what", choices=kinds, nargs="+")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--count", type=int, default=10_000)
    chosen = parser.parse_args()
    keep = recorder(chosen.record)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    run: dict[str, Callable[[], None]] = {
        "rate": lambda: rate(keep, chosen.seconds),
        "pace": lambda: pace(keep, chosen.seconds),
        "batch": lambda: batch(keep),
        "postgres": lambda: postgres(keep, chosen.seconds),
        "overload": lambda: overload(keep, chosen.seconds),
        "gone": lambda: gone(keep),
        "malformed": lambda: malformed(keep, chosen.count),
        "soak": lambda: soak(keep, chosen.minutes),
    }
    for name in chosen.what:
        run[name]()


if __name__ == "__main__":
    main()
