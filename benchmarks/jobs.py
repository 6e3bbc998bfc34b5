"""Attack jobs over files: simultaneous starts, kill -9 at any moment, full disks. Every run must be refused or right.

python benchmarks/jobs.py starts [--count 200] [--seed 0]
python benchmarks/jobs.py kills  [--count 100] [--seed 0]
python benchmarks/jobs.py disks  [--count 20]  [--seed 0]     (as root on small file systems, else by a limit on files)

A watcher looks at everything outside private folders the whole time and keeps the first report it ever sees of every
row: a second one that differs is a leak. Reports are planar Laplace, so two noises are never equal by chance.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from record import arguments, recorder

SECRET = 7777.123  # no text may hold these digits
STARTER = """
import sys
from metricdp.cli import main
import metricdp.tables, pyarrow.parquet
print("ready", flush=True)
sys.stdin.readline()
sys.exit(main(sys.argv[1:]))
"""


class Watcher:
    """Sees what anybody can see: every file outside private folders that others may read, while it is there."""

    def __init__(self, place: Path, names: tuple[str, ...] = ("out", "out.parquet")) -> None:
        self._roots = [place / name for name in names]
        self._place = place
        self._seen: dict[int, tuple[float, float]] = {}
        self._files: set[tuple[int, int, int]] = set()
        self._over = threading.Event()
        self.twice = self.open_work = 0

    def __enter__(self) -> Watcher:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self._look()

    def _look(self) -> None:
        for path in self._place.glob(".*"):  # work that is not done
            with suppress(OSError):
                found = path.stat()
                self.open_work += bool(found.st_size and stat.S_IMODE(found.st_mode) & 0o077)
        for root in self._roots:
            for path in [root] if root.is_file() else sorted(root.rglob("*.parquet")):
                with suppress(OSError):
                    found = path.stat()
                    name = (found.st_ino, found.st_size, found.st_mtime_ns)
                    if name not in self._files:
                        self._keep(pq.read_table(path))
                        self._files.add(name)

    def _keep(self, rows: pa.Table) -> None:
        for row, x, y in zip(*(rows[name].to_pylist() for name in ("id", "x", "y")), strict=True):
            self.twice += self._seen.setdefault(row, (x, y)) != (x, y)


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

    def verdict(self) -> str:
        """Wait for the end and say what became of it: right, refused, killed, or what should not be."""
        text, _ = self.process.communicate(timeout=300)
        self._errors.seek(0)
        complaints, code = self._errors.read(), self.process.returncode
        self._errors.close()
        if code == -signal.SIGKILL:
            return "killed"
        if str(SECRET) in text + complaints or "Traceback" in complaints:
            return f"wrong: {complaints[-500:]}"
        if code == 0:
            return "right"
        return "refused" if code == 2 and complaints.startswith("error: ") else f"wrong: {code} {complaints[-500:]}"


def release(runs: list[Run]) -> None:
    """Let runs begin at the same moment."""
    for run in runs:
        assert run.process.stdout is not None
        assert run.process.stdout.readline() == "ready\n"
    for run in runs:
        assert run.process.stdin is not None
        run.process.stdin.write("go\n")
        run.process.stdin.flush()


def whole(place: Path, rows: int, single: bool = False) -> bool:
    """Tell whether the output holds every row once and nothing is left of the work but a note without a key."""
    paths = [place / "out.parquet"] if single else sorted((place / "out").glob("*.parquet"))
    ids = np.concatenate([np.empty(0), *(np.asarray(pq.read_table(path)["id"]) for path in paths)])
    keys = list(place.glob(".*/*/key"))
    left = [path.name for path in place.glob(".*") if path.name != ".out.metricdp-job"]
    return bool(np.array_equal(np.sort(ids), np.arange(rows))) and not keys and not left


def starts(count: int, chance: random.Random) -> Counter[str]:
    """Start eight runs at once on one output, again and again."""
    tally: Counter[str] = Counter()
    while tally["starts"] < count:
        single = chance.random() < 0.25
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            write_input(place, 2, 4000)
            many = min(8, count - tally["starts"])
            kinds = [chance.choice([[], [], ["--resume"], ["--discard"]]) if not single else [] for _ in range(many)]
            with Watcher(place) as watcher:
                started = [Run(place, *kind, single=single) for kind in kinds]
                release(started)
                answers = [run.verdict() for run in started]
                tally.update(answers)
            tally["starts"] += many
            tally["no right run"] += "right" not in answers
            tally["not whole"] += not whole(place, 4000 if single else 8000, single)
            # A single file that is protected again, after the first is there, is a new release and said to be one.
            tally["second noise"] += bool(watcher.twice) and not single
            tally["open work"] += bool(watcher.open_work)
    return tally


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


def kills(count: int, chance: random.Random) -> Counter[str]:
    """Kill runs at random moments and go on with them until they are done."""
    tally: Counter[str] = Counter()
    rows = 40_000
    while tally["kills"] < count:
        single, bad = chance.random() < 0.15, chance.random() < 0.3
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            write_input(place, 4, rows, bad=rows // 4 if bad and not single else None)
            with Watcher(place) as watcher:
                answer, longest = "", 2.0
                while answer != "right":
                    run = Run(place, *([] if single else ["--resume"]), single=single)
                    release([run])
                    began = time.monotonic()
                    if tally["kills"] < count and chance.random() < 0.8:
                        time.sleep(chance.uniform(0.0, longest))
                        if run.process.poll() is None:
                            tally[f"killed {kill(run.process, chance)}"] += 1
                            tally["kills"] += 1
                    answer = run.verdict()
                    if answer == "killed" and single and (place / "out.parquet").exists():
                        answer = "right"  # it was there already: to protect it again would be a new release
                    longest = max(0.5, min(longest, time.monotonic() - began)) if answer == "right" else longest
                    tally[answer] += 1
                    if answer.startswith("wrong"):
                        break
                    if answer == "refused":
                        tally["seen of a failed job"] += (place / "out").exists()
                        write_input(place, 4, rows)  # the bad row is mended
            tally["not whole"] += not whole(place, rows if single else 4 * rows, single)
            tally["second noise"] += bool(watcher.twice)
            tally["open work"] += bool(watcher.open_work)
    return tally


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


def disks(count: int, chance: random.Random) -> Counter[str]:
    """Run into the end of the disk at many places, then make room and go on."""
    tally: Counter[str] = Counter()
    rows = 20_000
    while tally["first refused"] < count:  # those that had room after all do not count
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as outside:
            write_input(Path(outside), 4, rows)
            size = chance.choice([4096, 16_384, 65_536]) + chance.randrange(0, 1_600_000)
            single = chance.random() < 0.2
            with small_disk(folder, size if chance.random() < 0.7 else 0) as enlarge:
                place = Path(folder)
                (place / "in").symlink_to(Path(outside) / "in")
                most = chance.choice([2000, 20_000, 200_000])
                limit = None if enlarge else (lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
                with Watcher(place) as watcher:
                    first = Run(place, single=single, prepare=limit)
                    release([first])
                    answer = first.verdict()
                    tally[f"first {answer}"] += 1
                    tally["on a small file system" if enlarge else "by a limit on files"] += 1
                    tally["seen of a failed job"] += answer != "right" and (place / "out").exists()
                    if enlarge:
                        enlarge(1 << 30)
                    if answer != "right":
                        second = Run(place, *([] if single else ["--resume"]), single=single)
                        release([second])
                        tally[second.verdict()] += 1
                tally["not whole"] += not whole(place, rows if single else 4 * rows, single)
                tally["second noise"] += bool(watcher.twice)
                tally["open work"] += bool(watcher.open_work)
    return tally


ATTACKS = {"starts": (starts, 200), "kills": (kills, 100), "disks": (disks, 20)}
WHAT = {
    "starts": "simultaneous starts of runs on one output, eight at a time",
    "kills": "kills of jobs at random moments, then `--resume`",
    "disks": "full disks, then `--resume`",
}
FAULTS = ("not whole", "second noise", "open work", "no right run", "seen of a failed job")


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
    tally = attack(count, random.Random(chosen.seed))
    faults = {name: tally[name] for name in tally if tally[name] and (name in FAULTS or "wrong" in name)}
    print({name: number for name, number in sorted(tally.items()) if number})
    print("faults:", faults or "none", f"in {time.monotonic() - began:.0f} s")
    recorder(chosen.record)(
        "attacks", f"{count} {WHAT[chosen.attack]}", asked="every run refused or right, one noise per secret",
        measured=f"{sum(faults.values())} faults", seconds=round(time.monotonic() - began), tally=dict(tally),
    )  # fmt: skip
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
