"""An elastic metric: within one level lie as many people in the centre as in the suburbs."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

rng = np.random.default_rng(2)
points = np.vstack([rng.normal(0, 0.4, (60, 2)), rng.uniform(-4, 4, (40, 2))])
space = mdp.FiniteSpace(points, mdp.Lp(2, unit="km"))
elastic = mdp.elastic(space, mass=np.ones(len(points)), requirement=lambda level: 12 * level**2)
reach = np.where(elastic.distances <= 1.0, space.distances, 0.0).max(axis=1)  # how far level 1 goes, in km

figure, axes = plt.subplots(figsize=(5, 4))
shown = axes.scatter(*points.T, c=reach, cmap="viridis", s=30)
figure.colorbar(shown, label="km within level 1")
axes.set(aspect="equal", title="Twelve places within level 1, everywhere")
figure.tight_layout()
figure.savefig("elastic_scales.png", dpi=80)
