"""Altering mechanism files as a forger would: any change, and a checksum that fits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.artifacts import file as container


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Alter a file as a forger would: with a checksum that fits."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    manifest = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["metricdp"])
    from safetensors.numpy import load as unpack

    tensors = {name: np.array(value) for name, value in unpack(data).items()}
    change(manifest, tensors)
    manifest["sha256"] = "0" * 64
    manifest["sha256"] = hashlib.sha256(container._pack(manifest, tensors)).hexdigest()
    path.write_bytes(container._pack(manifest, tensors))
