"""Flows between towns from two protected columns: the true table beside the estimated one."""

import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

towns = mdp.FiniteSpace(np.arange(5.0)[:, None], mdp.Lp(1))
noise = mdp.exponential(towns, 2.0)
rng = np.random.default_rng(4)
start = rng.integers(0, 5, 20_000)
end = np.minimum(start + rng.integers(0, 3, 20_000), 4)
found = mdp.estimate_flows(noise.sample(start), noise.sample(end), noise)
true = np.bincount(5 * start + end, minlength=25).reshape(5, 5) / len(start)

figure, panels = plt.subplots(1, 2, figsize=(6.5, 3.4))
for axes, (name, table) in zip(panels, {"true": true, "estimated": found.flows}.items(), strict=True):
    axes.imshow(table, cmap="viridis", vmin=0, vmax=true.max())
    axes.set(xlabel="to", ylabel="from", title=f"{name} flows")
figure.tight_layout()
figure.savefig("flows_between_towns.png", dpi=80)
