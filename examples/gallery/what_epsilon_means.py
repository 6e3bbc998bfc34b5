"""What epsilon means: how many times likelier a report may be from one place than from another."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

metres = np.linspace(0, 1000, 200)
figure, axes = plt.subplots(figsize=(5.5, 3.5))
for level, radius in ((2, 0.1), (2, 0.2), (2, 0.5)):
    epsilon = mdp.epsilon_for(level, radius)
    axes.semilogy(metres, np.exp(epsilon * metres / 1000), label=f"2x at {1000 * radius:g} m: epsilon {epsilon:.2f}/km")
axes.set(xlabel="metres between two places", ylabel="factor at most", title="What epsilon means")
axes.grid(alpha=0.3)
axes.legend()
figure.tight_layout()
figure.savefig("what_epsilon_means.png", dpi=80)
