"""Writing a file whole or not at all, alone at it, and never through a link.

A ledger or a part of one is never overwritten: that would give budgets back (`refuse_ledger`).

Until a file is whole it lies beside its target under a hidden name, readable by its owner only. The writer holds
a lock on it, which the system takes back when the process ends, however it ends: what a killed run left behind is known
by its open lock and removed by the next one.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import socket
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.rendering import is_address, is_broken_address

try:
    import fcntl
except ImportError:  # not on Windows: files are still written whole, and locks are files that exist
    fcntl = None  # type: ignore[assignment]

LONGEST_NAME = 255  # bytes, on every file system in use
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
DATABASE = b"SQLite format 3\x00"
LEDGER_TABLES = {"books", "lanes", "entries", "accounts"}
LEDGER_KEY = re.compile(rb"[0-9a-f]{64}\s*")
LEDGER_HEAD = b"metricdp ledger head"
LEDGER_SUFFIXES = (".key", ".head", "-wal", "-shm", "-journal")


def existing_file(path: str | os.PathLike[str], what: str = "file") -> Path:
    """Return the path of a readable file, or say what is wrong with it."""
    place = Path(path)
    if place.is_dir():
        raise InvalidInput(f"the {what} {str(path)!r} is a folder: name one file in it.")
    if not place.exists():
        raise InvalidInput(f"the {what} {str(path)!r} does not exist. Check the spelling and the folder.")
    if not os.access(place, os.R_OK):
        raise InvalidInput(f"the {what} {str(path)!r} cannot be read: you have no permission.")
    return place


def is_server(place: str) -> bool:
    """Return whether a ledger lies on a server rather than in a file; an address that was mistyped is refused.

    Taken for a file, such an address would be printed in the error of the missing file, with the password in it.
    """
    if is_broken_address(place):
        raise InvalidInput(
            "the ledger must be a file such as 'budget.db', or an address such as postgresql://user@host/database. "
            "What was given looks like an address, but has no '://' where it belongs: write the address out."
        )
    return is_address(place)


def link_notes(paths: Sequence[Path]) -> tuple[str, ...]:
    """Say which sources are symbolic links and what was read instead; by file names, since reports repeat it."""
    links = [path for path in paths if path.is_symlink()]
    shown = [f"{path.name!r} is a symbolic link: {Path(os.path.realpath(path)).name!r} was read." for path in links[:3]]
    return (*shown, f"{len(links) - 3} more sources are links.") if len(links) > 3 else tuple(shown)


def check_target(
    target: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    overwrite: bool = True,
    of_ledger: bool = False,
) -> Path:
    """Return where the output will be put, or raise before any work is done; a ledger is written by itself only."""
    if not of_ledger:
        refuse_ledger(target)
    if os.fspath(target) == "-":
        raise OutputProblem("this cannot go to standard output: name a file (one that is called - is named ./-).")
    place = resolve_target(target)
    if place.exists():
        if source is not None and Path(source).exists() and os.path.samefile(place, source):
            raise OutputProblem(
                f"cannot write {str(target)!r}: it is the file that is read. Choose another name for the output."
            )
        refuse_link(target)
        if not stat.S_ISREG(place.stat().st_mode):
            raise OutputProblem(f"cannot write {str(target)!r}: it is not a plain file. Choose a file name.")
        if not overwrite:
            raise _exists(target)
    refuse_link(target)
    return place


def _exists(target: str | os.PathLike[str]) -> OutputProblem:
    return OutputProblem(
        f"cannot write {str(target)!r}: it is there already. Choose another name, or replace it with overwrite=True "
        "(--overwrite)."
    )


def resolve_target(target: str | os.PathLike[str]) -> Path:
    """Return the target in its real folder, which must be there and take files; the last name may be a link."""
    given = Path(os.path.abspath(target))
    folder = Path(os.path.realpath(given.parent))
    if not folder.is_dir():
        raise OutputProblem(f"cannot write {str(target)!r}: the folder {str(folder)!r} does not exist. Make it first.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputProblem(
            f"cannot write {str(target)!r}: no permission to write in {str(folder)!r}. Choose another folder."
        )
    return folder / given.name


def refuse_link(target: str | os.PathLike[str]) -> None:
    """Refuse to write through a symbolic link, which may lead anywhere, or to replace it."""
    if Path(os.path.abspath(target)).is_symlink():
        raise OutputProblem(
            f"cannot write {str(target)!r}: it is a symbolic link to {os.readlink(target)!r}. Name the place itself."
        )


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Return a folder that is there, made if it was not."""
    place = Path(path)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputProblem(
            f"the folder {str(path)!r} cannot be made: {error.strerror or error}. Choose another."
        ) from error
    return place


