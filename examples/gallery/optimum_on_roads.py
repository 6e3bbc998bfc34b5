"""The optimum on crossings of central Porto: every crossing in the colour of its expected loss along the roads."""

import matplotlib.pyplot as plt

import metricdp as mdp

roads = mdp.road_network("porto", nodes=80)
mechanism = mdp.optimal(mdp.Problem(roads, mdp.epsilon_for(2, 0.1)), gap=0.05)
losses = 1000 * (mechanism.matrix * roads.distances).sum(axis=1)

figure, axes = plt.subplots(figsize=(5, 4))
places = roads.coordinates
shown = axes.scatter(places[:, 1], places[:, 0], c=losses, cmap="viridis", s=40)
figure.colorbar(shown, label="expected loss, metres")
axes.set(xticks=[], yticks=[], title="80 crossings of Porto, 2x at 100 m")
figure.tight_layout()
figure.savefig("optimum_on_roads.png", dpi=80)
