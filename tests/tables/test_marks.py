"""What was drawn from a seed says so, whichever way it leaves; a blank line of a single column is a row."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import OutOfDomain
from metricdp.randomness import GeneratorSource, KeyedSource, SystemSource
from metricdp.tables import perturb, perturb_batch
from tables.engines.hand import perturbed

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
WORDS = mdp.exponential(
    mdp.FiniteSpace([[0.0], [1.0], [2.0]], mdp.Lp(1), coordinates=["cat", "dog", "bird"], columns=["word"]), 1.0
)
ROWS = pa.table({"lat": [41.0, 41.1, 41.2], "lon": [-8.0, -8.1, -8.2]})


class Counting:
    """A source of somebody else's: words that anyone can guess."""

    def words(self, count: int, /):
        return np.arange(count, dtype=np.uint64) * np.uint64(2**60 + 3)


def seeded():
    return [np.random.default_rng(0), GeneratorSource(np.random.default_rng(0)), Counting()]


def honest():
    return [None, SystemSource(), KeyedSource(bytes(32), "mine")]


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("number", range(3))
def test_every_frame_carries_the_mark(number: int) -> None:
    for make, expected in ((seeded, True), (honest, False)):
        arrow = perturb(ROWS, EARTH, rng=make()[number])
        batch = perturb_batch(ROWS.to_batches()[0], EARTH, rng=make()[number])
        for schema in (arrow.schema, batch.schema):
            assert (b"metricdp.simulated" in (schema.metadata or {})) == expected
        assert ("metricdp.simulated" in perturb(ROWS.to_pandas(), EARTH, rng=make()[number]).attrs) == expected
        polars = perturb(pl.from_arrow(ROWS), EARTH, rng=make()[number])
        assert ("metricdp_simulated" in polars.columns) == expected
        if expected:
            assert polars["metricdp_simulated"].to_list() == [True] * 3


@pytest.mark.parametrize("number", range(3))
def test_every_file_carries_the_mark(number: int, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "in.parquet")
    (tmp_path / "in.csv").write_text("lat;lon\n41;-8\n41.1;-8.1\n", encoding="utf-8")
    for make, expected in ((seeded, True), (honest, False)):
        summary = perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "out.csv", rng=make()[number], overwrite=True)
        text = rows_of(tmp_path / "out.csv")
        assert text[0] == [f"lat;lon{';metricdp_simulated' if expected else ''}"]
        assert all(line[0].endswith(";true") == expected for line in text[1:])
        assert summary.simulated == expected
        perturb(tmp_path / "in.parquet", EARTH, to=tmp_path / "out.parquet", rng=make()[number], overwrite=True)
        perturb(ROWS.to_reader(), EARTH, rng=make()[number], to=str(tmp_path / "stream.parquet"))
        for name in ("out", "stream"):
            metadata = pq.read_schema(tmp_path / f"{name}.parquet").metadata or {}
            assert (b"metricdp.simulated" in metadata) == expected


def test_a_job_carries_the_mark_whatever_its_seed_came_in(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("lat,lon\n41,-8\n", encoding="utf-8")
    made = []
    for number, rng in enumerate(seeded()[:2]):
        out = tmp_path / f"out{number}"
        assert perturbed([tmp_path / "a.parquet", tmp_path / "b.csv"], out, EARTH, rng=rng).simulated
        assert b"metricdp.simulated" in pq.read_schema(out / "a.parquet").metadata
        assert rows_of(out / "b.csv")[0] == ["lat", "lon", "metricdp_simulated"]
        made.append((out / "b.csv").read_bytes())
    assert made[0] == made[1]  # a generator and the source around it are the same seed


def test_the_mark_stays_when_a_simulation_is_protected_again(tmp_path: Path) -> None:
    once = perturb(ROWS, EARTH, rng=np.random.default_rng(0))
    assert b"metricdp.simulated" in perturb(once, EARTH).schema.metadata
    assert "metricdp.simulated" in perturb(perturb(ROWS.to_pandas(), EARTH, rng=np.random.default_rng(0)), EARTH).attrs
    (tmp_path / "in.csv").write_text("lat,lon\n41,-8\n", encoding="utf-8")
    for source, target in (("in", "once"), ("once", "twice")):
        perturb(tmp_path / f"{source}.csv", EARTH, to=tmp_path / f"{target}.csv", rng=np.random.default_rng(0))
    assert rows_of(tmp_path / "twice.csv")[0] == ["lat", "lon", "metricdp_simulated"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_blank_line_of_a_single_column_is_a_row(tmp_path: Path, end: str) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(end.join(["", "word", "cat", "", "dog", '""', "bird", ""]).encode())
    with pytest.raises(OutOfDomain, match=r"row 1 ") as caught:
        perturb(source, WORDS, to=target)
    assert caught.value.rows == (1, 3)
    summary = perturb(source, WORDS, to=target, on_error="null")
    assert (summary.rows, summary.bad, summary.bad_rows) == (5, 2, (1, 3))
    rows = target.read_text(encoding="utf-8").splitlines()
    assert len(rows) == 6
    assert [row for number, row in enumerate(rows) if number in (2, 4)] == ['""', '""']
    again = perturb(target, WORDS, to=tmp_path / "again.csv", on_error="drop")
    assert (again.rows, again.bad, again.written) == (5, 2, 3)


def test_blank_lines_between_rows_of_several_columns_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("\nlat,lon\n\n41,-8\n\n41.1,-8.1\n", encoding="utf-8")
    assert perturb(tmp_path / "in.csv", EARTH, to=tmp_path / "out.csv").rows == 2
