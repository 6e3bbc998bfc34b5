"""Which places must be hidden from each other is a graph: steps on a grid, towns that may be told, contact tracing."""

import numpy as np

import metricdp as mdp

cells = mdp.grid((6, 6), spacing=0.5, origin=(41.13, -8.66), metric=mdp.Haversine())  # 500 m wide, 36 of them
kilometres = cells.distances

# Neighbours must be hidden from each other: epsilon for every step from cell to cell.
steps = mdp.policy(cells, mdp.policy_graphs.grid_neighbours((6, 6)))
best = mdp.optimal(mdp.Problem(steps, 1.0, loss=kilometres), gap=0.02)
print(best.guarantee)
print(best.certificate)

# Two towns: which one may be told, where in it must not. The guarantee says so.
towns = np.repeat([0, 1], 18)
told = mdp.policy(cells, mdp.policy_graphs.areas(towns), parts="disclose")
inside = mdp.optimal(mdp.Problem(told, 1.0, loss=kilometres), gap=0.02)
print(inside.guarantee)
print(mdp.audit(inside))

# Four districts; places are hidden among those of their own district and of districts beside it.
rows, columns = np.divmod(np.arange(36), 6)
districts = np.array(["north", "south"])[rows // 3] + np.array([" west", " east"])[columns // 3]
beside = mdp.policy_graphs.areas(districts, neighbours=mdp.policy_graphs.bordering(cells, districts, 0.6))
print(mdp.exponential(mdp.policy(cells, beside), 1.0).inputs.distances.max())  # two hops across the corner

# Contact tracing: places where somebody infected was may be told exactly, all others are hidden as before.
infected = [14, 15]
open_there = mdp.policy_graphs.disclosing(mdp.policy_graphs.grid_neighbours((6, 6)), infected)
tracing = mdp.exponential(mdp.policy(cells, open_there, isolated="disclose"), 1.0)
print(tracing.matrix[14, 14], tracing.matrix[13, 14])  # a visit there is reported as it is, and nothing else is

# The exponential mechanism written without the half, exp(-epsilon d): its normaliser leaks too.
probabilities = np.exp(-1.0 * steps.distances)
probabilities /= probabilities.sum(axis=1, keepdims=True)
print(mdp.audit(probabilities, distances=steps.distances, epsilon=1.0))
