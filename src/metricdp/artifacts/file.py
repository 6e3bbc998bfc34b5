"""Mechanisms as bytes and as files: written after an audit, verified when read."""

from __future__ import annotations

import math
import os
import stat
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metricdp import constants
from metricdp.artifacts.audit_cache import cached_audit, store_audit
from metricdp.artifacts.codecs import ManifestDecoder, ManifestEncoder, UnknownKind, schema_of, tabulate_metric
from metricdp.artifacts.container import (
    FORMAT,
    HEADER_LIMIT,
    ZEROS,
    Entry,
    NotMechanismFile,
    Tensors,
    check_seal,
    packed_digest,
    seal,
    unpack,
)
from metricdp.artifacts.figures import verify_figures
from metricdp.artifacts.limits import SWITCH, LoadBudget, LoadLimits, TooLarge
from metricdp.artifacts.references import MissingVectors, VectorFiles, Vectors
from metricdp.artifacts.storage import Storage, StorageLayout, layout_of, stored_layout
from metricdp.auditing import AuditReport, ConcentratedReport, audit, audit_concentrated
from metricdp.errors import CorruptFile, InvalidInput, MetricdpError, MissingExtra, NotPrivate
from metricdp.files import existing_file, refuse_ledger, replace_file
from metricdp.mechanisms import MECHANISMS, ConcentratedGuarantee, Mechanism
from metricdp.mechanisms.kinds.product import parts_of
from metricdp.places.bundled import licence_of

VERSION = constants.VERSION
FIELDS = ("format", "version", "kind", "metrics", "spaces", "body", "guarantee", "certificate", "units", "sha256")
FIELDS_OF = {1: {*FIELDS}, 2: {*FIELDS, "licence", "signature"}}
TYPES_OF: dict[int, tuple[type, ...]] = {1: (np.float64, np.int64, np.uint8)}
TYPES_OF[2] = (*TYPES_OF[1], np.float32, np.uint16, np.uint32, np.uint64)
PathLike = str | os.PathLike[str]
AGAIN = "Do not use it. Get a fresh copy from its author, or design the mechanism again."


class NewerVersion(CorruptFile):
    """The file was written by a later metricdp."""


UPDATE = "Update metricdp (pip install --upgrade metricdp)"
ADVICE: dict[type[CorruptFile], str] = {
    NewerVersion: f"{UPDATE}.",
    NotMechanismFile: "Mechanism files are written by mdp.save and `metricdp design`.",
    UnknownKind: f"{UPDATE}, or import the package that declares it, with --plugin or metricdp.plugins.load(...): "
    "worker processes do not know what was only imported.",
    MissingVectors: "Put that file beside it, name it (mdp.load(path, vectors=...)) or set METRICDP_VECTORS to its "
    "folder; or ask for a mechanism file that holds its vectors.",
    TooLarge: f"If you trust who made it, raise `limits` (metricdp.artifacts.Limits) or set {SWITCH}=1.",
}


