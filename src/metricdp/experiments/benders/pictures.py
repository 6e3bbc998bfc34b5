"""Pictures of the decomposition study: how the two bounds close, over rounds and over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.errors import InvalidInput, import_extra
from metricdp.experiments.benders.runs import Run

COLOURS = {"plain": "#c1440e", "kernels": "#2a6f97", "engine": "#3a7d44"}
NAMES = {"plain": "plain", "kernels": "stabilised", "engine": "stabilised, from the engine"}


def kind(run: Run) -> str:
    """Return plain, kernels or engine."""
    return run.method.rstrip(")").rsplit(", ", 1)[-1]


def convergence(runs: Sequence[Run], path: Path) -> Path:
    """Draw proven bound and best matrix of every run, one column a data set (Figures 17 to 20)."""
    figures = import_extra("matplotlib.figure", "plots")
    shown = [run for run in runs if run.history]
    if not shown:
        raise InvalidInput("there is no run with rounds to draw: ask for a smaller gap.")
    columns = list(dict.fromkeys(run.data for run in shown))
    figure = figures.Figure(figsize=(4.0 * len(columns), 6.4), layout="constrained")
    axes = figure.subplots(2, len(columns), squeeze=False)
    for place, data in enumerate(columns):
        mine = [run for run in shown if run.data == data]
        for run in mine:
            _panel(axes[0, place], run, over_time=False)
            _panel(axes[1, place], run, over_time=True)
        first = mine[0]
        title = f"{data}, {first.size} records, epsilon {first.epsilon:g}"
        many = max(len(run.history) for run in mine) > 20
        axes[0, place].set(title=title, xlabel="round", xscale="log" if many else "linear")
        axes[1, place].set(xlabel="processor seconds")
        heights = _heights(mine)
        for row in range(2):
            axes[row, place].set_ylim(*heights)
            axes[row, place].grid(alpha=0.25)
    for row in range(2):
        axes[row, 0].set_ylabel("loss")
    lines = import_extra("matplotlib.lines", "plots")
    kinds = list(dict.fromkeys(kind(run) for run in shown))
    handles = [lines.Line2D([], [], color=COLOURS[name], label=NAMES[name]) for name in kinds]
    handles += [
        lines.Line2D([], [], color="black", label="best matrix so far"),
        lines.Line2D([], [], color="black", linestyle="--", label="proven bound"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    figure.savefig(path, dpi=110)
    return path


def _panel(axes: Any, run: Run, *, over_time: bool) -> None:
    lower, upper, seconds = np.array(run.history).T
    across = seconds if over_time else np.arange(1, len(lower) + 1)
    colour = COLOURS[kind(run)]
    mark = "o" if len(lower) == 1 else ""
    axes.plot(across, np.where(np.isfinite(upper), upper, np.nan), color=colour, marker=mark)
    axes.plot(across, np.where(np.isfinite(lower), lower, np.nan), color=colour, linestyle="--", marker=mark)


def _heights(runs: Sequence[Run]) -> tuple[float, float]:
    """Return limits that show the bounds; a first matrix that is far off does not set them."""
    values = np.concatenate([np.array(run.history)[:, :2] for run in runs])
    low = float(np.min(values[:, 0]))
    best = float(np.min(values[:, 1]))
    most = float(np.max(values[np.isfinite(values[:, 1]), 1], initial=best))
    high = min(most, best + 2.0 * (best - low))
    room = 0.06 * max(high - low, 1e-12)
    return low - room, high + room
