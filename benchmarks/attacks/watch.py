"""What a process and all that it started do while an answer is awaited: at work, asleep, or waiting for a processor.

A busy machine is no hang: time is counted where a process works or sleeps, never where it wants to run and may not.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

WORK, SLEEP = 10.0, 60.0  # seconds of processor, and asleep, that an answer may take
LOOK = 1.0  # seconds between two looks
PROCESSES = Path("/proc")


class Watch:
    """The wait for one answer of a process that leads a group of its own (`os.setpgid(0, 0)`)."""

    def __init__(self, pid: int, patience: float = 1.0) -> None:
        self.pid, self.work = pid, WORK * patience
        self.before = self.seen = activity([PROCESSES / str(pid)])[0]  # nothing that it started is still running
        self.looked, self.asleep = time.monotonic(), 0.0

    def fault(self) -> str:
        """Say why no answer is to be expected any more; nothing while there may be one."""
        now = time.monotonic()
        if now - self.looked < LOOK:
            return ""
        seconds, awake = activity({PROCESSES / str(self.pid), *members(self.pid)})
        # A watch that had no processor itself has not seen how the time passed: it counts what two looks would.
        self.asleep = 0.0 if awake or seconds != self.seen else self.asleep + min(now - self.looked, 2 * LOOK)
        self.looked, self.seen = now, seconds
        if seconds - self.before > self.work:
            return f"no answer in {self.work:g} s of processor time"
        return f"asleep for {SLEEP:g} s without an answer" if self.asleep > SLEEP else ""


def activity(processes: Iterable[Path]) -> tuple[float, bool]:
    """Return the processor seconds of processes and of their ended children, and whether a thread runs or would.

    Nothing is known where the system has no /proc: all seem asleep.
    """
    ticks, awake = 0, False
    for process in processes:
        with suppress(OSError):  # one that ended meanwhile
            ticks += sum(map(int, _fields(process)[11:15]))
            awake = awake or any(_fields(thread)[0] in "RD" for thread in (process / "task").iterdir())
    return ticks / os.sysconf("SC_CLK_TCK"), awake


def _fields(process: Path) -> list[str]:
    """Return what /proc/.../stat says after the name, from the state on."""
    return (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def members(group: int) -> list[Path]:
    """Return the processes of a group."""
    found = []
    for process in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                found.append(process)
    return found


def end(pid: int) -> None:
    """End a process that nobody has waited for yet, and all that it started."""
    for kill in (os.killpg, os.kill):  # it may not lead its group yet
        with suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
