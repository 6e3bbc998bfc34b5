"""Releases over HTTP: charged, stored, repeated, refused; every answer says what was promised and what is left."""

from __future__ import annotations

import math
import uuid

import httpx
import numpy as np
import pytest

import metricdp as mdp
import serving
from metricdp.errors import LedgerUnavailable
from metricdp.ledger import Ledger
from metricdp.service import ServedMechanism, keys

PLACE = {"lat": 41.9, "lon": 12.48}


def asked(person=None, secret=None, **more):
    return {"person": person or uuid.uuid4().hex, "request": uuid.uuid4().hex, "secret": secret or PLACE} | more


def test_an_answer_says_what_was_promised_what_it_cost_what_is_left_and_how_far_the_truth_may_be(running):
    answer = running.post("/v1/release", asked(mechanism="earth")).json()
    assert set(answer["report"]) == {"lat", "lon"}
    assert answer["promise"]["epsilon"] == 10.0
    assert answer["promise"]["unit"] == "km"
    assert "at most a factor of two" in answer["promise"]["sentence"]
    assert answer["cost"]["micro_epsilon"] == 10_000_000
    assert answer["left"]["micro_epsilon"] == 30_000_000
    assert answer["left"]["words"] == "30/km"
    assert not answer["repeated"]
    # On a plane the distance is Gamma(2, 1/epsilon): 1 - (1 + t) e^-t = 0.95 at t = epsilon r; the lattice adds little.
    (accuracy,) = answer["accuracy"]
    t = 10.0 * accuracy["radius"]
    assert 0.95 <= 1 - (1 + t) * math.exp(-t) < 0.951
    assert accuracy["level"] == 0.95


def test_the_same_request_gets_the_same_report_whatever_secret_it_carries_and_costs_nothing(running):
    first = asked(mechanism="earth")
    one = running.post("/v1/release", first).json()
    again = running.post("/v1/release", first | {"secret": {"lat": 0.0, "lon": 0.0}}).json()
    assert again["report"] == one["report"]
    assert again["repeated"]
    assert again["left"] == one["left"]
    fresh = running.post("/v1/release", first | {"request": "another"}).json()
    assert fresh["report"] != one["report"]


def test_request_ids_are_those_of_a_key_and_a_person(running):
    first = asked(mechanism="earth")
    one = running.post("/v1/release", first, "all").json()
    assert running.post("/v1/release", first, "release").json()["report"] != one["report"]
    assert running.post("/v1/release", first | {"person": uuid.uuid4().hex}).json()["report"] != one["report"]


def test_what_does_not_fit_is_refused_and_costs_nothing(running):
    person = uuid.uuid4().hex
    for _ in range(4):
        assert running.post("/v1/release", asked(person, mechanism="earth")).status_code == 200
    refused = running.post("/v1/release", asked(person, mechanism="earth"))
    assert refused.status_code == 409
    found = refused.json()
    assert found["error"] == "budget"
    assert found["micro_left"] == 0
    assert found["refreshes"].endswith("00:00:00+00:00")
    assert "40/km per day" in found["message"]
    budget = running.post("/v1/budget", {"person": person, "mechanism": "earth"}).json()
    assert budget["releases"] == 0
    assert {limit["limit"]: limit["micro_left"] for limit in budget["limits"]}["1000/km ever"] == 960_000_000


def test_a_budget_that_nobody_touched_is_whole(running):
    budget = running.post("/v1/budget", {"person": uuid.uuid4().hex, "mechanism": "earth"}).json()
    assert budget["left"]["micro_epsilon"] == 40_000_000
    assert budget["cost"]["micro_epsilon"] == 10_000_000
    assert budget["releases"] == 4


