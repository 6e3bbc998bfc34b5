"""An audit as a picture: the largest log-ratio of every pair of secrets against its distance."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

cells, epsilon = mdp.grid((5, 5)), 1.0
sound = mdp.exponential(cells, epsilon).matrix
careless = np.exp(-epsilon * cells.distances)  # the normaliser leaks too, and nobody pays for it
careless /= careless.sum(axis=1, keepdims=True)

figure, panels = plt.subplots(1, 2, figsize=(7.5, 3.4), sharey=True)
rows, columns = np.triu_indices(len(cells), 1)
for axes, (name, matrix) in zip(panels, {"exponential": sound, "without the half": careless}.items(), strict=True):
    logs = np.log(matrix)
    leaks = np.abs(logs[rows] - logs[columns]).max(axis=1)
    report = mdp.audit(matrix, metric=mdp.Lp(2), points=cells.points, epsilon=epsilon)
    axes.plot(cells.distances[rows, columns], leaks, ".", markersize=4)
    axes.plot([0, 5.7], [0, 5.7 * epsilon], color="orangered", label="epsilon times the distance")
    axes.set(xlabel="distance", title=f"{name}: {report.verdict}")
panels[0].set_ylabel("largest log-ratio")
panels[0].legend(fontsize=8)
figure.tight_layout()
figure.savefig("audit_of_all_pairs.png", dpi=80)
