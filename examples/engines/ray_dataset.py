import ray

import metricdp as mdp

visits = ray.data.from_items([{"id": i, "lat": 41.15 + i / 1e5, "lon": -8.61} for i in range(1000)])
mechanism = mdp.laplace(mdp.Haversine(), 10.0)

# A materialised data set comes back: looking twice draws once.
protected = mdp.perturb(visits, mechanism)
print(protected.count())
