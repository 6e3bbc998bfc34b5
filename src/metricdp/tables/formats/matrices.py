"""Matrices in NumPy and safetensors files, read as tables of one column of vectors. Headers are bounded; no pickle."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import BATCH_ROWS, CountedReader, Format, Location, Storage, batch_rows
from metricdp.tables.options import Reading
from metricdp.tables.values import holds_vectors

NUMPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"
COLUMN = "vector"  # what the column of an .npy file is called
LONGEST_HEADER = 1 << 24  # bytes, of safetensors
HEADER_ROOM = 512  # of what is written before the number of rows is known
TENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I8": "<i1", "I16": "<i2", "I32": "<i4"}

DAMAGED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OSError,
    zipfile.BadZipFile,
    struct.error,
    RecursionError,
    EOFError,
)


@dataclass(frozen=True)
class StoredMatrix:
    """How a matrix lies in a stream: the type of its numbers, and how many rows and columns there are."""

    kind: Any
    rows: int
    width: int
    halves: bool = False  # bfloat16: the upper half of a float of 32 bits

    @property
    def row_bytes(self) -> int:
        return self.width * int(self.kind.itemsize)

    @property
    def item(self) -> pa.DataType:
        """The type of the numbers in the table."""
        if self.kind.kind != "f" and not self.halves:
            return pa.from_numpy_dtype(self.kind.newbyteorder("="))
        return pa.float64() if self.kind.itemsize == 8 else pa.float32()

    def lists(self, held: bytes) -> pa.Array:
        """Return the rows of some bytes."""
        values = np.frombuffer(held, dtype=self.kind)
        if self.halves:
            values = (values.astype(np.uint32) << 16).view(np.float32)
        plain = values.astype(self.item.to_pandas_dtype(), copy=False)
        return pa.FixedSizeListArray.from_arrays(pa.array(plain), self.width)


class MatrixReader(CountedReader):
    """One matrix of a file, in batches; `stream` stands at its first number."""

    storage: Storage

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self._closing = self._opened = ExitStack()
        try:
            self._stream, column, self._stored = self._open_stream(location.path)
        except InvalidInput:
            self._closing.close()
            raise
        except DAMAGED:
            self._closing.close()
            self._refuse("cannot be read: it is damaged, or no matrix of numbers")
        except BaseException:
            self._closing.close()
            raise
        self._rows = self._stored.rows
        self.storage = Storage(location.format.name, table=column)
        self.schema = pa.schema([pa.field(column, pa.list_(self._stored.item, self._stored.width))])

    def _open_stream(self, path: Path) -> tuple[IO[bytes], str, StoredMatrix]:
        raise InvalidInput("this is no format of matrices.")

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidInput(f"{self.name!r} {what}.")

    def _numpy(self, stream: Any) -> StoredMatrix:
        """Read the header of an .npy stream."""
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read:
            self._refuse(f"has version {version[0]}.{version[1]} of the NumPy format, and 1.0 and 2.0 can be read")
        shape, columns_first, kind = read[version](stream)
        if kind.hasobject or kind.kind not in "fiu" or kind.itemsize > 8:
            self._refuse("must hold floats or whole numbers; objects would need pickle, which runs what it reads")
        if len(shape) != 2 or columns_first or not shape[1]:
            self._refuse("must hold a matrix, one row a vector, stored row by row (np.ascontiguousarray)")
        return StoredMatrix(kind, int(shape[0]), int(shape[1]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        left, most = self._stored.rows, batch_rows(self._stored.row_bytes, BATCH_ROWS)
        while left:
            rows = min(left, most)
            try:
                held = self._stream.read(rows * self._stored.row_bytes)
            except (zipfile.BadZipFile, EOFError):
                held = b""
            if len(held) < rows * self._stored.row_bytes:
                self._refuse(f"ends before the {self._stored.rows:,} rows that it says it holds")
            left -= rows
            yield pa.RecordBatch.from_arrays([self._stored.lists(held)], schema=self.schema)


class NumpyReader(MatrixReader):
    """A matrix in an .npy file."""

    def _open_stream(self, path: Path) -> tuple[IO[bytes], str, StoredMatrix]:
        stream = self._closing.enter_context(path.open("rb"))
        return stream, COLUMN, self._numpy(stream)


class ArchiveReader(MatrixReader):
    """The one matrix of an .npz file, compressed or not."""

    def _open_stream(self, path: Path) -> tuple[IO[bytes], str, StoredMatrix]:
        archive = self._closing.enter_context(zipfile.ZipFile(path))
        found: list[tuple[str, StoredMatrix]] = []
        for name in archive.namelist():
            with archive.open(name) as member:
                shape = self._shape(member)
            if shape == 2:
                with archive.open(name) as member:
                    found.append((name, self._numpy(member)))
        if len(found) != 1:
            names = ", ".join(name.removesuffix(".npy") for name, _ in found) or "none"
            self._refuse(f"must hold one matrix, got {names}: save the one to be protected in a file of its own")
        name, stored = found[0]
        stream = self._closing.enter_context(archive.open(name))
        self._numpy(stream)
        return stream, name.removesuffix(".npy"), stored

    def _shape(self, stream: Any) -> int:
        """Return how many sides an array has; words beside the vectors have one."""
        try:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return len(read(stream)[0])
        except ValueError:
            return 0


class TensorsReader(MatrixReader):
    """The one matrix of a safetensors file."""

    def _open_stream(self, path: Path) -> tuple[IO[bytes], str, StoredMatrix]:
        stream = self._closing.enter_context(path.open("rb"))
        (length,) = struct.unpack("<Q", stream.read(8))
        if not 2 <= length <= min(LONGEST_HEADER, path.stat().st_size - 8):
            self._refuse("has no header that can be read: it is damaged")
        header = json.loads(stream.read(length))
        found = [name for name, entry in header.items() if name != "__metadata__" and len(entry["shape"]) == 2]
        if len(found) != 1:
            names = ", ".join(sorted(found)[:6]) or "none"
            self._refuse(f"must hold one matrix, got {names}: save the one to be protected in a file of its own")
        entry = header[found[0]]
        if entry["dtype"] not in TENSORS:
            self._refuse(f"must hold floats or whole numbers of at most 32 bits, got {str(entry['dtype'])[:10]}")
        (rows, width), (start, stop) = (tuple(map(int, entry[key])) for key in ("shape", "data_offsets"))
        stored = StoredMatrix(np.dtype(TENSORS[entry["dtype"]]), rows, width, entry["dtype"] == "BF16")
        if not (start >= 0 and rows >= 0 < width and stop - start == rows * stored.row_bytes):
            self._refuse("has a header that makes no sense: it is damaged")
        stream.seek(8 + length + start)
        return stream, found[0], stored


class MatrixWriter:
    """Writes the vectors of a table as one matrix; the header is written last, when the number of rows is known."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        kind = schema.field(0).type if len(schema) else None
        if len(schema) != 1 or kind is None or not holds_vectors(kind):
            others = ", ".join(repr(name) for name in schema.names[:6])
            raise InvalidInput(
                f"files of the format {storage.format} hold one matrix and nothing else, and the table has {others}: "
                "write Parquet, or drop the other columns."
            )
        self._path, self._schema, self._storage = path, schema, storage
        self._item = np.dtype(kind.value_type.to_pandas_dtype()).newbyteorder("<")
        self._rows, self._width = 0, -1
        self._file: IO[bytes] = path.open("w+b")
        self._file.write(bytes(HEADER_ROOM))

    def write(self, batch: pa.RecordBatch, /) -> None:
        column: Any = batch.column(0)
        if column.null_count:
            raise InvalidInput("a matrix has no place for rows without a vector: leave them out with on_error='drop'.")
        if not len(column):
            return
        width = len(column[0])
        if self._width not in (-1, width):
            raise InvalidInput("the vectors have different lengths, and a matrix has one.")
        flat = column.flatten().to_numpy(zero_copy_only=False)
        self._file.write(np.ascontiguousarray(flat, dtype=self._item).tobytes())
        self._rows, self._width = self._rows + len(column), width

    def close(self) -> None:
        with self._file:
            self._file.seek(0)
            self._file.write(self._header())

    def _header(self) -> bytes:
        shape = (self._rows, max(1, self._width))
        text = repr({"descr": self._item.str, "fortran_order": False, "shape": shape}).encode()
        room = HEADER_ROOM - 10
        return NUMPY + b"\x01\x00" + struct.pack("<H", room) + text.ljust(room - 1) + b"\n"


