"""Vectors of words from files in common formats.

Vocabularies are public: an error names the line and the word.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metricdp.errors import InvalidInput
from metricdp.files import existing_file
from metricdp.metrics import Metric
from metricdp.spaces import FiniteSpace
from metricdp.text.formats import arrays, tables
from metricdp.text.formats.base import Singles, VectorRows, VectorSource, head_of
from metricdp.text.formats.lines import header_of, is_binary, read_binary, read_lines
from metricdp.text.formats.tensors import is_safetensors, read_safetensors
from metricdp.text.vocabularies import vocabulary

Location = str | os.PathLike[str]
FASTTEXT = (793712314).to_bytes(4, "little")
HEAD = 2**16  # bytes looked at to tell a format
LARGEST_LIST = 2**28  # bytes of a list of words
WORD_LIST_SUFFIXES = (".words.txt", ".txt", ".vocab", ".json")  # in place of the suffix of the vectors


@dataclass(frozen=True, eq=False)
class Vectors:
    """Words and their vectors, one row a word, in the order of the file (usually the most frequent first).

    Attributes:
        words: The words, all distinct.
        array: Their vectors, floats of 32 bits.
        notes: What was left out, and other remarks, a sentence each.
    """

    words: list[str]
    array: Singles
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} words, {self.array.shape[1]} dimensions)"

    def space(self, metric: Metric | None = None) -> FiniteSpace:
        """Return the words as secrets, measured by their vectors: l2 unless a metric is given.

        `Levenshtein` measures the words themselves.
        """
        return vocabulary(self.words, self.array, metric=metric)

    def distinct(self) -> Vectors:
        """Return the first word of every vector, without zero vectors: what every metric can measure."""
        _, first = np.unique(self.array, axis=0, return_index=True)
        kept = np.sort(first[self.array[first].any(axis=1)])
        gone = len(self) - len(kept)
        note = (f"{gone:,} words left out: a zero vector, or the vector of a word before them.",) if gone else ()
        return Vectors([self.words[row] for row in kept.tolist()], self.array[kept], (*self.notes, *note))


def read_vectors(
    path: Location | Sequence[Location], *, limit: int | None = None, words: Location | None = None
) -> Vectors:
    """Read words and their vectors from a file, at most `limit` words from its beginning.

    Formats, told by content rather than name: GloVe text, word2vec text and binary, fastText `.vec`, `.npz` (a list of
    words and a matrix, or one array a word), `.npy` and safetensors with a list of words, Parquet, Arrow and Feather;
    text and binary also in gzip, and from a zip archive (`glove.6B.zip::glove.6B.100d.txt`). No file can run a
    program: pickles are refused. Numbers are kept in 32 bits.

    A word that comes again is left out with a note, and so are a few lines that are not UTF-8; vectors of different
    lengths, numbers that are not finite, a file that ends early or whose header is wrong are errors that name the line.

    Args:
        path: The file; several are read one after the other, words that were there before left out.
        limit: How many words to read of each file, the most frequent ones in most files.
        words: A list of words for files that hold vectors alone: one a line, or JSON. By default a file beside the
            vectors is looked for (vectors.txt or vectors.json for vectors.npy).
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidInput(f"`limit` must be a whole number of at least 1, got {limit!r}.")
    if not isinstance(path, str | os.PathLike):
        return _join_vectors([read_vectors(one, limit=limit, words=words) for one in path])
    name, _, member = os.fspath(path).partition("::")
    place = existing_file(name, "file of vectors")
    source = VectorSource(place, limit=limit)
    return _check_vectors(_read(source, member, words), source)


def _read(source: VectorSource, member: str, words: Location | None) -> VectorRows:
    """Read a file by what it begins with."""
    head = head_of(source, HEAD)
    if head.startswith(b"PK") and (source.path.suffix != ".npz" or member):
        source = _member(source, member)
        head = head_of(source, HEAD) if source.member else head
    if head.startswith(b"PK"):
        return arrays.read_npz(source)
    if head.startswith(arrays.MAGIC):
        return arrays.read_npy(source, _word_list(source, words))
    if head.startswith((tables.PARQUET, tables.ARROW, tables.FEATHER)):
        return tables.read_table(source, head)
    if is_safetensors(head):
        return read_safetensors(source, member, _word_list(source, words))
    if head.startswith(FASTTEXT):
        source.refuse("is a model in fastText's own binary format: take the `.vec` file that comes with it.")
    if head[:1] == b"\x80":
        source.refuse(arrays.PICKLE)
    header = header_of(head)
    if header is not None and is_binary(head, header[1]):
        return read_binary(source, header)
    return read_lines(source, header)


