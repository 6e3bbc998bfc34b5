"""A wish that is kept on the device: four places are never reported, and the guarantee stays."""

import matplotlib.pyplot as plt

import metricdp as mdp

cells = mdp.grid((6, 6))
best = mdp.optimal(mdp.Problem(cells, 1.0), gap=0.02)
pruned = mdp.places.location_tree(cells, 3).prune(best, [14, 15, 20, 21])

figure, panels = plt.subplots(1, 2, figsize=(6.5, 3.6))
for axes, (name, mechanism) in zip(panels, {"as designed": best, "never the middle": pruned}.items(), strict=True):
    axes.imshow(mechanism.matrix[14].reshape(6, 6), cmap="viridis")
    axes.set_title(f"{name}: loss {mdp.expected_loss(mechanism):.2f}, {mdp.audit(mechanism).verdict}", fontsize=9)
    axes.axis("off")
figure.savefig("places_to_avoid.png", dpi=80)
