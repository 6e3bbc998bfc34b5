import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import metricdp as mdp

rng = np.random.default_rng(0)
table = pa.table({"lat": rng.uniform(41.14, 41.16, 1000), "lon": rng.uniform(-8.63, -8.6, 1000)})
pq.write_table(table, "visits.parquet")
mechanism = mdp.laplace(mdp.Haversine(), 10.0)

# A table in memory.
print(mdp.perturb(table, mechanism).num_rows)

# A data set of any length, in constant memory: written to one file, and a data set over that file comes back.
protected = mdp.perturb(ds.dataset("visits.parquet"), mechanism, to="protected.parquet")
print(protected.count_rows())
