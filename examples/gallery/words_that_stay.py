"""The step between useless and unprotected: how many words stay as they are, by epsilon."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp
from metricdp.text import read_vectors
from metricdp.text.bundled import bundled_vectors

space = read_vectors(bundled_vectors(), limit=300).space()
levels = np.linspace(0.4, 3.2, 15)
stay = [np.diag(mdp.exponential(space, float(level)).matrix).mean() for level in levels]

figure, axes = plt.subplots(figsize=(5.5, 3.5))
axes.plot(levels, 100 * np.array(stay), "o-")
axes.set(xlabel="epsilon", ylabel="% of words that stay", title="300 words: the useful epsilons are few")
axes.grid(alpha=0.3)
figure.tight_layout()
figure.savefig("words_that_stay.png", dpi=80)
