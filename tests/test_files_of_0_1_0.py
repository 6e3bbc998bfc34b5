"""What version 0.1.0 wrote opens, means the same and gives nobody a budget back.

`tests/data/0.1.0/make.py` wrote these files with that version; they are never written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import books
import metricdp as mdp
from metricdp.ledger import Ledger
from metricdp.mechanisms import ConcentratedGuarantee
from scripts import main

DATA = Path(__file__).parent / "data" / "0.1.0"
FACTS = json.loads((DATA / "facts.json").read_text())


@pytest.mark.parametrize("name", FACTS["mechanisms"])
def test_a_mechanism_file_keeps_its_guarantee_and_its_draws(name: str) -> None:
    facts = FACTS["mechanisms"][name]
    mechanism: Any = mdp.load(DATA / "mechanisms" / f"{name}.mdp")
    assert str(mechanism.guarantee) == facts["guarantee"]
    concentrated = isinstance(mechanism.guarantee, ConcentratedGuarantee)
    found = mdp.auditing.audit_concentrated(mechanism) if concentrated else mdp.audit(mechanism)
    assert found.verdict == facts["verdict"] == "holds"
    if "drawn" in facts:
        row = facts["row"]
        secrets = np.arange(20) % len(mechanism.inputs) if row is None else mechanism.inputs.encode([row] * 20)
        drawn = np.ascontiguousarray(mechanism.sample(secrets, rng=np.random.default_rng(3)))
        assert hashlib.sha256(drawn.tobytes()).hexdigest() == facts["drawn"]


KINDS = {
    "bag-laplace", "direction-noise", "gaussian-noise", "hyperbolic-laplace", "interpolated", "kernel", "local",
    "matrix", "nearest", "outline-laplace", "product", "projected-laplace", "spherical-gaussian", "spherical-laplace",
    "streets", "vector-laplace",
}  # fmt: skip
METRICS = {
    "Angular", "Bags", "Frechet", "Hamming", "Haversine", "Hyperbolic", "Levenshtein", "Lp", "Mahalanobis",
    "PolicyGraph", "Precomputed", "ShortestPath", "StreetPath", "Temporal", "Wasserstein", "Weighted", "WordMovers",
}  # fmt: skip
RECORDS = ["audit-file", "audit-matrix", "inspect", "budget-show"]


def test_every_file_is_opened_and_there_is_one_of_every_kind_and_metric_of_that_version() -> None:
    there = {path.relative_to(DATA).as_posix() for path in DATA.rglob("*") if path.is_file()}
    opened = {f"mechanisms/{name}.mdp" for name in [*FACTS["mechanisms"], "signed"]} | {"mechanisms/signer.pub"}
    opened |= {f"ledgers/{name}" for name in ("budget.db", "budget.db.key", "postgres.sql", "postgres.key")}
    opened |= {f"ledgers/{name}" for name in ("stream.db", "stream.db.key", "stream.csv", "stream-reports.csv")}
    opened |= {"records/budget-export.jsonl", "states/decomposed.npz", "facts.json", "make.py"}
    opened |= {f"records/{name}.json" for name in RECORDS}
    assert {name for name in there if not name.startswith("jobs/") and "__pycache__" not in name} == opened
    jobs = {name.split("/")[1] for name in there if name.startswith("jobs/")}
    assert jobs == {"stopped", "finished", "empty-folders.json"}
    assert set(FACTS["ledgers"]) == {"budget.db", "postgres.sql"}
    kinds, metrics = set(), set()
    for path in (DATA / "mechanisms").glob("*.mdp"):
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        manifest = json.loads(header["__metadata__"]["metricdp"])
        kinds.add(manifest["kind"])
        metrics |= {metric["name"] for metric in manifest["metrics"]}
    assert kinds == KINDS
    assert metrics == METRICS


def test_a_signature_is_still_verified(capsys: pytest.CaptureFixture[str]) -> None:
    folder = DATA / "mechanisms"
    assert main(["inspect", str(folder / "signed.mdp"), "--key", str(folder / "signer.pub"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["signed_by"]) == 64


def copy(name: str, folder: Path) -> Path:
    """Copy a ledger and its key to a folder of its own, readable by its owner alone."""
    for file in (name, f"{name}.key"):
        shutil.copy(DATA / "ledgers" / file, folder / file)
        (folder / file).chmod(0o600)
    return folder / name


def spent(ledger: Ledger, person: str) -> dict[str, int]:
    return {account.metric: account.spent for account in ledger.budget(person).accounts}


def check_ledger(ledger: Ledger, facts: dict[str, dict[str, int]]) -> None:
    """The ledger verifies, everybody's spending is counted, requests answered before are not charged again."""
    assert ledger.verify().holds
    assert {person: spent(ledger, person) for person in facts} == facts
    again = books.ask(ledger, "anna", "r0", draw=lambda: pytest.fail("the stored report was not found"))
    assert again.report == b"report"
    with pytest.raises(mdp.MetricdpError):
        books.ask(ledger, "anna", "new", epsilon=170.0)  # 35 of 200 per km are spent for good
    assert {person: spent(ledger, person) for person in facts} == facts
    assert ledger.verify().holds


def test_a_ledger_in_a_file(tmp_path: Path) -> None:
    with Ledger.open(copy("budget.db", tmp_path)) as ledger:
        check_ledger(ledger, FACTS["ledgers"]["budget.db"])


