"""Keys of partition folders are columns: they are listed, looked at, dropped, coarsened and never left unseen."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as dataset
import pyarrow.parquet as pq
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, NotPrivate
from metricdp.ledger import Ledger
from metricdp.tables import perturb
from metricdp.tables.engines import local
from scripts import main

NOISE = mdp.laplace(mdp.Haversine(), 10.0)
DAYS, ZONES = ("2024-05-03", "2024-05-04"), ((41.14, -8.62), (41.15, -8.61), (41.16, -8.60), (41.17, -8.59))


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.os, "cpu_count", lambda: 1)


def folders(place: Path, pattern: str = "day={day}/zone={zone}", suffix: str = ".parquet") -> Path:
    """Write a table whose folders say on which day and in which small zone the rows are."""
    rng = np.random.default_rng(1)
    for day in DAYS:
        for north, east in ZONES:
            where = place / pattern.format(
                day=day,
                zone=f"{north}_{east}",
                who=f"{north}",
                letters=f"N{north}W{-east}",
                small=f"{north * 1e5:.0f}",
                cut=f"{north}_{east}"[1:],
            )
            where.mkdir(parents=True, exist_ok=True)
            table = pa.table({
                "lat": north + rng.random(30) / 1000, "lon": east + rng.random(30) / 1000, "n": rng.integers(0, 3, 30)
            })  # fmt: skip
            write = pq.write_table if suffix == ".parquet" else pacsv.write_csv
            write(table, where / f"part{suffix}")
    return place


def names(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_keys_are_listed_and_found_by_their_values_and_all_levels_stay(tmp_path: Path, suffix: str) -> None:
    place = folders(tmp_path / "in", "day={day}/z={zone}", suffix)
    made = perturb(place, NOISE, to=tmp_path / "out")
    assert names(tmp_path / "out") == names(place)
    found = {one.column: one for one in made.findings}
    assert found["z"].evidence == "value"
    assert "z" in made.kept_columns
    assert "day" in made.kept_columns
    assert "The names of folders are columns: day, z." in made.lines()
    assert made.rows == 240
    read = dataset.dataset(tmp_path / "out", partitioning="hive").to_table() if suffix == ".parquet" else None
    assert read is None or set(read.schema.names) == {"lat", "lon", "n", "day", "z"}
    inner = next((tmp_path / "out").rglob(f"*{suffix}"))
    columns = (pq.read_table if suffix == ".parquet" else pacsv.read_csv)(inner).schema.names
    assert columns == ["lat", "lon", "n"]


def test_a_level_that_all_files_share_stays(tmp_path: Path) -> None:
    place = folders(tmp_path / "in")
    for source in (place / f"day={DAYS[0]}", str(place / f"day={DAYS[0]}" / "*" / "*.parquet")):
        out = tmp_path / f"out{len(str(source))}"
        made = perturb(source, NOISE, to=out)
        assert names(out) == {name for name in names(place) if name.startswith(f"day={DAYS[0]}/")}
        assert "day" in made.kept_columns
    alone = place / f"day={DAYS[0]}" / "zone=41.14_-8.62" / "part.parquet"
    perturb([alone], NOISE, to=tmp_path / "alone")
    assert names(tmp_path / "alone") == {f"day={DAYS[0]}/zone=41.14_-8.62/part.parquet"}


def test_strict_covers_keys_also_those_whose_names_say_nothing(tmp_path: Path) -> None:
    place = folders(tmp_path / "in", "day={day}/k={zone}")
    with pytest.raises(NotPrivate, match="Check k"):
        perturb(place, NOISE, to=tmp_path / "out", strict=True)
    assert not (tmp_path / "out").exists()
    assert main(["perturb", str(place), "--epsilon", "10/km", "-o", str(tmp_path / "out"), "--strict"]) != 0
    assert not (tmp_path / "out").exists()
    with pytest.raises(NotPrivate, match="zone"):
        perturb(folders(tmp_path / "in2"), NOISE, to=tmp_path / "out", strict=True)
    made = perturb(place, NOISE, to=tmp_path / "out", strict=True, drop="k")
    assert made.rows == 240


def test_a_key_is_looked_at_where_the_files_have_a_column_of_its_name(tmp_path: Path) -> None:
    place = folders(tmp_path / "in", "n={zone}")
    with pytest.raises(NotPrivate, match="n: it holds coordinates"):
        perturb(place, NOISE, to=tmp_path / "out", strict=True)
    made = perturb(place, NOISE, to=tmp_path / "out")
    assert ("n", "coordinates") in {(one.column, one.kind) for one in made.findings}
    perturb(place, NOISE, to=tmp_path / "less", strict=True, drop=["n"])
    assert "41.1" not in str(names(tmp_path / "less"))


def test_a_key_that_is_dropped_or_coarsened_is_not_in_the_output(tmp_path: Path) -> None:
    place = folders(tmp_path / "in")
    made = perturb(place, NOISE, to=tmp_path / "dropped", drop="zone", strict=True)
    found = names(tmp_path / "dropped")
    assert not any("41." in name or "zone" in name for name in found)
    assert {name.partition("/")[0] for name in found} == {f"day={day}" for day in DAYS}
    assert len(found) == 8
    assert any("rows of one file stay together" in line for line in made.lines())
    perturb(place, NOISE, to=tmp_path / "coarse", drop="zone", coarsen={"day": "7d"}, strict=True)
    assert {name.partition("/")[0] for name in names(tmp_path / "coarse")} == {"day=2024-05-02"}
    assert not any(day in name for name in names(tmp_path / "coarse") for day in DAYS)
    rows = sum(pq.read_metadata(path).num_rows for path in (tmp_path / "coarse").rglob("*.parquet"))
    assert rows == 240
    with pytest.raises(InvalidInput, match="cannot be coarsened"):
        perturb(place, NOISE, to=tmp_path / "bad", coarsen={"zone": 1})


def test_a_key_says_whose_rows_they_are(tmp_path: Path) -> None:
    place = folders(tmp_path / "in", "day={day}/who={who}")
    made = perturb(place, NOISE, to=tmp_path / "out", id="who")
    assert made.people is not None
    assert (made.people.count, made.people.most_rows) == (4, 60)
    with Ledger.open(tmp_path / "budget.db", policy="100000/km ever") as ledger:
        perturb(place, NOISE, to=tmp_path / "charged", id="who", ledger=ledger)
        assert ledger.budget("41.14").accounts


def test_folders_that_would_show_what_is_protected_are_refused(tmp_path: Path) -> None:
    place = folders(tmp_path / "in", "lat={who}/day={day}")
    with pytest.raises(InvalidInput, match="'lat' is protected and stands in the names of the folders"):
        perturb(place, NOISE, to=tmp_path / "out")
    folders(tmp_path / "mixed", "day={day}")
    folders(tmp_path / "mixed", "zone={zone}")
    with pytest.raises(InvalidInput, match="same keys in the same order"):
        perturb(tmp_path / "mixed", NOISE, to=tmp_path / "out")


def test_keys_are_written_as_folders_are_and_jobs_go_on(tmp_path: Path) -> None:
    odd = tmp_path / "in" / f"k={quote('a b/ü', safe='')}" / "z=__HIVE_DEFAULT_PARTITION__"
    odd.mkdir(parents=True)
    pq.write_table(pa.table({"lat": [41.1] * 50, "lon": [-8.6] * 50}), odd / "part.parquet")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(local, "ATTEMPTS", 1)
        patched.setattr(local, "_ask", lambda *_: None)
        with pytest.raises(mdp.MetricdpError, match="resume"):
            perturb(tmp_path / "in", NOISE, to=tmp_path / "out", force=True, coarsen={"z": "1h"})
    perturb(tmp_path / "in", NOISE, to=tmp_path / "out", force=True, coarsen={"z": "1h"}, resume=True)
    assert names(tmp_path / "out") == names(tmp_path / "in")


def test_texts_in_partition_folders_have_the_keys_too(tmp_path: Path) -> None:
    words = mdp.vocabulary(["cat", "dog", "bird"], np.array([[0.0, 0], [1, 0], [0, 1]]))
    mechanism = mdp.text.TextMechanism(mdp.exponential(words, 2.0))
    for who in ("anna", "ben"):
        (tmp_path / "in" / f"person={who}").mkdir(parents=True)
        (tmp_path / "in" / f"person={who}" / "a.csv").write_text("text\ncat dog\nbird cat\n")
    made = perturb(tmp_path / "in", mechanism, to=tmp_path / "out", columns="text")
    assert "person" in made.kept_columns
    with pytest.raises(NotPrivate, match="person"):
        perturb(tmp_path / "in", mechanism, to=tmp_path / "strict", columns="text", strict=True)
    perturb(tmp_path / "in", mechanism, to=tmp_path / "dropped", columns="text", drop="person")
    assert not any("anna" in name for name in names(tmp_path / "dropped"))


def test_files_that_meet_are_numbered_in_an_order_that_nobody_can_work_out(tmp_path: Path) -> None:
    for number in range(6):
        place = tmp_path / "in" / f"zone={number}"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"lat": [41.1] * 50, "lon": [-8.6] * 50, "n": [number] * 50}), place / "part.parquet")
    orders = []
    for attempt in range(4):
        out = tmp_path / f"out{attempt}"
        perturb(tmp_path / "in", NOISE, to=out, force=True, drop="zone")
        orders.append([pq.read_table(out / f"part-{number:05d}.parquet")["n"][0].as_py() for number in range(6)])
        assert sorted(orders[-1]) == list(range(6))
    assert len({tuple(order) for order in orders}) > 1  # all the same with probability 3e-9


def test_a_job_that_goes_on_numbers_files_as_it_began(tmp_path: Path) -> None:
    for number in range(6):
        place = tmp_path / "in" / f"zone={number}"
        place.mkdir(parents=True)
        north = [41.1] * 50 if number < 5 else [91.0] * 50
        pq.write_table(pa.table({"lat": north, "lon": [-8.6] * 50, "n": [number] * 50}), place / "part.parquet")
    with pytest.raises(mdp.MetricdpError, match="resume"):
        perturb(tmp_path / "in", NOISE, to=tmp_path / "out", force=True, drop="zone")
    (before,) = (path for path in (tmp_path / ".out.metricdp-job").rglob("ready"))
    ready = {path.name: pq.read_table(path)["n"][0].as_py() for path in before.rglob("*.parquet")}
    mended = pa.table({"lat": [41.1] * 50, "lon": [-8.6] * 50, "n": [5] * 50})
    pq.write_table(mended, tmp_path / "in" / "zone=5" / "part.parquet")
    perturb(tmp_path / "in", NOISE, to=tmp_path / "out", force=True, drop="zone", resume=True)
    made = {path.name: pq.read_table(path)["n"][0].as_py() for path in (tmp_path / "out").rglob("*.parquet")}
    assert sorted(made.values()) == list(range(6))
    assert ready.items() <= made.items()


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("{zone}", "coordinates"),
        ("{who}/day={day}", "coordinates"),
        ("%34{cut}", "coordinates"),
        ("x{small}_{day}", "coordinates"),
        ("day={day}/{zone}", "coordinates"),
        ("p{who}@example.org", "persons"),
        ("a/b/0041_{zone}_x", "coordinates"),
        ("{letters}", "coordinates"),
    ],
)
def test_names_that_are_no_keys_are_told_and_with_strict_looked_at(tmp_path: Path, pattern: str, kind: str) -> None:
    place = folders(tmp_path / "in", pattern)
    made = perturb(place, NOISE, to=tmp_path / "out")
    assert any(
        line.startswith("The names of files, and of folders that are not keys, do not change") for line in made.lines()
    )
    with pytest.raises(NotPrivate, match=f"names of files or folders do not change .*{kind}"):
        perturb(place, NOISE, to=tmp_path / "strict", strict=True, keep="day" if "day=" in pattern else ())
    assert not (tmp_path / "strict").exists()


def test_names_of_files_that_are_those_of_persons_are_refused_with_strict(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, who in enumerate(("anna", "ben", "cleo")):
        rng = np.random.default_rng(number)
        north, east = 41.0 + rng.random(40), -8.6 + rng.random(40)
        pacsv.write_csv(pa.table({"who": [who] * 40, "lat": north, "lon": east}), tmp_path / "in" / f"{who}.csv")
    with pytest.raises(NotPrivate, match="name persons"):
        perturb(tmp_path / "in", NOISE, to=tmp_path / "out", strict=True, id="who")
    for path in sorted((tmp_path / "in").iterdir()):
        path.rename(path.with_name(f"part{path.stem[0]}.csv"))
    assert perturb(tmp_path / "in", NOISE, to=tmp_path / "out", strict=True, id="who").rows == 120


def test_names_of_text_files_are_told_and_with_strict_looked_at(tmp_path: Path) -> None:
    words = mdp.vocabulary(["cat", "dog", "bird"], np.array([[0.0, 0], [1, 0], [0, 1]]))
    mechanism = mdp.text.TextMechanism(mdp.exponential(words, 2.0))
    (tmp_path / "in").mkdir()
    for who in ("anna", "ben"):
        (tmp_path / "in" / f"{who}@example.org.csv").write_text("text\ncat dog\nbird cat\n")
    made = perturb(tmp_path / "in", mechanism, to=tmp_path / "out", columns="text")
    assert any("The names of files, and of folders" in line for line in made.lines())
    with pytest.raises(NotPrivate, match="name persons"):
        perturb(tmp_path / "in", mechanism, to=tmp_path / "strict", columns="text", strict=True)
