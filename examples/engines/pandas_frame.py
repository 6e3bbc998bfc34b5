import numpy as np
import pandas as pd

import metricdp as mdp

rng = np.random.default_rng(0)
visits = pd.DataFrame(
    {
        "user": rng.integers(0, 50, 1000),
        "lat": rng.uniform(41.14, 41.16, 1000),
        "lon": rng.uniform(-8.63, -8.60, 1000),
        "hour": rng.integers(0, 24, 1000),
    }
)

# Latitude and longitude: points 200 m apart differ by at most a factor of two.
place = mdp.laplace(mdp.Haversine(), mdp.epsilon_for(2, 0.2))
protected = mdp.perturb(visits, place)
print(protected.head(3))

# The hour as well: two mechanisms on separate columns of one row, and their guarantees add up.
hours = mdp.exponential(mdp.FiniteSpace(np.arange(24.0)[:, None], mdp.Temporal(24)), 0.5)
both = mdp.product(place, hours)
protected = mdp.perturb(visits, both, columns=["lat", "lon", "hour"])
print(both.guarantee)
