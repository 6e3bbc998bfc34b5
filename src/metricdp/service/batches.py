"""`/v1/release/batch`: many rows at once, as JSON or as an Arrow IPC stream, with one charge for every person.

Reports are stored person by person, in the order of their names and then of their rows. So rows that come again in
another order get reports of the right person.

Streams of strangers are read only as large as they arrive. A compressed buffer, or a dictionary whose entries are long,
can be a thousand times larger in memory than on the way. So streams with compressed buffers are refused before they are
read, and dictionaries are taken for persons only, where they are never written out.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from metricdp.arrays import Integers
from metricdp.errors import MetricdpError
from metricdp.ledger import BatchReceipt
from metricdp.ledger.keys import has_one_order, in_order
from metricdp.service.models import BatchAnswer, BatchRequest
from metricdp.service.refusals import Refused, busy_refusal
from metricdp.service.releases import (
    CHARGED,
    account_values,
    amount,
    body_of,
    in_thread,
    ledger_error_refusal,
    parse_body,
)
from metricdp.service.served_mechanisms import (
    ORDERED,
    ORDERED_WORDS,
    TAG_BYTES,
    WORDS,
    ServedMechanism,
)
from metricdp.service.state import ServiceState, key_of, state_of
from metricdp.service.workers import BatchBody, read_batch

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
OLD_COMPRESSION = b"ARROW:experimental_compression"  # how version 0.17 and earlier named it, beside the message
PLAIN = "send an Arrow IPC stream without compression, with plain columns."


def read_stream(body: bytes, rows: int) -> pa.Table:
    """Return the table of a stream with at most `rows` rows."""
    try:
        if any(map(_is_compressed, pa.ipc.MessageReader.open_stream(body))):
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


def _is_compressed(message: pa.ipc.Message) -> bool:
    """Tell by its metadata, a flatbuffer, whether a message has compressed buffers."""
    metadata = memoryview(message.metadata)
    if OLD_COMPRESSION in bytes(metadata):  # still read, so no name of a column may be this one either
        return True
    root = _offset(metadata, 0)
    header = _field(metadata, root, 2)
    if not header or message.type not in ("dictionary", "record batch"):
        return False
    table = _offset(metadata, header)
    if message.type == "dictionary":
        data = _field(metadata, table, 1)
        if not data:
            return False
        table = _offset(metadata, data)
    return bool(_field(metadata, table, 3))


def _offset(data: memoryview, place: int) -> int:
    """Return where the offset at a place leads."""
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: memoryview, table: int, number: int) -> int:
    """Return where a field of a flatbuffer table lies, 0 where there is none."""
    names = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, names)[0]
    entry = 4 + 2 * number
    if names < 0 or entry + 2 > size:
        return 0
    offset = struct.unpack_from("<H", data, names + entry)[0]
    return table + int(offset) if offset else 0


def write_stream(table: pa.Table) -> bytes:
    """Return a table as a stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


LONGEST_NAME = 200  # letters of a person, as for single releases


@dataclass(frozen=True, eq=False)
class ServiceBatch:
    """The rows of a batch: secrets as columns, and who each row is about by number."""

    served: ServedMechanism
    request: str
    purpose: str | None
    persons: list[str]
    codes: Integers
    secrets: list[pa.Array]
    partial: bool  # rows beyond a person's budget are null; otherwise nothing is released

    @cached_property
    def counts(self) -> Integers:
        """How many rows every person has."""
        return np.bincount(self.codes, minlength=len(self.persons))

    @cached_property
    def _order(self) -> tuple[Integers, Integers]:
        """The rows person by person, and how many rows of the same person lie before each."""
        by_name = np.array(in_order(self.persons), dtype=np.int64)
        ranks = np.empty_like(by_name)
        ranks[by_name] = np.arange(len(by_name))
        order = np.argsort(ranks[self.codes], kind="stable")
        counts = self.counts[by_name]
        return order, np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)

    def released_rows(self, granted: Integers) -> Integers:
        """Return the rows that are released, the first of every person, in the order of storing."""
        order, before = self._order
        return np.asarray(order[before < granted[self.codes[order]]])