def _member(source: VectorSource, member: str) -> VectorSource:
    """Return the file in an archive: the one named, or the only one; an archive of arrays is one file."""
    try:
        with zipfile.ZipFile(source.path) as packed:
            names = [name for name in packed.namelist() if not name.endswith("/")]
    except zipfile.BadZipFile:
        source.refuse("is a damaged archive: it was not copied whole.")
    if any(name.endswith((".pkl", "data.pkl")) for name in names):
        source.refuse(arrays.PICKLE)
    if not member and names and all(name.endswith(".npy") for name in names):
        return source
    found = [name for name in names if name == member] if member else names
    if len(found) != 1:
        listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        source.refuse(f"is an archive of {len(names)} files: name one of {listed} as {source.path.name}::name.")
    return VectorSource(source.path, found[0], source.limit)


def _word_list(source: VectorSource, words: Location | None) -> list[str] | None:
    """Return the list of words that was given or lies beside the vectors."""
    beside = [source.path.with_suffix(suffix) for suffix in WORD_LIST_SUFFIXES]
    beside += [source.path.with_name(name) for name in ("words.txt", "vocab.txt", "words.json", "vocab.json")]
    found = next((place for place in beside if place.is_file() and place != source.path), None)
    place = found if words is None else existing_file(words, "list of words")
    if place is None:
        return None
    text = read_list(place)
    return _json_words(text, place) if text.lstrip()[:1] in ("[", "{") else text.removesuffix("\n").split("\n")


def read_list(place: Path) -> str:
    """Return the text of a list of words."""
    if place.stat().st_size > LARGEST_LIST:
        raise InvalidInput(
            f"the list of words {place.name!r} has over {LARGEST_LIST:,} bytes: it is not a list of words."
        )
    try:
        return place.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"the list of words {place.name!r} is not UTF-8. Convert it first.") from None


def _json_words(text: str, place: Path) -> list[str]:
    """Return words from a list, or from an object that gives each its row."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"the list of words {place.name!r} is not JSON that can be read.") from None
    if isinstance(found, dict) and sorted(map(str, found.values())) == sorted(map(str, range(len(found)))):
        found = sorted(found, key=found.__getitem__)
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise InvalidInput(f"the list of words {place.name!r} must be a list of words, or give each word its row.")
    return found


def _check_vectors(read: VectorRows, source: VectorSource) -> Vectors:
    """Return words and vectors without repeated words; numbers that are not finite are refused."""
    finite = np.isfinite(read.array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        value = read.array[row][~np.isfinite(read.array[row])][0]
        several = f" ({int((~finite).sum()):,} such words)" if (~finite).sum() > 1 else ""
        source.refuse(
            f"has a number that is not finite ({value}) in {read.at(row)}{several}. Leave it out or repair it."
        )
    seen: dict[str, int] = {}
    for row, word in enumerate(read.words):
        seen.setdefault(word, row)
    notes, array, words = list(read.notes), read.array, list(read.words)
    if len(seen) < len(words):
        again = next(row for row, word in enumerate(words) if seen[word] != row)
        gone, first = len(words) - len(seen), read.at(seen[words[again]])
        notes.append(
            f"{source}: {gone:,} words come again and were left out, the first in {read.at(again)} after {first}."
        )
        array, words = array[list(seen.values())], list(seen)
    zero = np.flatnonzero(~array.any(axis=1))
    if zero.size:
        first = words[int(zero[0])][:40]
        notes.append(
            f"{source}: {zero.size:,} words have a zero vector, {first!r} the first: the angular metric cannot measure "
            "them (`distinct()` leaves them out)."
        )
    return Vectors(words, array, tuple(notes))


def _join_vectors(parts: list[Vectors]) -> Vectors:
    """Return the words of several files, each with its first vector."""
    if not parts:
        raise InvalidInput("`path` must name at least one file of vectors.")
    sizes = sorted({part.array.shape[1] for part in parts})
    if len(sizes) > 1:
        raise InvalidInput(f"the files must have vectors of one length, got {', '.join(map(str, sizes))}.")
    first: dict[str, int] = {}
    for row, word in enumerate(word for part in parts for word in part.words):
        first.setdefault(word, row)
    array = np.concatenate([part.array for part in parts])[list(first.values())]
    return Vectors(list(first), array, tuple(note for part in parts for note in part.notes))
