"""Designs as jobs: a folder each, worked on by a process of its own, so that a search never delays a release.

    request.json     the request; removed when the work ends, since a prior may say more than any report
    state.json       how it stands, replaced whole
    events.jsonl     the events on the way, one line each
    result.mdp       the mechanism file
    lock             held by the process that works on it: a running job whose lock is free was killed
    cancel           somebody wants it to end

The process of one design is `python -m metricdp.service.jobs FOLDER`: what it says goes into the folder. Any process of
the service can look into any folder, so it does not matter which one is asked.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from metricdp.errors import MetricdpError
from metricdp.files import private_folder, replace_file
from metricdp.mechanisms import require_pure
from metricdp.rendering import add_old_fields
from metricdp.service.building import SERVICE, build_design
from metricdp.service.limits import ServiceLimits, give_way
from metricdp.service.refusals import Refused, busy_refusal, scrub

State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")
KEPT_SECONDS = 24 * 3600.0  # seconds that a job that ended can be fetched
_ID = re.compile(r"[0-9a-f]{32}")
START = 20.0  # seconds a process may take to take up its work


@dataclass(frozen=True)
class JobStatus:
    """How a job stands."""

    state: State = "waiting"
    message: str = "waits for its turn."
    owner: str = ""
    lower: float | None = None
    upper: float | None = None
    gap: float | None = None
    seconds: float = 0.0
    certificate: dict[str, Any] | None = None
    guarantee: dict[str, Any] | None = None
    promise: dict[str, Any] | None = None  # the name of `guarantee` before


def take_lock(path: Path) -> int:
    """Return the held lock in a file, or raise `BlockingIOError`: closing it lets it go."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


class DesignJob:
    """One folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.id = folder, folder.name

    def current_status(self) -> JobStatus:
        """Return how it stands; one whose process was killed has failed."""
        found = JobStatus(**json.loads((self.folder / "state.json").read_bytes()))
        if found.state in ENDED or self._is_held():
            return found
        age = time.time() - (self.folder / "state.json").stat().st_mtime
        if found.state == "waiting" and age < START:
            return found
        return replace(found, state="failed", message="its process ended before it was done; ask for it again.")

    def write_status(self, status: JobStatus) -> None:
        """Write how it stands, whole or not at all, and tell those who listen."""
        with replace_file(self.folder / "state.json") as partial:
            partial.write_text(json.dumps(asdict(status)))
        self.add_event(status.state, {"message": status.message})

    def add_event(self, event: str, values: dict[str, Any]) -> None:
        """Add an event."""
        with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **values}) + "\n")

    def events(self, after: int) -> list[tuple[int, dict[str, Any]]]:
        """Return the events behind a number, with their numbers; the first has number 1."""
        lines = (self.folder / "events.jsonl").read_bytes().split(b"\n")[:-1]  # the last one may be half written
        return [(number, json.loads(line)) for number, line in enumerate(lines, 1) if number > after]

    def cancel(self) -> None:
        """Ask its process to end."""
        (self.folder / "cancel").touch()

    def _is_held(self) -> bool:
        try:
            os.close(take_lock(self.folder / "lock"))
        except BlockingIOError:
            return True
        return False


class DesignJobs:
    """All designs of a service."""

    def __init__(self, folder: str | os.PathLike[str], limits: ServiceLimits) -> None:
        self._folder, self._limits = private_folder(Path(folder)), limits
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, owner: str, request: dict[str, Any]) -> DesignJob:
        """Begin a design, or say that enough are at work."""
        self.tidy()
        busy = sum(job.current_status().state not in ENDED for job in self._all())
        if busy >= 5 * self._limits.designs:
            raise busy_refusal("enough designs are at work or waiting; ask again when one has ended.", retry=30.0)
        folder = self._folder / secrets.token_hex(16)
        folder.mkdir(mode=0o700)
        asked = {**request, "design_seconds": self._limits.design_seconds, "designs": self._limits.designs}
        (folder / "request.json").write_text(json.dumps(asked))
        job = DesignJob(folder)
        job.write_status(JobStatus(owner=owner))
        self._processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "metricdp.service.jobs", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a signal to the service is not one to its designs; `stop` ends them
            )
        )
        return job

    def find(self, owner: str, identity: str) -> DesignJob:
        """Return a job of the key that began it; those of others are not there."""
        job = DesignJob(self._folder / identity) if _ID.fullmatch(identity) else None
        try:
            if job is not None and job.current_status().owner == owner:
                return job
        except (OSError, ValueError, TypeError):
            pass
        raise Refused(
            404, "unknown_job", "there is no such job; jobs can be fetched for a day by the key that began them."
        )

    def remove(self, job: DesignJob) -> None:
        """End a job and forget it."""
        job.cancel()
        if job.current_status().state in ENDED:
            shutil.rmtree(job.folder, ignore_errors=True)

    def tidy(self) -> None:
        """Forget jobs that ended long ago, and processes that ended."""
        self._processes = [process for process in self._processes if process.poll() is None]
        for job in self._all():
            with suppress(OSError, ValueError, TypeError):
                age = time.time() - (job.folder / "state.json").stat().st_mtime
                if age > KEPT_SECONDS and job.current_status().state in ENDED:
                    shutil.rmtree(job.folder, ignore_errors=True)

    def stop(self) -> None:
        """End the processes of this service."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)

    def _all(self) -> list[DesignJob]:
        found = [DesignJob(path) for path in self._folder.iterdir() if _ID.fullmatch(path.name)]
        return [job for job in found if (job.folder / "state.json").exists()]


