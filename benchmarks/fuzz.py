"""Attack every promise for as long as you like: builds, audits, forged and damaged files, Python and JavaScript.

    python benchmarks/fuzz.py --seconds 3600 --record            # everything, on all cores, and a line in the results
    python benchmarks/fuzz.py --seconds 60 --only audits,files
    python benchmarks/fuzz.py --case audits:12345                # one case again, with what it says

A long run may come in pieces, also from other machines. A piece begins where the one before it says that it ended:

    python benchmarks/fuzz.py --seconds 540 --jobs 16 --piece one.json
    python benchmarks/fuzz.py --seconds 540 --jobs 16 --piece two.json --first 250000
    python benchmarks/fuzz.py --add one.json two.json --record   # one line for both; nothing is attacked

A case is a number: the same number is the same attack. Each runs in a process of its own kind that is killed, with all
that it started, after ten seconds at work or a minute asleep without an answer; waiting for a processor is neither, and
a new process has a minute at work for its first cases, which import and compile.
Judges are fractions, 400-bit intervals and an independent solver; `attacks/judges.py` says how each kind of file is
judged. The exit code is 0 when nothing
was unsound, nothing hung and every exception was ours.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attacks import watch

HERE = Path(__file__).parent
sys.path += [
    place for place in (str(HERE), *(str(HERE.parent / name) for name in ("tests", "src"))) if place not in sys.path
]
KINDS = ("builds", "audits", "local", "files", "javascript")
MEMORY = 6 << 30  # address space of a worker: what a forged file may make us reserve
BAD = ("unsound", "foreign", "hung")
FRESH, PATIENCE = 50, 6  # for so many cases a new process has so many times as long
TOLD = 30.0  # seconds between two lines about how far it is


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
        self.begun = 0
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz")  # a process that is killed leaves its files behind
        self.process = context.Process(target=_work, args=(self.kind, other, self.folder.name), daemon=True)
        self.process.start()
        other.close()
        self.next()

    def next(self) -> None:
        patience = PATIENCE if self.begun < FRESH else 1
        self.number, self.watch, self.begun = next(self.numbers), watch.Watch(self.pid, patience), self.begun + 1
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


class Tally:
    """What was attacked and what came of it: of one run, or of several together."""

    def __init__(self, kinds: list[str], first: int = 0) -> None:
        self.answers: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
        self.said: Counter[str] = Counter()
        self.bad: list[str] = []
        self.seconds, self.next, self.under_way = 0.0, first, 0
        self.machines: list[Any] = []

    def take(self, kind: str, number: int, verdict: str, said: str) -> None:
        """Count an answer; print it at once where it is bad."""
        self.answers[kind][verdict] += 1
        self.next = max(self.next, number + 1)
        if verdict in BAD:
            self.bad.append(f"{kind}:{number} {verdict}: {said}")
            print(self.bad[-1], flush=True)
        else:
            self.said[f"{kind}, {verdict}, {said}"] += 1

    def add(self, other: Tally) -> None:
        for kind, counts in other.answers.items():
            self.answers.setdefault(kind, Counter()).update(counts)
        self.said.update(other.said)
        self.bad += other.bad
        self.seconds, self.next = self.seconds + other.seconds, max(self.next, other.next)
        self.under_way += other.under_way
        self.machines += other.machines

    def write(self, path: Path) -> None:
        """Write a piece; one that is cut off half-way leaves the one before it."""
        draft = path.with_name(path.name + ".draft")
        draft.write_text(json.dumps(vars(self), ensure_ascii=False), encoding="utf-8")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> Tally:
        held = json.loads(path.read_text(encoding="utf-8"))
        made = cls([])
        vars(made).update(held)
        made.answers = {kind: Counter(counts) for kind, counts in held["answers"].items()}
        made.said = Counter(held["said"])
        return made

    def __str__(self) -> str:
        lines = []
        for kind, counts in self.answers.items():
            verdicts = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
            lines.append(f"{kind}: {verdicts or 'nothing was answered'}")
        for verdict in ("held", "refused"):
            found = [(said, count) for said, count in sorted(self.said.items()) if said.split(", ")[1] == verdict]
            lines.append(f"{verdict}: " + ", ".join(f"{said.replace(f', {verdict}', '')} {n:,}" for said, n in found))
        return "\n".join([*lines, *self.bad])


def fuzz(
    kinds: list[str],
    seconds: float,
    *,
    first: int,
    workers: int,
    cases: float = float("inf"),
    piece: Path | None = None,
    here: Any = None,
) -> Tally:
    """Run cases of every kind until the time is over, or until each kind has had so many; return what came of them."""
    tally = Tally(kinds, first)
    tally.machines = [here]
    numbers = {kind: iter(range(first, sys.maxsize)) for kind in kinds}
    crew = [Worker(kinds[slot % len(kinds)], numbers[kinds[slot % len(kinds)]]) for slot in range(workers)]
    began = told = time.monotonic()

    def tell() -> None:
        tally.seconds, tally.under_way = time.monotonic() - began, len(crew)
        if piece is not None:
            tally.write(piece)

    try:
        while time.monotonic() < began + seconds and any(counts.total() < cases for counts in tally.answers.values()):
            multiprocessing.connection.wait([worker.pipe for worker in crew], timeout=0.2)
            for worker in crew:
                answer = worker.poll()
                if answer is None:
                    continue
                tally.take(worker.kind, worker.number, *answer)
                if answer[0] == "hung" or not worker.process.is_alive():
                    worker.restart()
                else:
                    worker.next()
            if time.monotonic() - told > TOLD:
                told = time.monotonic()
                tell()
                done = "  ".join(f"{kind} {dict(counts)}" for kind, counts in tally.answers.items())
                print(f"after {tally.seconds:.0f} s: {done}", flush=True)
    finally:
        for worker in crew:
            worker.stop()
    tell()
    return tally


def possible(kinds: list[str]) -> list[str]:
    """Return the kinds that can be attacked on this machine, and say what cannot."""
    if "javascript" in kinds and shutil.which("node") is None:
        print("javascript is not attacked: this machine has no Node.", flush=True)
        kinds = [kind for kind in kinds if kind != "javascript"]
    for kind in kinds:
        importlib.import_module(f"attacks.{kind}")
    if {"files", "javascript"} & set(kinds):
        from attacks import forgery

        for name, why in forgery.left_out().items():
            print(f"no file of {name} is forged: {why}", flush=True)
    return kinds


def recorded(tally: Tally) -> None:
    """Append a line to the results."""
    from record import record

    cases = ", ".join(f"{kind} {counts.total():,}" for kind, counts in tally.answers.items())
    faults = {name: sum(counts[name] for counts in tally.answers.values()) for name in BAD}
    pieces = f" in {len(tally.machines)} pieces" if len(tally.machines) > 1 else ""
    workers = " and ".join(sorted({str(one["workers"]) for one in tally.machines}))
    record(
        "attacks",
        f"fuzz of {tally.seconds / 60:.0f} minutes{pieces}, {workers} processes (`benchmarks/fuzz.py`)",
        asked="0 unsound, 0 hangs, 0 exceptions that are not ours",
        measured=f"{cases}: " + ", ".join(f"{count} {name}" for name, count in faults.items()),
        counts={kind: dict(counts) for kind, counts in tally.answers.items()},
        machines=tally.machines,
        bad=tally.bad[:20],
    )


def main() -> int:
    """Parse, attack, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cases", type=float, default=float("inf"), help="end sooner: so many of every kind")
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("--first", type=int, default=0, help="the first case; another run takes other ones")
    parser.add_argument("--workers", "--jobs", type=int, default=0, help="processes; two for every core unless given")
    parser.add_argument("--case", help="one case again, such as audits:12345")
    parser.add_argument("--piece", type=Path, help="a file for what was done, written anew every half minute")
    parser.add_argument("--add", type=Path, nargs="+", metavar="PIECE", help="add pieces up; nothing is attacked")
    parser.add_argument("--record", action="store_true", help="append a line to the results")
    chosen = parser.parse_args()
    if chosen.case:
        kind, _, number = chosen.case.partition(":")
        verdict, said = run_case(kind, int(number))
        print(verdict, said, sep=": ")
        return 1 if verdict in BAD else 0
    if chosen.add:
        tally = Tally([])
        for path in chosen.add:
            tally.add(Tally.read(path))
        if chosen.piece is not None:
            tally.write(chosen.piece)
    else:
        kinds = possible(chosen.only.split(","))
        workers = chosen.workers or max(len(kinds), 2 * (os.cpu_count() or 1))
        if not kinds or workers < len(kinds):
            parser.error(f"{len(kinds)} kinds need at least as many processes, got {workers}: give --only or --jobs.")
        tally = attacked(kinds, workers, chosen)
    print(tally)
    print(f"{tally.seconds:.0f} s; {tally.under_way} cases were under way at the end; next: --first {tally.next}")
    if chosen.record:
        recorded(tally)
    return 1 if tally.bad else 0


def attacked(kinds: list[str], workers: int, chosen: argparse.Namespace) -> Tally:
    """Attack as the command line says."""
    from record import machine

    here = machine() | {"workers": workers, "first": chosen.first}
    print(f"{', '.join(kinds)} from case {chosen.first}, {workers} processes, Python {here['python']}", flush=True)
    return fuzz(
        kinds, chosen.seconds, first=chosen.first, workers=workers, cases=chosen.cases, piece=chosen.piece, here=here
    )


if __name__ == "__main__":
    sys.exit(main())
