"""A policy: two towns may be told apart, places inside a town must not."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

cells = mdp.grid((6, 6))
towns = np.repeat([0, 1], 18)
space = mdp.policy(cells, mdp.policy_graphs.areas(towns), parts="disclose")
mechanism = mdp.optimal(mdp.Problem(space, 1.0, loss=cells.distances), gap=0.02)

figure, panels = plt.subplots(1, 2, figsize=(6.5, 3.6))
for axes, code in zip(panels, (7, 28), strict=True):
    axes.imshow(mechanism.matrix[code].reshape(6, 6), cmap="viridis")
    axes.plot(code % 6, code // 6, "o", mfc="none", mec="white", markersize=14)
    axes.axhline(2.5, color="white", linestyle="--")
    axes.set_title("reports from the ringed cell", fontsize=10)
    axes.axis("off")
figure.savefig("policy_graph.png", dpi=80)
