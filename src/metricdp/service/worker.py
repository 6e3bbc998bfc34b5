"""The process of one design: `python -m metricdp.service.worker FOLDER`. What it says goes into the folder."""

from __future__ import annotations

import fcntl
import json
import math
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from metricdp.errors import MetricdpError
from metricdp.mechanisms import pure
from metricdp.service.apart import calm
from metricdp.service.building import SERVICE, built, certificate_values, promise_values
from metricdp.service.jobs import Job, Standing
from metricdp.service.refusals import scrubbed

PATIENCE = 0.2  # seconds between two looks, and between two events


def main(folder: str) -> int:
    """Wait for a turn, design, write the file; end when somebody asks for that."""
    job = Job(Path(folder))
    handle = job.hold()
    calm()
    standing = job.standing()
    request = json.loads((job.folder / "request.json").read_bytes())
    watcher = threading.Thread(target=_watch, args=(job, standing), daemon=True)
    watcher.start()
    try:
        turn = _turn(job.folder.parent, int(request.pop("designs")))
        standing = replace(standing, state="running", message="searches.")
        job.stand(standing)
        standing = _designed(job, standing, request)
        os.close(turn)
    except MetricdpError as error:
        standing = replace(standing, state="failed", message=scrubbed(str(error)))
    except MemoryError:
        standing = replace(standing, state="failed", message="it needs more memory than there is; use fewer points.")
    except Exception as error:
        standing = replace(standing, state="failed", message=f"it stumbled ({type(error).__name__}).")
    (job.folder / "request.json").unlink(missing_ok=True)
    job.stand(standing)
    os.close(handle)
    return 0


def _designed(job: Job, standing: Standing, request: dict[str, Any]) -> Standing:
    from metricdp.artifacts import save

    started, told, best = time.monotonic(), [-math.inf], [standing]

    def progress(lower: float, upper: float, seconds: float, steps: int) -> None:
        now = time.monotonic()
        bounds = [bound if math.isfinite(bound) else None for bound in (lower, upper)]
        gap = (upper - lower) / upper if None not in bounds and upper > 0 else None
        best[0] = replace(standing, lower=bounds[0], upper=bounds[1], gap=gap, seconds=round(now - started, 2))
        if now - told[0] >= PATIENCE:
            told[0] = now
            values = {"lower": bounds[0], "upper": bounds[1], "gap": gap, "seconds": best[0].seconds, "steps": steps}
            job.tell("progress", values)

    made = built(request, progress)
    save(made, job.folder / "result.mdp")
    return replace(
        best[0],
        state="done",
        message="the mechanism can be fetched.",
        seconds=round(time.monotonic() - started, 2),
        certificate=certificate_values(made.certificate),
        promise=promise_values(pure(made.guarantee, *SERVICE)),
    )


def _turn(folder: Path, designs: int) -> int:
    """Wait until fewer than so many designs are at work on this machine, and be one of them."""
    while True:
        for number in range(designs):
            handle = os.open(folder / f"turn-{number}", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return handle
            except OSError:
                os.close(handle)
        time.sleep(PATIENCE)


def _watch(job: Job, standing: Standing) -> None:
    """End this process when it is told to, or when the folder or whoever began it is gone."""
    parent = os.getppid()
    while True:
        time.sleep(PATIENCE)
        if (job.folder / "cancel").exists():
            (job.folder / "request.json").unlink(missing_ok=True)
            job.stand(replace(standing, state="cancelled", message="was cancelled."))
            os._exit(0)
        if not job.folder.exists() or os.getppid() != parent:
            os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
