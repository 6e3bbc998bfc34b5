"""What a trajectory costs: the basic sum and the concentrated account, for two histories 100 m apart."""

import matplotlib.pyplot as plt
import numpy as np

from metricdp.mobility import account

counts = [1, 3, 10, 30, 100, 300, 1000]
spent = [account(np.full(count, 1.0), radius=0.1, delta=1e-5) for count in counts]

figure, axes = plt.subplots(figsize=(5.5, 3.5))
axes.loglog(counts, [one.basic for one in spent], "o-", label="basic: certain")
axes.loglog(counts, [one.concentrated for one in spent], "s-", label="concentrated: delta 1e-5")
axes.set(xlabel="reports of epsilon 1/km", ylabel="total, as a log-ratio", title="Reports add up")
axes.grid(alpha=0.3)
axes.legend()
figure.tight_layout()
figure.savefig("cost_of_a_trajectory.png", dpi=80)
