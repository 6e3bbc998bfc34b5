"""Attack jobs over files: simultaneous starts, kill -9 at any moment, full disks. Every run must be refused or right.

python benchmarks/jobs.py starts [--count 200] [--seed 0]
python benchmarks/jobs.py kills  [--count 100] [--seed 0]
python benchmarks/jobs.py disks  [--count 20]  [--seed 0]     (as root on small file systems, else by a limit on files)

A watcher looks at everything outside private folders the whole time and keeps the first report it ever sees of every
row: a second one that differs is a leak. Reports are planar Laplace, so two noises are never equal by chance.

What every run said is kept, refusals too. Where anything is not as it must be, the whole story of that folder is
printed and the folder stays. A run that does not end in time is a fault of its own ("endless"), with where it stood:
on a busy machine it may only be slow.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attacked import Outcome, Round, Verdict, Watcher
from record import arguments, recorder

SECRET = 7777.123  # no text may hold these digits
PATIENCE = 300.0  # seconds for one run
STARTER = """
import faulthandler, signal, sys
faulthandler.register(signal.SIGUSR1, all_threads=True)
from metricdp.cli import main
import metricdp.tables, pyarrow.parquet
print("ready", flush=True)
sys.stdin.readline()
sys.exit(main(sys.argv[1:]))
"""


def write_input(place: Path, files: int, rows: int, bad: int | None = None) -> None:
    """Write files of secrets, one partition each, the last one with a bad row where one is asked for."""
    (place / "in").mkdir(exist_ok=True)
    for number in range(files):
        x = np.full(rows, SECRET)
        if bad is not None and number == files - 1:
            x[bad] = np.nan
        ids = np.arange(number * rows, (number + 1) * rows)
        table = pa.table({"id": ids, "x": x, "y": np.full(rows, SECRET)})
        pq.write_table(table, place / f"in/day{number}.parquet", row_group_size=rows // 2)


def command(*options: str, single: bool = False) -> list[str]:
    """Return the arguments of the run that everything here is about."""
    source, target = ("in/day0.parquet", "out.parquet") if single else ("in/*.parquet", "out")
    return ["perturb", source, "--metric", "l2", "--epsilon", "1", "--columns", "x,y", "-o", target, *options]


class Run:
    """The command at work; it waits for a word before it begins. Its workers may outlive it."""

    def __init__(
        self, place: Path, *options: str, single: bool = False, prepare: Callable[[], None] | None = None
    ) -> None:
        self._errors = os.fdopen(os.memfd_create("errors"), "w+")  # a pipe would stay open as long as a worker lives
        self.process = subprocess.Popen(
            [sys.executable, "-c", STARTER, *command(*options, single=single)],
            cwd=place, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            start_new_session=True, preexec_fn=prepare,
        )  # fmt: skip

    def verdict(self) -> Verdict:
        """Wait for the end and say what became of it: right, refused, killed, or what should not be."""
        try:
            text, _ = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return Verdict("endless", self._stopped())
        complaints, code = self._complaints(), self.process.returncode
        said = text + complaints
        if code == -signal.SIGKILL:
            return Verdict("killed", said)
        if str(SECRET) in said or "Traceback" in said:
            return Verdict("wrong", said)
        if code == 0:
            return Verdict("right", complaints)  # its output says how long it took: no two are alike
        refused = code == 2 and complaints.startswith("error: ")
        return Verdict("refused", said) if refused else Verdict("wrong", f"ended with {code}: {said}")

    def _stopped(self) -> str:
        """End a run that does not, and return what it said and where it stood."""
        os.kill(self.process.pid, signal.SIGUSR1)
        time.sleep(1.0)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        text, _ = self.process.communicate()
        return f"after {PATIENCE:g} s: {text}{self._complaints()}"

    def _complaints(self) -> str:
        self._errors.seek(0)
        with self._errors:
            return self._errors.read()


def release(runs: list[Run]) -> None:
    """Let runs begin at the same moment."""
    for run in runs:
        assert run.process.stdout is not None
        assert run.process.stdout.readline() == "ready\n"
    for run in runs:
        assert run.process.stdin is not None
        run.process.stdin.write("go\n")
        run.process.stdin.flush()


def starts(count: int, chance: random.Random) -> Outcome:
    """Start eight runs at once on one output, again and again."""
    outcome = Outcome()
    while outcome.counts["starts"] < count:
        single = chance.random() < 0.25
        with outcome.round() as attacked:
            write_input(attacked.place, 2, 4000)
            many = min(8, count - outcome.counts["starts"])
            kinds = [chance.choice([[], [], ["--resume"], ["--discard"]]) if not single else [] for _ in range(many)]
            attacked.note(f"started at once: {kinds}, one file: {single}")
            with Watcher(attacked.place) as watcher:
                started = [Run(attacked.place, *kind, single=single) for kind in kinds]
                release(started)
                answers = [attacked.judge(run.verdict()) for run in started]
            outcome.counts["starts"] += many
            if "right" not in answers:
                outcome.counts["no right run"] += 1
                attacked.fault("no right run")
            # A single file that is protected again, after the first is there, is a new release and said to be one.
            attacked.end(watcher, 4000 if single else 8000, single=single, again=single)
    return outcome


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the worker processes of a run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == process.pid:
                    found.append(int(entry.name))
    return found


def kill(process: subprocess.Popen[str], chance: random.Random) -> str:
    """Kill the command, everything it started, or one of its workers."""
    whom = chance.choice(["command", "all", "worker"])
    with suppress(ProcessLookupError):
        if whom == "all":
            os.killpg(process.pid, signal.SIGKILL)
        elif whom == "command":
            os.kill(process.pid, signal.SIGKILL)
        else:
            for worker in workers_of(process)[:1]:
                os.kill(worker, signal.SIGKILL)
    return whom


def kills(count: int, chance: random.Random) -> Outcome:
    """Kill runs at random moments and go on with them until they are done."""
    outcome = Outcome()
    while outcome.counts["kills"] < count:
        with outcome.round() as attacked:
            _killed_until_right(attacked, count, chance)
    return outcome


def _killed_until_right(attacked: Round, count: int, chance: random.Random) -> None:
    rows, place, counts = 40_000, attacked.place, attacked.outcome.counts
    single, bad = chance.random() < 0.15, chance.random() < 0.3
    write_input(place, 4, rows, bad=rows // 4 if bad and not single else None)
    attacked.note(f"one file: {single}, a bad row: {bad and not single}")
    with Watcher(place) as watcher:
        answer, longest = "", 2.0
        while answer not in ("right", "wrong", "endless"):
            run = Run(place, *([] if single else ["--resume"]), single=single)
            release([run])
            attacked.note("a run begins")
            began = time.monotonic()
            if counts["kills"] < count and chance.random() < 0.8:
                time.sleep(chance.uniform(0.0, longest))
                if run.process.poll() is None:
                    whom = kill(run.process, chance)
                    attacked.note(f"killed {whom}")
                    counts[f"killed {whom}"] += 1
                    counts["kills"] += 1
            verdict = run.verdict()
            if verdict.word == "killed" and single and (place / "out.parquet").exists():
                # To protect it again would be a new release.
                verdict = Verdict("right", "killed when its file was there already")
            answer = attacked.judge(verdict)
            longest = max(0.5, min(longest, time.monotonic() - began)) if answer == "right" else longest
            if answer == "refused":
                if (place / "out").exists():
                    counts["seen of a failed job"] += 1
                    attacked.fault("seen of a failed job")
                write_input(place, 4, rows)  # the bad row is mended
                attacked.note("every row is good now")
    if answer == "right":
        attacked.end(watcher, rows if single else 4 * rows, single=single)


@contextmanager
def small_disk(folder: str, size: int) -> Iterator[Callable[[int], None] | None]:
    """Yield how to enlarge a file system of a few bytes at the folder; None for size 0 and where none can be had."""
    line = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder]
    if not size or subprocess.run(line, capture_output=True, check=False).returncode:
        yield None
        return

    def enlarge(wanted: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={wanted}", folder], check=True)

    try:
        yield enlarge
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def disks(count: int, chance: random.Random) -> Outcome:
    """Run into the end of the disk at many places, then make room and go on."""
    outcome = Outcome()
    rows = 20_000
    while outcome.counts["first refused"] < count:  # those that had room after all do not count
        with outcome.round() as attacked, tempfile.TemporaryDirectory() as outside:
            place = attacked.place
            write_input(Path(outside), 4, rows)
            size = chance.choice([4096, 16_384, 65_536]) + chance.randrange(0, 1_600_000)
            single = chance.random() < 0.2
            with small_disk(str(place), size if chance.random() < 0.7 else 0) as enlarge:
                (place / "in").symlink_to(Path(outside) / "in")
                most = chance.choice([2000, 20_000, 200_000])
                limit = None if enlarge else (lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
                attacked.note(f"one file: {single}, {size} bytes of disk" if enlarge else f"files up to {most} bytes")
                with Watcher(place) as watcher:
                    first = Run(place, single=single, prepare=limit)
                    release([first])
                    answer = attacked.judge(first.verdict(), "first ")
                    outcome.counts["on a small file system" if enlarge else "by a limit on files"] += 1
                    if answer != "right" and (place / "out").exists():
                        outcome.counts["seen of a failed job"] += 1
                        attacked.fault("seen of a failed job")
                    if enlarge:
                        enlarge(1 << 30)
                    if answer != "right":
                        second = Run(place, *([] if single else ["--resume"]), single=single)
                        release([second])
                        attacked.judge(second.verdict())
                attacked.end(watcher, rows if single else 4 * rows, single=single)
    return outcome


ATTACKS = {"starts": (starts, 200), "kills": (kills, 100), "disks": (disks, 20)}
WHAT = {
    "starts": "simultaneous starts of runs on one output, eight at a time",
    "kills": "kills of jobs at random moments, then `--resume`",
    "disks": "full disks, then `--resume`",
}


def main() -> None:
    """Run one attack and keep its figures."""
    parser = arguments(__doc__)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    attack, usual = ATTACKS[chosen.attack]
    count = chosen.count or usual
    began = time.monotonic()
    outcome = attack(count, random.Random(chosen.seed))
    print({name: number for name, number in sorted(outcome.counts.items()) if number})
    print("\n".join(f"{number} x {text.strip()}" for text, number in outcome.texts.most_common()))
    print("faults:", len(outcome.faults) or "none", f"in {time.monotonic() - began:.0f} s")
    recorder(chosen.record)(
        "attacks", f"{count} {WHAT[chosen.attack]}", asked="every run refused or right, one noise per secret",
        measured=f"{len(outcome.faults)} faults", seconds=round(time.monotonic() - began), seed=chosen.seed,
        tally=dict(outcome.counts), texts=dict(outcome.texts), faults=outcome.faults,
    )  # fmt: skip
    sys.exit(bool(outcome.faults))


if __name__ == "__main__":
    main()
