"""A metric that stretches with the map: precise in the dense centre, coarse where places are few."""

import numpy as np

import metricdp as mdp

roads = mdp.road_network("porto", nodes=60)  # crossings with distances along the roads, in km
inhabitants = np.full(len(roads), 40.0)  # a public number each: people, places of interest, area

# Within level 1 of every crossing live 200 people, within level 2 there are 800, within level 3 1,800.
elastic = mdp.elastic(roads, mass=inhabitants, requirement=lambda level: 200 * level**2)
kilometres = roads.distances

print(mdp.exponential(elastic, 1.0).guarantee)  # epsilon 1 per level, in the elastic metric
best = mdp.optimal(mdp.Problem(elastic, 1.0, loss=kilometres), gap=0.05)
print(best.certificate)

# A scale of one's own: around the crossing 30 (a clinic, say) distances count a fifth, so that epsilon does.
near = kilometres[30] <= 0.2
careful = mdp.places.scaled(roads, np.where(near, 0.2, 1.0))
print(mdp.optimal(mdp.Problem(careful, 10.0, loss=kilometres), gap=0.05).certificate)
