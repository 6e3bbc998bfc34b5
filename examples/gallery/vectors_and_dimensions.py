"""Why embeddings are hard: the cosine of a unit vector and its report, by dimension and epsilon."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

levels = [10.0, 30.0, 100.0, 300.0, 1000.0]
figure, axes = plt.subplots(figsize=(5.5, 3.5))
for dimension in (16, 64, 256):
    secret = np.zeros((200, dimension))
    secret[:, 0] = 1.0
    cosines = []
    for level in levels:
        reports = mdp.laplace(mdp.Lp(2), level, dimension=dimension).sample(secret)
        cosines.append(np.mean(reports[:, 0] / np.linalg.norm(reports, axis=1)))
    axes.semilogx(levels, cosines, "o-", label=f"{dimension} dimensions")
axes.set(xlabel="epsilon, l2", ylabel="mean cosine", title="Noise grows with the dimension")
axes.grid(alpha=0.3)
axes.legend()
figure.tight_layout()
figure.savefig("vectors_and_dimensions.png", dpi=80)
