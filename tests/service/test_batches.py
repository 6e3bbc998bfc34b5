"""Batches over HTTP: one charge a person, exactly once, in JSON and as Arrow; nothing grows on the way in."""

from __future__ import annotations

import contextlib
import json
import struct
import uuid

import numpy as np
import pyarrow as pa
import pytest

import serving
from metricdp.service import Refused, ServedMechanism, encode_persons, read_stream, workers

KIND = "application/vnd.apache.arrow.stream"


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def send(running, table, request=None, body=None, **query):
    headers = {"content-type": KIND, "idempotency-key": request or uuid.uuid4().hex}
    with running.client() as client:
        content = body if body is not None else stream(table)
        return client.post("/v1/release/batch", content=content, headers=headers, params={"mechanism": "earth"} | query)


def places(persons, seed=0):
    found = serving.uniform(len(persons), seed)
    return pa.table({"person": persons, "lat": [p["lat"] for p in found], "lon": [p["lon"] for p in found]})


def table_of(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == KIND
    return pa.ipc.open_stream(answer.content).read_all()


def left_of(running, person):
    return running.post("/v1/budget", {"person": person, "mechanism": "earth"}).json()["left"]["micro_epsilon"]


def people(count):
    return [uuid.uuid4().hex for _ in range(count)]


def test_every_row_gets_a_report_near_its_own_place_and_every_person_one_charge(running):
    anna, ben = people(2)
    table = places([anna, ben, anna, anna, ben])
    found = table_of(send(running, table))
    assert found.column_names == ["lat", "lon", "left"]
    away = np.hypot(
        found["lat"].to_numpy() - table["lat"].to_numpy(), found["lon"].to_numpy() - table["lon"].to_numpy()
    )
    assert np.all(away < 0.05)  # places lie further apart: no row got the report of another
    assert np.all(away > 0)
    assert found["left"].to_pylist() == [10_000_000, 20_000_000, 10_000_000, 10_000_000, 20_000_000]
    assert [left_of(running, person) for person in (anna, ben)] == [10_000_000, 20_000_000]
    told = json.loads(found.schema.metadata[b"metricdp"])
    assert told["promise"]["epsilon"] == 10.0
    assert told["cost"]["micro_epsilon"] == 10_000_000
    assert told["accuracy"][0]["level"] == 0.95


def test_a_batch_that_comes_again_gets_the_same_reports_even_in_another_order(running):
    anna, ben = people(2)
    table, request = places([anna, ben, anna, ben]), uuid.uuid4().hex
    first = table_of(send(running, table, request))
    again = table_of(send(running, table, request))
    assert again.select(["lat", "lon", "left"]).equals(first.select(["lat", "lon", "left"]))
    assert json.loads(again.schema.metadata[b"metricdp"])["repeated"]
    turned = table_of(send(running, table.take([1, 0, 3, 2]), request))  # each person's rows in their order
    assert turned.select(["lat", "lon"]).equals(first.select(["lat", "lon"]).take([1, 0, 3, 2]))
    assert left_of(running, anna) == 20_000_000
    other = send(running, places([anna, *people(1)]), request)
    assert other.status_code == 409
    assert other.json()["error"] == "other_request"


def test_a_batch_that_comes_again_in_another_spelling_gives_everybody_their_own_reports(running, monkeypatch):
    """Between `e` and `é` lies `f`, so that the two change places with the spelling."""
    mark, request = uuid.uuid4().hex, uuid.uuid4().hex
    spelled = [[f"é{mark}", f"f{mark}"], [f"e\u0301{mark}", f"f{mark}"]]
    first, again = (table_of(send(running, places(who), request)) for who in spelled)
    assert again.select(["lat", "lon"]).equals(first.select(["lat", "lon"]))
    assert json.loads(again.schema.metadata[b"metricdp"])["repeated"]


def test_a_batch_of_an_older_version_is_given_out_where_its_order_is_certain(running, monkeypatch):
    plain = ServedMechanism.encode_reports
    with monkeypatch.context() as patched:
        patched.setattr(
            ServedMechanism,
            "encode_reports",
            lambda served, reports, first, last, ordered: plain(served, reports, first, last),
        )
        mark, requests = uuid.uuid4().hex, [uuid.uuid4().hex for _ in range(2)]
        tables = [places([f"{first}{mark}", f"f{mark}"]) for first in ("a", "é")]
        before = [send(running, table, request) for table, request in zip(tables, requests, strict=True)]
    certain, unsure = (send(running, table, request) for table, request in zip(tables, requests, strict=True))
    assert table_of(certain).select(["lat"]).equals(table_of(before[0]).select(["lat"]))
    assert (unsure.status_code, unsure.json()["error"]) == (409, "other_request")


def test_one_who_cannot_pay_stops_the_batch_or_gets_what_fits(running):
    anna, ben = people(2)
    table = places([anna] * 6 + [ben])
    refused = send(running, table)
    assert refused.status_code == 409
    assert refused.json()["error"] == "budget"
    assert left_of(running, ben) == 40_000_000
    request = uuid.uuid4().hex
    found = table_of(send(running, table, request, on_refusal="null"))
    assert found["lat"].is_valid().to_pylist() == [True] * 4 + [False, False, True]
    assert found["left"].to_pylist() == [0] * 6 + [30_000_000]
    again = table_of(send(running, table, request, on_refusal="null"))
    assert again["lat"].equals(found["lat"])


def test_json_says_the_same(running):
    anna, ben = people(2)
    rows = [{"person": who, "secret": place} for who, place in zip([anna, ben, anna], serving.uniform(3), strict=True)]
    body = {"request": uuid.uuid4().hex, "mechanism": "earth", "rows": rows}
    found = running.post("/v1/release/batch", body).json()
    assert [set(report) for report in found["reports"]] == [{"lat", "lon"}] * 3
    assert [person["rows"] for person in found["persons"]] == [2, 1]
    assert [person["cost"]["micro_epsilon"] for person in found["persons"]] == [20_000_000, 10_000_000]
    assert [person["left"]["micro_epsilon"] for person in found["persons"]] == [20_000_000, 30_000_000]
    again = running.post("/v1/release/batch", body).json()
    assert again["reports"] == found["reports"]
    assert again["repeated"]


def test_words_travel_in_both(running):
    rows = [{"person": who, "secret": word} for who, word in zip(people(3), serving.WORDS, strict=True)]
    body = {"request": uuid.uuid4().hex, "mechanism": "words", "rows": rows}
    assert {report["word"] for report in running.post("/v1/release/batch", body).json()["reports"]} <= set(
        serving.WORDS
    )
    table = pa.table({"who": people(3), "word": serving.WORDS})
    assert set(table_of(send(running, table, mechanism="words", person="who"))["word"].to_pylist()) <= set(
        serving.WORDS
    )


def test_persons_may_be_numbers_or_a_dictionary(running):
    table = places(people(4))
    numbers = table.set_column(0, "person", pa.array([7, 8, 7, 8]))
    named = table.set_column(0, "person", pa.array(people(1) * 2 + people(1) * 2).dictionary_encode())
    assert table_of(send(running, numbers)).num_rows == 4
    assert len(set(table_of(send(running, named))["left"].to_pylist())) == 1


def bad_streams():
    table = places(people(2))
    yield "nothing", b""
    yield "noise", b"\xff\xff\xff\xff\x10\x00\x00\x00" + bytes(range(64))
    yield "cut off", stream(table)[:-40]
    for codec in ("zstd", "lz4"):
        yield f"compressed {codec}", stream(table, compression=codec)
    # 200 kB on the way, 100 GB in memory: a dictionary of one long word
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 2), pa.array(["x" * 100_000]))
    yield "a long word many times", stream(pa.table({"person": people(2), "lat": long, "lon": [1.0, 2.0]}))
    yield "no rows", stream(table.slice(0, 0))
    yield "no person", stream(table.drop_columns(["person"]))
    yield "persons missing", stream(table.set_column(0, "person", pa.array(["a", None])))
    yield "persons empty", stream(table.set_column(0, "person", pa.array(["a", ""])))
    yield "persons are lists", stream(table.set_column(0, "person", pa.array([["a"], ["b"]])))
    yield "two columns of a name", stream(pa.table([table["person"], *[table["lat"]] * 2, table["lon"]],
                                                   names=["person", "lat", "lat", "lon"]))  # fmt: skip
    yield "a place missing", stream(table.set_column(1, "lat", pa.array([41.0, None])))
    yield "beyond the pole", stream(table.set_column(1, "lat", pa.array([41.0, 97.31])))
    yield "text", stream(table.set_column(1, "lat", pa.array(["41.0", "97.31"])))
    yield (
        "a hundred million rows of nothing",
        stream(pa.table({"person": pa.nulls(10**8), "lat": pa.nulls(10**8), "lon": pa.nulls(10**8)})),
    )


