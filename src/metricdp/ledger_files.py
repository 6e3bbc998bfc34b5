"""Which files are a ledger or a part of one: no output takes their place, since that would give budgets back."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

from metricdp.errors import OutputProblem

DATABASE = b"SQLite format 3\x00"
LEDGER_TABLES = {"books", "lanes", "entries", "accounts"}
LEDGER_KEY = re.compile(rb"[0-9a-f]{64}\s*")
LEDGER_HEAD = b"metricdp ledger head"
BESIDE_LEDGER = (".key", ".head", "-wal", "-shm", "-journal")


def refuse_ledger(target: str | os.PathLike[str]) -> None:
    """Refuse to write over a ledger, its key, its head or its log, by any name or link: that gives budgets back."""
    place = Path(os.path.realpath(target))
    what = "ledger" if is_ledger(place) else "part of a ledger" if _belongs_to_ledger(place) else ""
    if what:
        raise OutputProblem(
            f"cannot write {str(target)!r}: it is a {what}, and that is never overwritten. Choose another name for the "
            "output."
        )
    if (_head_of(place) or b"").startswith(DATABASE) and place.stat().st_nlink > 1:
        raise OutputProblem(
            f"cannot write {str(target)!r}: this database has several names (hard links), and SQLite keeps what was "
            "written last beside one of them only. Remove the other names, or choose another name for the output."
        )


def is_ledger(path: Path) -> bool:
    """Tell whether a file is a ledger, also one that was emptied beside its key."""
    head = _head_of(path)
    if head is None or (head and not head.startswith(DATABASE)):
        return False
    if LEDGER_KEY.fullmatch(_head_of(path.with_name(f"{path.name}.key")) or b""):
        return True
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            return {name.lower() for (name,) in base.execute(query)} >= LEDGER_TABLES
    except sqlite3.Error:
        return False


def _belongs_to_ledger(path: Path) -> bool:
    head = _head_of(path) or b""
    if LEDGER_KEY.fullmatch(head) or LEDGER_HEAD in head:
        return True
    ends = [end for end in BESIDE_LEDGER if path.name.endswith(end) and path.name != end]
    return any(is_ledger(path.with_name(path.name[: -len(end)])) for end in ends)


def _head_of(path: Path) -> bytes | None:
    """Return how a file begins; None where there is no plain file that can be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            return file.read(200)
    except OSError:
        return None