@dataclass(frozen=True)
class Inspection:
    """A loaded mechanism with what its file says about itself.

    `signed_by` is the public key (64 digits) whose signature was verified, empty without a signature; `trusted` says
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
    vectors: tuple[str, ...] = ()


def dumps(
    mechanism: Mechanism,
    *,
    storage: Storage | None = None,
    licence: str | None = None,
    key: PathLike | None = None,
    vectors: Vectors = None,
) -> bytes:
    """Return the bytes of a mechanism file after another audit of the mechanism; its distribution is stored unchanged.

    `storage` says how its probabilities lie in the file: "dense", "sparse" (without zeros and unused reports) or
    "quantised" (whole multiples of a power of two, where `mdp.quantised` made them so). None takes the smallest. All
    keep every bit of the distribution; weights of a `LocalMechanism` that are of few kinds take two bytes each.
    `licence` says who owns the data in the file and under which terms it may be handed on; None says it where the
    places are streets that come with metricdp (OpenStreetMap, ODbL 1.0). `key` is a private key file from
    `create_keys`: the file is then signed. `vectors` are files that hold the vectors of a vocabulary: the mechanism
    file then names them, with their checksums, instead of holding a second copy.
    """
    vector_files = VectorFiles.of(vectors)
    schema_of(MECHANISMS, mechanism)
    licence = licence_of(mechanism) if licence is None else licence
    mechanism = tabulate_metric(mechanism)
    layout = layout_of(mechanism, storage)
    if not isinstance(licence, str) or len(licence) > constants.LICENCE_LIMIT:
        raise InvalidInput(f"`licence` must be a text of at most {constants.LICENCE_LIMIT} characters.")
    if key is not None:
        from metricdp.artifacts.signing import read_private

        read_private(key)  # before any work
    started = time.perf_counter()
    try:
        report = _refuse_broken(mechanism)
    except NotPrivate as error:
        raise NotPrivate(f"this mechanism does not keep its guarantee and was not saved: {error}.") from error
    seconds = time.perf_counter() - started
    data = _serialise(mechanism, layout, licence, key, vector_files)
    if isinstance(report, AuditReport):
        store_audit(mechanism, unpack(data)[0]["sha256"], report, seconds)
    return data


def save(
    mechanism: Mechanism,
    path: PathLike,
    *,
    storage: Storage | None = None,
    licence: str | None = None,
    key: PathLike | None = None,
    vectors: PathLike | Sequence[PathLike] | None = None,
) -> Path:
    """Write a mechanism to one file, whole or not at all, after one more audit; see `dumps`.

    Saving never changes a distribution. Small files for devices come from rounding first: `save(mdp.quantised(m),
    path)`. A warning says where opening the file will take larger limits than `load` has.
    """
    vector_files = VectorFiles.of(vectors)
    refuse_ledger(path)
    data = dumps(mechanism, storage=storage, licence=licence, key=key, vectors=vector_files)
    with replace_file(path) as partial:
        partial.write_bytes(data)
    manifest, tensors = unpack(data)
    try:
        ManifestDecoder(manifest, tensors, LoadBudget(LoadLimits(), len(data)), vector_files=vector_files).check_size(
            manifest
        )
    except TooLarge as error:
        text = f"{str(path)!r} was written, but the usual limits do not allow to open it: {error}. Open it with "
        text += f"mdp.load(path, limits=metricdp.artifacts.Limits(...)), or set {SWITCH}=1 where it is used."
        warnings.warn(text, stacklevel=2)
    return Path(path)


def loads(
    data: bytes,
    *,
    verify: bool = True,
    trusted: PathLike | Sequence[PathLike] | None = None,
    limits: LoadLimits | None = None,
    vectors: PathLike | Sequence[PathLike] | None = None,
) -> Mechanism:
    """Return the mechanism in the bytes of a file, verified as `load` does.

    With `verify=False` only the bytes are verified: for workers, whose driver audited the guarantee when it packed
    them.
    """
    keys = _digits_of(trusted)
    budget, vector_files = LoadBudget(limits or LoadLimits(), len(data)), VectorFiles.of(vectors)
    return _open_bytes(data, "the mechanism", budget, vector_files, verify=verify, trusted=keys).mechanism


def load(
    path: PathLike,
    *,
    trusted: PathLike | Sequence[PathLike] | None = None,
    limits: LoadLimits | None = None,
    vectors: PathLike | Sequence[PathLike] | None = None,
) -> Mechanism:
    """Read a mechanism from its file and verify it: the bytes by checksum, the guarantee by audit or theorem.

    An audit that took more than a second is remembered by the checksum of the file and not repeated on this machine.

    With `trusted`, one or several public key files, a file is refused unless one of these keys signed it. A file that
    would take more memory or work than one of its size should is refused before it does; `limits` says how much is
    allowed. Vectors that the file names instead of holding them are looked for in `vectors`, one or several files,
    beside the file, and in the folder METRICDP_VECTORS; their checksums must fit.
    """
    return inspect(path, trusted=trusted, limits=limits, vectors=vectors).mechanism


def inspect(
    path: PathLike,
    *,
    verify: bool = True,
    trusted: PathLike | Sequence[PathLike] | None = None,
    limits: LoadLimits | None = None,
    vectors: PathLike | Sequence[PathLike] | None = None,
) -> Inspection:
    """Load a mechanism file, verify it as `load` does, and return it with what the file says about itself.

    With `verify=False` only the bytes are verified: for auditors, who audit the guarantee themselves.
    """
    place = existing_file(path, "mechanism file")
    if not stat.S_ISREG(place.stat().st_mode):
        raise InvalidInput(f"the mechanism file {str(path)!r} is not a plain file.")
    keys, data = _digits_of(trusted), place.read_bytes()
    budget, vector_files = LoadBudget(limits or LoadLimits(), len(data)), VectorFiles.of(vectors, place.parent)
    return _open_bytes(data, str(path), budget, vector_files, verify=verify, trusted=keys)


def _digits_of(trusted: PathLike | Sequence[PathLike] | None) -> tuple[str, ...]:
    if trusted is None:
        return ()
    from metricdp.artifacts.signing import trusted_keys

    return trusted_keys(trusted)


def _open_bytes(
    data: bytes, name: str, budget: LoadBudget, vector_files: VectorFiles, *, verify: bool, trusted: tuple[str, ...]
) -> Inspection:
    """Verify the bytes of a file and rebuild what is in it; `name` is what errors call it."""
    try:
        with _guard_errors():
            manifest, tensors = unpack(data)
            _check_manifest(manifest, tensors)
            signed_by = _verify_seals(data, manifest)
            if trusted and signed_by not in trusted:
                raise CorruptFile(
                    f"it is signed by {signed_by}, which is not a trusted key" if signed_by else "it has no signature"
                )
            mechanism = ManifestDecoder(manifest, tensors, budget, verify=verify, vector_files=vector_files).mechanism(
                manifest
            )
            if manifest["units"] != mechanism.inputs.unit:
                raise CorruptFile("its units are not those of its distances")
            if verify:
                _refuse_broken(mechanism, manifest["sha256"])
            mechanism = verify_figures(mechanism, budget, verify=verify)
    except NotPrivate as error:
        reason = f"the mechanism does not keep the guarantee in the file: {error}"
        raise CorruptFile(f"{name!r} was refused: {reason}. {AGAIN}") from error
    except CorruptFile as error:
        advice = ADVICE.get(type(error), AGAIN)
        raise CorruptFile(f"{name!r} was refused: {str(error).rstrip('.')}. {advice}") from error
    layout = stored_layout(manifest)
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
        vectors=_vector_names(manifest),
    )


def _vector_names(manifest: Entry) -> tuple[str, ...]:
    """Return the names of the files of vectors that a file that was read refers to."""
    points = [space.get("points") for space in manifest["spaces"]]
    return tuple(file["name"] for each in points if isinstance(each, dict) for file in each["files"])


@contextmanager
def _guard_errors() -> Iterator[None]:
    """Let nothing out but our own errors: whatever a forged file makes the code below stumble over is `CorruptFile`."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (CorruptFile, NotPrivate, MissingExtra):
        raise
    except MetricdpError as error:
        raise CorruptFile(f"its contents do not make a mechanism: {error}") from error
    except MemoryError as error:
        raise TooLarge("it asks for more memory than there is") from error
    except Exception as error:
        raise CorruptFile("its contents do not make a mechanism") from error


