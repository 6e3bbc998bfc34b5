"""`/v1/release/batch`: JSON, or an Arrow IPC stream."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from metricdp.arrays import Integers
from metricdp.errors import MetricdpError
from metricdp.ledger import BatchReceipt
from metricdp.service.batches import Batch, Draw, Settled, coded, settle
from metricdp.service.bodies import Rows, read_batch
from metricdp.service.models import BatchAnswer, BatchRequest
from metricdp.service.refusals import Refused, too_busy
from metricdp.service.releasing import CHARGED, account_values, amount, body_of, parsed, refused
from metricdp.service.state import State, key_of, state_of
from metricdp.service.streams import MEDIA_TYPE, read_stream, write_stream

router = APIRouter()
BODY = body_of(BatchRequest)
BODY["requestBody"]["content"][MEDIA_TYPE] = {"schema": {"type": "string", "format": "binary"}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    **CHARGED,
    200: {
        "model": BatchAnswer,
        "description": "One report for every row, in the order of the rows. As Arrow: the columns of the report and "
        "`left`, what is left to the row's person in millionths; promise, accuracy and the cost of a row are JSON in "
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
        raise too_busy("enough batches are at work; ask again in a moment. Nothing was charged.")
    state.batches += 1
    try:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await request.body()
        if kind == MEDIA_TYPE:
            options = (mechanism, person, on_refusal, purpose, idempotency_key)
            work, finish = lambda: _from_arrow(state, body, *options), _as_arrow
        elif kind == "application/json":
            rows = await parsed(state, read_batch, body, state.limits.rows)
            work, finish = lambda: _from_json(state, rows), _as_json
        else:
            raise Refused(415, "media_type", f"send application/json or {MEDIA_TYPE}.")
        loop = asyncio.get_running_loop()
        batch = await loop.run_in_executor(state.threads, work)
        done = await loop.run_in_executor(state.threads, lambda: _settled(state, batch, key))
        return await loop.run_in_executor(state.threads, lambda: finish(batch, done))
    finally:
        state.batches -= 1


def _settled(state: State, batch: Batch, key: str) -> Settled:
    counted = state.counters.releases
    try:
        done = settle(batch, lambda batch, draw: _charged(state, batch, key, draw), state.shelf)
    except MetricdpError as error:
        counted.labels(batch.served.name, "refused").inc(len(batch.codes))
        raise refused(error) from None
    released = int(done.granted.sum())
    counted.labels(batch.served.name, "repeated" if done.receipt.repeated else "drawn").inc(released)
    counted.labels(batch.served.name, "refused").inc(len(batch.codes) - released)
    return done


def _charged(state: State, batch: Batch, key: str, draw: Draw) -> BatchReceipt:
    """Charge a batch; it takes its turn with single releases, so that none of them waits for a lock."""
    promise = batch.served.guarantee
    rows: dict[Any, int] = dict(zip(batch.persons, batch.counts.tolist(), strict=True))
    return state.till.alone(
        lambda: state.ledger.release_batch(
            rows, batch.request, key=key, metric=promise.metric, epsilon=promise.epsilon, slack=promise.slack,
            dimension=batch.served.dimension, purpose=batch.purpose, partial=batch.partial, draw=draw,
        )
    )  # fmt: skip


def _from_json(state: State, asked: Rows) -> Batch:
    served = state.shelf.named(asked.mechanism)
    persons, codes = coded(pa.chunked_array([asked.persons], pa.string()))
    secrets = served.arrays([served.row(secret) for secret in asked.secrets])
    return Batch(served, asked.request, asked.purpose, persons, codes, secrets, asked.partial)


def _from_arrow(
    state: State, body: bytes, mechanism: str | None, person: str, on_refusal: str, purpose: str | None, key: str | None
) -> Batch:
    served = state.shelf.named(mechanism)
    if key is None:
        raise Refused(422, "invalid", "`Idempotency-Key` is missing: a header with the request id.")
    table = read_stream(body, state.limits.rows)
    wanted = [person, *served.columns]
    if any(table.schema.names.count(name) != 1 for name in wanted) or not table.num_rows:
        shown = ", ".join(served.columns)
        raise Refused(422, "invalid", f"the stream must have rows with the columns {shown} and that of the persons.")
    persons, codes = coded(table.column(person))
    secrets = [_plain(table.column(name), text) for name, text in zip(served.columns, served.kinds, strict=True)]
    return Batch(served, key, purpose, persons, codes, secrets, on_refusal == "null")


def _plain(column: pa.ChunkedArray, text: bool) -> pa.Array:
    kind = column.type
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    numbers = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    if not (words if text else numbers):
        raise Refused(422, "invalid", f"the columns of the secret must hold {'text' if text else 'numbers'}.")
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _as_arrow(batch: Batch, done: Settled) -> Response:
    served, left = batch.served, _left(batch, done)
    columns = dict(zip(served.reports, done.reports, strict=True))
    columns["left"] = pa.array(left[batch.codes])
    told = {
        "mechanism": served.name,
        "promise": served.promise,
        "accuracy": served.accuracy,
        "cost": amount(done.receipt.charged, done.receipt.slack, done.receipt.unit),
        "accounts": [
            {"account": one.account, "cost": amount(one.charged, done.receipt.slack, one.unit)}
            for one in done.receipt.parts
        ],
        "repeated": done.receipt.repeated,
    }
    table = pa.table(columns).replace_schema_metadata({"metricdp": json.dumps(told)})
    return Response(write_stream(table), media_type=MEDIA_TYPE)


def _as_json(batch: Batch, done: Settled) -> Response:
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


def _left(batch: Batch, done: Settled) -> Integers:
    """Return what is left to every person of a batch; the receipt names them in their order."""
    return np.fromiter(done.receipt.left.values(), dtype=np.int64, count=len(batch.persons))
