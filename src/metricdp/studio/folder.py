"""The folder of a session: all that Studio keeps on disk, removed when the session ends.

A session that is killed (`kill -9`, a crash, a power cut) cannot remove its folder. The next start does. It removes a
folder only if it belongs to this user, nobody else can look into it, and the lock in it is free: the system holds that
lock for as long as the process lives that made the folder.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from metricdp.errors import OutputProblem
from metricdp.files import NO_LINKS

try:
    import fcntl
except ImportError:  # not on Windows: orphans stay there
    fcntl = None  # type: ignore[assignment]

PREFIX = "metricdp-studio-"
LOCK = "studio.lock"
MARK = b"metricdp studio\n"
TRIES = 20  # a thread may write a last file while its folder goes


class SessionFolder:
    """A new folder that only this user can read."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            self._lock = _new_lock(self.path)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def part(self, name: str) -> Path:
        """Return a new folder in it."""
        place = self.path / name
        place.mkdir(mode=0o700)
        return place

    def close(self) -> None:
        """Remove the folder, or say that some of it is still there."""
        for _ in range(TRIES):
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists():
                break
            time.sleep(0.05)
        with suppress(OSError):
            os.close(self._lock)
        if self.path.exists():
            raise OutputProblem(f"the folder {str(self.path)!r} of this session cannot be removed: remove it by hand.")


def remove_orphans() -> int:
    """Remove the folders of sessions that were killed, and return how many there were."""
    places = Path(tempfile.gettempdir()).glob(f"{PREFIX}*")
    return sum(_removed_orphan(place) for place in sorted(places))


def _new_lock(folder: Path) -> int:
    """Return the held lock of a folder. It gets its name once it is held, so that no other start finds it free."""
    handle = os.open(folder / f"{LOCK}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o600)
    os.write(handle, MARK)
    if fcntl is None:
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks: the folder is never taken for an orphan
        return handle
    os.rename(folder / f"{LOCK}.new", folder / LOCK)
    return handle


def _removed_orphan(place: Path) -> bool:
    if fcntl is None:
        return False
    try:
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | NO_LINKS)
    except OSError:  # a link, a file, or somebody else's
        return False
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            return False
        lock = os.open(LOCK, os.O_RDWR | NO_LINKS | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return False
    finally:
        os.close(folder)
    try:
        ours = os.fstat(lock)
        if not stat.S_ISREG(ours.st_mode) or ours.st_uid != os.geteuid() or os.read(lock, 64) != MARK:
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its session lives
        shutil.rmtree(place, ignore_errors=True)
        return not place.exists()
    except OSError:
        return False
    finally:
        os.close(lock)