PATIENCE = 0.2  # seconds between two looks, and between two events


def main(folder: str) -> int:
    """Wait for a turn, design, write the file; end when somebody asks for that."""
    job = DesignJob(Path(folder))
    handle = take_lock(job.folder / "lock")
    give_way()
    status = job.current_status()
    request = json.loads((job.folder / "request.json").read_bytes())
    watcher = threading.Thread(target=_watch, args=(job, status), daemon=True)
    watcher.start()
    try:
        turn = _wait_for_turn(job.folder.parent, int(request.pop("designs")))
        status = replace(status, state="running", message="searches.")
        job.write_status(status)
        status = _run_design(job, status, request)
        os.close(turn)
    except MetricdpError as error:
        status = replace(status, state="failed", message=scrub(str(error)))
    except MemoryError:
        status = replace(status, state="failed", message="it needs more memory than there is; use fewer points.")
    except Exception as error:
        status = replace(status, state="failed", message=f"it stumbled ({type(error).__name__}).")
    (job.folder / "request.json").unlink(missing_ok=True)
    job.write_status(status)
    os.close(handle)
    return 0


def _run_design(job: DesignJob, status: JobStatus, request: dict[str, Any]) -> JobStatus:
    from metricdp.artifacts import save

    started, reported, best = time.monotonic(), [-math.inf], [status]

    def progress(lower: float, upper: float, seconds: float, steps: int) -> None:
        now = time.monotonic()
        bounds = [bound if math.isfinite(bound) else None for bound in (lower, upper)]
        gap = (upper - lower) / upper if None not in bounds and upper > 0 else None
        best[0] = replace(status, lower=bounds[0], upper=bounds[1], gap=gap, seconds=round(now - started, 2))
        if now - reported[0] >= PATIENCE:
            reported[0] = now
            values = {"lower": bounds[0], "upper": bounds[1], "gap": gap, "seconds": best[0].seconds, "steps": steps}
            job.add_event("progress", values)

    made = build_design(request, progress)
    save(made, job.folder / "result.mdp")
    guarantee = require_pure(made.guarantee, *SERVICE).to_dict()
    certificate = made.certificate.to_dict(made.guarantee.unit)
    return replace(
        best[0],
        state="done",
        message="the mechanism can be fetched.",
        seconds=round(time.monotonic() - started, 2),
        certificate=add_old_fields(certificate, unverified="not_verified"),
        guarantee=guarantee,
        promise=guarantee,
    )


def _wait_for_turn(folder: Path, designs: int) -> int:
    """Wait until fewer than `designs` designs are at work on this machine, and take a turn."""
    while True:
        for number in range(designs):
            with suppress(BlockingIOError):
                return take_lock(folder / f"turn-{number}")
        time.sleep(PATIENCE)


def _watch(job: DesignJob, status: JobStatus) -> None:
    """End this process when it is cancelled, or when its folder or its parent process is gone."""
    parent = os.getppid()
    while True:
        time.sleep(PATIENCE)
        if (job.folder / "cancel").exists():
            (job.folder / "request.json").unlink(missing_ok=True)
            job.write_status(replace(status, state="cancelled", message="was cancelled."))
            os._exit(0)
        if not job.folder.exists() or os.getppid() != parent:
            os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
