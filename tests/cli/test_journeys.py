"""The command lines of the page about tables run as they stand there; tutorials run in tests/test_docs.py."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import metricdp as mdp
from metricdp import cli

PAGES = Path(__file__).parents[2] / "docs"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(page: str) -> list[str]:
    text = (PAGES / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("metricdp ")]


def test_tables(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = np.array([(41.15 + 0.001 * i, -8.61 + 0.001 * j) for i in range(3) for j in range(3)])
    Path("points.csv").write_text("lat,lon,person\n41.15,-8.61,a\n41.16,-8.62,b\n")
    trips = ["lat,lon,person,t,ip,home_addr,age,fare,tip"]
    for i in range(12):
        trips.append(f"{41.15 + i / 999},{-8.6 - i % 5 / 499},p{i % 3},{1700000000 + 7 * i},10.0.0.{i},{i % 4},1,2,3")
    Path("trips.csv").write_text("\n".join(trips) + "\n")
    Path("fleet May.csv").write_bytes(b"\xef\xbb\xbfPickup Lat;Pickup Lon\r\n41,15;-8,61\r\n41,16;-8,62\r\n")
    with closing(sqlite3.connect("trips.db")) as base:
        base.execute("CREATE TABLE fixes (lat REAL, lon REAL)")
        base.executemany("INSERT INTO fixes VALUES (?, ?)", places.tolist())
        base.commit()
    scaled = [{"lat": round(lat * 1e7), "lon": round(lon * 1e7)} for lat, lon in places.tolist()]
    pq.write_table(pa.table({"pos": scaled}), "phones.parquet")
    feather.write_feather(pa.table({"east": [565000.0, 566000.0], "north": [5930000.0, 5931500.0]}), "survey.feather")
    point = {"type": "Point", "coordinates": [-8.61, 41.15]}
    feature = {"type": "Feature", "geometry": point, "properties": {}}
    Path("places.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature] * 2}))
    pq.write_table(pa.table({"lat": places[:, 0] + 1e-5, "lon": places[:, 1]}), "points.parquet")
    mdp.save(mdp.exponential(mdp.FiniteSpace(places, mdp.Haversine()), 5.0), "porto.mdp")
    lines = commands("how-to/engines.md")
    assert len(lines) >= 12
    for line in lines:
        if "days/*" in line:
            continue  # jobs over many files have tests of their own
        before = set(Path().iterdir())
        refused = "--strict" in line  # something is found in that table
        assert cli.main(shlex.split(line, comments=True)[1:]) == (2 if refused else 0), line
        for path in set(Path().iterdir()) - before:
            path.unlink()
    assert "slack" in capsys.readouterr().out  # of --snap


def test_policies(here: Path) -> None:
    """Graphs and trees of areas, on twelve shops and on cells; whole networks are designed in tests of their own."""
    shops = [(0.008 * i + 0.002 * k, 0.0005 * k, i) for i in range(3) for k in range(4)]
    rows = [f"{41.14 + a},{b - 8.611},{('Bonfim', 'Foz', 'Baixa')[i]},{'AB'[i // 2]}" for a, b, i in shops]
    Path("shops.csv").write_text("\n".join(["lat,lon,district,city", *rows]) + "\n")
    Path("cells.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x in range(3) for y in range(3)))
    Path("edges.csv").write_text("from,to\n0,1\n1,2\n3,4\n4,5\n")
    assert cli.main(["keys", "me"]) == 0
    lines = [line for line in commands("how-to/policies.md") if "--roads" not in line and "compare" not in line]
    assert len(lines) >= 8
    for line in lines:
        for name in ("shops.mdp", "cells.mdp", "mine.mdp"):
            Path(name).unlink(missing_ok=True)
        words = shlex.split(line)[1:]
        if "--metric" not in words and "cells.csv" in words:
            words += ["--metric", "l2"]
        assert cli.main(words) == 0, line