@pytest.mark.parametrize("secret", [{"x": 1.1, "y": 0.1}, [1.1, 0.1]])
def test_cells_take_what_is_near_and_charge_the_slack_of_it(running, secret):
    answer = running.post("/v1/release", asked(secret=secret, mechanism="cells")).json()
    assert [answer["report"]["x"], answer["report"]["y"]] in serving.POINTS
    assert answer["cost"]["micro_slack"] == 500_000  # 2 * epsilon * snap
    assert answer["promise"]["slack"] == 0.5


def test_words_and_products_are_released(running):
    answer = running.post("/v1/release", asked(secret="brontolite", mechanism="words")).json()
    assert answer["report"]["word"] in serving.WORDS
    secret = {"x": 1.0, "y": 0.0, "word": "quillfeather"}
    answer = running.post("/v1/release", asked(secret=secret, mechanism="both"))
    assert answer.status_code == 200, answer.text
    assert answer.json()["report"]["word"] in serving.WORDS
    assert len(answer.json()["accuracy"]) == 2


@pytest.mark.parametrize(
    ("mechanism", "secret"),
    [
        ("earth", {"lat": 91.0, "lon": 0.0}),
        ("earth", {"lat": 41.0}),
        ("earth", {"lat": 41.0, "lon": 1.0, "alt": 2.0}),
        ("earth", [41.0, 12.0, 3.0]),
        ("earth", {"lat": "41.0", "lon": 12.0}),
        ("earth", "rome"),
        ("earth", True),
        ("cells", {"x": 9.0, "y": 9.0}),
        ("words", "unheard"),
        ("words", 7.0),
    ],
)
def test_what_is_no_secret_is_refused_and_costs_nothing(running, mechanism, secret):
    person = uuid.uuid4().hex
    answer = running.post("/v1/release", asked(person, secret=secret, mechanism=mechanism))
    assert answer.status_code == 422
    assert answer.json()["error"] in ("invalid", "outside")
    budget = running.post("/v1/budget", {"person": person, "mechanism": mechanism}).json()
    assert budget["left"]["micro_epsilon"] == {"earth": 40_000_000}.get(mechanism, 1_000_000_000)


def test_mechanisms_are_listed_with_their_certificates(running):
    with running.client("read") as client:
        found = {one["name"]: one for one in client.get("/v1/mechanisms").json()}
    assert set(found) == {"earth", "cells", "words", "both"}
    assert found["cells"]["certificate"]["pairs"] > 0
    assert found["cells"]["certificate"]["epsilon"] <= 1.0
    assert found["words"]["secret"] == [{"name": "word", "kind": "text"}]
    assert found["earth"]["promise"]["basis"] == "theorem"


def test_an_unknown_mechanism_is_named_as_such_and_one_must_be_named_among_many(running):
    assert running.post("/v1/release", asked(mechanism="mars")).status_code == 404
    assert running.post("/v1/release", asked()).status_code == 404


def test_a_ledger_that_cannot_be_written_is_said_and_it_recovers_by_itself(running, monkeypatch):
    def full(*arguments):
        raise LedgerUnavailable("the ledger cannot be used now: the disk is full.")

    first = asked(mechanism="earth")
    with running.client() as client:
        with monkeypatch.context() as broken:
            broken.setattr("metricdp.ledger.Ledger.release_many", full)
            answer = client.post("/v1/release", json=first)
            assert answer.status_code == 503
            assert answer.json()["error"] == "ledger"
            assert answer.headers["retry-after"]
            assert client.get("/ready").status_code == 503
        assert not client.post("/v1/release", json=first).json()["repeated"]  # nothing was charged before
        assert client.get("/ready").status_code == 200


