"""Vectors that a mechanism file names instead of holding them: files with their checksums, found and verified.

{"files": [{"name", "bytes", "sha256"}, ...], "rows": tensor, "sha256"}: the points are the vectors of these files, one
after the other as `metricdp.text.read_vectors` reads them, taken at `rows`; `sha256` is that of the points themselves,
as doubles, so that the numbers in use are those that were audited, to the last bit. A name is that of a file, never of
a folder. It is looked for among the given files, beside the mechanism file, and in the folder METRICDP_VECTORS.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metricdp.artifacts.container import Entry
from metricdp.artifacts.tensors import TensorReader, TensorWriter, decode_text, decode_whole
from metricdp.errors import CorruptFile, InvalidInput
from metricdp.registry import Text, Whole

PathLike = str | os.PathLike[str]
Vectors: TypeAlias = "PathLike | Sequence[PathLike] | VectorFiles | None"
FOLDER = "METRICDP_VECTORS"
KEYS, FILE_KEYS = ("files", "rows", "sha256"), ("name", "bytes", "sha256")
MOST_FILES = 16
DIGITS = frozenset("0123456789abcdef")


class MissingVectors(CorruptFile):
    """The file is whole, but the vectors it names are not at hand."""


@dataclass
class VectorFiles:
    """The places to look for vectors: given files and a folder; vectors that were read are kept."""

    given: tuple[Path, ...] = ()
    folder: Path | None = None
    _arrays: dict[tuple[str, ...], tuple[NDArray[np.float32], int]] = field(default_factory=dict)

    @classmethod
    def of(cls, vectors: Vectors, folder: Path | None = None) -> VectorFiles:
        """Return the places to look in, with one or several files."""
        if isinstance(vectors, VectorFiles):
            return vectors
        some = () if vectors is None else (vectors,) if isinstance(vectors, str | os.PathLike) else tuple(vectors)
        if len(some) > MOST_FILES:
            raise InvalidInput(f"`vectors` must be at most {MOST_FILES} files, got {len(some)}.")
        return cls(tuple(Path(each) for each in some), folder)

    def entry(self, points: NDArray[Any], words: list[str], tensors: TensorWriter) -> Entry:
        """Return the reference to these points, one per word, or say that the files do not hold them."""
        names = [path.name for path in self.given]
        if len(set(names)) < len(names):
            raise InvalidInput(f"`vectors` must be files of different names, got {names}.")
        all_words, array = self._read(self.given)
        places = {word: row for row, word in reversed(list(enumerate(all_words)))}  # the first of several
        lost = next((word for word in words if word not in places), None)
        if lost is not None:
            raise InvalidInput(f"the word {lost!r} is not in {' or '.join(names)}: a reference needs all of them.")
        rows = np.array([places[word] for word in words], dtype=np.int64)
        if array.shape[1:] != points.shape[1:] or not np.array_equal(array[rows].astype(float), points):
            raise InvalidInput(
                f"the vectors of this mechanism are not those in {' or '.join(names)}: give the files that it was "
                "made from, or omit `vectors`, so that the mechanism file holds them."
            )
        entries: list[Entry] = [
            {"name": path.name, "bytes": path.stat().st_size, "sha256": digest_of(path)} for path in self.given
        ]
        size = sum(int(each["bytes"]) for each in entries)
        self._arrays[tuple(str(each["sha256"]) for each in entries)] = (array, size)
        return {"files": entries, "rows": tensors.narrow(rows, "points.rows"), "sha256": _digest(points)}

    def points(self, entry: Entry, tensors: TensorReader, where: str) -> NDArray[np.float64]:
        """Return the points of a reference, every file and the points themselves verified."""
        files = entry["files"]
        if not isinstance(files, list) or not 1 <= len(files) <= MOST_FILES:
            raise CorruptFile(f"{where} does not name its files")
        stated = [_file(each, where) for each in files]
        rows = tensors.array(entry["rows"], "u", where, 1)
        key = tuple(digest for _, _, digest in stated)
        if key not in self._arrays:
            places = [self._find_file(name, size) for name, size, _ in stated]
            for place, (_, _, digest) in zip(places, stated, strict=True):
                if digest_of(place) != digest:
                    raise MissingVectors(
                        f"{str(place)!r} is not the file of vectors that it names, whose sha256 begins {digest[:12]}"
                    )
            self._arrays[key] = (self._read(places)[1], sum(size for _, size, _ in stated))
        array, total = self._arrays[key]
        tensors.budget.grow(total)  # the vectors are as much a part of it as if they lay inside
        if not rows.size or int(rows.max()) >= len(array):
            raise CorruptFile(f"{where} names rows that its file does not have")
        points = array[rows.astype(np.int64)].astype(np.float64)
        if _digest(points) != _digits(entry["sha256"], where):
            raise CorruptFile(f"{where} are other numbers than those that were audited")
        points.flags.writeable = False
        return points

    def _find_file(self, name: str, size: int) -> Path:
        """Return the file of a name, of the right size."""
        folders = [self.folder, Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None]
        places = [path for path in self.given if path.name == name or len(self.given) == 1]
        places += [folder / name for folder in folders if folder is not None]
        for place in places:
            if place.is_file() and place.stat().st_size == size:
                return place
        there = next((place for place in places if place.is_file()), None)
        if there is not None:
            raise MissingVectors(f"{str(there)!r} has {there.stat().st_size:,} bytes, the vectors it names {size:,}")
        raise MissingVectors(f"it names vectors in {name!r} ({size:,} bytes), which is not there")

    @staticmethod
    def _read(places: Sequence[Path]) -> tuple[list[str], NDArray[np.float32]]:
        """Return the words of all files, one after the other, and their vectors."""
        from metricdp.text import read_vectors

        parts = [read_vectors(place) for place in places]
        if len({part.array.shape[1] for part in parts}) > 1:
            raise InvalidInput("the files of `vectors` must have vectors of one length.")
        return [word for part in parts for word in part.words], np.concatenate([part.array for part in parts])


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(points: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(points, dtype="<f8").tobytes()).hexdigest()


def _file(entry: object, where: str) -> tuple[str, int, str]:
    if not isinstance(entry, dict) or set(entry) != set(FILE_KEYS):
        raise CorruptFile(f"{where} does not name its files")
    name = decode_text(Text(longest=255), entry["name"], where)
    if not name or name in (".", "..") or any(letter in name for letter in "/\\:\0"):
        raise CorruptFile(f"{where} names a file in another folder")
    return name, decode_whole(Whole(1), entry["bytes"], where), _digits(entry["sha256"], where)


def _digits(value: object, where: str) -> str:
    if not isinstance(value, str) or len(value) != 64 or not set(value) <= DIGITS:
        raise CorruptFile(f"{where} has no checksum")
    return value
