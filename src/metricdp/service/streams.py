"""Arrow IPC streams from strangers: read only as large as they arrive.

A compressed buffer, or a dictionary whose entries are long, can be a thousand times larger in memory than on the way.
So streams with compressed buffers are refused before they are read, and dictionaries are taken for persons only, where
they are never written out.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from metricdp.service.refusals import Refused

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
DICTIONARY, RECORDS = 2, 3  # the kinds of message that carry buffers
OLD_COMPRESSION = b"ARROW:experimental_compression"  # how version 0.17 and earlier named it, beside the message
PLAIN = "send an Arrow IPC stream without compression, with plain columns."


def read_stream(body: bytes, rows: int) -> pa.Table:
    """Return the table of a stream with at most so many rows."""
    try:
        if any(_is_compressed(message) for message in _messages(body)):
            raise Refused(422, "invalid", f"the stream is compressed: {PLAIN}")
        with pa.ipc.open_stream(body) as reader:
            batches, found = [], 0
            for batch in reader:
                found += batch.num_rows
                if found > rows:
                    raise Refused(413, "too_large", f"a batch has at most {rows:,} rows: send it in parts.")
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
            table.validate(full=True)  # offsets and codes may be forged
        return table
    except (pa.ArrowException, ValueError, OSError, struct.error, IndexError, OverflowError, MemoryError):
        raise Refused(422, "invalid", f"the body is no Arrow IPC stream that can be read: {PLAIN}") from None


def _messages(body: bytes) -> list[memoryview]:
    """Return the metadata of every message of a stream: a length, a flatbuffer, then a body of the length it names."""
    view, place, found = memoryview(body), 0, []
    while place + 8 <= len(view):
        mark, length = struct.unpack_from("<iI", view, place)
        start = place + 8
        if mark != -1:  # the form before version 0.15 has no mark
            length, start = mark, place + 4
        if length <= 0:
            break
        metadata = view[start : start + length]
        if len(metadata) < length:
            raise ValueError("cut off")
        found.append(metadata)
        root = _offset(metadata, 0)
        size = _field(metadata, root, 3)
        skip = struct.unpack_from("<q", metadata, size)[0] if size else 0
        if skip < 0:
            raise ValueError("a negative length")
        place = start + length + skip
    return found


def _is_compressed(metadata: memoryview) -> bool:
    if OLD_COMPRESSION in bytes(metadata):  # still read, so no name of a column may be this one either
        return True
    root = _offset(metadata, 0)
    kind, header = _field(metadata, root, 1), _field(metadata, root, 2)
    if not kind or not header or metadata[kind] not in (DICTIONARY, RECORDS):
        return False
    table = _offset(metadata, header)
    if metadata[kind] == DICTIONARY:
        data = _field(metadata, table, 1)
        if not data:
            return False
        table = _offset(metadata, data)
    return bool(_field(metadata, table, 3))


def _offset(data: memoryview, place: int) -> int:
    """Return where the offset at a place leads."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: memoryview, table: int, number: int) -> int:
    """Return where a field of a flatbuffer table lies, 0 where it is left away."""
    names = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, names)[0]
    entry = 4 + 2 * number
    if names < 0 or entry + 2 > size:
        return 0
    away = struct.unpack_from("<H", data, names + entry)[0]
    return table + int(away) if away else 0


def write_stream(table: pa.Table) -> bytes:
    """Return a table as a stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
