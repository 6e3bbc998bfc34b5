"""Designs as jobs: begun, watched, cancelled, fetched; each in a process of its own."""

from __future__ import annotations

import itertools
import json
import time

import pytest

import metricdp as mdp

POINTS = [[float(i), float(j)] for i, j in itertools.product(range(3), repeat=2)]


def ended(client, job):
    deadline = time.monotonic() + 60
    while (found := client.get(f"/v1/design/{job}").json())["state"] in ("waiting", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_a_design_tells_how_it_goes_and_ends_with_a_file_that_keeps_its_promise(running, tmp_path):
    with running.client("admin") as client:
        begun = client.post("/v1/design", json={"points": POINTS, "epsilon": 1.0, "builder": "optimal"})
        assert begun.status_code == 202
        job = begun.json()["job"]
        assert client.get(f"/v1/design/{job}/result").status_code == 409
        with client.stream("GET", f"/v1/design/{job}/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            text = answer.read().decode()
        events = [dict(line.split(": ", 1) for line in part.splitlines()) for part in text.strip().split("\n\n")]
        assert [event["id"] for event in events] == [str(number) for number in range(1, len(events) + 1)]
        kinds = [event["event"] for event in events]
        assert kinds[0] == "waiting"
        assert kinds[-1] == "done"
        assert "progress" in kinds
        (told, *_) = [json.loads(event["data"]) for event in events if event["event"] == "progress"]
        assert set(told) == {"lower", "upper", "gap", "seconds", "steps"}
        later = client.get(f"/v1/design/{job}/events", headers={"last-event-id": str(len(events) - 1)}).text
        assert later.startswith(f"id: {len(events)}\nevent: done")
        found = client.get(f"/v1/design/{job}").json()
        assert found["certificate"]["gap"] <= 1e-3
        assert found["promise"]["epsilon"] <= 1.0
        (tmp_path / "design.mdp").write_bytes(client.get(f"/v1/design/{job}/result").content)
        assert client.delete(f"/v1/design/{job}").status_code == 200
        assert client.get(f"/v1/design/{job}").status_code == 404
    mechanism = mdp.load(tmp_path / "design.mdp")
    assert mdp.audit(mechanism).verdict == "holds"
    assert mechanism.certificate.loss == pytest.approx(found["certificate"]["loss"])


def test_a_design_that_is_cancelled_ends_and_its_points_are_gone(running):
    many = [[float(i), float(j)] for i, j in itertools.product(range(24), repeat=2)]
    with running.client("admin") as client:
        job = client.post("/v1/design", json={"points": many, "epsilon": 0.3, "gap": 1e-9}).json()["job"]
        time.sleep(0.3)
        assert client.delete(f"/v1/design/{job}").status_code == 200
        assert ended(client, job)["state"] == "cancelled"
        assert not (running.folder / "jobs" / job / "request.json").exists()
        assert client.delete(f"/v1/design/{job}").status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"builder": "from_matrix"},
        {"builder": "../../etc"},
        {"metric": "nowhere"},
        {"points": [[0.0], [1.0, 2.0]]},
        {"points": [[0.0]]},
        {"points": "/etc/passwd"},
        {"epsilon": -1.0},
        {"prior": [-1.0] * 9},
        {"roads": "rome"},
    ],
)
def test_what_cannot_be_designed_is_refused_now(running, change):
    answer = running.post("/v1/design", {"points": POINTS, "epsilon": 1.0} | change, "admin")
    assert answer.status_code == 422


def test_a_design_that_fails_says_why_to_the_key_that_began_it(running):
    with running.client("admin") as client, running.client("all") as other:
        body = {"points": POINTS, "epsilon": 1.0, "builder": "exponential", "prior": [1.0]}
        job = client.post("/v1/design", json=body).json()["job"]
        for path in ("", "/events", "/result"):
            assert other.get(f"/v1/design/{job}{path}").status_code == 404
        assert other.delete(f"/v1/design/{job}").status_code == 404
        found = ended(client, job)
    assert found["state"] == "failed"
    assert "prior" in found["message"]
