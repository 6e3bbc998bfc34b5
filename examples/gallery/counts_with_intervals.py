"""Counts with 95 % intervals from protected rows, and the truth that only this example knows."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

towns = mdp.FiniteSpace(np.arange(8.0)[:, None], mdp.Lp(1))
mechanism = mdp.exponential(towns, 1.5)
rng = np.random.default_rng(3)
people = rng.choice(8, size=5000, p=np.array([8, 1, 2, 12, 5, 0, 3, 9]) / 40)
found = mdp.estimate_density(mechanism.sample(people), mechanism)
lower, upper = len(people) * found.lower, len(people) * found.upper

figure, axes = plt.subplots(figsize=(5.5, 3.5))
axes.errorbar(range(8), (lower + upper) / 2, yerr=(upper - lower) / 2, fmt="none", capsize=4, label="95 % interval")
axes.plot(range(8), np.bincount(people, minlength=8), "o", color="orangered", label="truth")
axes.set(xlabel="town", ylabel="people", title="5,000 protected rows")
axes.legend()
figure.tight_layout()
figure.savefig("counts_with_intervals.png", dpi=80)
