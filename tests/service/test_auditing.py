"""Audits over HTTP: matrices and samples as data, judged as everywhere; nothing else is taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metricdp.service import workers

POINTS = [[0.0], [1.0], [3.0]]


def geometric(epsilon):
    """A matrix whose largest log-ratio per distance is known by going through all pairs."""
    weights = np.exp(-epsilon * np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 2.0, 3.0])))
    rows = weights / weights.sum(axis=1, keepdims=True)
    worst = max(
        abs(math.log(rows[i, k] / rows[j, k])) / abs(POINTS[i][0] - POINTS[j][0])
        for i in range(3) for j in range(3) if i != j for k in range(4)
    )  # fmt: skip
    return rows.tolist(), worst


def test_an_excess_that_is_rounding_has_that_as_its_reason(running):
    odds = [[math.e, 1.0], [1.0, math.e]]
    body = {"kind": "matrix", "matrix": [[p / (1.0 + math.e) for p in row] for row in odds], "points": [[0.0], [1.0]]}
    found = running.post("/v1/audit", body | {"metric": "l1", "epsilon": 2.0}, "read").json()["epsilon"]
    answer = running.post("/v1/audit", body | {"metric": "l1", "epsilon": found * (1.0 - 2e-16)}, "read").json()
    assert answer["verdict"] == "violated"
    assert "what rounding of the probabilities does" in answer["reason"]
    assert running.post("/v1/audit", body | {"metric": "l1", "epsilon": 0.9}, "read").json()["reason"] == ""


def test_a_matrix_is_judged_exactly(running):
    matrix, worst = geometric(1.0)
    body = {"kind": "matrix", "matrix": matrix, "points": POINTS, "metric": "l1", "epsilon": worst * 1.001}
    found = running.post("/v1/audit", body, "read").json()
    assert found["verdict"] == "holds"
    assert found["epsilon"] == pytest.approx(worst, rel=1e-9)
    found = running.post("/v1/audit", body | {"epsilon": worst * 0.999}, "read").json()
    assert found["verdict"] == "violated"
    assert found["witness"]["secret"] in (0, 1, 2)
    assert found["basis"] == "proof"


def test_audits_are_parsed_and_judged_by_another_process(running, monkeypatch):
    monkeypatch.setattr(workers, "validate", lambda *unused: pytest.fail("parsed where releases are answered"))
    matrix, worst = geometric(1.0)
    body = {"kind": "matrix", "matrix": matrix, "points": POINTS, "metric": "l1", "epsilon": worst * 1.001}
    assert running.post("/v1/audit", body, "read").json()["verdict"] == "holds"
    wide = {"kind": "matrix", "matrix": [[1.0] * 1200] * 3, "points": POINTS, "metric": "l1", "epsilon": 1.0}
    assert running.post("/v1/audit", wide, "read").status_code == 413
    assert running.post("/v1/audit", body | {"matrix": "none"}, "read").status_code == 422


def test_samples_can_refute_and_never_prove(running):
    rng = np.random.default_rng(0)
    secrets = np.repeat([[0.0], [1.0]], 2000, axis=0)
    reports = np.where(rng.random(4000) < np.where(secrets[:, 0] > 0, 0.95, 0.05), 1.0, 0.0)[:, None]
    body = {"kind": "samples", "secrets": secrets.tolist(), "reports": reports.tolist(), "metric": "l1"}
    found = running.post("/v1/audit", body | {"epsilon": 0.5}, "read").json()
    assert found["verdict"] == "violated"
    assert found["basis"] == "samples"
    found = running.post("/v1/audit", body | {"epsilon": 50.0}, "read").json()
    assert found["verdict"] == "not refuted"


def test_commands_addresses_and_paths_are_not_taken(running):
    matrix, _ = geometric(1.0)
    for kind in ("command", "url", "path", "module"):
        body = {"kind": kind, kind: "/etc/passwd", "points": POINTS, "epsilon": 1.0}
        assert running.post("/v1/audit", body, "read").status_code == 422
    body = {"kind": "matrix", "matrix": matrix, "points": POINTS, "epsilon": 1.0}
    assert running.post("/v1/audit", body | {"command": "true"}, "read").status_code == 422
    assert running.post("/v1/audit", body | {"matrix": "/etc/passwd"}, "read").status_code == 422


def test_what_cannot_be_judged_is_refused_without_its_numbers(running):
    matrix, _ = geometric(1.0)
    body = {"kind": "matrix", "matrix": matrix, "points": POINTS, "metric": "l1", "epsilon": 1.0}
    for change in (
        {"matrix": matrix[:2]},
        {"matrix": [matrix[0], matrix[1], matrix[2][:2]]},
        {"matrix": [[-0.7318264, 1.7318264]] * 3},
        {"points": [[0.7318264], [1.0], [0.7318264, 1.0]]},
        {"metric": "7318264"},
        {"metric": "haversine", "points": [[97.318264, 1.0]] * 3},
    ):
        answer = running.post("/v1/audit", body | change, "read")
        assert answer.status_code == 422, (change, answer.text)
        assert "7318" not in answer.text
    big = running.post("/v1/audit", body | {"points": [[0.0]] * 1001}, "read")
    assert big.status_code == 413
