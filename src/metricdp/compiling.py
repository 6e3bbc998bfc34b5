"""How loops are compiled by numba: once on a machine, kept on disk where that is safe, and reported as progress.

Compiling counts against a deadline: `fits_deadline` says whether a loop is ready, or can be compiled in time.

Compiled loops are stored beside the source where that folder can be written to, as numba does by itself; else in the
user's own cache folder, which nobody else may write to (what is stored there is run); else nowhere, and every start
compiles again. NUMBA_CACHE_DIR names another folder.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from metricdp import deadlines, progress
from metricdp.errors import import_extra

numba: Any = import_extra("numba", "fast")
events: Any = import_extra("numba.core.event", "fast")
prange: Any = numba.prange

ONCE = "compiling, once on this machine, about 20 s"
LOOP_SECONDS = 0.5  # that compiling one parallel loop takes, on a machine with nothing else to do
SHARE = 1.0  # of the time that is left: compiling may take no more
EVERY_TIME = "compiling, about 20 s at every start: no folder to keep it in, set NUMBA_CACHE_DIR to one"


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as `numba.njit` does, and keep what was compiled."""

    def compiled(function: Callable[..., Any]) -> Any:
        place = compiled_cache()
        with _cache_folder(place):
            try:
                return numba.njit(cache=place is not None, **options)(function)
            except RuntimeError:  # numba found no folder of its own either
                return numba.njit(**options)(function)

    return compiled


def fits_deadline(*loops: Any) -> bool:
    """Tell whether loops can be used in the time that is left: compiling those that are not ready counts."""
    missing = 0 if not deadlines.has_deadline() else sum(not is_compiled(loop) for loop in loops)
    return missing * LOOP_SECONDS <= SHARE * deadlines.seconds_left() if missing else True


def is_compiled(loop: Any) -> bool:
    """Tell whether a loop was compiled, in this process or on disk by another."""
    if loop.signatures:
        return True
    file = getattr(getattr(loop, "_cache", None), "_cache_file", None)  # numba has no public name for it
    return file is not None and bool(file._load_index())


@cache
def compiled_cache() -> Path | None:
    """Return the folder for what is compiled: "" leaves it to numba, None means that there is none."""
    if numba.config.CACHE_DIR or os.access(Path(__file__).parent, os.W_OK):
        return Path()
    return private_folder(user_cache() / "metricdp" / "compiled")


def user_cache() -> Path:
    """Return where this system keeps what a user's programs may lose."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if Path(named).is_absolute() else Path.home() / ".cache"


def private_folder(folder: Path) -> Path | None:
    """Make a folder that only its owner can write to; None where there is none, or it is somebody else's."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "win32":
            found = folder.lstat()
            shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or shared:
                return None
    except (OSError, RuntimeError):  # RuntimeError: nobody knows where home is
        return None
    return folder if os.access(folder, os.W_OK) else None


@contextmanager
def _cache_folder(place: Path | None) -> Iterator[None]:
    """Name the folder while a function is declared, which is when numba looks; other functions are not touched."""
    before = numba.config.CACHE_DIR
    if place is not None and place != Path():
        numba.config.CACHE_DIR = str(place)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _CompileListener(events.Listener):  # type: ignore[misc]
    """Says that something is compiled, from the first event of numba to the last."""

    def __init__(self) -> None:
        self.depth = 0

    def on_start(self, event: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            progress.report_step(ONCE if compiled_cache() is not None else EVERY_TIME)

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            progress.repeat_last()


events.register("numba:compile", _CompileListener())
