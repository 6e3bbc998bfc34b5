"""Expected loss of builders at equal guarantees, above the proven bound for these reports."""

import matplotlib.pyplot as plt

import metricdp as mdp

cells = mdp.grid((6, 6))
levels = [0.5, 1.0, 1.5, 2.0, 2.5]
best = [mdp.optimal(mdp.Problem(cells, level), gap=0.01).certificate for level in levels]
lines = {
    "exponential, half of the budget": [
        mdp.expected_loss(mdp.exponential(cells, level, budget="half")) for level in levels
    ],
    "exponential, as much as is proven": [mdp.expected_loss(mdp.exponential(cells, level)) for level in levels],
    "optimal": [one.loss for one in best],
}

figure, axes = plt.subplots(figsize=(5.5, 3.5))
for name, losses in lines.items():
    axes.plot(levels, losses, "o-", label=name)
axes.fill_between(levels, [one.lower_bound for one in best], color="0.85", label="no mechanism with these reports")
axes.set(xlabel="epsilon per cell", ylabel="expected loss, cells", title="What a guarantee costs")
axes.legend(fontsize=8)
figure.tight_layout()
figure.savefig("losses_of_builders.png", dpi=80)
