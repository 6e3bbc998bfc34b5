"""JSON Lines: one object a line."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from metricdp.errors import InvalidInput
from metricdp.tables.formats.base import BATCH_ROWS, Format, Location, Storage
from metricdp.tables.formats.packing import blocks, packed_output
from metricdp.tables.formats.plain import jsonable
from metricdp.tables.formats.reading import harmless_reason
from metricdp.tables.options import Reading

BLOCK_BYTES = 8 << 20
MOST_NESTED = 64  # levels; Arrow reads every level inside the one before, and thousands end the process
UNNESTED = bytes(set(range(256)) - set(b'"[]{}'))
COLLECTION = b'"FeatureCollection"'  # of GeoJSON, which is one object


class LinesReader:
    """Objects, one a line; the types of all lines are found in a first pass, and the rows read in a second."""

    def __init__(self, location: Location, reading: Reading) -> None:
        self.name = location.text
        self.storage = Storage("jsonl", packing=location.packing)
        self._location = location
        self._rows, self.schema = typed(self._blocks(), self.name)

    def _blocks(self) -> Iterator[bytes]:
        return blocks(self._location, BLOCK_BYTES)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for block in self._blocks():
            yield from rows_of(block, self.schema)

    def share(self, rows: int) -> float:
        return rows / max(1, self._rows)

    def close(self) -> None:
        """Nothing is open between batches."""


def typed(pieces: Iterable[bytes], name: str) -> tuple[int, pa.Schema]:
    """Return how many objects there are, and the names and types that hold all of them; dates stay text."""
    rows = 0
    schemas: list[pa.Schema] = []
    for block in pieces:
        if not block.strip():
            continue
        table = _read(block, name, rows)
        found = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
        schemas = [pa.unify_schemas([*schemas, found], promote_options="permissive")]
        rows += table.num_rows
    if not schemas:
        raise InvalidInput(f"{name!r} is empty: JSON Lines hold one object a line.")
    if not schemas[0].names:
        raise InvalidInput(f"{name!r} holds objects without a single name.")
    return rows, schemas[0]


def _read(block: bytes, name: str, first_row: int) -> pa.Table:
    """Read a block of lines; what is wrong with one is said with its number, not with what is in it."""
    from pyarrow import json as arrow_json

    if _depth(block) > MOST_NESTED:
        raise InvalidInput(f"{name!r} cannot be read: its values are nested more than {MOST_NESTED} levels deep.")
    try:
        return arrow_json.read_json(io.BytesIO(block), read_options=_options(block))
    except pa.ArrowInvalid as error:
        reason = harmless_reason(error)
        found = re.search(r"(?:Column\(/(.*?)\) .*)?in row (\d+)", str(error))
    where = f" in row {first_row + int(found[2])} (the first is row 0)" if found else ""
    column = f"the values of {found[1]!r} " if found and found[1] else ""
    raise InvalidInput(f"{name!r} cannot be read: {column}{reason}{where}. Is every line one whole object?")


def _depth(block: bytes) -> int:
    """Return how many objects and lists lie in one another at most; brackets in texts are none."""
    unescaped = block.replace(rb"\\", b"").replace(rb"\"", b"")
    letters = np.frombuffer(unescaped.translate(None, UNNESTED), np.uint8)
    quotes = np.add.accumulate(letters == ord('"'), dtype=np.uint8)  # a number that overflows stays odd or even
    outside = quotes & 1 == 0
    folded = letters | 32  # [ becomes {, and ] becomes }
    steps = (outside & (folded == ord("{"))).astype(np.int32) - (outside & (folded == ord("}")))
    return int(np.add.accumulate(steps).max(initial=0))


def rows_of(block: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the objects of a block of lines as record batches."""
    from pyarrow import json as arrow_json

    if not block.strip():
        return
    parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
    table = arrow_json.read_json(io.BytesIO(block), read_options=_options(block), parse_options=parse)
    for batch in table.select(schema.names).combine_chunks().to_batches(BATCH_ROWS):
        if batch.num_rows:
            yield batch


def _options(block: bytes) -> Any:
    from pyarrow import json as arrow_json

    # one block of Arrow's own, so that types are those of all lines and errors count rows from its first
    return arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type with text in the place of dates, which would come back written in another way."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct(
            [kind.field(number).with_type(_plain(kind.field(number).type)) for number in range(kind.num_fields)]
        )
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind


class LinesWriter:
    """Writes one object a line; what is null stays null."""

    def __init__(self, path: Path, schema: pa.Schema, storage: Storage) -> None:
        self._file = packed_output(path, storage.packing)

    def write(self, batch: pa.RecordBatch, /) -> None:
        lines = [json.dumps(jsonable(row), ensure_ascii=False, allow_nan=False) for row in batch.to_pylist()]
        if lines:
            self._file.write(("\n".join(lines) + "\n").encode())

    def close(self) -> None:
        self._file.close()


def is_object(head: bytes) -> bool:
    """Tell whether a file that begins so holds objects."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


FORMAT = Format(
    name="jsonl",
    about="JSON Lines: one object a line",
    suffixes=(".jsonl", ".ndjson", ".json"),
    reader="metricdp.tables.formats.jsonlines:LinesReader",
    writer="metricdp.tables.formats.jsonlines:LinesWriter",
    keeps="names, nesting, dates as text; a name that a line lacks comes back as null",
    looks=lambda head: is_object(head) and COLLECTION not in head,
    packed=True,
)
