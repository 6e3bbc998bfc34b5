from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import metricdp as mdp

rng = np.random.default_rng(0)
Path("days").mkdir()
for day in range(3):
    rows = pa.table({"lat": rng.uniform(41.14, 41.16, 1000), "lon": rng.uniform(-8.63, -8.6, 1000)})
    pq.write_table(rows, f"days/{day}.parquet")

# The same as: metricdp perturb 'days/*.parquet' --epsilon 10/km -o protected --engine local
summary = mdp.perturb("days/*.parquet", mdp.laplace(mdp.Haversine(), 10.0), to="protected", engine="local")
print("\n".join(summary.lines()))

# After a crash or a kill the same call with resume=True (--resume) goes on where it was.
mdp.perturb("days/*.parquet", mdp.laplace(mdp.Haversine(), 10.0), to="protected", resume=True)
