"""A ring that is private: a geographic mask with tails, and what its shape costs."""

import matplotlib.pyplot as plt

import metricdp as mdp

cells = mdp.grid((15, 15))
masked = mdp.masked(cells, 1.5, inner=2.0, outer=4.0)
plain = mdp.exponential(cells, 1.5)

figure, panels = plt.subplots(1, 2, figsize=(7, 3.6))
for axes, (name, mechanism) in zip(panels, {"ring with tails": masked, "exponential": plain}.items(), strict=True):
    axes.imshow(mechanism.matrix[112].reshape(15, 15), cmap="viridis")
    axes.set_title(f"{name}: loss {mdp.expected_loss(mechanism):.2f} cells", fontsize=10)
    axes.axis("off")
figure.savefig("a_mask_with_tails.png", dpi=80)
