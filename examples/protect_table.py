"""Protect the positions of a table with Laplace noise on the sphere; the other columns stay."""

import pyarrow as pa

import metricdp as mdp

trips = pa.table({"taxi": [1, 1, 2], "lat": [41.1496, 41.1503, 41.1478], "lon": [-8.6110, -8.6093, -8.6147]})
mechanism = mdp.laplace(mdp.Haversine(), 10.0)  # epsilon per kilometre
protected = mdp.perturb(trips, mechanism, columns=["lat", "lon"])
print(mechanism.guarantee)
print(protected.to_pylist())
