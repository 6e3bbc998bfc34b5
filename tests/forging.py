"""Altering mechanism files as a forger would: any change, and a checksum that fits.

Files are put together by the safetensors library and the standard library alone, so that what is tested is not what
tests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

Manifest = dict[str, Any]
Tensors = dict[str, Any]
Change = Callable[[Manifest, Tensors], object]


def opened(data: bytes) -> tuple[Manifest, Tensors]:
    """Return manifest and tensors of a file, as they are and writeable."""
    size = int.from_bytes(data[:8], "little")
    manifest = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["metricdp"])
    return manifest, {name: np.array(value) for name, value in unpack(data).items()}


def spelled(manifest: Manifest) -> str:
    """Return a manifest as JSON the way files spell it."""
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sealed(text: str, tensors: Tensors) -> bytes:
    """Return a file around any text at all, its checksum put where 64 zeros stand."""
    blank = pack(tensors, metadata={"metricdp": text})
    return blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode())


def forged(data: bytes, change: Change) -> bytes:
    """Return the file after a change to its manifest or its tensors, with a checksum that fits."""
    manifest, tensors = opened(data)
    change(manifest, tensors)
    if "sha256" in manifest:
        manifest["sha256"] = "0" * 64
    return sealed(spelled(manifest), tensors)


def rewritten(path: Path, change: Change) -> None:
    """Alter a file in its place."""
    path.write_bytes(forged(path.read_bytes(), change))
