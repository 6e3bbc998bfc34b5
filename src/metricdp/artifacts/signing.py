"""Signatures with a key file: who wrote a mechanism file, and that nobody else did.

The signature is Ed25519 over `PURPOSE` followed by the SHA-256 of the file with the digits of its checksum and of its
signature written as zeros. Keys are PEM files: PKCS 8 for the private one (mode 0600), SubjectPublicKeyInfo for the
public one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
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

from metricdp.errors import CorruptFile, InvalidInput, OutputProblem
from metricdp.files import check_target, existing_file

PURPOSE = b"metricdp-mechanism-signature-1\0"
BLANK = "0" * 128
PathLike = str | os.PathLike[str]


def create_keys(path: PathLike) -> tuple[Path, Path]:
    """Make a key pair: `path`.key to sign with, for nobody's eyes but yours, and `path`.pub to hand out."""
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
    return _digits(key)


def trusted_keys(trusted: PathLike | Sequence[PathLike] | None) -> tuple[str, ...]:
    """Return the digits of the trusted keys, of one file or several; empty where nothing was named."""
    if trusted is None:
        return ()
    names = [trusted] if isinstance(trusted, str | os.PathLike) else list(trusted)
    if not names:
        raise InvalidInput("`trusted` names no key: then no file could be trusted.")
    return tuple(read_public(name) for name in names)


def sign(key: Ed25519PrivateKey, digest: bytes) -> str:
    """Return the 128 digits of the signature of a file's digest."""
    return key.sign(PURPOSE + digest).hex()


def public_digits(key: Ed25519PrivateKey) -> str:
    """Return the 64 digits of the public half of a key."""
    return _digits(key.public_key())


def check_entry(entry: object) -> tuple[str, str]:
    """Return the digits of the key and of the signature in a manifest."""
    if not isinstance(entry, dict) or set(entry) != {"algorithm", "public_key", "value"}:
        raise CorruptFile("its signature is not written as one")
    if entry["algorithm"] != "ed25519":
        raise CorruptFile(f"it is signed with the unknown algorithm {entry['algorithm']!r}")
    for name, length in (("public_key", 64), ("value", 128)):
        if not isinstance(entry[name], str) or not re.fullmatch(f"[0-9a-f]{{{length}}}", entry[name]):
            raise CorruptFile("its signature is not written as one")
    return entry["public_key"], entry["value"]


def verify(public: str, signature: str, digest: bytes) -> None:
    """Refuse a signature that the key did not make over this digest."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), PURPOSE + digest)
    except (InvalidSignature, ValueError) as error:
        raise CorruptFile("its signature does not fit its contents: it was altered after it was signed") from error


def _digits(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
