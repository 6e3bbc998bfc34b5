"""Attack every promise for as long as you like: builds, audits, forged and damaged files, Python and JavaScript.

    python benchmarks/fuzz.py --seconds 3600 --record            # everything, on all cores, and a line in the results
    python benchmarks/fuzz.py --seconds 60 --only audits,files
    python benchmarks/fuzz.py --case audits:12345                # one case again, with what it says

A case is a number: the same number is the same attack. Each runs in a process of its own kind that is killed, with all
that it started, after ten seconds at work or a minute asleep without an answer; waiting for a processor is neither.
Judges are fractions, 400-bit intervals and an independent solver. The exit code is 0 when nothing was unsound, nothing
hung and every exception was ours.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import multiprocessing.connection
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attacks import watch

HERE = Path(__file__).parent
sys.path += [place for place in (str(HERE), str(HERE.parent / "tests")) if place not in sys.path]
KINDS = ("builds", "audits", "local", "files", "javascript")
MEMORY = 6 << 30  # address space of a worker: what a forged file may make us reserve
BAD = ("unsound", "foreign", "hung")


def run_case(kind: str, number: int) -> tuple[str, str]:
    """Run one attack and return its verdict and a sentence."""
    from metricdp.errors import MetricdpError

    attack = importlib.import_module(f"attacks.{kind}").attack
    try:
        verdict, said = attack(number)
    except MetricdpError as error:
        return "refused", type(error).__name__
    except Exception as error:  # what is not ours is what this looks for
        return "foreign", f"{type(error).__name__}: {error}"[:300]
    return str(verdict), str(said)


def _work(kind: str, pipe: Any, folder: str) -> None:
    os.setpgid(0, 0)  # with what it starts, so that all of it is watched and ended together
    tempfile.tempdir = folder
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while (number := pipe.recv()) is not None:
        pipe.send(run_case(kind, number))


class Worker:
    """A process that runs the cases of one kind, and is replaced when it hangs or dies."""

    def __init__(self, kind: str, numbers: Any) -> None:
        self.kind, self.numbers = kind, numbers
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz")  # a process that is killed leaves its files behind
        self.process = context.Process(target=_work, args=(self.kind, other, self.folder.name), daemon=True)
        self.process.start()
        other.close()
        self.next()

    def next(self) -> None:
        self.number, self.watch = next(self.numbers), watch.Watch(self.pid)
        self.pipe.send(self.number)

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def poll(self) -> tuple[str, str] | None:
        """Return the verdict of the present case, where there is one."""
        try:
            if self.pipe.poll():
                answer: tuple[str, str] = self.pipe.recv()
                return answer
        except (EOFError, OSError):
            self.process.join()  # the pipe closes a moment before the process has ended
            return "foreign", f"the process died with {self.process.exitcode}"
        fault = self.watch.fault()
        return ("hung", fault) if fault else None

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        if self.process.exitcode is None:
            watch.end(self.pid)
        self.process.join()
        self.pipe.close()
        self.folder.cleanup()


def fuzz(kinds: list[str], seconds: float, *, first: int, workers: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Run cases of every kind until the time is over; return the counts and the bad cases."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    bad: list[str] = []
    numbers = {kind: iter(range(first, sys.maxsize)) for kind in kinds}
    crew = [Worker(kinds[slot % len(kinds)], numbers[kinds[slot % len(kinds)]]) for slot in range(workers)]
    end, told = time.monotonic() + seconds, time.monotonic()
    while time.monotonic() < end:
        multiprocessing.connection.wait([worker.pipe for worker in crew], timeout=0.2)
        for worker in crew:
            answer = worker.poll()
            if answer is None:
                continue
            verdict, said = answer
            counts[worker.kind][verdict] += 1
            if verdict in BAD:
                bad.append(f"{worker.kind}:{worker.number} {verdict}: {said}")
                print(bad[-1], flush=True)
            if verdict == "hung" or not worker.process.is_alive():
                worker.restart()
            else:
                worker.next()
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print("  ".join(f"{kind} {sum(counts[kind].values()):,}" for kind in kinds), file=sys.stderr, flush=True)
    for worker in crew:
        worker.stop()
    return counts, bad


def main() -> int:
    """Parse, attack, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--first", type=int, default=0, help="the first case; another run takes other ones")
    parser.add_argument("--workers", type=int, default=0, help="processes; two for every core unless given")
    parser.add_argument("--case", help="one case again, such as audits:12345")
    parser.add_argument("--record", action="store_true", help="append a line to the results")
    chosen = parser.parse_args()
    if chosen.case:
        kind, _, number = chosen.case.partition(":")
        print(*run_case(kind, int(number)), sep=": ")
        return 0
    kinds = chosen.only.split(",")
    workers = chosen.workers or max(len(kinds), 2 * (os.cpu_count() or 1))
    counts, bad = fuzz(kinds, chosen.seconds, first=chosen.first, workers=workers)
    for kind in kinds:
        print(f"{kind}: " + ", ".join(f"{name} {count:,}" for name, count in sorted(counts[kind].items())))
    if chosen.record:
        from record import record

        cases = ", ".join(f"{kind} {sum(counts[kind].values()):,}" for kind in kinds)
        faults = {name: sum(counts[kind][name] for kind in kinds) for name in BAD}
        record(
            "attacks",
            f"fuzz of {chosen.seconds / 60:g} minutes, {workers} processes (`benchmarks/fuzz.py`)",
            asked="0 unsound, 0 hangs, 0 exceptions that are not ours",
            measured=f"{cases}: " + ", ".join(f"{count} {name}" for name, count in faults.items()),
            counts={kind: dict(counts[kind]) for kind in kinds},
            bad=bad[:20],
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