def _refuse_broken(mechanism: Mechanism, checksum: str = "") -> AuditReport | ConcentratedReport | None:
    """Audit a guarantee, or recall the audit where it is that of a file; None where nothing is guaranteed."""
    if isinstance(mechanism.guarantee, ConcentratedGuarantee):
        found = audit_concentrated(mechanism)
        if not found.holds:
            raise NotPrivate(f"the audit says {found}")
        if mechanism.certificate.epsilon != math.inf:
            raise NotPrivate("its certificate has an epsilon, and its guarantee has none")
        return found
    if mechanism.guarantee.basis == "none":  # it guarantees nothing, and `perturb` refuses it
        _refuse_understated(mechanism)
        return None
    for number, part in enumerate(part for part in parts_of(mechanism) if part is not mechanism):
        try:
            _refuse_broken(part)
        except NotPrivate as error:
            raise NotPrivate(f"part {number}: {error}") from error
    report = cached_audit(mechanism, checksum) if checksum else audit(mechanism)
    stated = mechanism.certificate.epsilon
    if not report.holds:
        raise NotPrivate(f"the audit says {report}")
    if not report.epsilon <= stated * (1.0 + 1e-9) <= mechanism.guarantee.epsilon * (1.0 + 2e-9):
        raise NotPrivate(f"its certificate says epsilon {stated:g}, the audit says {report}")
    return report


