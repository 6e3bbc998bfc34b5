"""The local engine: worker processes on this machine that may die and are replaced."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import metricdp
from metricdp.errors import OutputProblem
from metricdp.tables.engines.base import Engine
from metricdp.tables.jobs.errors import is_ours, unpack_error
from metricdp.tables.jobs.plan import JobPlan
from metricdp.tables.pipeline import RowProgress

ATTEMPTS = 3  # how often a partition may take its worker down with it


def run(job: JobPlan, pending: Sequence[int], on_rows: RowProgress, /, *, workers: int | None = None) -> None:
    """Protect the pending partitions on worker processes, as many as there are cores."""
    count = max(1, min(len(pending), workers or os.cpu_count() or 1))
    work_queue = _WorkQueue(pending)
    threads = [threading.Thread(target=_attend, args=(job, work_queue, on_rows), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():  # so that Ctrl-C is heard
                thread.join(0.2)
    finally:
        work_queue.stop()
        for thread in threads:
            thread.join()
    if work_queue.error is not None:
        raise work_queue.error


class _WorkQueue:
    """What is left to do, who is at it, and the error that ends it all."""

    def __init__(self, pending: Sequence[int]) -> None:
        self._left: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in pending:
            self._left.put(number)
        self._lock = threading.Lock()
        self._open = len(pending)
        self._lost: Counter[int] = Counter()
        self._processes: set[subprocess.Popen[str]] = set()
        self.error: Exception | None = None
        self.stopped = False

    def next(self) -> int | None:
        """Return a partition, waiting while others may still hand theirs back; None when all is done."""
        while not self.stopped:
            try:
                return self._left.get(timeout=0.1)
            except queue.Empty:
                if self._open == 0:
                    return None
        return None

    def count_done(self) -> None:
        with self._lock:
            self._open -= 1

    def put_back(self, number: int, why: str) -> None:
        """Put a partition back after its worker died, unless it did so too often."""
        self._lost[number] += 1
        if self._lost[number] >= ATTEMPTS:
            self.fail(OutputProblem(f"partition {number} failed {ATTEMPTS} times, the last time because {why}."))
        else:
            self._left.put(number)

    def fail(self, error: Exception) -> None:
        with self._lock:
            self.error = self.error or error
        self.stop()

    def register_worker(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._processes.add(process)
            if self.stopped:
                process.kill()

    def stop(self) -> None:
        self.stopped = True
        with self._lock:
            for process in self._processes:
                if process.poll() is None:
                    process.kill()


def _attend(job: JobPlan, work_queue: _WorkQueue, on_rows: RowProgress) -> None:
    """Keep one worker busy; start another one when it dies."""
    process: subprocess.Popen[str] | None = None
    try:
        while (number := work_queue.next()) is not None:
            if process is None:
                process = _start(job)
                work_queue.register_worker(process)
            answer = _ask(process, number, on_rows)
            if answer is None:
                work_queue.put_back(number, f"its worker ended with status {_end_worker(process, kill=True)}")
                process = None
            elif "done" in answer:
                work_queue.count_done()
            elif is_ours(answer["failed"]):
                work_queue.fail(unpack_error(answer["failed"]))
            else:
                work_queue.put_back(number, answer["failed"]["message"])
    finally:
        if process is not None:
            _end_worker(process, kill=work_queue.stopped)


def _start(job: JobPlan) -> subprocess.Popen[str]:
    library = str(Path(metricdp.__file__).parents[1])
    paths = [library, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "metricdp.tables.engines.worker", job.folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def _end_worker(process: subprocess.Popen[str], *, kill: bool) -> int:
    """End a worker and return its status."""
    if kill:
        process.kill()
    with suppress(BrokenPipeError):  # the worker is gone already
        process.stdin.close()  # type: ignore[union-attr]
    status = process.wait()
    process.stdout.close()  # type: ignore[union-attr]
    return status


def _ask(process: subprocess.Popen[str], number: int, on_rows: RowProgress) -> dict[str, Any] | None:
    """Hand a partition to a worker and wait for its answer; None when the worker dies."""
    assert process.stdin is not None
    assert process.stdout is not None
    rows = 0
    try:
        process.stdin.write(f"{number}\n")
        process.stdin.flush()
        for line in process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if "rows" not in answer:
                return answer
            rows += answer["rows"]
            on_rows(answer["rows"])
    except (BrokenPipeError, ValueError):
        pass
    on_rows(-rows)  # they will be done again
    return None


ENGINE = Engine("local", "worker processes on the cores of this machine", run)
