"""The key of a ledger: persons and requests are stored as keyed hashes, entries are sealed with the same key.

Without the key nobody can tell who is in the ledger, not even by trying all names, nor change an entry so that the
chain still holds. The key is a file of 64 hexadecimal digits that only its owner can read. For a ledger in a file it
lies beside it (`budget.db.key`), for a server it is named. All hashes are keyed BLAKE2b (RFC 7693), one personal
tag for each use.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from uuid import UUID

from metricdp.errors import InvalidInput, OutputProblem
from metricdp.files import existing_file, replace_file
from metricdp.names import compose

TAG_BYTES = 16  # of persons and requests: two of a billion are alike with probability 1e-21
DIGEST_BYTES = 32
LONGEST = 1000  # bytes of a person's or request's name


class LedgerKey:
    """A key in memory; it never prints itself."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise InvalidInput("the key of a ledger must be 32 bytes.")
        self._persons = hashlib.blake2b(key=secret, digest_size=TAG_BYTES, person=b"mdp person")
        self._requests = hashlib.blake2b(key=secret, digest_size=TAG_BYTES, person=b"mdp request")
        self._seals = hashlib.blake2b(key=secret, digest_size=DIGEST_BYTES, person=b"mdp seal")

    def person(self, name: str | bytes | int) -> bytes:
        """Return the hash a person is stored under."""
        return self.persons([name])[0]

    def persons(self, names: Collection[str | bytes | int]) -> list[bytes]:
        """Return the hashes many persons are stored under."""
        found, copy = [], self._persons.copy
        for one in _many_bytes(names):
            state = copy()
            state.update(one)
            found.append(state.digest())
        return found

    def request(self, *parts: bytes) -> bytes:
        """Return the hash a request id is stored under, together with what it is scoped to."""
        state = self._requests.copy()
        for part in parts:
            state.update(len(part).to_bytes(4, "big") + part)
        return state.digest()

    def seal(self, *parts: bytes) -> bytes:
        """Return the seal over parts that are written one after the other."""
        state = self._seals.copy()
        for part in parts:
            state.update(part)
        return state.digest()

    def seals(self, start: bytes, parts: bytes, width: int, end: bytes) -> bytes:
        """Return the seals over `start`, one of the parts of equal width, and `end`, for every part."""
        begun = self._seals.copy()
        begun.update(start)
        found = []
        for place in range(0, len(parts), width):
            state = begun.copy()
            state.update(parts[place : place + width] + end)
            found.append(state.digest())
        return b"".join(found)


def _many_bytes(names: Collection[str | bytes | int]) -> Iterable[bytes]:
    """Return the bytes of many names; most often all are plain text, which needs no look at each."""
    texts = [name for name in names if type(name) is str]
    if texts and len(texts) == len(names) and all(map(str.isascii, texts)):
        lengths = set(map(len, texts))
        if min(lengths) > 0 and max(lengths) <= LONGEST:
            return map(str.encode, texts)
    return (name_bytes(name, "person") for name in names)


def name_bytes(name: str | bytes | int, what: str) -> bytes:
    """Return the bytes of a name; the number 7 and the text "7" are one person, and so are two spellings of é.

    Other types are refused: 7.0 would be another person than 7, and the text of some objects is new every time.
    """
    if isinstance(name, bool) or not isinstance(name, str | bytes | Integral | UUID):
        raise InvalidInput(f"`{what}` must be text, bytes or a whole number, got {type(name).__name__}.")
    data = name if isinstance(name, bytes) else str(name).encode(errors="surrogatepass")
    data = compose(data)
    if not 0 < len(data) <= LONGEST:
        raise InvalidInput(f"`{what}` must be a name of 1 to {LONGEST:,} bytes, got {len(data)} bytes.")
    return data


def in_order(names: Sequence[str | bytes | int]) -> list[int]:
    """Return the places of names in the order of their bytes in the ledger, however they are spelled."""
    found = list(_many_bytes(names))
    return sorted(range(len(found)), key=found.__getitem__)


def has_one_order(names: Sequence[str | bytes | int]) -> bool:
    """Tell whether names have the same order in every spelling, composed or decomposed."""
    ranges = sorted(_spellings(name) for name in names)
    return all(last < first for (_, last), (first, _) in pairwise(ranges))


def _spellings(name: str | bytes | int) -> tuple[bytes, bytes]:
    """Return the first and the last spelling of a name in the order of bytes."""
    data = name_bytes(name, "person")
    if data.isascii():
        return data, data
    own = name if isinstance(name, bytes) else str(name).encode(errors="surrogatepass")
    try:
        found = [own, data, unicodedata.normalize("NFD", data.decode()).encode()]
    except UnicodeDecodeError:
        found = [own]
    return min(found), max(found)


def create_key(path: Path) -> LedgerKey:
    """Make a key file; one that is there is never overwritten."""
    secret = secrets.token_bytes(32)
    write_key(path, f"{secret.hex()}\n".encode())
    return LedgerKey(secret)


def write_key(path: Path, data: bytes) -> None:
    """Write a new key file, whole or not at all."""
    if path.exists():
        raise OutputProblem(f"{str(path)!r} exists already: keys are never overwritten.")
    with replace_file(path, overwrite=False, of_ledger=True) as partial:
        partial.write_bytes(data)


def read_key(path: Path) -> LedgerKey:
    """Read a key file that only its owner can read."""
    place = existing_file(path, "key file of the ledger")
    try:
        with place.open("rb") as file:
            mode, data = os.fstat(file.fileno()).st_mode, file.read(200)
    except PermissionError:
        raise InvalidInput(f"there is no permission to read the key file {str(path)!r}: it is its owner's.") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInput(
            f"the key file {str(path)!r} can be read by others, who could then look up anybody in the ledger: "
            "chmod 600 it."
        )
    if not re.fullmatch(rb"[0-9a-f]{64}\s*", data):
        raise InvalidInput(f"{str(path)!r} is no key of a ledger: it must hold 64 hexadecimal digits.")
    return LedgerKey(bytes.fromhex(data.decode().strip()))