def private_folder(place: Path) -> Path:
    """Return a folder of one's own that nobody else can look into; one that is somebody else's is refused."""
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or not is_ours(found):
        raise OutputProblem(
            f"{str(place)!r} must be a folder of yours, and is not: remove it, or choose another place."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        place.chmod(0o700)
    return place


def hidden_path(place: Path, what: str) -> Path:
    """Return the hidden name beside a target for something that belongs to it."""
    name = f".{place.name}.{what}"
    if len(os.fsencode(name)) > LONGEST_NAME:
        digest = hashlib.sha256(os.fsencode(place.name)).hexdigest()[:16]
        name = f".{os.fsdecode(os.fsencode(place.name)[:100])}.{digest}.{what}"
    return place.with_name(name)


@contextmanager
def replace_file(
    target: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    overwrite: bool = True,
    of_ledger: bool = False,
) -> Iterator[Path]:
    """Yield a new empty file beside the target that takes its place when the block ends well.

    On any error or interruption the new file is removed and the target stays as it was. A target that was there keeps
    its permissions; until then the new file is readable by its owner only. Without `overwrite` a target that is there,
    or that somebody else makes meanwhile, is an error. A ledger and its parts are replaced by the ledger only, which
    says so (`of_ledger`): they stay readable by their owner only.
    """
    place = check_target(target, source=source, overwrite=overwrite, of_ledger=of_ledger)
    try:
        partial, handle, mode = _new_partial(place)
    except OSError as error:
        raise OutputProblem(f"cannot write {str(target)!r}: {error.strerror}. Choose another folder.") from error
    try:
        yield partial
        mode = _permissions(partial, place, mode)
        mode = stat.S_IRUSR | stat.S_IWUSR if of_ledger else mode
        whole = os.open(partial, os.O_RDONLY)
        try:
            os.fsync(whole)
            _put(partial, place, overwrite=overwrite)
            if hasattr(os, "fchmod"):  # only now: a run that is killed before leaves nothing that others can read
                os.fchmod(whole, mode)
        finally:
            os.close(whole)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError) and not isinstance(error, OutputProblem) and error.errno is not None:
            reason = error.strerror or str(error)
            raise OutputProblem(f"cannot write {str(target)!r}: {reason}. Nothing was written.") from error
        raise
    finally:
        os.close(handle)
    with suppress(OSError):  # some file systems cannot flush a folder; the file itself is safe
        flush(place.parent)


def _put(partial: Path, place: Path, *, overwrite: bool) -> None:
    """Give a whole file its name; a link is refused where the name is taken, a replacement is not."""
    if overwrite:
        os.replace(partial, place)
        return
    try:
        os.link(partial, place)
    except FileExistsError:
        raise _exists(place) from None
    except OSError:  # a file system without links
        if place.exists():
            raise _exists(place) from None
        os.replace(partial, place)
        return
    partial.unlink()


def _new_partial(place: Path) -> tuple[Path, int, int]:
    """Return a new private file beside the target, its open lock, and the mode a new file gets here.

    The name is the same every time, so what a killed run left is found and removed. Where somebody is at work on that
    very file the name is another one.
    """
    partial = hidden_path(place, "partial")
    while True:
        try:
            handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o666)
        except FileExistsError:
            if not _remove_remains(partial):
                partial = hidden_path(place, f"{secrets.token_hex(4)}.partial")
            continue
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        os.chmod(partial, 0o600)
        if fcntl is None:
            return partial, handle, mode
        with suppress(OSError):  # without locks nothing is taken for remains
            fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_at(handle, partial):  # not taken for remains before it was locked
            return partial, handle, mode
        os.close(handle)


def _remove_remains(partial: Path) -> bool:
    """Remove what a run that is no longer alive left behind; tell whether the name is free."""
    if fcntl is None:
        return False
    try:
        handle = os.open(partial, os.O_RDWR | NO_LINKS)
    except FileNotFoundError:
        return True
    except OSError:  # a link, or somebody else's
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(handle, partial):
            partial.unlink()
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _permissions(partial: Path, place: Path, mode: int) -> int:
    """Return the mode of the file that is replaced, whose owner the new one gets; that of a new file where none is."""
    try:
        found = place.lstat()
    except FileNotFoundError:
        return mode
    mode = stat.S_IMODE(found.st_mode) & 0o777
    own = partial.stat()
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        try:
            os.chown(partial, found.st_uid if os.geteuid() == 0 else -1, found.st_gid)
        except OSError:  # not in that group: what it was allowed is not for ours
            mode &= ~0o070
    return mode


