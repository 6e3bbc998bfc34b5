"""DuckDB: a table made once, a function that draws for every row, NULL said plainly."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import metricdp as mdp
from metricdp.errors import InvalidInput, OutOfDomain, OutputProblem
from tables.engines.law import LOCAL, MATRIX, check, table

duckdb = pytest.importorskip("duckdb", reason="needs the extra `duckdb`")
EARTH = mdp.laplace(mdp.Haversine(), 10.0)
WORDS = mdp.exponential(mdp.FiniteSpace([[0.0], [1], [3]], mdp.Lp(1), coordinates=["cat", "dog", "bird"]), 1.0)


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


def test_a_table_is_made_once(connection) -> None:
    before = table(60_000)
    connection.register("points", before)
    relation = mdp.perturb((connection, "FROM points ORDER BY id;"), MATRIX, to="protected")
    check(before, relation.to_arrow_table())
    assert connection.table("protected").fetchall() == relation.fetchall()  # looked at twice, drawn once
    check(before, mdp.perturb((connection, "FROM points ORDER BY id"), LOCAL, to="city").to_arrow_table(), LOCAL)
    with pytest.raises(OutputProblem, match="protected"):
        mdp.perturb((connection, "FROM points"), MATRIX, to="protected")
    with pytest.raises(InvalidInput, match="is a recipe"):
        mdp.perturb(connection.sql("FROM points"), MATRIX)


def test_types_stay_and_functions_go(connection) -> None:
    connection.execute(
        "CREATE TABLE t AS SELECT 41.5::FLOAT AS lat, -8::INTEGER AS lon, DATE '2026-01-01' AS d, 'q' AS w"
    )
    made = mdp.perturb((connection, "FROM t"), EARTH, to="p")
    assert [str(kind) for kind in made.types] == ["FLOAT", "DOUBLE", "DATE", "VARCHAR"]
    left = connection.sql("SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE 'metricdp_%'").fetchall()
    assert left == [(0,)]
    streets = mdp.perturb((connection, "SELECT 'dog' AS word, 3 AS n FROM range(100)"), WORDS, to="w", columns="word")
    assert {word for word, _ in streets.fetchall()} == {"cat", "dog", "bird"}


def test_a_constant_is_not_folded_into_one_draw(connection) -> None:
    mdp.tables.duckdb_function(connection, "protect", EARTH)
    rows = connection.sql("SELECT protect(41.0, -8.0) AS p FROM range(5000)").fetchall()
    assert len({(p["lat"], p["lon"]) for (p,) in rows}) > 4000
    # Both coordinates come from one draw: a draw a coordinate would break the promise.
    rows = connection.sql(
        "SELECT p.lat, p.lat, p.lon FROM (SELECT protect(41.0, -8.0) AS p FROM range(5000))"
    ).fetchall()
    assert all(first == second for first, second, _ in rows)
    query = "SELECT 41.0::DOUBLE AS lat, -8.0::DOUBLE AS lon FROM range(5000)"
    mdp.perturb((connection, query), EARTH, to="same", force=True)
    assert connection.sql("SELECT count(DISTINCT lat) FROM same").fetchall()[0][0] > 1000


def test_a_view_over_the_function_draws_again(connection) -> None:
    """The trap that the documentation names: this is why tables are made once."""
    mdp.tables.duckdb_function(connection, "protect", WORDS)
    connection.execute("CREATE VIEW noisy AS SELECT protect('dog') AS word FROM range(200)")
    assert connection.sql("FROM noisy").fetchall() != connection.sql("FROM noisy").fetchall()


def test_null_and_bad_rows(connection) -> None:
    connection.register("t", pa.table({"id": [1, 2, 3], "lat": [41.0, None, 99.0], "lon": [-8.0, -8.0, -8.0]}))
    with pytest.raises(OutOfDomain, match=r"rows of the query, row 1 .*lat holds no number"):
        mdp.perturb((connection, "FROM t"), EARTH, to="p")
    assert connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
    emptied = mdp.perturb((connection, "FROM t"), EARTH, to="p", on_error="null").fetchall()
    assert [(row[0], row[1] is None, row[2] is None) for row in emptied] == [
        (1, False, False),
        (2, True, True),
        (3, True, True),
    ]
    assert [row[0] for row in mdp.perturb((connection, "FROM t"), EARTH, to="q", on_error="drop").fetchall()] == [1]
    mdp.tables.duckdb_function(connection, "protect", EARTH)
    with pytest.raises(duckdb.Error, match="lat holds no number"):
        connection.sql("SELECT protect(lat, lon) FROM t").fetchall()
    mdp.tables.duckdb_function(connection, "lenient", EARTH, on_error="null")
    assert [row[0] is None for row in connection.sql("SELECT lenient(lat, lon) FROM t").fetchall()] == [
        False,
        True,
        True,
    ]
    with pytest.raises(InvalidInput, match="cannot drop"):
        mdp.tables.duckdb_function(connection, "f", EARTH, on_error="drop")
    with pytest.raises(InvalidInput, match="no column 'latitude'"):
        mdp.perturb((connection, "FROM t"), EARTH, to="p2", columns=["latitude", "lon"])


def test_a_product_in_sql(connection) -> None:
    both = mdp.product(EARTH, WORDS)
    mdp.tables.duckdb_function(connection, "protect", both)
    ((found,),) = connection.sql("SELECT protect(41, -8, 'dog')").fetchall()
    assert set(found) == {"lat", "lon", "word"}
    made = mdp.perturb(
        (connection, "SELECT 41.0 AS a, -8.0 AS b, 'dog' AS c, i FROM range(9) r(i)"),
        both,
        to="p",
        columns=["a", "b", "c"],
    )
    assert np.array_equal([row[3] for row in made.fetchall()], range(9))


def test_an_enumeration_that_stays_names_no_values_of_other_rows(connection) -> None:
    connection.execute("CREATE TYPE who AS ENUM ('anna', 'o''neil (x)', 'never')")
    connection.execute(
        "CREATE TABLE people AS SELECT 41.1::DOUBLE lat, -8.6::DOUBLE lon, 'anna'::who one, ['o''neil (x)'::who] many, "
        "{'in': 'anna'::who} deep"
    )
    noise = mdp.laplace(mdp.Haversine(), 10.0)
    made = mdp.perturb((connection, "FROM people"), noise, to="released", force=True)
    assert [str(kind) for kind in made.types[2:]] == ["VARCHAR", "VARCHAR[]", 'STRUCT("in" VARCHAR)']
    assert made.fetchall()[0][2:] == ("anna", ["o'neil (x)"], {"in": "anna"})
    assert "never" not in str(
        connection.sql("SELECT sql FROM duckdb_tables() WHERE table_name = 'released'").fetchall()
    )


def test_what_was_looked_at_is_called_the_first_rows(connection, caplog) -> None:
    noise = mdp.laplace(mdp.Haversine(), 10.0)
    with caplog.at_level("INFO", "metricdp"):
        query = "SELECT 41 + i / 1e5 AS lat, -8 - i / 1e5 AS lon FROM range(3000) t(i)"
        mdp.perturb((connection, query), noise, to="released", force=True)
    assert "by their values on the first 3,000 rows" in caplog.text
