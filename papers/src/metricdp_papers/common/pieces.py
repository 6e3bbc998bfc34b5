"""Finished pieces on the disk: one JSON file each, written whole or not at all, readable on any machine."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import metricdp
from metricdp.errors import CorruptFile
from metricdp.files import replace_file
from metricdp_papers.common.rows import Row, check_rows
from metricdp_papers.common.shapes import Piece

LARGEST = 64 * 2**20  # bytes of a piece; rows of a table are a few kilobytes


@dataclass(frozen=True)
class PieceRecord:
    """A piece that ran: its rows, or the sentence that says why there are none."""

    key: str
    call: str
    rows: tuple[Row, ...]
    seconds: float
    failure: str = ""
    version: str = ""
    machine: str = ""
    load: float | None = None


def piece_record(piece: Piece, started: float, rows: Sequence[Row] = (), *, failure: str = "") -> PieceRecord:
    """Return the record of a piece that began at `started` (of time.perf_counter) and ended now, on this machine."""
    seconds, plain = round(time.perf_counter() - started, 3), tuple(check_rows(rows, piece.key))
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    return PieceRecord(
        piece.key, piece.call, plain, seconds, " ".join(failure.split())[:2000], version(), machine, load
    )


@cache
def version() -> str:
    """Return the version with a short digest of the source, since a number alone does not name the code that ran.

    The source is that of the library and of the studies.
    """
    digest = hashlib.sha256()
    for package in (Path(metricdp.__file__).parent, Path(__file__).parents[1]):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return f"{metricdp.__version__} (source {digest.hexdigest()[:10]})"


def place(folder: Path, key: str) -> Path:
    """Return where a piece is kept."""
    return folder / "pieces" / f"{key}.json"


def save_piece(folder: Path, done: PieceRecord) -> Path:
    """Write a piece."""
    path = place(folder, done.key)
    with replace_file(path) as partial:
        partial.write_text(json.dumps(asdict(done), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def load_piece(folder: Path, piece: Piece) -> PieceRecord | None:
    """Return a piece that ran before with the same call, here or elsewhere; None where there is none."""
    path = place(folder, piece.key)
    if not path.is_file():
        return None
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError("it is too large for a piece")
        values = json.loads(path.read_text(encoding="utf-8"))
        done = PieceRecord(**{**values, "rows": tuple(check_rows(values["rows"], piece.key))})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptFile(f"{str(path)!r} is no finished piece ({error}): it is run again.") from error
    return done if done.key == piece.key and done.call == piece.call else None
