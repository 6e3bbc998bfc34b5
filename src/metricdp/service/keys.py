"""Keys of the service: who may ask for what.

A token is `mdp_` + a public id + `_` + 256 random bits. The file holds ids, names, scopes and the SHA-256 of tokens:
against so many random bits no search helps, so a slow hash would only slow the service down. A running service sees a
changed file within a second; a file that is gone or cannot be read lets nobody in.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from metricdp.errors import CorruptFile, InvalidInput
from metricdp.files import existing_file, lock_target, replace_file

SCOPES = ("release", "read", "admin")
FORMAT = "metricdp-service-keys"
RECHECK = 1.0  # seconds after which a changed file is seen
LONGEST_FILE = 4 * 1024 * 1024
_TOKEN = re.compile(r"mdp_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
logger = logging.getLogger("metricdp.service")


@dataclass(frozen=True)
class ApiKey:
    """A key in the file, without its token. Times are ISO 8601 in UTC; `expires` and `revoked` may be empty."""

    id: str
    name: str
    scopes: tuple[str, ...]
    digest: str = field(repr=False)
    made: str
    expires: str = ""
    revoked: str = ""
    client: str = ""  # the id of the first key of the same client, where this one replaces it

    @property
    def identity(self) -> str:
        """Who asks, whichever key they use: what the request ids of the ledger belong to."""
        return self.client or self.id

    def valid(self, now: str) -> bool:
        """Tell whether it opens anything at a time (ISO 8601 in UTC compares as text)."""
        return not self.revoked and (not self.expires or now < self.expires)


NOBODY = ApiKey("", "", (), "0" * 64, "")


def make_key(
    path: str | os.PathLike[str],
    name: str,
    scopes: Sequence[str],
    *,
    days: float | None = None,
    replaces: str | None = None,
) -> str:
    """Add a key to a file, made where there is none, and return its token: nobody can see it again.

    A key that `replaces` another one, named by its id, is of the same client: a request that was answered under the
    old key is answered under the new one, and charged once.
    """
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown or not scopes:
        raise InvalidInput(f"`scopes` must be some of {', '.join(SCOPES)}, got {', '.join(unknown) or 'none'}.")
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise InvalidInput("`name` must say whose key it is, in at most 100 characters.")
    if days is not None and not 0 < days <= 36_500:
        raise InvalidInput(f"`days` must be a number above 0 and up to 36500, got {days!r}.")
    identity = secrets.token_hex(6)
    token = f"mdp_{identity}_{secrets.token_urlsafe(32)}"
    ends = "" if days is None else _stamp(days * 86_400)
    ordered = tuple(scope for scope in SCOPES if scope in scopes)
    with lock_target(path):
        there = read_keys(path) if Path(path).exists() else []
        before = [key for key in there if key.id == replaces]
        if replaces is not None and not before:
            raise _unknown(replaces)
        client = before[0].identity if before else ""
        made = ApiKey(identity, name.strip(), ordered, _digest(token), made=_stamp(), expires=ends, client=client)
        _write(path, [*there, made])
    return token


def revoke_key(path: str | os.PathLike[str], which: str) -> ApiKey:
    """Revoke the key with this id; it stays in the file, so that logs can be read."""
    with lock_target(path):
        found = read_keys(path)
        if which not in [key.id for key in found]:
            raise _unknown(which)
        changed = [replace(key, revoked=key.revoked or _stamp()) if key.id == which else key for key in found]
        _write(path, changed)
    return next(key for key in changed if key.id == which)


def _unknown(which: str) -> InvalidInput:
    return InvalidInput(f"no key has the id {which!r}: `metricdp serve keys list` shows them.")


def read_keys(path: str | os.PathLike[str]) -> list[ApiKey]:
    """Return the keys of a file; one that others can write is refused."""
    place = existing_file(path, "file of keys")
    with place.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InvalidInput(f"the file of keys {str(path)!r} can be written by others: chmod 600 it.")
        data = file.read(LONGEST_FILE + 1)
    try:
        found = json.loads(data) if len(data) <= LONGEST_FILE else {}
        if found["format"] != FORMAT or found["version"] != 1:
            raise ValueError
        return [_key(entry) for entry in found["keys"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFile(f"{str(path)!r} is no file of keys; `metricdp serve keys make` writes one.") from error


def _key(entry: dict[str, Any]) -> ApiKey:
    key = ApiKey(**{**entry, "scopes": tuple(entry["scopes"])})
    texts = (key.id, key.name, key.digest, key.made, key.expires, key.revoked, key.client)
    good = all(isinstance(text, str) for text in texts) and re.fullmatch("[0-9a-f]{64}", key.digest)
    if not good or not set(key.scopes) <= set(SCOPES):
        raise ValueError
    return key


def _write(path: str | os.PathLike[str], keys: Sequence[ApiKey]) -> None:
    text = json.dumps({"format": FORMAT, "version": 1, "keys": [asdict(key) for key in keys]}, indent=1)
    with replace_file(path) as partial:
        partial.write_text(text + "\n", encoding="utf-8")
    os.chmod(path, 0o600)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _stamp(later: float = 0.0) -> str:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=later)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Keyring:
    """The keys of a file, as it stands now."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._seen: tuple[int, ...] = ()
        self._looked = -RECHECK
        self._keys: dict[str, ApiKey] = {}
        read_keys(path)  # a service that nobody could use does not start

    def find(self, token: str) -> ApiKey | None:
        """Return the key that a token belongs to, where it is valid; tokens are compared in constant time."""
        self._reload()
        shape = _TOKEN.fullmatch(token)
        key = self._keys.get(shape[1], NOBODY) if shape else NOBODY
        same = hmac.compare_digest(_digest(token), key.digest)
        return key if same and key is not NOBODY and key.valid(_stamp()) else None

    def _reload(self) -> None:
        now = time.monotonic()
        if now - self._looked < RECHECK:
            return
        self._looked = now
        try:
            found = os.stat(self._path)
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen != self._seen:
                self._keys = {key.id: key for key in read_keys(self._path)}
                self._seen = seen
        except (OSError, InvalidInput, CorruptFile) as error:
            if self._keys or self._seen:
                logger.error("the file of keys cannot be read (%s): nobody is let in", type(error).__name__)
            self._keys, self._seen = {}, ()