def test_a_ledger_on_a_server(tmp_path: Path) -> None:
    if books.postgres() is None:
        pytest.skip("PostgreSQL is not installed")
    key = tmp_path / "ledger.key"
    shutil.copy(DATA / "ledgers" / "postgres.key", key)
    key.chmod(0o600)
    with books.server() as server:
        address = server.fresh("ledger")
        dump = (DATA / "ledgers" / "postgres.sql").read_bytes()
        subprocess.run(
            [f"{books.postgres()}/psql", "-q", "-v", "ON_ERROR_STOP=1", address],
            input=dump,
            check=True,
            capture_output=True,
        )
        with Ledger.open(address, key_file=key) as ledger:
            check_ledger(ledger, FACTS["ledgers"]["postgres.sql"])


def test_the_memory_of_a_stream(tmp_path: Path) -> None:
    place, out = copy("stream.db", tmp_path), tmp_path / "reports.csv"
    with Ledger.open(place) as ledger:
        before = spent(ledger, "anna")
    words = [
        "stream",
        str(DATA / "ledgers" / "stream.csv"),
        "--window",
        "4",
        "--total",
        "20/km",
        "--ledger",
        str(place),
    ]
    assert main([*words, "-o", str(out)]) == 0
    assert out.read_text() == (DATA / "ledgers" / "stream-reports.csv").read_text()
    with Ledger.open(place) as ledger:
        assert spent(ledger, "anna") == before


def lay_out(name: str, folder: Path) -> Path:
    """Lay out a job as it was: folders that git does not keep, modes, the times of its sources."""
    shutil.copytree(DATA / "jobs" / name, folder / name)
    for empty in json.loads((DATA / "jobs" / "empty-folders.json").read_text()):
        if empty.split("/")[0] == name:
            (folder / empty).mkdir(parents=True, exist_ok=True)
    home = folder / name / ".out.metricdp-job"
    for path in [home, *home.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    (record,) = home.glob("*/job.json")
    record.write_text(record.read_text().replace("@FOLDER@", str(folder)))
    for source in json.loads(record.read_text())["sources"]:
        os.utime(source["path"], ns=(source["modified"], source["modified"]))
    return folder / name


def run_job(folder: Path, *options: str) -> int:
    words = ["perturb", str(folder / "days" / "*.csv"), "--epsilon", "10/km", "--drop", "t", "-o", str(folder / "out")]
    return main([*words, *options])


def test_a_job_that_stopped_goes_on_with_the_reports_it_drew(tmp_path: Path) -> None:
    folder = lay_out("stopped", tmp_path)
    (ready,) = folder.glob(".out.metricdp-job/*/ready/0.csv")
    drawn = ready.read_bytes()
    assert run_job(folder) == 2  # a second job beside it is refused
    bad = folder / "days" / "2.csv"
    times = bad.stat().st_mtime_ns
    bad.write_text(bad.read_text().replace("410.0", "41.15"))
    os.utime(bad, ns=(times + 1, times + 1))
    assert run_job(folder, "--resume") == 0
    assert (folder / "out" / "0.csv").read_bytes() == drawn
    assert len(list((folder / "out").iterdir())) == 3


def test_a_finished_job_is_known_as_finished(tmp_path: Path) -> None:
    folder = lay_out("finished", tmp_path)
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert run_job(folder, "--resume") == 0
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before


def test_the_state_of_a_long_run_is_taken_up(tmp_path: Path) -> None:
    shutil.copy(DATA / "states" / "decomposed.npz", tmp_path / "state.npz")
    problem = mdp.Problem(mdp.grid((4, 4)), 1.0)
    found = mdp.decomposed(problem, blocks=2, gap=0.05, checkpoint=tmp_path / "state.npz", resume=True)
    assert found.certificate is not None
    assert found.certificate.gap <= 0.05
    assert mdp.audit(found).verdict == "holds"


def fields(value: Any, name: str = "") -> set[str]:
    """Return the names of the fields of a record, nested ones with a dot."""
    if isinstance(value, list):
        return set().union(*(fields(one, f"{name}[]") for one in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    return set().union(*({f"{name}.{key}"} | fields(one, f"{name}.{key}") for key, one in value.items()))


def test_an_export_keeps_its_lines_and_their_fields(tmp_path: Path) -> None:
    place, out = copy("budget.db", tmp_path), tmp_path / "export.jsonl"
    then = [json.loads(line) for line in (DATA / "records" / "budget-export.jsonl").read_text().splitlines()]
    assert main(["budget", "export", str(place), "-o", str(out)]) == 0
    now = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(now) >= len(then) > 0
    for line in then:  # a ledger is brought up in its own version and in its accounts' seals, not in what was charged
        like = [one for one in now if line.keys() <= one.keys() and one["table"] == line["table"]]
        assert like
        if line["table"] == "entries":
            assert any(line.items() <= one.items() for one in like)


@pytest.mark.parametrize("record", RECORDS)
def test_json_keeps_its_fields(record: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = DATA / "mechanisms"
    matrix = tmp_path / "matrix.csv"
    np.savetxt(matrix, mdp.load(kinds / "kind-matrix.mdp").matrix, delimiter=",")
    points = tmp_path / "points.csv"
    points.write_text("x,y\n" + "".join(f"{x},{y}\n" for x in range(3) for y in range(3)))
    words = {
        "audit-file": ["audit", str(kinds / "optimal.mdp")],
        "audit-matrix": ["audit", str(matrix), "--points", str(points), "--metric", "l2", "--epsilon", "1.0"],
        "inspect": ["inspect", str(kinds / "signed.mdp")],
        "budget-show": ["budget", "show", str(copy("budget.db", tmp_path)), "--person", "anna"],
    }[record]
    assert main([*words, "--json"]) == 0
    then = json.loads((DATA / "records" / f"{record}.json").read_text())
    assert fields(then) <= fields(json.loads(capsys.readouterr().out))
