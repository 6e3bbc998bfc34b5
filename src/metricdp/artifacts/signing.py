"""Signatures with a key file: they prove who wrote a mechanism file.

The signature is Ed25519 over `PURPOSE` followed by the SHA-256 of the file with the digits of its checksum and of its
signature written as zeros. Keys are PEM files: PKCS 8 for the private one (mode 0600), SubjectPublicKeyInfo for the
public one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from metricdp import constants
from metricdp.artifacts.container import digest_of
from metricdp.errors import CorruptFile, InvalidInput, OutputProblem
from metricdp.files import check_target, existing_file

PURPOSE = constants.SIGNATURE_PURPOSE.encode() + b"\0"
BLANK = "0" * 128
LONGEST_KEY = 1 << 16  # bytes of a key file that are looked at
PRIME = 2**255 - 19
PathLike = str | os.PathLike[str]


def create_keys(path: PathLike) -> tuple[Path, Path]:
    """Make a key pair: `path`.key, the secret key that signs, and `path`.pub, the public key to hand out."""
    base = str(path)
    private, public = Path(f"{base}.key"), Path(f"{base}.pub")
    for place in (private, public):
        check_target(place)
        if place.exists():
            raise OutputProblem(f"{str(place)!r} exists already: keys are never overwritten. Choose another name.")
    key = Ed25519PrivateKey.generate()
    _write(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    _write(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    return private, public


def _write(place: Path, data: bytes, mode: int) -> None:
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)  # the mode from the start, not afterwards
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def read_private(path: PathLike) -> Ed25519PrivateKey:
    """Read a private key that only its owner can read."""
    place = existing_file(path, "key file")
    if b"PUBLIC KEY" in place.read_bytes()[:LONGEST_KEY]:
        raise InvalidInput(
            f"{str(path)!r} is a public key, which cannot sign: name the private one, which usually ends in .key."
        )
    if os.name == "posix" and place.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInput(f"the key file {str(path)!r} can be read by others: chmod 600 it, or make a new pair.")
    try:
        key = load_pem_private_key(place.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InvalidInput(
            f"{str(path)!r} is not a private key in PEM form without a password. Make a pair with `metricdp keys`."
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(f"{str(path)!r} must be an Ed25519 key. Make a pair with `metricdp keys`.")
    return key


def read_public(path: PathLike) -> str:
    """Return the 64 hexadecimal digits of a public key file."""
    place = existing_file(path, "key file")
    data = place.read_bytes()
    if b"PRIVATE" in data:
        raise InvalidInput(f"{str(path)!r} is a private key; name the public one, usually ending in .pub.")
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidInput(f"{str(path)!r} is not a public key in PEM form.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInput(f"{str(path)!r} must be an Ed25519 key. Make a pair with `metricdp keys`.")
    if is_weak(key.public_bytes(Encoding.Raw, PublicFormat.Raw)):
        raise InvalidInput(
            f"{str(path)!r} is a weak key, for which anyone can make signatures. Make a pair with `metricdp keys`."
        )
    return _digits(key)


def trusted_keys(trusted: PathLike | Sequence[PathLike]) -> tuple[str, ...]:
    """Return the digits of the trusted keys, of one file or several."""
    names = [trusted] if isinstance(trusted, str | os.PathLike) else list(trusted)
    if not names:
        raise InvalidInput("`trusted` names no key: then no file could be trusted.")
    return tuple(read_public(name) for name in names)


def signature_over(path: PathLike, digest: Callable[[dict[str, str]], bytes]) -> dict[str, str]:
    """Return the manifest entry of a signature; `digest` gives that of the file with a blank entry in it."""
    key = read_private(path)
    entry = {"algorithm": "ed25519", "public_key": _digits(key.public_key()), "value": BLANK}
    return entry | {"value": key.sign(PURPOSE + digest(entry)).hex()}


def check_signature(entry: object, zeroed: bytes, data: bytes) -> str:
    """Verify a signature over a file, whose header is `zeroed` of its checksum; return the digits of the key."""
    public, value = _parts_of(entry)
    if zeroed.count(value.encode()) != 1:
        raise CorruptFile("its signature is not written as one")
    if is_weak(bytes.fromhex(public)):
        raise CorruptFile("its signature is by a weak key, for which anyone can make signatures")
    digest = digest_of(zeroed.replace(value.encode(), BLANK.encode()), data)
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(value), PURPOSE + digest)
    except (InvalidSignature, ValueError) as error:
        raise CorruptFile("its signature does not fit its contents: it was altered after it was signed") from error
    return public


def _parts_of(entry: object) -> tuple[str, str]:
    """Return the digits of the key and of the signature in a manifest."""
    if not isinstance(entry, dict) or set(entry) != {"algorithm", "public_key", "value"}:
        raise CorruptFile("its signature is not written as one")
    if entry["algorithm"] != "ed25519":
        raise CorruptFile("it is signed with an unknown algorithm")
    for name, length in (("public_key", 64), ("value", 128)):
        if not isinstance(entry[name], str) or not re.fullmatch(f"[0-9a-f]{{{length}}}", entry[name]):
            raise CorruptFile("its signature is not written as one")
    return entry["public_key"], entry["value"]


def is_weak(public: bytes) -> bool:
    """Return whether a public key is a point of small order, for which anyone can make signatures.

    y alone decides, the sign of x does not matter; other spellings of a y (y >= p) are no keys either.
    """
    y = int.from_bytes(public, "little") & ((1 << 255) - 1)
    return y >= PRIME or y.to_bytes(32, "little").hex() in constants.WEAK_KEYS


def _digits(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
