"""Tables in programs that are charged to a ledger: every kind the same way, once, before anything comes back."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput, OutOfDomain, OutputProblem
from metricdp.ledger import Ledger
from metricdp.tables import Charging, repeating

EARTH = mdp.laplace(mdp.Haversine(), 10.0)
PEOPLE = ["anna", "ben", "anna", "anna", "cleo", "ben"]  # three, two and one
KINDS = ["arrow", "batch", "pandas", "polars", "lazy"]


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db", policy="40/km ever") as books:
        yield books


def table(people=PEOPLE, north=41.0):
    rows = range(len(people))
    return pa.table(
        {
            "person": list(people),
            "lat": [north + row / 500 for row in rows],
            "lon": [-8.6 + row / 1000 for row in rows],
            "n": list(rows),
        }
    )


def as_kind(whole, kind):
    if kind == "batch":
        return whole.to_batches()[0]
    if kind == "pandas":
        return whole.to_pandas()
    if kind in ("polars", "lazy"):
        frame = pytest.importorskip("polars").from_arrow(whole)
        return frame.lazy() if kind == "lazy" else frame
    return whole


def as_rows(frame):
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    frame = frame if isinstance(frame, pa.Table) else pa.table(frame.to_dict(**listed(frame)))
    return frame.select(["person", "lat", "lon", "n"]).to_pylist()


def listed(frame):
    return {"as_series": False} if type(frame).__module__.startswith("polars") else {"orient": "list"}


def spent(ledger, *people):
    found = [ledger.budget(person, metric="haversine/km").accounts for person in people]
    return [accounts[0].spent // 1_000_000 if accounts else 0 for accounts in found]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_charged_whole_or_not_at_all(ledger, kind):
    done = mdp.perturb(as_kind(table(), kind), EARTH, id="person", ledger=ledger)
    assert len(as_rows(done)) == 6
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
    with pytest.raises(BudgetExceeded, match="1 of 3 people have less left than their rows cost, 10/km a row"):
        mdp.perturb(as_kind(table(), kind), EARTH, id="person", ledger=ledger)
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
    part = mdp.perturb(as_kind(table(), kind), EARTH, id="person", ledger=Charging(ledger, refused="report"))
    assert [row["n"] for row in as_rows(part)] == [0, 1, 4, 5]  # one more of anna, two of ben, one of cleo
    assert ledger.verify().holds


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars"])
def test_a_job_that_comes_again_costs_nothing_and_gives_the_same_reports_whatever_the_rows_hold(ledger, kind):
    charging = Charging(ledger, job="monday")
    first = as_rows(mdp.perturb(as_kind(table(), kind), EARTH, id="person", ledger=charging))
    again = as_rows(mdp.perturb(as_kind(table(north=10.0), kind), EARTH, id="person", ledger=charging))
    assert again == first
    turned = table().take([5, 4, 3, 2, 1, 0])  # the rows of a person keep their reports, in their order
    other = as_rows(mdp.perturb(as_kind(turned, kind), EARTH, id="person", ledger=charging))
    for person in ("anna", "ben", "cleo"):
        reports = [[(row["lat"], row["lon"]) for row in rows if row["person"] == person] for rows in (first, other)]
        assert reports[0] == reports[1]
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]


def test_rows_that_were_refused_or_bad_stay_so_when_the_job_comes_again(ledger):
    whole = table(["anna"] * 6)
    bad = whole.set_column(1, "lat", pa.array([41.0, 95.0, 41.1, 41.2, 41.3, 41.4]))
    charging = Charging(ledger, job="tuesday", refused="report")
    options = {"id": "person", "ledger": charging, "on_error": "null"}
    first = mdp.perturb(bad, EARTH, **options)
    assert first["n"].to_pylist() == [0, 1, 2, 3]
    assert first["lat"].null_count == 1  # a bad row is charged: who is charged must not depend on secrets
    assert mdp.perturb(whole, EARTH, **options).equals(first)
    assert spent(ledger, "anna") == [40]


@pytest.mark.parametrize(
    ("people", "epsilon", "found"),
    [
        (PEOPLE[:5], 10.0, "for other rows"),
        ([*PEOPLE, "dora"], 10.0, "for other rows"),
        ([*PEOPLE[:5], "dora"], 10.0, "for other rows"),
        (PEOPLE, 5.0, "with another mechanism"),
    ],
)
def test_the_name_of_a_job_belongs_to_its_rows_and_its_mechanism(ledger, people, epsilon, found):
    charging = Charging(ledger, job="monday")
    mdp.perturb(table(), EARTH, id="person", ledger=charging)
    with pytest.raises(InvalidInput, match=found):
        mdp.perturb(table(people), mdp.laplace(mdp.Haversine(), epsilon), id="person", ledger=charging)
    assert spent(ledger, "anna", "ben", "cleo", "dora") == [30, 20, 10, 0]


def test_two_runs_of_one_job_at_once_give_one_draw(ledger, monkeypatch):
    charging, true, other = Charging(ledger, job="monday"), repeating.grant, []

    def meanwhile(*asked):
        if not other:
            other.append(None)
            other.append(mdp.perturb(table(), EARTH, id="person", ledger=charging))
        return true(*asked)

    monkeypatch.setattr(repeating, "grant", meanwhile)  # after this run has seen that the job is new
    monkeypatch.setattr("metricdp.ledger.Ledger.granted", lambda self, rows, **options: rows)
    mine = mdp.perturb(table(), EARTH, id="person", ledger=charging)
    assert mine.equals(other[1])
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]


def test_a_place_is_enough_and_a_budget_begins_the_books(tmp_path):
    place = tmp_path / "new.db"
    mdp.perturb(table(), EARTH, id="person", budget="30/km", ledger=place)
    with pytest.raises(BudgetExceeded, match="30/km ever is spent"):
        mdp.perturb(table(["anna"]), EARTH, id="person", ledger=str(place))
    with pytest.raises(InvalidInput, match="there are no books"):
        mdp.perturb(table(), EARTH, id="person", ledger=tmp_path / "none.db")


def test_nobody_is_charged_where_the_table_fails(ledger):
    with pytest.raises(InvalidInput, match="--id"):
        mdp.perturb(table(), EARTH, ledger=ledger)
    with pytest.raises(InvalidInput, match="a simulation is never released"):
        mdp.perturb(table(), EARTH, id="person", ledger=ledger, rng=np.random.default_rng(0))
    with pytest.raises(OutOfDomain, match="row 0"):
        mdp.perturb(table(north=95.0), EARTH, id="person", ledger=ledger)
    with pytest.raises(InvalidInput, match="1 rows have no person"):
        mdp.perturb(table([*PEOPLE[:5], None]), EARTH, id="person", ledger=ledger)
    with pytest.raises(InvalidInput, match="'lat' is part of the secret and cannot say whose row it is"):
        mdp.perturb(table(), EARTH, id="lat", ledger=ledger)
    for wrong, found in ((7, "must be an open ledger"), ("", "must be a file"), (str(Path(__file__).parent), "a file")):
        with pytest.raises(InvalidInput, match=found):
            mdp.perturb(table(), EARTH, id="person", ledger=wrong)
    with pytest.raises(InvalidInput, match="no column 'who'"):
        mdp.perturb(table(), EARTH, id="who", ledger=ledger)
    assert spent(ledger, "anna", "ben", "cleo") == [0, 0, 0]


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        ([7, 7], "7"),
        (pa.array([7, 7], pa.uint64()), 7),
        ([7.0, 7.0], 7),
        ([b"\xff\x00", b"\xff\x00"], b"\xff\x00"),
        (pa.array(["é", "é"]).dictionary_encode(), "e\u0301"),
        (pa.array([1, 1], pa.date32()), "1970-01-02"),
        ([True, True], "True"),
    ],
)  # fmt: skip
def test_persons_may_be_of_any_type_that_has_a_name(ledger, ids, name):
    whole = table(["", ""]).set_column(0, "person", pa.array(ids) if isinstance(ids, list) else ids)
    mdp.perturb(whole, EARTH, id="person", ledger=ledger)
    assert spent(ledger, name) == [20]


def test_two_spellings_of_one_name_are_one_person_and_say_so(ledger):
    with pytest.raises(InvalidInput, match="two spellings of one name"):
        mdp.perturb(table(["é", "e\u0301"]), EARTH, id="person", ledger=ledger)


def test_lists_name_nobody(ledger):
    whole = table(["", ""]).set_column(0, "person", pa.array([[1], [2]]))
    with pytest.raises(InvalidInput, match="persons cannot be counted"):
        mdp.perturb(whole, EARTH, id="person", ledger=ledger)


def test_a_data_set_is_charged_before_its_file_appears(ledger, tmp_path):
    pa.parquet.write_table(table(), tmp_path / "in.parquet")
    source, target = pa.dataset.dataset(tmp_path / "in.parquet"), tmp_path / "out.parquet"
    options = {"id": "person", "target": target, "ledger": Charging(ledger, job="monday")}
    first = mdp.perturb(source, EARTH, **options).to_table()
    assert mdp.perturb(source, EARTH, **options).to_table().equals(first)
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
    with pytest.raises(BudgetExceeded):
        mdp.perturb(source, EARTH, id="person", target=tmp_path / "more.parquet", ledger=ledger)
    assert not (tmp_path / "more.parquet").exists()
    target.unlink()
    with pytest.raises(InvalidInput, match="was charged before and its output is not at"):
        mdp.perturb(source, EARTH, **options)


def test_a_reader_is_charged_when_it_was_read(ledger, tmp_path):
    def reader(people):
        return pa.RecordBatchReader.from_batches(table().schema, table(people).to_batches(max_chunksize=2))

    with pytest.raises(BudgetExceeded, match="1 of 1 people"):
        mdp.perturb(reader(["anna"] * 5), EARTH, id="person", target=tmp_path / "out.parquet", ledger=ledger)
    assert not (tmp_path / "out.parquet").exists()
    mdp.perturb(reader(PEOPLE), EARTH, id="person", target=tmp_path / "out.parquet", ledger=ledger)
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
    for charging in (Charging(ledger, job="monday"), Charging(ledger, refused="report")):
        with pytest.raises(InvalidInput, match="a reader, which is read once,"):
            mdp.perturb(reader(["cleo"]), EARTH, id="person", target=tmp_path / "2.parquet", ledger=charging)


def test_a_table_in_duckdb_is_charged_before_it_is_there(ledger):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `duckdb`")
    with duckdb.connect() as connection:
        connection.register("points", table())
        options = {"id": "person", "ledger": Charging(ledger, job="monday")}
        first = mdp.duckdb_table(connection, "FROM points", "safe", EARTH, **options).fetchall()
        assert mdp.duckdb_table(connection, "FROM points", "safe", EARTH, **options).fetchall() == first
        assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
        with pytest.raises(BudgetExceeded):
            mdp.duckdb_table(connection, "FROM points", "more", EARTH, id="person", ledger=ledger)
        with pytest.raises(OutputProblem, match="it is there already"):
            mdp.duckdb_table(connection, "FROM points WHERE person = 'cleo'", "safe", EARTH, id="person", ledger=ledger)
        part = mdp.duckdb_table(
            connection, "FROM points", "part", EARTH, id="person", ledger=Charging(ledger, refused="report")
        )
        assert [row[3] for row in part.fetchall()] == [0, 1, 4, 5]
        assert {name for (name,) in connection.execute("SHOW TABLES").fetchall()} == {"points", "safe", "part"}
        connection.execute("DROP TABLE safe")
        with pytest.raises(InvalidInput, match="was charged before"):
            mdp.duckdb_table(connection, "FROM points", "safe", EARTH, **options)


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "journeys" / "budget.md").read_text(encoding="utf-8")
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "mdp.perturb(" in block)
    exec(compile(code, "budget.md", "exec"), {})
