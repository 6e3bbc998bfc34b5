"""A tree of areas: each person chooses how precise reports are and which places they avoid; the guarantee stays."""

import numpy as np

import metricdp as mdp
from metricdp.artifacts import save_tree

cells = mdp.grid((6, 6))
tree = mdp.places.location_tree(cells, 3)  # 36 cells in 16 areas in 4 in 1
best = mdp.optimal(mdp.Problem(cells, 1.0), gap=0.01)
print(tree, best.certificate.loss)

# Somebody never wants to be reported at four places. Their reports go to others by a public map.
avoided = [14, 15, 20, 21]
mine = tree.prune(best, avoided)
print(mine.certificate.loss, mdp.audit(mine))

# What is published instead: leave them out and divide the rows by what is left.
rest = np.delete(best.matrix, avoided, axis=1)
rest /= rest.sum(axis=1, keepdims=True)
print(mdp.audit(rest, distances=cells.distances, epsilon=1.0))

# Coarser reports: one of four areas, with the same guarantee for the cells.
print(tree.coarsen(mine, 2).certificate)

# Areas may be told: hidden inside one's own area only, and a smaller file for it.
print(mdp.exponential(tree.disclosing(2), 1.0).guarantee)

mdp.save(mine, "mine.mdp")  # an ordinary mechanism: a browser draws from it

# Or hand out the whole tree, a file for every level: everybody chooses and prunes on their own device.
levels = [tree.coarsen(best, level) for level in range(1, tree.height + 1)]
print(save_tree(tree, [best, *levels], "cells").levels[2].file)
