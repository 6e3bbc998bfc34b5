"""Both clients against the service that runs: the one for Python, and the one written from the OpenAPI file."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import browsers
import metricdp as mdp
from metricdp.service import Client, ServiceError

PROJECT = Path(__file__).parents[2]
FOLDER = PROJECT / "js" / "service"
POINTS = [[0.0], [1.0], [2.0]]


@pytest.fixture
def client(running):
    with Client(running.url, running.tokens["all"]) as found:
        yield found


def test_releases_budgets_and_mechanisms_come_as_records(client):
    person = uuid.uuid4().hex
    answer = client.release(person, {"lat": 41.9, "lon": 12.48}, mechanism="earth", request="one")
    assert answer.promise.epsilon == 10.0
    assert answer.accuracy[0].columns == ("lat", "lon")
    assert answer.left.words == "30/km"
    assert client.release(person, [0.0, 0.0], mechanism="earth", request="one").report == answer.report
    budget = client.budget(person, mechanism="earth")
    assert budget.releases == 3
    assert budget.limits[0].micro_left
    assert {one["name"] for one in client.mechanisms()} == {"earth", "cells", "words", "both"}


def test_batches_come_as_rows_or_as_a_table(client):
    people = [uuid.uuid4().hex for _ in range(2)]
    found = client.release_batch(
        [(people[0], [41.0, 12.0])] * 5 + [(people[1], [41.0, 12.0])], mechanism="earth", partial=True
    )
    assert [report is None for report in found.reports] == [False] * 4 + [True, False]
    assert [person.released for person in found.persons] == [4, 1]
    table = pa.table({"who": [people[1]] * 2, "lat": [41.0, 41.5], "lon": [12.0, 12.5]})
    reports = client.release_table(table, person="who", mechanism="earth")
    assert reports["left"].to_pylist() == [10_000_000] * 2


def test_refusals_are_errors_with_a_sentence_and_a_word(client, running):
    person = uuid.uuid4().hex
    with pytest.raises(ServiceError, match="40/km per day") as refused:
        client.release_batch([(person, [41.0, 12.0])] * 5, mechanism="earth")
    assert (refused.value.status, refused.value.error) == (409, "budget")
    assert refused.value.micro_left == 40_000_000
    with Client(running.url, "mdp_nothing") as stranger:
        with pytest.raises(ServiceError) as refused:
            stranger.mechanisms()
        assert refused.value.status == 401
        assert "mdp_nothing" not in repr(stranger)


def test_what_got_no_answer_is_sent_again_with_the_same_id():
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content)["request"])
        if len(seen) == 1:
            raise httpx.ConnectError("gone")
        if len(seen) == 2:
            return httpx.Response(429, headers={"retry-after": "0"}, json={"error": "busy", "message": "wait."})
        return httpx.Response(409, json={"error": "budget", "message": "spent."})

    client = Client("http://service", "token", transport=httpx.MockTransport(answer))
    with client, pytest.raises(ServiceError, match="spent"):
        client.release("anna", 1.0)
    assert len(set(seen)) == 1
    assert len(seen) == 3


@pytest.mark.parametrize(
    "header", ["Wed, 21 Oct 2015 07:28:00 GMT", "soon", "", "-3", "1e400", "Wed, 99 Oct 99999 07:28:00 GMT"]
)
def test_a_date_or_nonsense_in_retry_after_is_no_error(header, monkeypatch):
    waited = []
    monkeypatch.setattr(time, "sleep", waited.append)
    answers = [httpx.Response(503, headers={"retry-after": header}), httpx.Response(200, json=[])]
    client = Client("http://service", "token", transport=httpx.MockTransport(lambda request: answers.pop(0)))
    with client:
        assert client.mechanisms() == []
    assert len(waited) == 1
    assert 0.0 <= waited[0] <= 5.0


@pytest.mark.parametrize("status", [200, 502])
@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b"5", b"null", b"[" * 100_000, b"\xff", b'{"accuracy": [5]}',
                                  b'{"accuracy": 5}', b"event: done\nid: 1\ndata: {\n\n"])  # fmt: skip
def test_an_answer_of_something_else_is_an_error_of_ours(status, coding, body):
    headers = {"content-type": "application/json", "content-encoding": coding}
    transport = httpx.MockTransport(lambda request: httpx.Response(status, content=body, headers=headers))
    table = pa.table({"person": ["anna"], "lat": [41.0], "lon": [12.0]})
    with Client("http://service", "token", tries=1, transport=transport) as client:
        for ask in (
            lambda: client.release("anna", [41.0, 12.0]),
            lambda: client.release_batch([("anna", [41.0, 12.0])]),
            lambda: client.release_table(table),
            lambda: list(client.events("job")),
        ):
            with pytest.raises(ServiceError, match=r"\.( |$)"):
                ask()


def test_a_design_is_watched_and_fetched(client, tmp_path):
    job = client.design(POINTS, 1.0, builder="exponential")
    kinds = [kind for kind, _ in client.events(job.job)]
    assert kinds[-1] == "done"
    assert client.job(job.job).certificate["pairs"] > 0
    assert mdp.audit(mdp.load(client.result(job.job, tmp_path / "made.mdp"))).verdict == "holds"
    client.cancel(job.job)
    audit = client.audit(kind="matrix", matrix=[[0.5, 0.5]] * 2, points=[[0.0], [1.0]], epsilon=0.1)
    assert audit["verdict"] == "holds"


SCRIPT = """
import { ServiceClient, ServiceError, requestId } from "CLIENT";
const [url, token] = process.argv.slice(2);
const client = new ServiceClient(url, token);
const person = requestId(), request = requestId();
const first = await client.release({ person, request, mechanism: "earth", secret: { lat: 41.9, lon: 12.48 } });
const again = await client.release({ person, request, mechanism: "earth", secret: { lat: 0, lon: 0 } });
const budget = await client.budget({ person, mechanism: "earth" });
const rows = [{ person, secret: [41, 12] }, { person, secret: [42, 13] }];
const batch = await client.releaseBatch({ request: requestId(), mechanism: "earth", rows });
let refused;
try {
  await client.releaseBatch({ request: requestId(), mechanism: "earth", rows });
} catch (error) {
  refused = [error instanceof ServiceError, error.status, error.error, error.details.micro_left];
}
const job = await client.design({ points: [[0], [1], [2]], epsilon: 1, builder: "exponential" });
const events = [];
for await (const event of client.designEvents(job.job)) events.push(event.event);
const file = await client.designResult(job.job);
const state = await client.designCancel(job.job);
const matrix = [[0.5, 0.5], [0.5, 0.5]];
const audit = await client.audit({ kind: "matrix", matrix, points: [[0], [1]], epsilon: 0.1 });
const metrics = await client.metrics();
console.log(JSON.stringify({
  same: JSON.stringify(first.report) === JSON.stringify(again.report), repeated: again.repeated,
  left: budget.left.words,
  reports: batch.reports.length, refused, events, bytes: file.length, state: state.state, verdict: audit.verdict,
  metrics: metrics.includes("metricdp_releases_total"), mechanisms: (await client.mechanisms()).length,
  health: (await client.health()).status,
}));
"""


def test_the_client_for_javascript_does_the_same(running, tmp_path):
    node = browsers.node()
    if node is None:
        pytest.skip("Node 20 or newer is not installed (Debian: apt install nodejs)")
    script = tmp_path / "asks.mjs"
    script.write_text(SCRIPT.replace("CLIENT", (FOLDER / "client.js").as_uri()))
    done = subprocess.run(
        [node, script, running.url, running.tokens["all"]], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["events"][-1] == "done"
    del found["events"]
    assert found["bytes"] > 500
    del found["bytes"]
    assert found == {
        "same": True, "repeated": True, "left": "30/km", "reports": 2, "refused": [True, 409, "budget", 10_000_000],
        "state": "done", "verdict": "holds", "metrics": True, "mechanisms": 4, "health": "ok",
    }  # fmt: skip


def test_the_files_of_the_client_are_what_the_service_describes():
    spec = spec_from_file_location("service_client", PROJECT / "tools" / "service_client.py")
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    for path, text in tool.files().items():
        assert path.read_text(encoding="utf-8") == text, "run `python tools/service_client.py`"


def test_programs_in_typescript_are_checked_by_the_types():
    node, compiler = browsers.node(), PROJECT / "js" / "node_modules" / "typescript" / "bin" / "tsc"
    if node is None or not compiler.exists():
        pytest.skip("tsc is not installed (npm ci in js/)")
    options = ["--strict", "--noEmit", "--target", "ES2022", "--module", "NodeNext", "--noUncheckedIndexedAccess"]
    done = subprocess.run(
        [node, compiler, *options, PROJECT / "tests" / "service" / "check.mts"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_operation_and_answer_is_described():
    found = json.loads((FOLDER / "openapi.json").read_text(encoding="utf-8"))
    for path, methods in found["paths"].items():
        for operation in methods.values():
            assert operation["operationId"]
            assert operation["security"] == ([] if path in ("/health", "/ready") else [{"key": []}])
    text = json.dumps(found)
    for name in (part.split('"')[0] for part in text.split("#/components/schemas/")[1:]):
        assert name in found["components"]["schemas"]