@pytest.mark.parametrize(
    ("name", "body"), list(bad_streams()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_streams_that_are_no_batch_are_refused_in_a_sentence(running, name, body):
    answer = send(running, None, body=body)
    assert answer.status_code in (413, 422), (name, answer.text)
    assert answer.json()["message"].endswith(".")
    assert "97.31" not in answer.text


@pytest.mark.parametrize("codec", ["zstd", "LZ4"])
def test_buffers_compressed_as_early_versions_did_are_refused_before_they_are_read(codec):
    rows = 1_000_000
    packed = pa.compress(bytes(8 * rows), codec=codec.lower(), asbytes=True)
    packed = struct.pack("<q", 8 * rows) + packed + bytes(-len(packed) % 8)
    fewer = len(packed) // 8  # as many as the buffer holds as it travels
    column = pa.Array.from_buffers(pa.float64(), fewer, [None, pa.py_buffer(packed)])
    batch, sink = pa.record_batch({"lat": column}), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch, custom_metadata={"ARROW:experimental_compression": codec})
    head, found, rest = sink.getvalue().to_pybytes().partition(packed)
    body = head.replace(struct.pack("<q", fewer), struct.pack("<q", rows)) + found + rest
    with pytest.raises(Refused) as raised:
        read_stream(body, 10 * rows)
    assert "compressed" in raised.value.sentence


def test_a_long_name_in_a_dictionary_is_refused_before_it_is_written_out(running):
    rows = 400
    name = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int16()), pa.array(["x" * 1_000_000]))
    table = pa.table({"person": name, "lat": [41.0] * rows, "lon": [12.0] * rows})
    assert send(running, table).status_code == 422
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(Refused):
            encode_persons(pa.chunked_array([name]))
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 20_000_000  # 400 MB where every row has a copy of the name


