"""Two optima at one guarantee: the least mean loss, and the least loss of the place that fares worst."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

cells = mdp.grid((6, 6))
problem = mdp.Problem(cells, 1.0)

figure, axes = plt.subplots(figsize=(5.5, 3.5))
for objective in ("expected", "worst"):
    mechanism = mdp.optimal(problem, objective=objective, gap=0.02)
    losses = np.sort((mechanism.matrix * cells.distances).sum(axis=1))
    axes.plot(losses, label=f"{objective}: mean {losses.mean():.2f}, worst {losses.max():.2f}")
axes.set(xlabel="places, by loss", ylabel="loss, cells", title="Which loss to make small")
axes.legend()
figure.tight_layout()
figure.savefig("expected_or_worst.png", dpi=80)
