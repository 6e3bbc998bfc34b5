"""Loss against epsilon for several mechanisms, with what no mechanism that reports the same can beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metricdp import messages
from metricdp.errors import InvalidInput
from metricdp.plots import palette
from metricdp.plots.report_content import Comparison


def loss_plot(comparisons: Sequence[Comparison], axes: Any = None, *, unit: str | None = None) -> Any:
    """Draw loss against epsilon, one line per mechanism, the proven lower bound below; return the axes.

    All comparisons are of one objective and one unit, each with its own epsilon. Losses that were measured have bars
    for their intervals. `unit` is that of distances, where losses are in another.
    """
    shown, objective = _common(comparisons)
    unit = shown if unit is None else unit
    with palette.plot_style():
        axes = palette.axes(8.0, 5.0) if axes is None else axes
        names = list(dict.fromkeys(entry.name for one in comparisons for entry in one.contenders))
        for number, name in enumerate(names):
            mine = [(one.epsilon, entry) for one in comparisons for entry in one.contenders if entry.name == name]
            own = sorted((epsilon, entry.loss) for epsilon, entry in mine)
            colour, marker = (
                palette.SERIES[number % len(palette.SERIES)],
                palette.MARKERS[number % len(palette.MARKERS)],
            )
            style = ("-", "--", ":")[number // len(palette.SERIES) % 3]
            axes.plot(*zip(*own, strict=True), style, color=colour, marker=marker, label=name.replace("_", " "))
            measured = [(epsilon, entry.low, entry.high) for epsilon, entry in mine if entry.high is not None]
            if measured:
                axes.vlines(*zip(*measured, strict=True), color=colour, linewidth=4, alpha=0.35)
        bound = sorted((one.epsilon, one.lower_bound) for one in comparisons)
        if any(value > 0 for _, value in bound):
            # A smaller epsilon is a stronger promise: the bound at each epsilon holds for everything to its left too.
            shade = {"color": palette.LINE, "alpha": 0.5, "linewidth": 0}
            axes.fill_between(
                *zip(*bound, strict=True), step="pre", label="no mechanism with these reports can be here", **shade
            )
            axes.plot(
                *zip(*bound, strict=True),
                "_",
                color=palette.INK,
                markersize=16,
                label="proven lower bound for these reports",
            )
        axes.set_xlabel(f"epsilon per {unit}" if unit else "epsilon per unit of distance")
        axes.set_ylabel(messages.objective(objective) + (f" in {shown}" if shown else ""))
        axes.set_title("What privacy costs: less is better on both axes")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
    return axes


def _common(comparisons: Sequence[Comparison]) -> tuple[str, messages.Objective]:
    kinds = {(one.unit, one.objective) for one in comparisons}
    if len(kinds) != 1 or any(one.epsilon is None for one in comparisons):
        raise InvalidInput("`comparisons` must be of one objective and one unit, each with its epsilon.")
    return next(iter(kinds))