def test_dictionaries_of_batches_that_fit_into_no_common_one_are_read(running):
    batches = [
        pa.record_batch({"person": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([f"p{i % 150}"])),
                         "lat": pa.array([41.0]), "lon": pa.array([12.0])})
        for i in range(200)
    ]  # fmt: skip
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    answer = send(running, None, body=sink.getvalue().to_pybytes())
    assert answer.status_code == 200, answer.text
    names, codes = encode_persons(pa.chunked_array([batch["person"] for batch in batches]))
    assert names == [f"p{i}" for i in range(150)]
    assert codes.tolist() == [i % 150 for i in range(200)]
    long = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["x" * 1_000_000]))
    with pytest.raises(Refused):
        encode_persons(pa.chunked_array([long] * 1000))


def test_persons_of_a_dictionary_are_named_once_in_the_order_of_their_rows():
    dictionary = pa.array(["never", "b", "a", "b"])
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([2, 3, 1, 2, 3]), dictionary)])
    persons, codes = encode_persons(column)
    assert persons == ["a", "b"]
    assert codes.tolist() == [0, 1, 1, 0, 1]


def test_large_bodies_are_parsed_by_another_process(running, monkeypatch):
    monkeypatch.setattr(workers, "validate", lambda *unused: pytest.fail("parsed where releases are answered"))
    rows = [{"person": f"{'p' * 90}{number}", "secret": {"lat": 41.0, "lon": 12.0}} for number in range(2500)]
    body = {"request": uuid.uuid4().hex, "mechanism": "earth", "rows": rows}
    assert len(json.dumps(body)) > workers.SMALL
    with running.client() as client:
        found = client.post("/v1/release/batch", json=body)
        assert found.status_code == 200
        assert len(found.json()["reports"]) == 2500
        wrong = client.post("/v1/release/batch", json=body | {"rows": [*rows, {"person": "x"}]})
        assert wrong.status_code == 422
        assert "`rows[2500].secret` is missing" in wrong.json()["message"]


def test_forged_bytes_in_a_stream_are_refused_or_read_and_never_crash():
    good = stream(places(people(3)))
    rng, read = np.random.default_rng(0), 0
    for _ in range(300):
        body = bytearray(good)
        for place in rng.integers(0, len(good), 3):
            body[place] = rng.integers(0, 256)
        with contextlib.suppress(Refused):  # anything else is an error
            assert read_stream(bytes(body), 1000).num_rows <= 1000
            read += 1
    assert 0 < read < 300


def test_a_batch_needs_a_request_id_and_a_media_type_that_is_known(running):
    with running.client() as client:
        body, query = stream(places(people(1))), {"mechanism": "earth"}
        missing = client.post("/v1/release/batch", content=body, headers={"content-type": KIND}, params=query)
        assert missing.status_code == 422
        assert "Idempotency-Key" in missing.json()["message"]
        assert client.post("/v1/release/batch", content=b"x", headers={"content-type": "text/csv"}).status_code == 415
