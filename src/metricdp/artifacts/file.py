"""The file around a mechanism: bytes, checksum, manifest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metricdp.artifacts.codecs import Decoder, Encoder, Entry, Tensors
from metricdp.artifacts.distances import with_distances
from metricdp.artifacts.kinds import KINDS, Kind, Parts, kind_of
from metricdp.artifacts.records import certificate_entry, promise_entry
from metricdp.artifacts.storage import Layout, Storage, layout_of
from metricdp.auditing import audit
from metricdp.errors import CorruptFile, InvalidInput, MetricdpError, MissingExtra, NotPrivate
from metricdp.files import existing_file, replacing
from metricdp.mechanisms import Mechanism, ProductMechanism

FORMAT, VERSION, KEY = "metricdp-mechanism", 2, "metricdp"
FIELDS = ("format", "version", "kind", "metrics", "spaces", "body", "guarantee", "certificate", "units", "sha256")
FIELDS_OF = {1: {*FIELDS}, 2: {*FIELDS, "licence", "signature"}}
TYPES_OF: dict[int, tuple[type, ...]] = {1: (np.float64, np.int64, np.uint8)}
TYPES_OF[2] = (*TYPES_OF[1], np.uint16, np.uint32, np.uint64)
HEADER_LIMIT = 64 << 20
LICENCE_LIMIT = 10_000
ZEROS = "0" * 64
PathLike = str | os.PathLike[str]
AGAIN = "Do not use it; take a fresh copy from whoever made it, or design the mechanism again."


@dataclass(frozen=True)
class Inspection:
    """A loaded mechanism with what its file says about itself.

    `signed_by` is the public key (64 digits) whose signature was verified, empty where there is none; `trusted` says
    whether that key is one the caller named.
    """

    path: str
    kind: str
    version: int
    sha256: str
    bytes: int
    mechanism: Mechanism
    storage: Storage = "dense"
    bits: int | None = None
    licence: str = ""
    signed_by: str = ""
    trusted: bool = False


def dumps(
    mechanism: Mechanism, *, storage: Storage | None = None, licence: str = "", key: PathLike | None = None
) -> bytes:
    """Return the bytes of a mechanism file, after judging the mechanism once more; the law is stored as it is.

    `storage` says how its probabilities lie in the file: "dense", "sparse" (without zeros and unused reports) or
    "quantised" (whole multiples of a power of two, where `mdp.quantised` made them so). None takes the smallest. All
    keep every bit of the law. `licence` says who owns the data in the file and under which terms it may be handed on.
    `key` is a private key file from `create_keys`: the file is then signed.
    """
    kind = kind_of(mechanism)
    mechanism = with_distances(mechanism)
    layout = layout_of(mechanism, storage)
    if not isinstance(licence, str) or len(licence) > LICENCE_LIMIT:
        raise InvalidInput(f"`licence` must be a text of at most {LICENCE_LIMIT} characters.")
    if key is not None:
        from metricdp.artifacts.signing import read_private

        read_private(key)  # before any work
    try:
        _refuse_broken(mechanism)
    except NotPrivate as error:
        raise NotPrivate(f"this mechanism does not keep its promise and was not saved: {error}.") from error
    return _serialise(mechanism, kind, layout, licence, key)


def save(
    mechanism: Mechanism,
    path: PathLike,
    *,
    storage: Storage | None = None,
    licence: str = "",
    key: PathLike | None = None,
) -> Path:
    """Write a mechanism to one file, whole or not at all, after judging it once more; see `dumps`.

    Saving never changes a law. Small files for devices come from rounding first: `save(mdp.quantised(m), path)`.
    """
    data = dumps(mechanism, storage=storage, licence=licence, key=key)
    with replacing(path) as partial:
        partial.write_bytes(data)
    return Path(path)


def loads(data: bytes, *, judged: bool = True, trusted: PathLike | Sequence[PathLike] | None = None) -> Mechanism:
    """Return the mechanism in the bytes of a file, verified as `load` does.

    With `judged=False` only the bytes are verified: for workers, whose driver judged the promise when it packed them.
    """
    return _opened(data, "the mechanism", judged=judged, trusted=_digits_of(trusted)).mechanism


def load(path: PathLike, *, trusted: PathLike | Sequence[PathLike] | None = None) -> Mechanism:
    """Read a mechanism from its file and verify it: the bytes by checksum, the promise by audit or theorem.

    With `trusted`, one or several public key files, a file is refused unless one of these keys signed it.
    """
    return inspect(path, trusted=trusted).mechanism


def inspect(path: PathLike, *, judged: bool = True, trusted: PathLike | Sequence[PathLike] | None = None) -> Inspection:
    """Load a mechanism file, verify it as `load` does, and return it with what the file says about itself.

    With `judged=False` only the bytes are verified: for auditors, who judge the promise themselves.
    """
    place = existing_file(path, "mechanism file")
    keys = _digits_of(trusted)
    return _opened(place.read_bytes(), str(path), judged=judged, trusted=keys)


def _digits_of(trusted: PathLike | Sequence[PathLike] | None) -> tuple[str, ...]:
    if trusted is None:
        return ()
    from metricdp.artifacts.signing import trusted_keys

    return trusted_keys(trusted)


def _opened(data: bytes, name: str, *, judged: bool, trusted: tuple[str, ...]) -> Inspection:
    """Verify the bytes of a file and rebuild what is in it; `name` is what errors call it."""
    try:
        manifest, tensors = _unpack(data)
        signed_by = manifest["signature"]["public_key"] if manifest.get("signature") else ""
        if trusted and signed_by not in trusted:
            raise CorruptFile(
                f"it is signed by {signed_by}, which is no key you trust" if signed_by else "nobody signed it"
            )
        mechanism = _rebuild(manifest, tensors)
        if judged:
            _refuse_broken(mechanism)
    except NotPrivate as error:
        reason = f"the mechanism does not keep the promise in the file: {error}"
        raise CorruptFile(f"{name!r} was refused: {reason}. {AGAIN}") from error
    except CorruptFile as error:
        raise CorruptFile(f"{name!r} was refused: {str(error).rstrip('.')}. {_advice(error)}") from error
    stored = manifest["body"].get("matrix")
    layout = Layout(stored["storage"], stored.get("bits")) if isinstance(stored, dict) else Layout()
    return Inspection(
        name,
        manifest["kind"],
        manifest["version"],
        manifest["sha256"],
        len(data),
        mechanism,
        storage=layout.storage,
        bits=layout.bits,
        licence=manifest.get("licence", ""),
        signed_by=signed_by,
        trusted=bool(trusted),
    )


def _refuse_broken(mechanism: Mechanism) -> None:
    if mechanism.guarantee.basis == "none":  # it promises nothing, and `perturb` refuses it
        return
    for number, part in enumerate(mechanism.parts if isinstance(mechanism, ProductMechanism) else ()):
        try:
            _refuse_broken(part)
        except NotPrivate as error:
            raise NotPrivate(f"part {number}: {error}") from error
    report, stated = audit(mechanism), mechanism.certificate.epsilon
    if not report.kept:
        raise NotPrivate(f"the audit says {report}")
    if report.epsilon > stated * (1.0 + 1e-9):
        raise NotPrivate(f"its certificate says epsilon {stated:g}, the audit says {report}")


class _Newer(CorruptFile):
    """The file was written by a later metricdp."""


class _Foreign(CorruptFile):
    """The file is something else."""


def _advice(error: CorruptFile) -> str:
    if isinstance(error, _Newer):
        return "Update metricdp (pip install --upgrade metricdp)."
    if isinstance(error, _Foreign):
        return "Mechanism files are written by mdp.save and `metricdp design`."
    return AGAIN


def _canonical(manifest: Entry) -> str:
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _pack(manifest: Entry, tensors: Tensors) -> bytes:
    from safetensors.numpy import save as pack

    return bytes(pack(tensors, metadata={KEY: _canonical(manifest)}))


def _serialise(mechanism: Mechanism, kind: str, layout: Layout, licence: str, key: PathLike | None) -> bytes:
    encoder = Encoder()
    body = KINDS[kind].encode(mechanism, encoder, layout)
    guarantee = promise_entry(mechanism.guarantee, encoder)
    manifest: Entry = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "metrics": encoder.metrics,
        "spaces": encoder.spaces,
        "body": body,
        "guarantee": guarantee,
        "certificate": certificate_entry(mechanism.certificate),
        "units": mechanism.inputs.unit,
        "licence": licence,
        "signature": None,
        "sha256": ZEROS,
    }
    if key is not None:
        from metricdp.artifacts.signing import BLANK, public_digits, read_private, sign

        private = read_private(key)
        entry = {"algorithm": "ed25519", "public_key": public_digits(private), "value": BLANK}
        blank = _pack(manifest | {"signature": entry}, encoder.tensors)
        manifest["signature"] = entry | {"value": sign(private, hashlib.sha256(blank).digest())}
    digest = hashlib.sha256(_pack(manifest, encoder.tensors)).hexdigest()
    return _pack(manifest | {"sha256": digest}, encoder.tensors)


def _unpack(data: bytes) -> tuple[Entry, Tensors]:
    """Return manifest and tensors of a file whose every byte is as it was written."""
    size = len(data)
    header_size = int.from_bytes(data[:8], "little")
    if size < 8 or header_size > HEADER_LIMIT or header_size < 2:
        raise _Foreign("it is not a mechanism file, or its first bytes are damaged")
    if 8 + header_size > size:
        raise CorruptFile(f"it is cut off: {size} bytes, its header alone needs {8 + header_size}")
    head = data[: 8 + header_size]
    header = _json(head[8:])
    try:
        text = header["__metadata__"][KEY]
        ends = [0, *(int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__")]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _Foreign("it is a safetensors file, but not one of metricdp") from error
    wanted = 8 + header_size + max(ends)
    if wanted != size:
        raise CorruptFile(f"it is {'cut off' if wanted > size else 'too long'}: {size} bytes, expected {wanted}")
    manifest = _json(text)
    if manifest.get("format") != FORMAT:
        raise _Foreign("it is a safetensors file, but not one of metricdp")
    version = manifest.get("version")
    if isinstance(version, int) and version > VERSION:
        raise _Newer(f"it has format version {version}, this metricdp reads up to {VERSION}")
    if set(manifest) != FIELDS_OF.get(version if isinstance(version, int) else 0):
        raise CorruptFile("its manifest does not hold what its version asks for")
    rest = memoryview(data)[8 + header_size :]
    digest = manifest["sha256"]
    if not isinstance(digest, str) or len(digest) != 64 or head.count(digest.encode()) != 1:
        raise CorruptFile("its checksum is missing")
    zeroed = head.replace(digest.encode(), ZEROS.encode())
    if _digest(zeroed, rest).hex() != digest:
        raise CorruptFile("its checksum does not fit its contents: it was altered or damaged")
    if manifest.get("signature") is not None:
        _check_signature(manifest["signature"], zeroed, rest)
    return manifest, _tensors(data, manifest)


def _digest(head: bytes, rest: memoryview) -> bytes:
    found = hashlib.sha256(head)
    found.update(rest)
    return found.digest()


def _check_signature(entry: object, zeroed: bytes, rest: memoryview) -> None:
    """Verify the signature over the file with the digits of checksum and signature written as zeros."""
    from metricdp.artifacts.signing import BLANK, check_entry, verify

    public, value = check_entry(entry)
    if zeroed.count(value.encode()) != 1:
        raise CorruptFile("its signature is not written as one")
    verify(public, value, _digest(zeroed.replace(value.encode(), BLANK.encode()), rest))


def _tensors(data: bytes, manifest: Entry) -> Tensors:
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpack

    try:
        tensors = unpack(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise CorruptFile(f"its tensors cannot be read: {error}") from error
    if any(array.dtype not in TYPES_OF[manifest["version"]] for array in tensors.values()):
        raise CorruptFile("it holds numbers of an unknown type")
    # There is one way to write a mechanism, so whatever the checksum says, another spelling is refused.
    if _pack(manifest, tensors) != data:
        raise CorruptFile("it is not written the way metricdp writes: it was altered")
    return tensors


def _json(text: bytes | str) -> Entry:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise _Foreign("it is not a mechanism file, or its header is damaged") from error
    if not isinstance(value, dict):
        raise _Foreign("it is not a mechanism file, or its header is damaged")
    return value


def _rebuild(manifest: Entry, tensors: Tensors) -> Mechanism:
    try:
        name = manifest["kind"]
        if name not in KINDS:
            raise _Newer(f"it holds a mechanism of the kind {name!r}, which this metricdp does not know")
        kind: Kind = KINDS[name]
        if manifest["version"] == 1 and (
            name in ("streets", "product") or isinstance(manifest["body"].get("matrix"), dict)
        ):
            raise CorruptFile("it holds what its version does not know")
        if not isinstance(manifest.get("licence", ""), str):
            raise CorruptFile("its licence is not a text")
        decoder = Decoder(manifest, tensors)
        parts = Parts.of(manifest["guarantee"], manifest["certificate"], decoder)
        mechanism: Mechanism = kind.decode(manifest["body"], parts)
        decoder.refuse_leftovers()
        return mechanism
    except (CorruptFile, MissingExtra):
        raise
    except (MetricdpError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise CorruptFile(f"its contents do not make a mechanism: {error}") from error
