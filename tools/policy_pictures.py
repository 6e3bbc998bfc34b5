"""The pictures of docs/how-to/policies.md: python tools/policy_pictures.py [folder]."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import metricdp as mdp

INK, ACCENT, WARN, PALE = "#1f2a36", "#2a6fb0", "#b5482f", "#c9d3dc"
SIDE = 6


def cells(axes: Any, row: np.ndarray, title: str, *, lines: Any = (), secret: int | None = None) -> None:
    axes.imshow(row.reshape(SIDE, SIDE), cmap="Blues", origin="lower", vmin=0.0, vmax=max(0.25, float(row.max())))
    for one, two in lines:
        (a, b), (c, d) = divmod(int(one), SIDE), divmod(int(two), SIDE)
        axes.plot([b, d], [a, c], color=INK, linewidth=0.6, alpha=0.55)
    if secret is not None:
        axes.plot(secret % SIDE, secret // SIDE, "o", markersize=7, markerfacecolor="none", markeredgecolor=WARN)
    axes.set_title(title, fontsize=8.5, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])


def policies(path: Path) -> None:
    grid, near = mdp.grid((SIDE, SIDE)), mdp.policy_graphs.grid_neighbours((SIDE, SIDE))
    towns, infected = np.repeat([0, 1], 18), [14, 15]
    rows = np.array([(one, two) for one, two in near.tolist() if towns[one] == towns[two]])
    tracing = mdp.policy_graphs.disclosing(near, infected)
    spaces = {
        "neighbours on a grid": (mdp.policy(grid, near), near, 13),
        "two towns: which one may be told": (
            mdp.policy(grid, mdp.policy_graphs.areas(towns), parts="disclose"),
            rows,
            13,
        ),
        "contact tracing: two places may be told": (mdp.policy(grid, tracing, isolated="disclose"), tracing, 13),
    }
    figure, axes = plt.subplots(1, 3, figsize=(7.6, 2.75), layout="constrained")
    for panel, (title, (space, lines, secret)) in zip(axes, spaces.items(), strict=True):
        distribution = mdp.optimal(mdp.Problem(space, 1.0, loss=grid.distances), gap=0.02)
        cells(
            panel,
            distribution.matrix[secret],
            f"{title}\nloss {distribution.certificate.loss:.2f} cells",
            lines=lines,
            secret=secret,
        )
    figure.savefig(path / "policy.png", dpi=110)


def tree(path: Path) -> None:
    grid, avoided, epsilon = mdp.grid((SIDE, SIDE)), [14, 15, 20, 21], 1.0
    made = mdp.places.location_tree(grid, 3)
    best = mdp.optimal(mdp.Problem(grid, epsilon), gap=0.005)
    kept = np.delete(np.arange(SIDE**2), avoided)
    again = mdp.optimal(mdp.Problem(grid, epsilon, outputs=grid.part(kept)), gap=0.005)
    rest = best.matrix[:, kept] / best.matrix[:, kept].sum(axis=1, keepdims=True)
    published = mdp.audit(rest, distances=grid.distances, epsilon=epsilon)
    lost = float((grid.distances[:, kept] * rest).sum(axis=1).mean())
    robust = made.prune(made.prunable(epsilon, len(avoided)), avoided, rule="renormalise")
    mapped = made.prune(best, avoided)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 2.9), layout="constrained", width_ratios=[1, 1.7])
    cells(left, mapped.matrix[14], "reports from the ringed cell,\nfour cells pruned", secret=14)
    for number, width in ((1, 0.6), (2, 1.8)):
        labels = made.labels[number].reshape(SIDE, SIDE)
        for at in range(1, SIDE):
            for other in range(SIDE):
                if labels[at, other] != labels[at - 1, other]:
                    left.plot([other - 0.5, other + 0.5], [at - 0.5] * 2, color=INK, linewidth=width)
                if labels[other, at] != labels[other, at - 1]:
                    left.plot([at - 0.5] * 2, [other - 0.5, other + 0.5], color=INK, linewidth=width)
    for place in avoided:
        left.plot(place % SIDE, place // SIDE, "x", color=WARN, markersize=9)
    bars = {
        "best without these reports": (again.certificate.loss, ACCENT, again.certificate.epsilon),
        "pruned by a public map": (mapped.certificate.loss, ACCENT, mapped.certificate.epsilon),
        "made for pruning, renormalised": (robust.certificate.loss, ACCENT, robust.certificate.epsilon),
        "renormalised, as published": (lost, WARN, published.epsilon),
    }
    names = list(bars)[::-1]
    right.barh(names, [bars[name][0] for name in names], color=[bars[name][1] for name in names], height=0.6)
    for at, name in enumerate(names):
        right.text(
            bars[name][0] + 0.03, at, f"{bars[name][0]:.3f}, epsilon {bars[name][2]:.2f}", va="center", fontsize=8
        )
    right.axvline(again.certificate.lower_bound, color=INK, linewidth=0.8, linestyle=":")
    right.set_xlim(0, 1.45 * max(value for value, _, _ in bars.values()))
    right.set_xlabel("expected loss in cells; promised: epsilon 1; dots: least loss under it", fontsize=8)
    right.tick_params(labelsize=8)
    for side in ("top", "right"):
        right.spines[side].set_visible(False)
    figure.savefig(path / "location_tree.png", dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/images"))
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    policies(folder)
    tree(folder)
