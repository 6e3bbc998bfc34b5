from pyspark.sql import SparkSession

import metricdp as mdp

session = SparkSession.builder.master("local[2]").getOrCreate()
visits = session.range(1000).selectExpr("id", "41.15D + id / 1e5 AS lat", "-8.61D AS lon")
mechanism = mdp.laplace(mdp.Haversine(), 10.0)

# Written once to the folder; the frame that comes back reads it, so looking twice draws once.
protected = mdp.perturb(visits, mechanism, to="protected")
print(protected.count())