def test_policies_are_served_each_on_its_own_account_with_the_part_that_may_be_told(tmp_path):
    """A hop in one graph is no hop in another: what was spent in districts is not spent along streets."""
    places = mdp.grid((2, 3), spacing=0.5, origin=(41.1, -8.7), metric=mdp.Haversine())
    town = mdp.policy(places, mdp.policy_graphs.areas([0, 0, 0, 1, 1, 1]), parts="disclose")
    steps = mdp.policy(places, mdp.policy_graphs.grid_neighbours((2, 3)))
    served = [
        ServedMechanism("town", mdp.exponential(town, 1.0), snap=0.1),
        ServedMechanism("steps", mdp.exponential(steps, 1.0), snap=0.1),
    ]
    secret = dict(zip(("lat", "lon"), places.points[4].tolist(), strict=True))
    with serving.service(tmp_path, policy="2/hop ever, slack 9 ever", served=served) as running:
        for name, left in (("town", 1), ("town", 0), ("steps", 1)):
            answer = running.post("/v1/release", asked("anna", secret, mechanism=name)).json()
            assert answer["left"]["micro_epsilon"] == left * 1_000_000
            code = int(np.argmin(np.linalg.norm(places.points - [*answer["report"].values()], axis=1)))
            assert name == "steps" or code >= 3
            assert ("may reveal the part of a secret" in answer["promise"]["sentence"]) == (name == "town")
        refused = running.post("/v1/release", asked("anna", secret, mechanism="town"))
        assert refused.status_code == 409
        rows = [{"person": "ben", "secret": secret}] * 2
        batch = running.post("/v1/release/batch", {"request": "1", "rows": rows, "mechanism": "town"})
        assert batch.status_code == 200
        budget = running.post("/v1/budget", {"person": "ben", "mechanism": "steps"}).json()
        assert budget["releases"] == 2
        with running.client() as client:
            accounts = {one["name"]: one["account"] for one in client.get("/v1/mechanisms").json()}
        assert budget["account"] == accounts["steps"] != accounts["town"]


def test_a_retry_under_a_key_that_replaces_another_is_answered_and_not_charged_again(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "RECHECK", 0.0)
    with serving.service(tmp_path, policy="40/km ever") as running:
        person, body = uuid.uuid4().hex, {"request": "r1", "mechanism": "earth", "secret": serving.uniform(1)[0]}
        body["person"] = person
        first = running.post("/v1/release", body).json()
        path, old = tmp_path / "service.keys", running.tokens["all"].split("_")[1]
        token = keys.make_key(path, "all", ["release", "read"], replaces=old)
        keys.revoke_key(path, old)
        with httpx.Client(base_url=running.url, headers={"authorization": f"Bearer {token}"}) as client:
            again = client.post("/v1/release", json=body).json()
            assert again["report"] == first["report"]
            assert again["repeated"]
            left = client.post("/v1/budget", json={"person": person, "mechanism": "earth"}).json()["left"]
        assert left == first["left"]


def test_a_product_is_charged_in_the_account_of_every_part(tmp_path):
    words = mdp.FiniteSpace([[0.0], [1.0], [3.0]], mdp.Lp(1), coordinates=serving.WORDS, columns=["word"])
    both = mdp.product(mdp.laplace(mdp.Haversine(), 10.0), mdp.exponential(words, 2.0))
    asked = {"person": "anna", "mechanism": "both", "secret": {"lat": 41.0, "lon": 12.0, "word": serving.WORDS[0]}}
    options = {"policy": "35/km ever, 5 ever", "served": [ServedMechanism("both", both)]}
    with serving.service(tmp_path, **options) as running:
        answers = [running.post("/v1/release", asked | {"request": str(number)}) for number in (0, 0, 1, 2)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 409]  # 5 hold two releases, 35/km three
    assert answers[0].json()["report"] == answers[1].json()["report"]
    told = {one["account"]: one["cost"]["micro_epsilon"] for one in answers[0].json()["accounts"]}
    assert told == {"haversine/km": 10_000_000, "l2": 2_000_000}
    with Ledger.open(tmp_path / "budget.db") as ledger:
        spent = {account.metric: account.spent for account in ledger.budget("anna").accounts}
        assert spent == {"haversine/km": 20_000_000, "l2": 4_000_000}
        assert ledger.verify().holds
