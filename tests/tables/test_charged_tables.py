"""Tables in programs that are charged to a ledger: every kind the same way, once, before anything comes back."""

import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import metricdp as mdp
from metricdp.errors import BudgetExceeded, InvalidInput, OutOfDomain, OutputProblem
from metricdp.ledger import Ledger
from metricdp.tables import Charging, PersonLimits, task_for
from metricdp.tables import charging as books
from metricdp.tables.charging import charge_new
from metricdp.tables.people import spending_in

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
    charging, true, other = Charging(ledger, job="monday"), books.grant, []

    def meanwhile(*asked):
        if not other:
            other.append(None)
            other.append(mdp.perturb(table(), EARTH, id="person", ledger=charging))
        return true(*asked)

    monkeypatch.setattr(books, "grant", meanwhile)  # after this run has seen that the job is new
    monkeypatch.setattr("metricdp.ledger.Ledger.granted", lambda self, rows, **options: rows)
    mine = mdp.perturb(table(), EARTH, id="person", ledger=charging)
    assert mine.equals(other[1])
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]


def test_a_place_is_enough_and_a_budget_begins_the_books(tmp_path):
    place = tmp_path / "new.db"
    mdp.perturb(table(), EARTH, id="person", budget="30/km", ledger=place)
    with pytest.raises(BudgetExceeded, match="30/km ever is spent"):
        mdp.perturb(table(["anna"]), EARTH, id="person", ledger=str(place))
    with pytest.raises(InvalidInput, match="there is no ledger"):
        mdp.perturb(table(), EARTH, id="person", ledger=tmp_path / "none.db")


def test_nobody_is_charged_where_the_table_fails(ledger):
    with pytest.raises(InvalidInput, match="--id"):
        mdp.perturb(table(), EARTH, ledger=ledger)
    with pytest.raises(InvalidInput, match="a simulation is never released"):
        mdp.perturb(table(), EARTH, id="person", ledger=ledger, rng=np.random.default_rng(0))
    with pytest.raises(OutOfDomain, match="row 0"):
        mdp.perturb(table(north=95.0), EARTH, id="person", ledger=ledger)
    with pytest.raises(InvalidInput, match="1 row has no person"):
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


@pytest.mark.parametrize("kind", [pa.decimal128(10, 2), pa.decimal256(10, 1)])
def test_whole_numbers_with_decimal_places_are_no_names(ledger, kind):
    """The ledger would hold 7 and 7.00 as two persons, each with a budget."""
    ids = pa.array([Decimal(7), Decimal(7)], kind)
    with pytest.raises(InvalidInput, match="are two persons to a ledger"):
        mdp.perturb(table(["", ""]).set_column(0, "person", ids), EARTH, id="person", ledger=ledger)
    whole = table(["", ""]).set_column(0, "person", pa.array([Decimal(7), Decimal(7)], pa.decimal128(5, 0)))
    mdp.perturb(whole, EARTH, id="person", ledger=ledger)
    assert spent(ledger, 7) == [20]


def test_the_place_of_a_ledger_is_not_taken_for_an_open_one(tmp_path):
    for place in (tmp_path / "budget.db", str(tmp_path / "budget.db")):
        with pytest.raises(InvalidInput, match="must be an open ledger"):
            Charging(place, job="monday")


@pytest.mark.parametrize("kind", KINDS)
def test_two_spellings_of_one_name_are_one_person_with_one_budget(ledger, kind):
    both = ["é", "e\u0301", "é"]
    mdp.perturb(as_kind(table(both), kind), EARTH, id="person", ledger=ledger)
    assert spent(ledger, "é") == [30]
    with pytest.raises(InvalidInput, match="somebody has 3 rows"):
        mdp.perturb(as_kind(table(both), kind), EARTH, id="person", budget=20.0)


def test_a_job_that_comes_again_in_another_spelling_gives_everybody_their_own_reports(ledger, monkeypatch):
    """Between `e` and `é` lies `f`, so that the two change places with the spelling."""
    monday = Charging(ledger, job="monday")
    first = mdp.perturb(table(["é", "f", "ab"]), EARTH, id="person", ledger=monday)
    again = mdp.perturb(table(["e\u0301", "f", "ab"]), EARTH, id="person", ledger=monday)
    assert again.select(["lat", "lon"]).equals(first.select(["lat", "lon"]))
    with monkeypatch.context() as patched:  # as version 0.1.0 kept them
        patched.setattr(books, "ORDER", b"none")
        old = Charging(ledger, job="old")
        mdp.perturb(table(["é", "f", "ab"]), EARTH, id="person", ledger=old)
    with pytest.raises(InvalidInput, match="nobody can tell whose report is whose"):
        mdp.perturb(table(["é", "f", "ab"]), EARTH, id="person", ledger=old)


def test_names_that_are_near_each_other_are_counted_and_not_shown(ledger, caplog):
    mdp.perturb(table(["7.0", "07", " 7", "anna", "Anna ", "ben"]), EARTH, id="person", ledger=ledger)
    (line,) = [one.getMessage() for one in caplog.records if "only in spaces" in one.getMessage()]
    assert line.startswith("5 names in 'person'")
    assert "anna" not in line.lower()
    assert spent(ledger, "7.0", "07", " 7") == [10, 10, 10]  # bytes as they are
    caplog.clear()
    mdp.perturb(table(["7", "70", "0.7", "a7"]), EARTH, id="person", ledger=ledger)
    assert "only in spaces" not in caplog.text


