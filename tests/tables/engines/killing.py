"""Kill a worker of an engine in the middle of its work."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

Wanted = Callable[[bytes, bytes], bool]  # by its command line and that of its parent


def descendants(wanted: Wanted) -> list[int]:
    """Return the processes started by this one, however indirectly, that are wanted."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                commands[int(entry.name)] = (entry / "cmdline").read_bytes()
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = []
    for pid, command in commands.items():
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != above and wanted(command, commands.get(parents[pid], b"")):
            found.append(pid)
    return found


def killing(wanted: Wanted, *, before: Callable[[], bool | None] = lambda: None) -> tuple[threading.Thread, list[int]]:
    """Kill the first worker that is seen; `before` may say False: not yet."""
    killed: list[int] = []

    def watch() -> None:
        deadline = time.monotonic() + 300
        while not killed and time.monotonic() < deadline:
            for pid in descendants(wanted)[:1]:
                if before() is not False:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            time.sleep(0.005)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread, killed
