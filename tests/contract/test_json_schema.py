"""Every record of every kind is what the one schema says, and comes back from JSON as it was."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import metricdp as mdp
from instances import KINDS
from metricdp import cli
from metricdp.auditing.distributions import describe_distribution
from metricdp.mechanisms import ConcentratedGuarantee
from metricdp.rendering import plain_values
from metricdp.service import ServedMechanism, audit_data, endpoints

SCHEMA = json.loads(resources.files("metricdp").joinpath("metricdp.schema.json").read_text(encoding="utf-8"))


def check(values: Any, name: str) -> None:
    """Check a record: it is plain, has no field without a description, and keeps to the schema."""
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    jsonschema.validate(values, {"$schema": SCHEMA["$schema"], "$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
    known = SCHEMA["$defs"][name]
    options = [known] if "properties" in known else [SCHEMA["$defs"][one["$ref"][8:]] for one in known["anyOf"]]
    assert any(values.keys() <= one["properties"].keys() for one in options)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert {"guarantee", "certificate", "audit", "summary"} <= SCHEMA["$defs"].keys()


@pytest.mark.parametrize("kind", KINDS)
def test_guarantee_certificate_audit_and_distribution_of_every_kind_keep_to_the_schema(kind: str) -> None:
    mechanism = KINDS[kind][0]()
    guarantee = mechanism.guarantee
    report: Any = mdp.auditing.audit_concentrated if isinstance(guarantee, ConcentratedGuarantee) else mdp.audit
    check(guarantee.to_dict(), "guarantee")
    check(mechanism.certificate.to_dict(guarantee.unit), "certificate")
    check(report(mechanism).to_dict(guarantee.unit), "audit")
    check(describe_distribution(mechanism), "distribution")
    assert guarantee.to_dict()["kind"] == report(mechanism).to_dict()["kind"]


def test_infinity_is_one_word_and_what_is_no_number_is_null() -> None:
    numbers = {"a": np.float64(math.inf), "b": [-math.inf, math.nan], "c": (np.int64(3), np.array([1.5]), True)}
    assert plain_values(numbers) == {"a": "infinity", "b": ["-infinity", None], "c": [3, [1.5], True]}
    grid = mdp.grid((3, 3))
    made = mdp.exponential(grid, 1.0)
    nothing = replace(made.certificate, loss=1.0, lower_bound=0.0, epsilon=math.inf).to_dict()
    assert (nothing["epsilon"], nothing["unit"]) == ("infinity", None)
    check(nothing, "certificate")
    leaking = mdp.audit(np.eye(9), metric=mdp.Lp(2), points=grid.points, epsilon=1.0).to_dict("")
    assert (leaking["verdict"], leaking["epsilon"], leaking["margin"]) == ("violated", "infinity", "-infinity")
    assert leaking["witness"]["ratio"] == "infinity"
    check(leaking, "audit")
    secrets = np.repeat([[0.0], [1.0]], 400, axis=0)
    check(mdp.audit_samples(secrets, secrets, metric=mdp.Lp(1), epsilon=1.0).to_dict(), "audit")
    with pytest.raises(jsonschema.ValidationError):
        check(leaking | {"epsilon": "inf"}, "audit")


MODELS = {
    "pure_guarantee": "Guarantee",
    "certificate": "CertificateAnswer",
    "pure_audit": "AuditAnswer",
    "witness": "WitnessAnswer",
    "finding": "FindingAnswer",
}
OF_COMMANDS = {"lower_bound_says", "stated_not_verified"}


@pytest.mark.parametrize("name", MODELS)
def test_the_service_describes_the_same_fields(name: str) -> None:
    ours, its = SCHEMA["$defs"][name], endpoints().openapi()["components"]["schemas"][MODELS[name]]
    assert its["properties"].keys() == ours["properties"].keys() - OF_COMMANDS
    assert set(ours["required"]) <= set(its["required"])
    for one in (ours, its):
        old = {field for field, part in one["properties"].items() if part.get("deprecated")}
        assert old - OF_COMMANDS == ({"unverified"} if name == "certificate" else set())
    assert "$defs" not in json.dumps(its)


def test_the_service_and_its_jobs_answer_by_the_schema() -> None:
    space = mdp.grid((3, 3))
    made = ServedMechanism("cells", mdp.exponential(space, 1.0)).description
    assert made["promise"] == made["guarantee"]
    check(made["guarantee"], "guarantee")
    check(made["certificate"], "certificate")
    asked = {"kind": "matrix", "points": space.points.tolist(), "metric": "l2", "epsilon": 1.0}
    check(audit_data({**asked, "matrix": np.eye(9).tolist()}), "audit")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{who},{41.9 + n / 100},{12.5 + n / 100}" for n, who in enumerate("aaab")]
    Path("t.csv").write_text("\n".join(["who,lat,lon", *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    "how",
    [
        {"to": "o.csv"},
        {"to": "o.csv", "id": "who"},
        {"to": "o.csv", "id": "who", "budget": 20.0, "allocation": "even"},
    ],
)
@pytest.mark.parametrize(
    "build", [lambda: mdp.laplace(mdp.Haversine(), 10.0), lambda: mdp.gaussian(mdp.Haversine(), 5.0)]
)
def test_a_summary_keeps_to_the_schema(folder: Path, build: Any, how: dict[str, Any]) -> None:
    values = mdp.perturb("t.csv", build(), **how).to_dict()
    check(values, "summary")
    assert (values["counts"]["written"], values["guarantee"]["unit"]) == (4, "km")
    assert (values["people"] is None) == ("id" not in how)


def test_the_command_writes_old_and_new_fields(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["perturb", "t.csv", "--epsilon", "10/km", "-o", "o.csv", "--json", "r.json"]) == 0
    record = json.loads(Path("r.json").read_text())
    check(record, "summary")
    assert record["law"] == record["distribution"]
    assert record["rows"] == record["counts"]
    assert record["promise"].items() >= record["guarantee"].items()
    mdp.save(mdp.gaussian(mdp.Lp(2), 1.0), "normal.mdp")
    mdp.save(mdp.exponential(mdp.grid((3, 3)), 1.0), "grid.mdp")
    for name in ("normal.mdp", "grid.mdp"):
        capsys.readouterr()
        assert cli.main(["inspect", name, "--json"]) == 0
        values = json.loads(capsys.readouterr().out)
        jsonschema.validate(values, {"$ref": "#/$defs/mechanism", "$defs": SCHEMA["$defs"]})
        assert values["promise"] == values["guarantee"]
        assert values["certificate"]["stated_not_verified"] == values["certificate"]["not_verified"]
        assert cli.main(["audit", name, "--json"]) == 0
        check(json.loads(capsys.readouterr().out), "audit")
