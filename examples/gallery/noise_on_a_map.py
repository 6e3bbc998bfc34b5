"""Laplace noise around one place: a thousand reports, and the circles that hold half of them and 95 %."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

noise = mdp.laplace(mdp.Lp(2, unit="km"), mdp.epsilon_for(2, 0.2))  # 200 m apart: a factor of two at most
reports = noise.sample(np.zeros((1000, 2)))

figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.plot(*reports.T, ".", markersize=2, color="teal")
axes.plot(0, 0, "o", color="orangered", label="true place")
for level in (0.5, 0.95):
    radius = np.quantile(np.linalg.norm(reports, axis=1), level)
    axes.add_patch(plt.Circle((0, 0), radius, fill=False))
    axes.annotate(f"{level:.0%}", (0, radius), ha="center", va="bottom")
axes.set(xlim=(-2, 2), ylim=(-2, 2), xlabel="km", aspect="equal", title="Laplace noise, 2x at 200 m")
axes.legend()
figure.savefig("noise_on_a_map.png", dpi=80)
