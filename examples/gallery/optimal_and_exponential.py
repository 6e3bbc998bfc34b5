"""The reports of one cell under the exponential mechanism and under the optimum, at the same epsilon."""

import matplotlib.pyplot as plt

import metricdp as mdp

cells = mdp.grid((9, 9))
problem = mdp.Problem(cells, 0.8)
made = {"exponential": mdp.exponential(cells, 0.8), "optimal": mdp.optimal(problem, gap=0.05)}

figure, panels = plt.subplots(1, 2, figsize=(7, 3.6))
for axes, (name, mechanism) in zip(panels, made.items(), strict=True):
    axes.imshow(mechanism.matrix[40].reshape(9, 9), cmap="viridis")
    axes.set_title(f"{name}: loss {mdp.expected_loss(mechanism):.2f} cells", fontsize=10)
    axes.axis("off")
figure.savefig("optimal_and_exponential.png", dpi=80)