class ArchiveWriter(MatrixWriter):
    """Writes an .npz file of one matrix, under the name it had."""

    def close(self) -> None:
        super().close()
        name = f"{self._schema.names[0]}.npy"
        with tempfile.TemporaryDirectory(dir=self._path.parent, prefix=".metricdp-") as folder:
            packed = Path(folder) / "packed"
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
                archive.write(self._path, name)
            shutil.copyfile(packed, self._path)


class TensorsWriter(MatrixWriter):
    """Writes a safetensors file of one matrix; a simulation is marked in its metadata."""

    def _header(self) -> bytes:
        name = {"<f8": "F64", "<f4": "F32"}.get(self._item.str)
        if name is None:
            raise InvalidInput("a safetensors file holds floats of 32 or 64 bits.")
        width = max(1, self._width)
        size = self._rows * width * self._item.itemsize
        entry = {"dtype": name, "shape": [self._rows, width], "data_offsets": [0, size]}
        notes = {key.decode(): value.decode() for key, value in (self._schema.metadata or {}).items()}
        header = json.dumps(({"__metadata__": notes} if notes else {}) | {self._schema.names[0]: entry})
        room = HEADER_ROOM - 8
        if len(header.encode()) > room:
            raise InvalidInput("the name of the column is too long for a safetensors file: rename it.")
        return struct.pack("<Q", room) + header.encode().ljust(room)


def is_archive(head: bytes) -> bool:
    """Tell whether a file begins as archives of NumPy do: other things are zipped too."""
    return head[30 : 30 + int.from_bytes(head[26:28], "little")].endswith(b".npy")


def is_safetensors(head: bytes) -> bool:
    """Tell whether a file begins as safetensors do."""
    return bool(2 <= struct.unpack("<Q", head[:8])[0] <= LONGEST_HEADER)


_HERE = "metricdp.tables.formats.matrices"
NPY = Format(
    name="npy", about="a matrix of NumPy, one row a vector", suffixes=(".npy",), reader=f"{_HERE}:NumpyReader",
    writer=f"{_HERE}:MatrixWriter", keeps="the type of floats", begins=(NUMPY,),
)  # fmt: skip
NPZ = Format(
    name="npz", about="an archive of NumPy with one matrix", suffixes=(".npz",), reader=f"{_HERE}:ArchiveReader",
    writer=f"{_HERE}:ArchiveWriter", keeps="the type of floats and the name of the matrix",
    begins=(ZIP,), head_test=is_archive,
)  # fmt: skip
SAFETENSORS = Format(
    name="safetensors", about="tensors with one matrix", suffixes=(".safetensors",), reader=f"{_HERE}:TensorsReader",
    writer=f"{_HERE}:TensorsWriter", keeps="the type of floats and the name of the matrix", begins=(b"{",), skips=8,
    head_test=is_safetensors,
    noted=True,
)  # fmt: skip
