"""Checkpoints: where a long run leaves what it has learnt, as plain arrays by name, and finds it again.

A builder takes a path or anything else that loads and saves arrays. This module lies in a low layer, beside nothing but
`files` and `errors`: it knows arrays and not what they mean, so a builder can open it without looking up at mechanism
files, and a caller that stores arrays elsewhere passes that in instead.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Protocol, TypeAlias
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from metricdp.errors import CorruptFile, InvalidInput
from metricdp.files import check_target, replace_file

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
# Whatever foreign bytes make of a reader.
UNREADABLE = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, ArithmeticError, MemoryError, RuntimeError, SyntaxError),
    *(TokenError, BadZipFile),
)


class Checkpoint(Protocol):
    """Where a run leaves its arrays; `str` of it names the place in messages."""

    def load(self) -> Arrays | None:
        """Return what an earlier run left, or None where there is nothing."""

    def save(self, arrays: Arrays, /) -> None:
        """Keep these arrays in place of those before, whole or not at all; the run goes on changing them."""

    def part(self, name: str, /) -> Checkpoint:
        """Return a place of its own for a further program of the same run."""


@dataclass(frozen=True)
class CheckpointFile:
    """One `.npz` file of plain arrays; parts have files of their own beside it (`run.npz.full`).

    One that is there is gone on from with `resume` and refused without it, never overwritten unasked.
    """

    path: Path
    resume: bool = False

    def load(self) -> Arrays | None:
        check_target(self.path)
        if not self.path.exists():
            return None
        if not self.resume:
            raise InvalidInput(
                f"{self} exists: say resume=True (--resume) to go on from it, or remove it to begin anew."
            )
        try:
            return _read(self.path)
        except UNREADABLE as error:
            raise unreadable_error(self, error) from error

    def save(self, arrays: Arrays, /) -> None:
        named: dict[str, Any] = dict(arrays)
        with replace_file(self.path) as partial, open(partial, "wb") as file:
            np.savez(file, **named)

    def part(self, name: str, /) -> CheckpointFile:
        return replace(self, path=self.path.with_name(f"{self.path.name}.{name}"))

    def __str__(self) -> str:
        return f"the checkpoint {str(self.path)!r}"


def open_checkpoint(place: str | os.PathLike[str] | Checkpoint | None, *, resume: bool = False) -> Checkpoint | None:
    """Return the checkpoint that a caller named by its path, or passed in."""
    if place is None:
        if resume:
            raise InvalidInput("`resume` needs `checkpoint`, the file to go on from.")
        return None
    if isinstance(place, str | os.PathLike):
        return CheckpointFile(Path(place), resume)
    if resume:
        raise InvalidInput("`resume` is for a `checkpoint` that is a path: an object decides itself what it loads.")
    return place


def unreadable_error(place: Checkpoint, error: Exception) -> CorruptFile:
    """Return the error of a checkpoint whose arrays are damaged or do not fit together."""
    return CorruptFile(f"{place} cannot be read ({error}). Remove it to begin anew.")


def _read(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file; none is made that would be larger than what the file holds."""
    with open(path, "rb") as file, ZipFile(file) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != ZIP_STORED for entry in entries):
            raise ValueError("it is compressed, and ours never are")
        if sum(entry.file_size for entry in entries) > os.fstat(file.fileno()).st_size:
            raise ValueError("it states more than it holds")
        found = {}
        for entry in entries:
            with archive.open(entry) as stream:
                found[entry.filename.removesuffix(".npy")] = _array(stream, entry.file_size)
        return found


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    version = npy.read_magic(stream)
    if version != (1, 0):  # what plain arrays are written as
        raise ValueError(f"an array has version {version}")
    shape, _, kind = npy.read_array_header_1_0(stream)
    if kind.hasobject or math.prod(shape) * kind.itemsize > size:
        raise ValueError("an array is no plain one, or larger than the file")
    stream.seek(0)
    return np.asarray(npy.read_array(stream, allow_pickle=False))
