import numpy as np
import polars as pl

import metricdp as mdp

rng = np.random.default_rng(0)
visits = pl.DataFrame(
    {"user": range(1000), "lat": rng.uniform(41.14, 41.16, 1000), "lon": rng.uniform(-8.63, -8.6, 1000)}
)
mechanism = mdp.laplace(mdp.Haversine(), 10.0)

protected = mdp.perturb(visits, mechanism)

# A lazy frame is collected once and comes back eager.
lazy = visits.lazy().filter(pl.col("user") < 100)
protected = mdp.perturb(lazy, mechanism)
print(type(protected).__name__, protected.shape)
