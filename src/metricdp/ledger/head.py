"""The head file: how far a ledger had come when it last answered.

A database that was emptied, replaced, or copied without its write-ahead log does not know what it lost. The head file
does: it names the ledger and, for every lane, the number of blocks and entries and the last link, under a seal of the
ledger's key. It is on the disk before anybody gets an answer. A ledger that is behind its head is refused.

The file has two slots. A write goes to the older one, so a write that is cut off leaves the other one whole; the ledger
is then ahead of its head, which is no loss. The file is written in place, under a lock, and no lane ever goes back.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from metricdp.errors import InvalidInput, LedgerUnavailable
from metricdp.files import refuse_link, replace_file
from metricdp.ledger.keys import LedgerKey

try:
    import fcntl
except ImportError:  # not on Windows: one process at a time
    fcntl = None  # type: ignore[assignment]

ENDS = "metricdp ends"  # under which a connection remembers the ends of lanes that its transaction saw
FORMAT = "metricdp ledger head 1"
SLOT = 4096  # bytes, a block of the disk: a write that is cut off damages one slot at most
RECOVER = "`metricdp budget recover --accept-loss` goes on with what is there, and the chain records it"


@dataclass(frozen=True, slots=True)
class End:
    """The end of a lane: how many blocks and entries it has, and its last link."""

    blocks: int
    entries: int
    link: bytes


@dataclass(frozen=True)
class Head:
    """What a head file says: the ledger, the ends of its lanes, and how often the file was written."""

    ledger: str
    lanes: Mapping[int, End] = field(default_factory=dict)
    number: int = 0


class HeadFile:
    """A head file that processes and threads share."""

    def __init__(self, path: Path, key: LedgerKey) -> None:
        self.path, self._key = path, key
        self._lock = threading.Lock()
        self._handle: int | None = None
        self._known: dict[int, int] = {}  # blocks that the file is known to hold
        self._missing: dict[int, End] = {}  # ends that could not be written yet

    def read(self) -> Head | None:
        """Return what the file says, None where there is no file; one that cannot be read is refused."""
        try:
            refuse_link(self.path)
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InvalidInput(f"the head file {str(self.path)!r} cannot be read: {error.strerror or error}") from None
        return self._newest(data)

    def create(self, head: Head, *, new: bool = False) -> None:
        """Write a file; one that is there is replaced, or refused where it is to be new."""
        slot = self._slot(head)
        with replace_file(self.path, overwrite=not new, of_ledger=True) as partial:
            partial.write_bytes(slot + slot)

    def ends(self) -> Mapping[int, End]:
        """Return the ends that the file holds now, whichever process wrote them."""
        try:
            with self._lock if self._handle is None else nullcontext():
                handle = self._open_file()
            with suppress(InvalidInput):  # both slots were being written while they were read
                return self._newest(os.pread(handle, 2 * SLOT, 0)).lanes
            with self._lock, self._lock_file():
                return self._newest(os.pread(handle, 2 * SLOT, 0)).lanes
        except OSError as error:
            raise LedgerUnavailable(
                f"the head file {str(self.path)!r} cannot be read: {error.strerror or error}. Nothing was released."
            ) from None

    def reach(self, ends: Mapping[int, End]) -> None:
        """Put the ends of lanes on the disk, unless the file is there or further already."""
        with self._lock:
            self._missing.update(ends)
            if all(self._known.get(lane, -1) >= end.blocks for lane, end in self._missing.items()):
                self._missing.clear()
                return
            try:
                with self._lock_file() as handle:
                    self._write(handle)
            except OSError as error:
                raise LedgerUnavailable(
                    f"the head file {str(self.path)!r} cannot be written: {error.strerror or error}. Nothing is "
                    "answered before it is; ask again with the same request id: what was committed costs nothing more."
                ) from None

    def _write(self, handle: int) -> None:
        now = self._newest(os.pread(handle, 2 * SLOT, 0))
        lanes = dict(now.lanes)
        for lane, end in self._missing.items():
            if lane not in lanes or lanes[lane].blocks < end.blocks:
                lanes[lane] = end
        if lanes != now.lanes:
            made = Head(now.ledger, lanes, now.number + 1)
            data = self._slot(made)
            if os.pwrite(handle, data, SLOT * (made.number % 2)) != SLOT:
                raise OSError("it was not written whole")
        getattr(os, "fdatasync", os.fsync)(handle)  # also what another process wrote, and was killed before it waited
        self._known = {lane: end.blocks for lane, end in lanes.items()}
        self._missing.clear()

    def _open_file(self) -> int:
        if self._handle is None:
            refuse_link(self.path)
            self._handle = os.open(self.path, os.O_RDWR)
        if not os.fstat(self._handle).st_nlink:
            raise FileNotFoundError(2, "it is gone")
        return self._handle

    @contextmanager
    def _lock_file(self) -> Iterator[int]:
        handle = self._open_file()
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield handle
        finally:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_UN)

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _slot(self, head: Head) -> bytes:
        lanes = [[lane, end.blocks, end.entries, end.link.hex()] for lane, end in sorted(head.lanes.items())]
        said = {"format": FORMAT, "ledger": head.ledger, "number": head.number}
        text = json.dumps(said | {"entries": sum(end.entries for end in head.lanes.values()), "lanes": lanes})
        line = json.dumps({"head": text, "seal": self._seal(text)}).encode()
        if len(line) >= SLOT:
            raise InvalidInput("a head file holds at most 16 lanes.")
        return line.ljust(SLOT - 1) + b"\n"

    def _seal(self, text: str) -> str:
        return self._key.seal(b"head", text.encode()).hex()

    def _newest(self, data: bytes) -> Head:
        """Return the newer of the slots that are whole."""
        found = []
        for place in (0, SLOT):
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                found.append(self._parse_slot(data[place : place + SLOT]))
        if not found:
            raise InvalidInput(
                f"the head file {str(self.path)!r} is damaged, or belongs to another ledger: nobody can tell how far "
                f"the ledger had come. Put the right file back. If it is lost, {RECOVER}."
            )
        return max(found, key=lambda head: head.number)

    def _parse_slot(self, slot: bytes) -> Head:
        outer = json.loads(slot)
        if self._seal(outer["head"]) != outer["seal"]:
            raise ValueError
        values = json.loads(outer["head"])
        if values["format"] != FORMAT:
            raise ValueError
        lanes = {lane: End(blocks, entries, bytes.fromhex(last)) for lane, blocks, entries, last in values["lanes"]}
        return Head(values["ledger"], lanes, values["number"])