def _refuse_understated(mechanism: Mechanism) -> None:
    """Refuse an epsilon in the certificate below what the audit finds, although no guarantee rests on it."""
    stated = mechanism.certificate.epsilon
    if math.isfinite(stated):
        found = audit(mechanism).epsilon
        if found is not None and not found <= stated * (1.0 + 1e-9):
            raise NotPrivate(f"its certificate says epsilon {stated:g}, the audit finds {found:g}")


def _serialise(
    mechanism: Mechanism, layout: StorageLayout, licence: str, key: PathLike | None, vector_files: VectorFiles
) -> bytes:
    encoder = ManifestEncoder(vector_files)
    try:
        entry = encoder.mechanism(mechanism, layout)
    except CorruptFile as error:  # nothing is written that could not be read
        raise InvalidInput(f"a mechanism file cannot hold this mechanism: {error}.") from error
    manifest: Entry = entry | {
        "format": FORMAT,
        "version": VERSION,
        "metrics": encoder.metrics,
        "spaces": encoder.spaces,
        "units": mechanism.inputs.unit,
        "licence": licence,
        "signature": None,
    }
    tensors = encoder.tensors.tensors
    try:
        if key is not None:
            from metricdp.artifacts.signing import signature_over

            blank = manifest | {
                "sha256": ZEROS
            }  # signed is the file with the digits of checksum and signature as zeros
            manifest["signature"] = signature_over(key, lambda one: packed_digest(blank | {"signature": one}, tensors))
        data = seal(manifest, tensors)
    except UnicodeEncodeError as error:
        raise InvalidInput("a text in this mechanism, or its licence, cannot be written as UTF-8.") from error
    if int.from_bytes(data[:8], "little") > HEADER_LIMIT:
        raise InvalidInput("this mechanism is made of too many parts for a file: its header would be too long.")
    return data


def _check_manifest(manifest: Entry, tensors: Tensors) -> None:
    """Refuse a manifest of another version, or one that does not hold what its version asks for."""
    version = manifest.get("version")
    if type(version) is int and version > VERSION:
        raise NewerVersion(f"it has format version {version}, this metricdp reads up to {VERSION}")
    if type(version) is not int or set(manifest) != FIELDS_OF.get(version):
        raise CorruptFile("its manifest does not hold what its version asks for")
    if any(array.dtype not in TYPES_OF[version] for array in tensors.values()):
        raise CorruptFile("it holds numbers of an unknown type")
    for name, longest in (("licence", constants.LICENCE_LIMIT), ("units", constants.LICENCE_LIMIT)):
        value = manifest.get(name, "")
        if type(value) is not str or len(value) > longest:
            raise CorruptFile(f"its {name} is not a text")


def _verify_seals(data: bytes, manifest: Entry) -> str:
    """Verify checksum and signature, and return the digits of the key that signed, or an empty text."""
    zeroed = check_seal(data, manifest)
    if manifest.get("signature") is None:
        return ""
    from metricdp.artifacts.signing import check_signature

    return check_signature(manifest["signature"], zeroed, data)
