"""Checkpoints: arrays come back as they were, and no file of anybody's makes more of them than it holds."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metricdp.checkpoints import CheckpointFile
from metricdp.errors import CorruptFile, InvalidInput

ARRAYS = {
    "count": np.array(3),
    "name": np.array("a" * 64),
    "numbers": np.arange(12.0).reshape(3, 4),
    "none": np.zeros(0),
}


def entry(header: str, data: bytes = b"") -> bytes:
    """An array file with this header."""
    padded = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + data


def archive(entries: dict[str, bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as written:
        for name, data in entries.items():
            written.writestr(name, data)
    return buffer.getvalue()


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    place = tmp_path / "run.npz"
    assert CheckpointFile(place).load() is None
    CheckpointFile(place).save(ARRAYS)
    found = CheckpointFile(place, resume=True).load()
    assert found is not None
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], array)


def test_a_part_has_a_file_of_its_own(tmp_path: Path) -> None:
    whole = CheckpointFile(tmp_path / "run.npz", resume=True)
    whole.part("full").save(ARRAYS)
    assert (tmp_path / "run.npz.full").exists()
    assert whole.load() is None


def test_a_checkpoint_is_never_taken_unasked(tmp_path: Path) -> None:
    place = tmp_path / "run.npz"
    CheckpointFile(place).save(ARRAYS)
    with pytest.raises(InvalidInput, match=r"run\.npz' exists: say resume=True"):
        CheckpointFile(place).load()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not an archive",
        entry("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", b"\0" * 8),  # an array, no archive of them
        archive({"a.npy": entry("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}")}),
        archive({"a.npy": entry("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}")}),
        archive({"a.npy": entry("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"cos\nsystem\n.")}),
        archive({"a.npy": entry("{'descr': '<f8', 'fortran_order': ")}),
        archive({"a.npy": b"\x93NUMPY\x09\x00"}),
        archive({"a.npy": entry("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000,)}", b"\0" * 10**6)},
                compression=zipfile.ZIP_DEFLATED),
    ],
    ids=["empty", "text", "array", "huge", "negative", "objects", "header", "version", "bomb"],
)  # fmt: skip
def test_what_is_no_file_of_ours_is_refused(tmp_path: Path, data: bytes) -> None:
    place = tmp_path / "run.npz"
    place.write_bytes(data)
    with pytest.raises(CorruptFile, match="Remove it to begin anew"):
        CheckpointFile(place, resume=True).load()


def test_no_damaged_byte_ends_in_anything_but_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "run.npz"
    CheckpointFile(place).save(ARRAYS)
    whole = place.read_bytes()
    for position in range(len(whole)):
        place.write_bytes(whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :])
        try:
            found = CheckpointFile(place, resume=True).load()
        except CorruptFile:
            continue
        assert found is not None
        assert sum(array.nbytes for array in found.values()) <= len(whole)
