"""Black boxes that claim epsilon 1: what 3,000 reports show of samplers that are worse and worse."""

import matplotlib.pyplot as plt

import metricdp as mdp

kept = [0.5, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5]  # what each sampler keeps in truth; the auditor does not know it
found = []
for epsilon in kept:
    noise = mdp.laplace(mdp.Lp(2), epsilon)
    found.append(
        mdp.audit_sampler(
            lambda secret, count, noise=noise: noise.sample([secret] * count),
            secrets=[[0.0, 0.0], [1.0, 0.0]],
            metric=mdp.Lp(2),
            epsilon=1.0,
            draws=3000,
        )
    )

figure, axes = plt.subplots(figsize=(5.5, 3.5))
for verdict, colour in (("violated", "orangered"), ("not refuted", "teal")):
    chosen = [k for k, one in enumerate(found) if one.verdict == verdict]
    axes.plot([kept[k] for k in chosen], [max(0, found[k].epsilon) for k in chosen], "o", color=colour, label=verdict)
axes.axhline(1.0, color="0.5", label="claimed")
axes.set(
    xlabel="epsilon in truth", ylabel="epsilon is at least", title="Bets on reports, confidence 99 %", ylim=(0, None)
)
axes.legend()
figure.tight_layout()
figure.savefig("black_box.png", dpi=80)