@contextmanager
def lock_target(target: str | os.PathLike[str]) -> Iterator[Callable[[], bool]]:
    """Be the only one at work on a target while the block runs, or say who is; yield what tells whether this lasts.

    The system takes the lock back from a process that ends, so none is ever left over. Where the file system knows no
    locks a file that exists is the lock; one that is left over has to be removed by hand. A forked process has no share
    in the lock and gives nothing back. Where somebody removed the file, the lock does not last: the next one who asks
    gets it.
    """
    place = resolve_target(target)
    try:
        path, handle = _lock(place)
    except OSError as error:
        if isinstance(error, OutputProblem):
            raise
        raise OutputProblem(f"cannot write {str(target)!r}: {error.strerror}. Choose another folder.") from error
    process = os.getpid()
    try:
        yield lambda: os.getpid() == process and _is_at(handle, path)
    finally:
        with suppress(OSError):
            if os.getpid() == process and _is_at(handle, path):  # not that of somebody who came after
                path.unlink()  # while it is locked: a process that opened it before finds that it is gone
        os.close(handle)


def _lock(place: Path) -> tuple[Path, int]:
    path = hidden_path(place, "metricdp-lock")
    while fcntl is not None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINKS, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise _occupied_error(place, handle) from error
            os.close(handle)
            break
        if _is_at(handle, path):
            _sign(handle)
            return path, handle
        os.close(handle)
    path = hidden_path(place, "metricdp-owner")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINKS, 0o600)
    except FileExistsError as error:
        raise _occupied_error(place, os.open(path, os.O_RDONLY), f" If it has ended, remove {str(path)!r}.") from error
    _sign(handle)
    return path, handle


def _occupied_error(place: Path, handle: int, advice: str = "") -> OutputProblem:
    owner = os.read(handle, 300).decode(errors="replace").strip() or "another run"
    os.close(handle)
    return OutputProblem(
        f"cannot write {str(place)!r}: {owner} is at work on it. Wait until it has ended, or choose another place."
        f"{advice}"
    )


def _sign(handle: int) -> None:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):  # a full disk: the lock holds without a name
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()} (since {since})".encode())


def _is_at(handle: int, path: Path) -> bool:
    """Return whether the open file is the one at the path."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def is_ours(found: os.stat_result) -> bool:
    """Return whether a file or folder belongs to the user who runs this."""
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def flush(path: Path) -> None:
    """Put a file or folder on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def refuse_ledger(target: str | os.PathLike[str]) -> None:
    """Refuse to write over a ledger, its key, its head or its log, by any name or link: that gives budgets back."""
    place = Path(os.path.realpath(target))
    what = "ledger" if is_ledger(place) else "part of a ledger" if _belongs_to_ledger(place) else ""
    if what:
        raise OutputProblem(
            f"cannot write {str(target)!r}: it is a {what}, and that is never overwritten. Choose another name for the "
            "output."
        )
    if (_read_head(place) or b"").startswith(DATABASE) and place.stat().st_nlink > 1:
        raise OutputProblem(
            f"cannot write {str(target)!r}: this database has several names (hard links), and SQLite keeps what was "
            "written last beside one of them only. Remove the other names, or choose another name for the output."
        )


def is_ledger(path: Path) -> bool:
    """Return whether a file is a ledger, also one that was emptied beside its key."""
    head = _read_head(path)
    if head is None or (head and not head.startswith(DATABASE)):
        return False
    if LEDGER_KEY.fullmatch(_read_head(path.with_name(f"{path.name}.key")) or b""):
        return True
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            return {name.lower() for (name,) in base.execute(query)} >= LEDGER_TABLES
    except sqlite3.Error:
        return False


def _belongs_to_ledger(path: Path) -> bool:
    head = _read_head(path) or b""
    if LEDGER_KEY.fullmatch(head) or LEDGER_HEAD in head:
        return True
    ends = [end for end in LEDGER_SUFFIXES if path.name.endswith(end) and path.name != end]
    return any(is_ledger(path.with_name(path.name[: -len(end)])) for end in ends)


def _read_head(path: Path) -> bytes | None:
    """Return how a file begins; None where there is no plain file that can be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            return file.read(200)
    except OSError:
        return None
