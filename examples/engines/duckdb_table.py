import duckdb

import metricdp as mdp

connection = duckdb.connect()
connection.execute(
    "CREATE TABLE visits AS SELECT i AS id, 41.15 + i / 1e5 AS lat, -8.61::DOUBLE AS lon FROM range(1000) t(i)"
)
mechanism = mdp.laplace(mdp.Haversine(), 10.0)

# The main way: a new table, made once. The other columns never leave the database.
mdp.perturb((connection, "SELECT * FROM visits WHERE id < 500"), mechanism, to="protected")
print(connection.sql("SELECT count(*), avg(lat) FROM protected").fetchall())

# A function for queries of your own; write what it gives to a table, never to a view.
mdp.tables.duckdb_function(connection, "protect", mechanism)
connection.execute(
    "CREATE TABLE reports AS SELECT id, p.lat, p.lon FROM (SELECT id, protect(lat, lon) AS p FROM visits)"
)
connection.close()
