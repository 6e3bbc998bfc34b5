"""Designs as jobs: a folder each, worked on by a process of its own, so that a search never delays a release.

    request.json     what was asked; removed when the work ends, since a prior may tell more than any report
    state.json       how it stands, replaced whole
    events.jsonl     what was told on the way, one line each
    result.mdp       the mechanism file
    lock             held by whoever works on it: a job that says it runs and whose lock is free was killed
    cancel           somebody wants it to end

Any process of the service can look into any folder, so it does not matter which one is asked.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from metricdp.files import private_folder, replacing
from metricdp.service.limits import Limits
from metricdp.service.refusals import Refused, too_busy

State = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED = ("done", "failed", "cancelled")
KEPT = 24 * 3600.0  # seconds that a job that ended can be fetched
_ID = re.compile(r"[0-9a-f]{32}")
START = 20.0  # seconds a process may take to take up its work


@dataclass(frozen=True)
class Standing:
    """How a job stands."""

    state: State = "waiting"
    message: str = "waits for its turn."
    owner: str = ""
    lower: float | None = None
    upper: float | None = None
    gap: float | None = None
    seconds: float = 0.0
    certificate: dict[str, Any] | None = None
    promise: dict[str, Any] | None = None


class Job:
    """One folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.id = folder, folder.name

    def standing(self) -> Standing:
        """Return how it stands; one whose process was killed has failed."""
        found = Standing(**json.loads((self.folder / "state.json").read_bytes()))
        if found.state in ENDED or self._is_held():
            return found
        age = time.time() - (self.folder / "state.json").stat().st_mtime
        if found.state == "waiting" and age < START:
            return found
        return replace(found, state="failed", message="its process ended before it was done; ask for it again.")

    def stand(self, standing: Standing) -> None:
        """Write how it stands, whole or not at all, and tell those who listen."""
        with replacing(self.folder / "state.json") as partial:
            partial.write_text(json.dumps(asdict(standing)))
        self.tell(standing.state, {"message": standing.message})

    def tell(self, event: str, values: dict[str, Any]) -> None:
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

    def hold(self) -> int:
        """Take the lock, as the process that works on it."""
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return handle

    def _is_held(self) -> bool:
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except OSError:
            return True
        finally:
            os.close(handle)


class Jobs:
    """All designs of a service."""

    def __init__(self, folder: str | os.PathLike[str], limits: Limits) -> None:
        self._folder, self._limits = private_folder(Path(folder)), limits
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, owner: str, request: dict[str, Any]) -> Job:
        """Begin a design, or say that enough are at work."""
        self.tidy()
        busy = sum(job.standing().state not in ENDED for job in self._all())
        if busy >= 5 * self._limits.designs:
            raise too_busy("enough designs are at work or waiting; ask again when one has ended.", retry=30.0)
        folder = self._folder / secrets.token_hex(16)
        folder.mkdir(mode=0o700)
        asked = {**request, "design_seconds": self._limits.design_seconds, "designs": self._limits.designs}
        (folder / "request.json").write_text(json.dumps(asked))
        job = Job(folder)
        job.stand(Standing(owner=owner))
        self._processes.append(
            subprocess.Popen(
                [sys.executable, "-m", "metricdp.service.worker", str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a signal to the service is not one to its designs; `stop` ends them
            )
        )
        return job

    def find(self, owner: str, identity: str) -> Job:
        """Return a job of the key that began it; those of others are not there."""
        job = Job(self._folder / identity) if _ID.fullmatch(identity) else None
        try:
            if job is not None and job.standing().owner == owner:
                return job
        except (OSError, ValueError, TypeError):
            pass
        raise Refused(
            404, "unknown_job", "there is no such job; jobs can be fetched for a day by the key that began them."
        )

    def remove(self, job: Job) -> None:
        """End a job and forget it."""
        job.cancel()
        if job.standing().state in ENDED:
            shutil.rmtree(job.folder, ignore_errors=True)

    def tidy(self) -> None:
        """Forget jobs that ended long ago, and processes that ended."""
        self._processes = [process for process in self._processes if process.poll() is None]
        for job in self._all():
            with suppress(OSError, ValueError, TypeError):
                age = time.time() - (job.folder / "state.json").stat().st_mtime
                if age > KEPT and job.standing().state in ENDED:
                    shutil.rmtree(job.folder, ignore_errors=True)

    def stop(self) -> None:
        """End the processes of this service."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)

    def _all(self) -> list[Job]:
        found = [Job(path) for path in self._folder.iterdir() if _ID.fullmatch(path.name)]
        return [job for job in found if (job.folder / "state.json").exists()]
