"""Tables that are charged to a ledger: whole or row by row, once, and before anything can be seen."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput
from metricdp.ledger import Ledger
from metricdp.tables import Charging, files, perturb, run_partition
from scripts import main

EARTH = "haversine/km"
NOISE = mdp.laplace(mdp.Haversine(), 10.0)
PEOPLE = ["anna", "ben", "anna", "anna", "cleo", "ben", "anna", "anna"]  # five, two and one


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db", policy="40/km ever") as books:
        yield books


def written(path, people=PEOPLE):
    """A table whose rows are numbered."""
    count = len(people)
    columns = {
        "person": people,
        "lat": [41.0] * count,
        "lon": [-8.6 + i / 1000 for i in range(count)],
        "n": range(count),
    }
    table = pa.table({name: list(values) for name, values in columns.items()})
    (pa.csv.write_csv if path.suffix == ".csv" else pa.parquet.write_table)(table, path)
    return path


@pytest.fixture
def in_process(monkeypatch):
    """Partitions are run here: who runs them makes no difference to who is charged, and workers take long to start."""

    def run(job, pending, tell, /, *, workers=None):
        for number in pending:
            run_partition(job.folder, number, tell)

    monkeypatch.setattr(files, "runner", lambda name: run)


def cut_off(job):
    raise KeyboardInterrupt


def spent(ledger, person):
    return ledger.budget(person, metric=EARTH).accounts[0].spent // 1_000_000


def test_a_table_is_charged_whole_or_not_at_all(ledger, tmp_path):
    source, target = written(tmp_path / "t.csv"), tmp_path / "out.csv"
    with pytest.raises(BudgetExceeded, match="1 of 3 people have less left than their rows cost, 10/km a row"):
        perturb(source, NOISE, to=target, id="person", ledger=ledger)
    assert not target.exists()
    assert spent(ledger, "ben") == 0
    summary = perturb(written(tmp_path / "few.csv", PEOPLE[:6]), NOISE, to=target, id="person", ledger=ledger)
    assert target.exists()
    assert [spent(ledger, person) for person in ("anna", "ben", "cleo")] == [30, 20, 10]
    assert "3 persons were charged for 6 rows." in summary.lines()
    assert ledger.verify().holds


def test_rows_that_do_not_fit_are_left_out_and_reported(ledger, tmp_path):
    source, target = written(tmp_path / "t.parquet"), tmp_path / "out.parquet"
    charging = Charging(ledger, refused="report")
    summary = perturb(source, NOISE, to=target, id="person", ledger=charging)
    assert pa.parquet.read_table(target)["n"].to_pylist() == [0, 1, 2, 3, 4, 5, 6]  # the fifth of anna is the last row
    assert [spent(ledger, person) for person in ("anna", "ben", "cleo")] == [40, 20, 10]
    assert "1 row was refused and left out, the last ones of 1 person whose" in " ".join(summary.lines())
    again = perturb(source, NOISE, to=tmp_path / "second.parquet", id="person", ledger=charging)
    assert pa.parquet.read_table(tmp_path / "second.parquet")["n"].to_pylist() == [1, 4, 5]
    assert again.written == 3


def test_a_budget_that_is_spread_is_charged_as_it_was_spread(ledger, tmp_path):
    options = {"id": "person", "budget": "20/km", "allocation": "even", "ledger": ledger}
    perturb(written(tmp_path / "t.csv"), NOISE, to=tmp_path / "out.csv", **options)
    assert [spent(ledger, person) for person in ("anna", "ben", "cleo")] == [20, 20, 10]


def test_numbers_and_text_are_one_person(ledger, tmp_path):
    perturb(written(tmp_path / "a.csv", ["7"]), NOISE, to=tmp_path / "1.csv", id="person", ledger=ledger)
    perturb(written(tmp_path / "b.parquet", [7, 7]), NOISE, to=tmp_path / "2.parquet", id="person", ledger=ledger)
    assert spent(ledger, 7) == 30


def test_nobody_is_charged_where_the_table_fails_or_nobody_is_named(ledger, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("person,lat,lon\nanna,41,-8\nben,410,-8\n")
    with pytest.raises(mdp.MetricdpError, match="row 1"):
        perturb(bad, NOISE, to=tmp_path / "out.csv", id="person", ledger=ledger)
    with pytest.raises(InvalidInput, match="--id"):
        perturb(written(tmp_path / "t.csv"), NOISE, to=tmp_path / "out.csv", ledger=ledger)
    assert ledger.budget("anna").accounts == ()


def test_a_job_over_many_files_is_charged_once_however_often_it_goes_on(ledger, tmp_path, monkeypatch, in_process):
    (tmp_path / "days").mkdir()
    for number in range(2):
        written(tmp_path / "days" / f"{number}.parquet", ["anna", "ben"])
    options = {"id": "person", "ledger": ledger}
    with monkeypatch.context() as patched:
        patched.setattr(files, "publish", cut_off)  # charged, and not yet in its place
        with pytest.raises(KeyboardInterrupt):
            perturb(tmp_path / "days", NOISE, to=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    assert spent(ledger, "anna") == 20
    summary = perturb(tmp_path / "days", NOISE, to=tmp_path / "out", resume=True, **options)
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert "charged before" in " ".join(summary.lines())
    perturb(tmp_path / "days", NOISE, to=tmp_path / "out", resume=True, **options)  # it is finished
    assert [spent(ledger, person) for person in ("anna", "ben")] == [20, 20]
    with pytest.raises(InvalidInput, match="charged whole or not at all"):
        perturb(tmp_path / "days", NOISE, to=tmp_path / "two", id="person", ledger=Charging(ledger, refused="report"))


def test_rows_that_a_job_gets_after_it_was_charged_are_charged_too(ledger, tmp_path, monkeypatch, in_process):
    (tmp_path / "days").mkdir()
    written(tmp_path / "days" / "0.csv", ["anna"])
    options = {"id": "person", "ledger": ledger}
    with monkeypatch.context() as patched:
        patched.setattr(files, "publish", cut_off)
        with pytest.raises(KeyboardInterrupt):
            perturb(tmp_path / "days", NOISE, to=tmp_path / "out", **options)
    written(tmp_path / "days" / "0.csv", ["anna", "anna", "ben"])
    perturb(tmp_path / "days", NOISE, to=tmp_path / "out", resume=True, **options)
    assert [spent(ledger, person) for person in ("anna", "ben")] == [20, 10]


def test_a_job_that_does_not_fit_is_refused_before_it_draws(ledger, tmp_path):
    (tmp_path / "days").mkdir()
    written(tmp_path / "days" / "0.parquet", ["anna"] * 5)
    with pytest.raises(BudgetExceeded, match="Nobody was charged"):
        perturb(tmp_path / "days", NOISE, to=tmp_path / "out", id="person", ledger=ledger)
    assert not (tmp_path / "out").exists()


def test_the_command_begins_books_with_the_budget_and_goes_on_with_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(Path("trips.parquet"), ["anna", "ben", "anna"])
    words = ["perturb", "trips.parquet", "--epsilon", "10/km", "--id", "person", "--ledger", "budget.db"]
    assert main([*words, "--budget", "40/km", "-o", "out.parquet"]) == 0
    assert "2 persons were charged for 3 rows." in capsys.readouterr().out
    assert main([*words, "-o", "second.parquet"]) == 0
    assert main([*words, "-o", "third.parquet"]) == 2
    assert "Nobody was charged" in capsys.readouterr().err
    assert not Path("third.parquet").exists()
    assert main([*words, "--refused", "report", "-o", "third.parquet"]) == 0
    assert "2 rows were refused" in capsys.readouterr().out
    assert pa.parquet.read_table("third.parquet")["person"].to_pylist() == ["ben"]
    assert main(["budget", "verify", "budget.db"]) == 0
    assert main(["perturb", "trips.parquet", "--epsilon", "10/km", "--refused", "report", "-o", "4.parquet"]) == 2
    assert main([*words, "--seed", "1", "-o", "5.parquet"]) == 2
