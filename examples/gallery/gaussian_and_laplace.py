"""How far reports lie from the truth: Laplace and Gaussian noise with the same mean error in the plane."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

pairs = {
    "Laplace, epsilon 2/km": mdp.laplace(mdp.Lp(2), 2.0),
    "Gaussian, rho 0.785/km²": mdp.gaussian(mdp.Lp(2), 0.785),
}

figure, axes = plt.subplots(figsize=(5.5, 3.5))
for name, noise in pairs.items():
    lengths = np.linalg.norm(noise.sample(np.zeros((20_000, 2))), axis=1)
    axes.hist(
        lengths, bins=60, range=(0, 4), histtype="step", density=True, label=f"{name}: mean {lengths.mean():.2f} km"
    )
axes.set(xlabel="km from the true place", yticks=[], title="Two kinds of noise")
axes.legend(fontsize=8)
figure.tight_layout()
figure.savefig("gaussian_and_laplace.png", dpi=80)
