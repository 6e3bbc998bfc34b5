"""From reports back to a map of where people are: truth, reports, estimate."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

cells = mdp.grid((10, 10))
mechanism = mdp.exponential(cells, 1.5)
rng = np.random.default_rng(1)
centres = np.array([[2.0, 2.0], [7.0, 6.0]])[rng.integers(0, 2, 20_000)]
people = cells.encode(np.clip(np.rint(centres + rng.normal(size=(20_000, 2))), 0, 9))
reports = mechanism.sample(people)
maps = {
    "where people are": np.bincount(people, minlength=100) / len(people),
    "reports": np.bincount(reports, minlength=100) / len(reports),
    "estimate from reports": mdp.estimate_density(reports, mechanism, method="em").masses,
}

figure, panels = plt.subplots(1, 3, figsize=(8, 3))
for axes, (name, masses) in zip(panels, maps.items(), strict=True):
    axes.imshow(masses.reshape(10, 10), cmap="viridis", vmin=0, vmax=0.06)
    axes.set_title(name, fontsize=10)
    axes.axis("off")
figure.savefig("density_from_reports.png", dpi=80)
