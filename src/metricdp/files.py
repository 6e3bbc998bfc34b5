"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metricdp.errors import InvalidInput, OutputProblem


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


def check_target(target: str | os.PathLike[str], *, source: str | os.PathLike[str] | None = None) -> Path:
    """Return where the output will be put, or raise before any work is done."""
    place = Path(os.path.realpath(target))
    folder = place.parent
    if not folder.is_dir():
        raise OutputProblem(f"cannot write {str(target)!r}: the folder {str(folder)!r} does not exist. Make it first.")
    if place.exists():
        if source is not None and Path(source).exists() and os.path.samefile(place, source):
            raise OutputProblem(
                f"cannot write {str(target)!r}: it is the file that is read. Choose another name for the output."
            )
        if not stat.S_ISREG(place.stat().st_mode):
            raise OutputProblem(f"cannot write {str(target)!r}: it is not a plain file. Choose a file name.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputProblem(
            f"cannot write {str(target)!r}: no permission to write in {str(folder)!r}. Choose another folder."
        )
    return place


def made_folder(path: str | os.PathLike[str]) -> Path:
    """Return a folder that is there, made if it was not."""
    place = Path(path)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputProblem(
            f"the folder {str(path)!r} cannot be made: {error.strerror or error}. Choose another."
        ) from error
    return place


@contextmanager
def replacing(target: str | os.PathLike[str], *, source: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Yield a new empty file beside the target that takes its place when the block ends well.

    On any error or interruption the new file is removed and the target stays as it was.
    """
    place = check_target(target, source=source)
    partial = place.with_name(f".{place.name[:80]}.{secrets.token_hex(4)}.partial")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise OutputProblem(f"cannot write {str(target)!r}: {error.strerror}. Choose another folder.") from error
    try:
        yield partial
        _flush(partial)
        os.replace(partial, place)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError) and not isinstance(error, OutputProblem) and error.errno is not None:
            reason = error.strerror or str(error)
            raise OutputProblem(f"cannot write {str(target)!r}: {reason}. Nothing was written.") from error
        raise
    with suppress(OSError):  # some file systems cannot flush a folder; the file itself is safe
        _flush(place.parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
