"""The commands on files of sparse rows: explain one, protect a table with it, write a district of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from instances import local_on
from scripts import main

PLACES = np.array([41.9, 12.48]) + np.random.default_rng(3).uniform(-0.05, 0.05, (40, 2))


@pytest.fixture
def city(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ring = np.column_stack([np.arange(40), np.roll(np.arange(40), -1)])
    roads = mdp.ShortestPath(ring, np.random.default_rng(4).uniform(0.2, 0.6, 40))
    places = mdp.FiniteSpace(
        np.arange(40.0)[:, None], roads, coordinates=PLACES, ground=mdp.Haversine(), columns=("lat", "lon")
    )
    mdp.save(local_on(places, 2.0), "rome.mdp", licence="made up")


def run(line: str) -> int:
    return main(line.split())


def test_inspect_says_what_it_is(city: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect rome.mdp") == 0
    said = capsys.readouterr().out
    assert "one background distribution" in said
    assert "near reports and one background, exact" in said
    assert "made up" in said
    assert run("inspect rome.mdp --json") == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "local"
    assert run("audit rome.mdp") == 0


def test_perturb_protects_a_table(city: None, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"lat": PLACES[:5, 0], "lon": PLACES[:5, 1]}), "in.parquet")
    assert run("perturb in.parquet --mechanism rome.mdp -o out.parquet") == 0
    reports = pq.read_table("out.parquet")
    for place in zip(reports["lat"].to_pylist(), reports["lon"].to_pylist(), strict=True):
        assert np.abs(PLACES - place).sum(axis=1).min() < 1e-9


def test_export_writes_a_district(city: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export rome.mdp --around 41.9,12.48 --radius 3km -o district.mdp") == 0
    said = capsys.readouterr().out
    assert "Loss and lower bound are those of the whole mechanism on 40 secrets" in said
    whole, part = mdp.load("rome.mdp"), mdp.load("district.mdp")
    same = whole.around([41.9, 12.48], 3.0)  # type: ignore[attr-defined]
    assert isinstance(part, mdp.mechanisms.LocalMechanism)
    assert np.array_equal(part.values, same.values)
    assert np.array_equal(part.inputs.coordinates, same.inputs.coordinates)
    assert len(part.outputs) == 40
    assert part.guarantee.epsilon == whole.guarantee.epsilon
    assert mdp.inspect("district.mdp").licence == "made up"
    assert run("export rome.mdp --around 41.9,12.48 --radius 3000m -o metres.mdp") == 0
    assert Path("metres.mdp").stat().st_size == Path("district.mdp").stat().st_size
    assert run("export rome.mdp -o again.mdp") == 0
    assert mdp.inspect("again.mdp").storage == "sparse"


def test_export_rounds_a_district(city: None) -> None:
    pytest.importorskip("numba", reason="windows take the extra `fast`")
    assert run("export rome.mdp --around 41.9,12.48 --radius 3km --storage quantised -o small.mdp") == 0
    assert "rounded to 16 bits" in mdp.load("small.mdp").certificate.note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--around 41.9,12.48", "belong together"),
        ("--radius 3km", "belong together"),
        ("--around 41.9,12.48 --radius 3", "unit"),
        ("--around 41.9 --radius 3km", "2 columns"),
        ("--around here --radius 3km", "must be numbers"),
        ("--around 43,12.48 --radius 3km", "the nearest is 1"),
        ("--around 41.9,12.48 --radius 3km --storage quantised --bits 32", "`bits` = 16"),
    ],
)
def test_what_is_no_district_is_refused(
    city: None, options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"export rome.mdp {options} -o district.mdp") == 2
    assert re.search(message, capsys.readouterr().err)
    assert not Path("district.mdp").exists()


def test_noise_has_no_districts(city: None, capsys: pytest.CaptureFixture[str]) -> None:
    mdp.save(mdp.laplace(mdp.Haversine(), 10.0), "noise.mdp")
    assert run("export noise.mdp --around 41.9,12.48 --radius 3km -o district.mdp") == 2
    assert "finitely many places" in capsys.readouterr().err