def test_lists_name_nobody(ledger):
    whole = table(["", ""]).set_column(0, "person", pa.array([[1], [2]]))
    with pytest.raises(InvalidInput, match="persons cannot be counted"):
        mdp.perturb(whole, EARTH, id="person", ledger=ledger)


def test_a_data_set_is_charged_before_its_file_appears(ledger, tmp_path):
    pa.parquet.write_table(table(), tmp_path / "in.parquet")
    source, target = pa.dataset.dataset(tmp_path / "in.parquet"), tmp_path / "out.parquet"
    options = {"id": "person", "to": target, "ledger": Charging(ledger, job="monday")}
    first = mdp.perturb(source, EARTH, **options).to_table()
    assert mdp.perturb(source, EARTH, **options).to_table().equals(first)
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
    with pytest.raises(BudgetExceeded):
        mdp.perturb(source, EARTH, id="person", to=tmp_path / "more.parquet", ledger=ledger)
    assert not (tmp_path / "more.parquet").exists()
    target.unlink()
    with pytest.raises(InvalidInput, match="was charged before and its output is not at"):
        mdp.perturb(source, EARTH, **options)


def test_a_reader_is_charged_when_it_was_read(ledger, tmp_path):
    def reader(people):
        return pa.RecordBatchReader.from_batches(table().schema, table(people).to_batches(max_chunksize=2))

    with pytest.raises(BudgetExceeded, match="1 of 1 people"):
        mdp.perturb(reader(["anna"] * 5), EARTH, id="person", to=tmp_path / "out.parquet", ledger=ledger)
    assert not (tmp_path / "out.parquet").exists()
    mdp.perturb(reader(PEOPLE), EARTH, id="person", to=tmp_path / "out.parquet", ledger=ledger)
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
    for charging in (Charging(ledger, job="monday"), Charging(ledger, refused="report")):
        with pytest.raises(InvalidInput, match="a reader, which is read once,"):
            mdp.perturb(reader(["cleo"]), EARTH, id="person", to=tmp_path / "2.parquet", ledger=charging)


def test_a_table_in_duckdb_is_charged_before_it_is_there(ledger):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `duckdb`")
    with duckdb.connect() as connection:
        connection.register("points", table())
        options = {"id": "person", "ledger": Charging(ledger, job="monday")}
        first = mdp.perturb((connection, "FROM points"), EARTH, to="safe", **options).fetchall()
        assert mdp.perturb((connection, "FROM points"), EARTH, to="safe", **options).fetchall() == first
        assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
        with pytest.raises(BudgetExceeded):
            mdp.perturb((connection, "FROM points"), EARTH, to="more", id="person", ledger=ledger)
        with pytest.raises(OutputProblem, match="it is there already"):
            mdp.perturb((connection, "FROM points WHERE person = 'cleo'"), EARTH, to="safe", id="person", ledger=ledger)
        part = mdp.perturb(
            (connection, "FROM points"), EARTH, to="part", id="person", ledger=Charging(ledger, refused="report")
        )
        assert [row[3] for row in part.fetchall()] == [0, 1, 4, 5]
        assert {name for (name,) in connection.execute("SHOW TABLES").fetchall()} == {"points", "safe", "part"}
        connection.execute("DROP TABLE safe")
        with pytest.raises(InvalidInput, match="was charged before"):
            mdp.perturb((connection, "FROM points"), EARTH, to="safe", **options)


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "budget.md").read_text(encoding="utf-8")
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "mdp.perturb(" in block)
    exec(compile(code, "budget.md", "exec"), {})


CELLS = mdp.FiniteSpace([[float(place)] for place in range(5)], mdp.Lp(1))


def test_snapping_and_shares_of_a_budget_are_charged_row_by_row(tmp_path):
    """Eight rows share 2 evenly: .25 a row, which with a reach of half a unit is also a slack of .125 a row."""
    rows = pa.table({"who": ["anna"] * 8 + ["ben"], "x": [0.1] * 9})
    with Ledger.open(tmp_path / "budget.db", policy="2 ever, slack 1 ever") as ledger:
        options = {"columns": "x", "snap": 0.25, "id": "who", "budget": 2.0, "allocation": "even", "ledger": ledger}
        mdp.perturb(rows, mdp.exponential(CELLS, 1.0), **options)
        for person, epsilon, slack in (("anna", 2_000_000, 1_000_000), ("ben", 1_000_000, 500_000)):
            (account,) = ledger.budget(person).accounts
            assert (account.metric, account.spent, account.slack) == ("l2", epsilon, slack)


def test_of_two_runs_of_a_job_the_second_one_to_end_releases_nothing(ledger):
    """Both saw that the job was new, and both have their output ready."""
    task = task_for(["person", "lat", "lon"], EARTH)
    monday = PersonLimits("person", charging=Charging(ledger, job="monday"))
    spending = spending_in([table()], monday, table().column_names, task)
    assert "3 persons were charged for 6 rows" in charge_new(spending)[0]
    with pytest.raises(InvalidInput, match="released by another run meanwhile"):
        charge_new(spending)
    assert spent(ledger, "anna", "ben", "cleo") == [30, 20, 10]
