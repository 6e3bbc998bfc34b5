"""A session: the folder with all files of Studio on disk, and the pages that are open.

The folder is removed when the session ends.

A session that is killed (`kill -9`, a crash, a power cut) cannot remove its folder. The next start does. It removes a
folder only if it belongs to this user, nobody else can look into it, and the lock in it is free: the system holds that
lock for as long as the process lives that made the folder.

A page says when it is there and, as it is closed, that it goes. A reload says both, in either order, so a page that
went counts as closed only after a while. A browser that crashes says nothing: the session then lasts until Studio is
ended in its terminal.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import NO_LINKS
from metricdp.studio.web import answer, question

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
    return sum(_remove_orphan(place) for place in sorted(places))


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


def _remove_orphan(place: Path) -> bool:
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


GRACE = 20.0  # seconds in which a reload is over, or somebody comes back
MOST_PAGES = 100


class Pages:
    """The pages that are open, by names that they choose at random.

    Args:
        closed: Is called with the name of a page that was closed.
        ended: Is called when the last page was closed.
        grace: How many seconds after it went a page counts as closed.
    """

    def __init__(self, closed: Callable[[str], None], ended: Callable[[], None], *, grace: float = GRACE) -> None:
        self._closed, self._ended, self._grace = closed, ended, grace
        self._open: set[str] = set()
        self._going: dict[str, asyncio.TimerHandle] = {}

    def routes(self) -> list[Route]:
        """Return the endpoints."""
        return [
            Route("/studio/here", self.note_open, methods=["POST"]),
            Route("/studio/gone", self.note_closed, methods=["POST"]),
        ]

    async def note_open(self, request: Request) -> Response:
        """Note that a page is there."""
        page = await _page(request)
        if len(self._open | {page}) > MOST_PAGES:
            raise InvalidInput(f"more than {MOST_PAGES} pages of Studio are open: close some.")
        self._open.add(page)
        self._stay(page)
        return answer({"pages": len(self._open)})

    async def note_closed(self, request: Request) -> Response:
        """Note that a page goes; it is closed unless it is back soon."""
        page = await _page(request)
        if page in self._open:
            self._stay(page)
            self._going[page] = asyncio.get_running_loop().call_later(self._grace, self._close, page)
        return answer({"pages": len(self._open)})

    def _stay(self, page: str) -> None:
        timer = self._going.pop(page, None)
        if timer is not None:
            timer.cancel()

    def _close(self, page: str) -> None:
        self._going.pop(page, None)
        self._open.discard(page)
        self._closed(page)
        if not self._open:
            self._ended()


async def _page(request: Request) -> str:
    page = (await question(request)).get("page")
    if not isinstance(page, str) or not 1 <= len(page) <= 64:
        raise InvalidInput("`page` must be a name of 1 to 64 characters.")
    return page
