"""Kill `metricdp stream` at random moments while its source grows: is the output whole, and is every window kept?

    python benchmarks/stream_kills.py [--kills 10] [--record]

Every other kill also tears the last line of the output. At the end the command runs until it has caught up; then every
row must have one report, the fresh ones must be those that the books hold, and any window must cost its total at most.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from record import arguments, recorder

from metricdp.ledger import Ledger

WINDOW, TOTAL, MORE = 5, 20.0, 40
PEOPLE = ("anna", "bob")


class Source:
    """A file of rows that grows: two persons who stand still and move on."""

    def __init__(self, path: Path, dice: random.Random) -> None:
        self.path, self.dice, self.minutes = path, dice, 0
        self.latitude = dict.fromkeys(PEOPLE, 41.0)
        path.write_text("person,t,lat,lon\n", encoding="utf-8")

    def grow(self) -> None:
        """Add rows for everybody."""
        with self.path.open("a", encoding="utf-8") as file:
            for _ in range(MORE):
                self.minutes += 1
                for person in PEOPLE:
                    self.latitude[person] += self.dice.choice([0.0, 0.0, 0.0, 0.02])
                    file.write(f"{person},{60 * self.minutes},{self.latitude[person]:.5f},-8.6\n")


def started(source: Path, books: Path, out: Path) -> subprocess.Popen[bytes]:
    """Start the command, behind the last line of an output that is there."""
    command = [sys.executable, "-m", "metricdp", "stream", str(source), "--follow", "-o", str(out)]
    command += ["--window", str(WINDOW), "--total", f"{TOTAL:g}/km", "--ledger", str(books)]
    command += ["--resume"] if out.exists() else []
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def killed(source: Source, books: Path, out: Path) -> None:
    """Let the command write a little, kill it, and tear the last line half of the time."""
    source.grow()
    before, process, limit = size(out), started(source.path, books, out), time.time() + 120
    while size(out) <= before + 100 and process.poll() is None and time.time() < limit:
        time.sleep(0.01)
    time.sleep(source.dice.random() * 0.6)
    if process.poll() is not None:
        raise SystemExit(f"it ended by itself: {(process.stderr.read() if process.stderr else b'').decode()}")
    process.send_signal(signal.SIGKILL)
    process.wait()
    if source.dice.random() < 0.5:
        os.truncate(out, size(out) - source.dice.randrange(1, 20))


def judged(books: Path, out: Path, rows: int) -> dict[str, Any]:
    """Return what is in the output beside what is in the books."""
    lines = out.read_text(encoding="utf-8").splitlines()[1:]
    dearest, same = 0, True
    with Ledger.open(books) as ledger:
        for person in PEOPLE:
            costs: dict[int, int] = {}
            fresh = set()
            for one in ledger.history(person):
                told = json.loads(one.report or b"{}")
                costs[told["number"]] = costs.get(told["number"], 0) + one.amount
                fresh |= {float(told["time"])} if told["what"] == "report" else set()
            windows = [sum(costs.get(step, 0) for step in range(at, at + WINDOW)) for at in costs]
            dearest = max(dearest, *windows)
            given = [line.split(",") for line in lines if line.startswith(f"{person},")]
            same &= {float(cells[1]) for cells in given if cells[-1] == "true"} == fresh
        verified = ledger.verify().holds
    distinct = len({tuple(line.split(",")[:2]) for line in lines})
    whole = len(lines) == distinct == rows
    return {
        "rows": len(lines),
        "whole": whole,
        "fresh_as_in_the_books": same,
        "verified": verified,
        "dearest": dearest / 1e6,
    }


def main() -> None:
    """Kill, go on, judge."""
    parser = arguments(__doc__)
    parser.add_argument("--kills", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        books, out = Path(folder) / "budget.db", Path(folder) / "out.csv"
        Ledger.open(books, policy="1000000/km ever").close()
        source = Source(Path(folder) / "in.csv", random.Random(4))
        for _ in range(chosen.kills):
            killed(source, books, out)
        rows, process, limit = len(PEOPLE) * source.minutes, started(source.path, books, out), time.time() + 600
        while len(out.read_text(encoding="utf-8").splitlines()) <= rows and time.time() < limit:
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = judged(books, out, rows)
    print(found)
    said = (
        f"{found['rows']:,} of {rows:,} rows, each once: {found['whole']}; dearest window {found['dearest']:.6g} per km"
    )
    what = f"the stream command killed {chosen.kills} times while its source grows"
    recorder(chosen.record)("traces", what, asked=f"whole; a window at most {TOTAL:g} per km", measured=said, **found)


if __name__ == "__main__":
    main()
