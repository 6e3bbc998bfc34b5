"""Loss against epsilon for several mechanisms, with what no mechanism can beat."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metricdp import wording
from metricdp.errors import InvalidInput
from metricdp.files import replacing
from metricdp.pictures import palette
from metricdp.pictures.story import Comparison

COLUMNS = (
    "builder", "epsilon", "unit", "objective", "loss", "lower_bound", "gap", "certified_epsilon", "seconds",
)  # fmt: skip


def loss_plot(comparisons: Sequence[Comparison], axes: Any = None) -> Any:
    """Draw loss against epsilon, one line per mechanism, the proven lower bound below; return the axes.

    All comparisons are of one objective and one unit, each with its own epsilon.
    """
    unit, objective = _common(comparisons)
    with palette.styled():
        axes = palette.axes(8.0, 5.0) if axes is None else axes
        names = list(dict.fromkeys(entry.name for one in comparisons for entry in one.contenders))
        for number, name in enumerate(names):
            own = sorted(
                (one.epsilon, entry.loss) for one in comparisons for entry in one.contenders if entry.name == name
            )
            colour, marker = (
                palette.SERIES[number % len(palette.SERIES)],
                palette.MARKERS[number % len(palette.MARKERS)],
            )
            axes.plot(*zip(*own, strict=True), color=colour, marker=marker, label=name.replace("_", " "))
        bound = sorted((one.epsilon, one.lower_bound) for one in comparisons)
        if any(value > 0 for _, value in bound):
            # A smaller epsilon is a stronger promise: the bound at each epsilon holds for everything to its left too.
            shade = {"color": palette.LINE, "alpha": 0.5, "linewidth": 0}
            axes.fill_between(*zip(*bound, strict=True), step="pre", label="no mechanism can be here", **shade)
            axes.plot(*zip(*bound, strict=True), "_", color=palette.INK, markersize=16, label="proven lower bound")
        axes.set_xlabel(f"epsilon per {unit}" if unit else "epsilon per unit of distance")
        axes.set_ylabel(wording.objective(objective) + (f" in {unit}" if unit else ""))
        axes.set_title("What privacy costs: less is better on both axes")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
    return axes


def loss_rows(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return the numbers behind the picture, one row per mechanism and epsilon."""
    return [
        {
            "builder": entry.name,
            "epsilon": one.epsilon,
            "unit": one.unit,
            "objective": one.objective,
            "loss": entry.loss,
            "lower_bound": one.bound_of(entry),
            "gap": one.gap_of(entry),
            "certified_epsilon": entry.certified,
            "seconds": entry.seconds,
        }
        for one in comparisons
        for entry in one.contenders
    ]


def loss_table(comparisons: Sequence[Comparison], path: str | os.PathLike[str]) -> Path:
    """Write the numbers behind the picture as a tidy CSV file."""
    with replacing(path) as partial, partial.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(loss_rows(comparisons))
    return Path(path)


def _common(comparisons: Sequence[Comparison]) -> tuple[str, wording.Objective]:
    kinds = {(one.unit, one.objective) for one in comparisons}
    if len(kinds) != 1 or any(one.epsilon is None for one in comparisons):
        raise InvalidInput("`comparisons` must be of one objective and one unit, each with its epsilon.")
    return next(iter(kinds))
