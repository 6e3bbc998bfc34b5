"""The file around a mechanism: bytes, checksum, manifest."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.artifacts.encoding import Decoder, Encoder, Entry, Tensors, from_plain, plain
from metricdp.artifacts.kinds import KINDS, Kind, Parts, judge, kind_of
from metricdp.errors import CorruptFile, MetricdpError, MissingExtra, NotPrivate
from metricdp.files import existing_file, replacing
from metricdp.mechanisms import Certificate, Guarantee, Mechanism

FORMAT, VERSION, KEY = "metricdp-mechanism", 1, "metricdp"
HEADER_LIMIT = 64 << 20
ZEROS = "0" * 64
AGAIN = "Do not use it; take a fresh copy from whoever made it, or design the mechanism again."


@dataclass(frozen=True)
class Inspection:
    """A loaded mechanism with what its file says about itself."""

    path: str
    kind: str
    version: int
    sha256: str
    bytes: int
    mechanism: Mechanism


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> Path:
    """Write a mechanism to one file, whole or not at all, after judging it once more."""
    kind = kind_of(mechanism)
    try:
        _refuse_broken(mechanism)
    except NotPrivate as error:
        raise NotPrivate(f"this mechanism does not keep its promise and was not saved: {error}.") from error
    data = _serialise(mechanism, kind)
    with replacing(path) as partial:
        partial.write_bytes(data)
    return Path(path)


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism from its file and verify it: the bytes by checksum, the promise by audit or theorem."""
    return inspect(path).mechanism


def inspect(path: str | os.PathLike[str], *, judged: bool = True) -> Inspection:
    """Load a mechanism file, verify it as `load` does, and return it with what the file says about itself.

    With `judged=False` only the bytes are verified: for auditors, who judge the promise themselves.
    """
    place = existing_file(path, "mechanism file")
    try:
        size = place.stat().st_size
        with place.open("rb") as file:
            manifest, tensors = _unpack(file.read(8), file, size)
        mechanism = _rebuild(manifest, tensors)
        if judged:
            _refuse_broken(mechanism)
    except NotPrivate as error:
        reason = f"the mechanism does not keep the promise in the file: {error}"
        raise CorruptFile(f"{str(path)!r} was refused: {reason}. {AGAIN}") from error
    except CorruptFile as error:
        raise CorruptFile(f"{str(path)!r} was refused: {str(error).rstrip('.')}. {_advice(error)}") from error
    return Inspection(str(path), manifest["kind"], manifest["version"], manifest["sha256"], size, mechanism)


def _refuse_broken(mechanism: Mechanism) -> None:
    if mechanism.guarantee.basis == "none":  # it promises nothing, and `perturb` refuses it
        return
    report = judge(mechanism)
    if report.verdict != "holds":
        raise NotPrivate(f"the audit says {report}")


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


def _serialise(mechanism: Mechanism, kind: str) -> bytes:
    encoder = Encoder()
    body = KINDS[kind].encode(mechanism, encoder)
    guarantee = _record(mechanism.guarantee, skip="metric") | {"metric": encoder.metric(mechanism.guarantee.metric)}
    manifest: Entry = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "metrics": encoder.metrics,
        "spaces": encoder.spaces,
        "body": body,
        "guarantee": guarantee,
        "certificate": _record(mechanism.certificate),  # type: ignore[attr-defined]
        "units": mechanism.inputs.unit,
        "sha256": ZEROS,
    }
    digest = hashlib.sha256(_pack(manifest, encoder.tensors)).hexdigest()
    return _pack(manifest | {"sha256": digest}, encoder.tensors)


def _unpack(prefix: bytes, file: Any, size: int) -> tuple[Entry, Tensors]:
    """Return manifest and tensors of a file whose every byte is as it was written."""
    header_size = int.from_bytes(prefix, "little")
    if len(prefix) < 8 or header_size > HEADER_LIMIT or header_size < 2:
        raise _Foreign("it is not a mechanism file, or its first bytes are damaged")
    if 8 + header_size > size:
        raise CorruptFile(f"it is cut off: {size} bytes, its header alone needs {8 + header_size}")
    raw = file.read(header_size)
    header = _json(raw)
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
    data = prefix + raw + file.read()
    digest = manifest.get("sha256")
    if not isinstance(digest, str) or len(digest) != 64 or data.count(digest.encode(), 0, 8 + header_size) != 1:
        raise CorruptFile("its checksum is missing")
    zeroed = data[: 8 + header_size].replace(digest.encode(), ZEROS.encode())
    found = hashlib.sha256(zeroed)
    found.update(memoryview(data)[8 + header_size :])
    if found.hexdigest() != digest:
        raise CorruptFile("its checksum does not fit its contents: it was altered or damaged")
    return manifest, _tensors(data, manifest)


def _tensors(data: bytes, manifest: Entry) -> Tensors:
    from safetensors import SafetensorError
    from safetensors.numpy import load as unpack

    try:
        tensors = unpack(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise CorruptFile(f"its tensors cannot be read: {error}") from error
    if any(array.dtype not in (np.float64, np.int64, np.uint8) for array in tensors.values()):
        raise CorruptFile("it holds numbers of an unknown type")
    # There is one way to write a mechanism, so whatever the checksum says, another spelling is refused.
    if manifest["version"] != VERSION or _pack(manifest, tensors) != data:
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
        decoder = Decoder(manifest, tensors)
        promise = dict(manifest["guarantee"])
        metric = decoder.metric(promise.pop("metric"))
        guarantee = _restore(Guarantee, promise, metric=metric)
        certificate = _restore(Certificate, manifest["certificate"])
        mechanism = kind.decode(manifest["body"], Parts(decoder, guarantee, certificate))
        decoder.refuse_leftovers()
        if guarantee.basis not in ("theorem", "certificate", "none"):
            raise CorruptFile(f"its promise rests on {guarantee.basis!r}")
        return mechanism
    except (CorruptFile, MissingExtra):
        raise
    except (MetricdpError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise CorruptFile(f"its contents do not make a mechanism: {error}") from error


def _record(value: Guarantee | Certificate, skip: str = "") -> Entry:
    return {item.name: plain(getattr(value, item.name)) for item in fields(value) if item.name != skip}


def _restore(kind: Any, entry: Entry, **given: Any) -> Any:
    """Rebuild a record; fields that came later than the file take their defaults."""
    known = {item.name for item in fields(kind)}
    if set(entry) - known:
        raise CorruptFile(f"it says {sorted(set(entry) - known)[0]!r}, which this metricdp does not know")
    values = {name: from_plain(value) for name, value in entry.items()} | given
    missing = [item.name for item in fields(kind) if item.name not in values and item.default is MISSING]
    if missing:
        raise CorruptFile(f"it does not say {missing[0]!r}")
    record = kind(**values)
    for name in ("epsilon", "slack"):
        number = getattr(record, name, 0.0)
        if not isinstance(number, int | float) or not np.isfinite(number) or number < 0:
            raise CorruptFile(f"its {name} is {number!r}")
    return record
