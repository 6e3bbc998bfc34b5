"""Loss against epsilon for several mechanisms, with what no mechanism can beat."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metricdp.errors import import_extra
from metricdp.files import replacing

COLOURS = ("#1368aa", "#d9622b", "#0f8a6d", "#6b4fa3", "#b8860b", "#67727e")
MARKERS = "osD^vP"


def loss_plot(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> Path:
    """Draw loss against epsilon, one line per builder, the proven lower bound below; return where it was put.

    Every row has `builder`, `epsilon`, `loss`, `lower_bound` and `unit`.
    """
    figures = import_extra("matplotlib.figure", "plots")
    figure = figures.Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    for number, builder in enumerate(dict.fromkeys(row["builder"] for row in rows)):
        own = sorted((row["epsilon"], row["loss"]) for row in rows if row["builder"] == builder)
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        axes.plot(*zip(*own, strict=True), color=colour, marker=marker, label=str(builder).replace("_", " "))
    bound = sorted({row["epsilon"]: row["lower_bound"] for row in rows}.items())
    # A smaller epsilon is a stronger promise, so the bound at each epsilon also holds for everything to its left.
    lines = {"color": "#c9d1d9", "alpha": 0.5, "linewidth": 0}
    axes.fill_between(*zip(*bound, strict=True), step="pre", label="no mechanism can be here", **lines)
    axes.plot(*zip(*bound, strict=True), "_", color="#1f2933", markersize=16, label="proven lower bound")
    unit = next((row["unit"] for row in rows if row["unit"]), "")
    axes.set_xlabel(f"epsilon per {unit}" if unit else "epsilon per unit of distance")
    axes.set_ylabel(f"expected loss in {unit}" if unit else "expected loss")
    axes.set_title("What privacy costs: less is better on both axes", loc="left", fontweight="bold")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    suffix = Path(path).suffix.lstrip(".").lower() or "png"
    with replacing(path) as partial:
        figure.savefig(partial, format=suffix, dpi=150)
    return Path(path)


def loss_table(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> Path:
    """Write the numbers behind the picture as a tidy CSV file, one row per builder and epsilon."""
    with replacing(path) as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return Path(path)