@dataclass(frozen=True, eq=False)
class BatchReports:
    """The reports of a batch in the order of its rows, and how many rows of every person were released."""

    reports: list[pa.Array]
    granted: Integers
    receipt: BatchReceipt


def encode_persons(column: pa.ChunkedArray) -> tuple[list[str], Integers]:
    """Return the different persons of a column and the number of each row's; the order is that of first occurrence."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise Refused(422, "invalid", "the column of persons must hold text or whole numbers.")
    parts, places, before = [], [], 0
    for chunk in column.chunks:  # each by itself: dictionaries may not fit into one together
        names, codes = _names_of(chunk)
        parts.append(names)
        places.append(codes + before)
        before += len(names)
    codes = np.concatenate(places)
    named = pa.concat_arrays(parts).dictionary_encode()  # a dictionary may hold a name twice
    numbers = named.indices.to_numpy(zero_copy_only=False).astype(np.int64)[codes]
    found, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)  # by first occurrence
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return named.dictionary.take(pa.array(found[order])).to_pylist(), ranks[inverse]


def _names_of(chunk: pa.Array) -> tuple[pa.Array, Integers]:
    """Return names of persons and which of them every row has; a dictionary is never written out.

    One long name may stand for every row of every batch: its length is checked before it is copied.
    """
    if chunk.null_count or (pa.types.is_dictionary(chunk.type) and chunk.dictionary.null_count):
        raise Refused(422, "invalid", "every row needs a person: some have none.")
    names, codes = chunk, np.arange(len(chunk))
    if pa.types.is_dictionary(chunk.type):
        indices = chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        used, codes = np.unique(indices, return_inverse=True)
        names = chunk.dictionary.take(pa.array(used))
    names = names.cast(pa.large_string())
    lengths = pc.min_max(pc.utf8_length(names)).as_py()
    if lengths["min"] == 0 or (lengths["max"] or 0) > LONGEST_NAME:
        raise Refused(422, "invalid", f"a person must be a name of 1 to {LONGEST_NAME} letters.")
    return names, codes


def _settle(state: ServiceState, batch: ServiceBatch, key: str) -> BatchReports:
    """Charge every person once, draw the reports that were granted, and put them into the order of the rows."""
    served, guarantee = batch.served, batch.served.guarantee
    served.check(batch.secrets)

    def draw(granted: Mapping[Any, int]) -> bytes:
        chosen = pa.array(batch.released_rows(_numbers(batch, granted)))
        drawn = served.draw([column.take(chosen) for column in batch.secrets])
        return served.encode_reports(drawn, 0, len(chosen), ordered=True)

    rows: dict[Any, int] = dict(zip(batch.persons, batch.counts.tolist(), strict=True))
    counted = state.counters.releases
    try:
        receipt = state.commits.run_alone(  # in turn with single releases, so that none of them waits for a lock
            lambda: state.ledger.release_batch(
                rows, batch.request, key=key, metric=guarantee.metric, epsilon=guarantee.epsilon,
                slack=guarantee.slack, dimension=served.dimension, purpose=batch.purpose, partial=batch.partial,
                draw=draw,
            )
        )  # fmt: skip
    except MetricdpError as error:
        counted.labels(served.name, "refused").inc(len(batch.codes))
        raise ledger_error_refusal(error) from None
    granted = _numbers(batch, receipt.granted)
    if state.registry.of_report(receipt.report) is not served or np.any(granted > batch.counts):
        raise _mismatch_refusal()
    if receipt.report[TAG_BYTES : TAG_BYTES + 1] not in (ORDERED, ORDERED_WORDS) and not has_one_order(batch.persons):
        raise Refused(
            409, "other_request", "this request was answered by version 0.1.0, which stored reports in the order of "
            "the names as spelled. Names of this batch have another order in another spelling, so nobody can tell "
            "whose report is whose. Use a new request id. Nothing was charged now.",
        )  # fmt: skip
    places = np.full(len(batch.codes), -1)
    released = batch.released_rows(granted)
    places[released] = np.arange(len(released))
    taken = pa.array(places, mask=places < 0)
    reports = [part.take(taken) for part in _columns(served, receipt.report, len(released))]
    counted.labels(served.name, "repeated" if receipt.repeated else "drawn").inc(len(released))
    counted.labels(served.name, "refused").inc(len(batch.codes) - len(released))
    return BatchReports(reports, granted, receipt)


def _numbers(batch: ServiceBatch, granted: Mapping[Any, int]) -> Integers:
    if len(granted) == len(batch.persons):  # in their order
        return np.fromiter(granted.values(), dtype=np.int64, count=len(granted))
    return np.array([granted.get(person, 0) for person in batch.persons], dtype=np.int64)


def _columns(served: ServedMechanism, report: bytes, rows: int) -> list[pa.Array]:
    """Return stored reports as columns; another number of rows than was asked for belongs to another request."""
    if report[TAG_BYTES : TAG_BYTES + 1] in (WORDS, ORDERED_WORDS):
        found: Any = served.decode_reports(report)
        kinds = [pa.string() if text else pa.float64() for text in served.report_kinds]
        parts: Any = zip(*found, strict=True) if found else [()] * len(kinds)
    else:
        found = served.numbers(report[TAG_BYTES + 1 :])
        parts, kinds = np.ascontiguousarray(found.T), [pa.float64()] * found.shape[1]
    if len(found) != rows:
        raise _mismatch_refusal()
    return [pa.array(part, kind) for part, kind in zip(parts, kinds, strict=True)]


def _mismatch_refusal() -> Refused:
    return Refused(
        409, "other_request", "this request id was used for other rows or another mechanism before: use a new one. "
        "Nothing was charged now.",
    )  # fmt: skip


router = APIRouter()
BODY = body_of(BatchRequest)
BODY["requestBody"]["content"][MEDIA_TYPE] = {"schema": {"type": "string", "format": "binary"}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    **CHARGED,
    200: {
        "model": BatchAnswer,
        "description": "One report for every row, in the order of the rows. As Arrow: the columns of the report and "
        "`left`, what is left to the row's person in millionths; guarantee, accuracy and the cost of a row are JSON in "
        "the schema's metadata under `metricdp`.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    },
}
REQUEST = r"^[\x21-\x7e]{1,200}$"


@router.post(
    "/v1/release/batch", operation_id="releaseBatch", summary="Release many secrets", tags=["release"],
    response_model=BatchAnswer, responses=ANSWERS, openapi_extra=BODY,
)  # fmt: skip
async def release_batch(
    request: Request,
    mechanism: Annotated[str | None, Query(max_length=200, description="For Arrow: its name.")] = None,
    person: Annotated[
        str, Query(max_length=200, description="For Arrow: the column that says whose row it is.")
    ] = "person",
    on_refusal: Annotated[Literal["fail", "null"], Query(description="For Arrow, as in JSON.")] = "fail",
    purpose: Annotated[str | None, Query(max_length=64, description="For Arrow, as in JSON.")] = None,
    idempotency_key: Annotated[str | None, Header(pattern=REQUEST, description="For Arrow: the request id.")] = None,
) -> Response:
    """Draw one report for every row; all rows of a person are one charge, committed before the answer leaves."""
    state, key = state_of(request), key_of(request)
    if state.batches >= state.limits.batches:
        raise busy_refusal("enough batches are at work; ask again in a moment. Nothing was charged.")
    state.batches += 1
    try:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await request.body()
        if kind == MEDIA_TYPE:
            options = (mechanism, person, on_refusal, purpose, idempotency_key)
            work, finish = lambda: _from_arrow(state, body, *options), _as_arrow
        elif kind == "application/json":
            rows = await parse_body(state, read_batch, body, state.limits.rows)
            work, finish = lambda: _from_json(state, rows), _as_json
        else:
            raise Refused(415, "media_type", f"send application/json or {MEDIA_TYPE}.")
        batch: ServiceBatch = await in_thread(state, work)
        done: BatchReports = await in_thread(state, lambda: _settle(state, batch, key))
        return cast(Response, await in_thread(state, lambda: finish(batch, done)))
    finally:
        state.batches -= 1


def _from_json(state: ServiceState, asked: BatchBody) -> ServiceBatch:
    served = state.registry.find(asked.mechanism)
    persons, codes = encode_persons(pa.chunked_array([asked.persons], pa.string()))
    secrets = served.arrays([served.row(secret) for secret in asked.secrets])
    return ServiceBatch(served, asked.request, asked.purpose, persons, codes, secrets, asked.partial)


def _from_arrow(
    state: ServiceState,
    body: bytes,
    mechanism: str | None,
    person: str,
    on_refusal: str,
    purpose: str | None,
    key: str | None,
) -> ServiceBatch:
    served = state.registry.find(mechanism)
    if key is None:
        raise Refused(422, "invalid", "`Idempotency-Key` is missing: a header with the request id.")
    table = read_stream(body, state.limits.rows)
    wanted = [person, *served.columns]
    if any(table.schema.names.count(name) != 1 for name in wanted) or not table.num_rows:
        shown = ", ".join(served.columns)
        raise Refused(422, "invalid", f"the stream must have rows with the columns {shown} and that of the persons.")
    persons, codes = encode_persons(table.column(person))
    secrets = [_plain(table.column(name), text) for name, text in zip(served.columns, served.kinds, strict=True)]
    return ServiceBatch(served, key, purpose, persons, codes, secrets, on_refusal == "null")


def _plain(column: pa.ChunkedArray, text: bool) -> pa.Array:
    kind = column.type
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    numbers = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    if not (words if text else numbers):
        raise Refused(422, "invalid", f"the columns of the secret must hold {'text' if text else 'numbers'}.")
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _as_arrow(batch: ServiceBatch, done: BatchReports) -> Response:
    served = batch.served
    columns = dict(zip(served.reports, done.reports, strict=True))
    left = np.fromiter(done.receipt.left.values(), np.int64, len(batch.persons))  # in the order of the persons
    columns["left"] = pa.array(left[batch.codes])
    metadata = {
        "mechanism": served.name,
        **served.guarantee_record,
        "accuracy": served.accuracy,
        "cost": amount(done.receipt.charged, done.receipt.slack, done.receipt.unit),
        "accounts": [
            {"account": one.account, "cost": amount(one.charged, done.receipt.slack, one.unit)}
            for one in done.receipt.parts
        ],
        "repeated": done.receipt.repeated,
    }
    table = pa.table(columns).replace_schema_metadata({"metricdp": json.dumps(metadata)})
    return Response(write_stream(table), media_type=MEDIA_TYPE)


def _as_json(batch: ServiceBatch, done: BatchReports) -> Response:
    served, receipt = batch.served, done.receipt
    rows = zip(*(part.to_pylist() for part in done.reports), strict=True)
    reports = [None if None in row else dict(zip(served.reports, row, strict=True)) for row in rows]
    lefts = [list(one.left.values()) for one in receipt.parts]  # in the order of the persons
    persons = []
    for number, (count, granted) in enumerate(zip(batch.counts.tolist(), done.granted.tolist(), strict=True)):
        slack = granted * receipt.slack
        accounts = [
            account_values(one.account, one.unit, (granted * one.charged, slack), (left[number], 0))
            for one, left in zip(receipt.parts, lefts, strict=True)
        ]
        first = {"cost": accounts[0]["cost"], "left": accounts[0]["left"]}
        persons.append({"rows": count, "released": granted} | first | {"accounts": accounts})
    own = {"reports": reports, "persons": persons, "repeated": receipt.repeated}
    text = json.dumps(own, ensure_ascii=False, separators=(",", ":"))
    return Response(text[:-1].encode() + served.common, media_type="application/json")
