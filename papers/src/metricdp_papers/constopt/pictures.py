"""What the ConstOPT study found, drawn: loss against epsilon, size or penalty, as published dashed, corrected solid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metricdp.files import replace_file
from metricdp.plots import palette
from metricdp_papers.common import Row, StudyTable

COLOURS = {
    "Madlib": palette.MUTED,
    "EXPMECH": palette.REPORTED,
    "Spanner": palette.PLAIN,
    "ConstOPT 5": palette.SERIES[4],
    "ConstOPT 10": palette.TRUE,
    "OPT": palette.BEST,
    "packing bound": palette.BOUND,
}
STYLES = {"as_published": "--", "corrected": "-", "bound": ":"}


def picture(table: StudyTable, rows: Sequence[Row], path: Path) -> None:
    """Draw a figure of the paper, the times of its tables, or the ablation."""
    if table.number in ("figure 1", "figure 3"):
        _panels(rows, path, ("domain", "secrets"), "tight", "tight epsilon, delta 0.001")
    elif table.number in ("figure 2", "figure 4"):
        shown = [row for row in rows if str(row["measure"]).startswith("loss, 95")]
        _panels(shown, path, ("domain",), "secrets", "secrets")
    elif table.number in ("2", "4"):
        _panels([row for row in rows if row["measure"] == "seconds"], path, ("domain",), "secrets", "secrets", log=True)


def _panels(
    rows: Sequence[Row], path: Path, by: tuple[str, ...], across: str, label: str, *, log: bool = False
) -> None:
    panels = list(dict.fromkeys(tuple(row[name] for name in by) for row in rows))
    if not panels:
        return
    wide = min(3, len(panels))
    deep = -(-len(panels) // wide)
    with palette.plot_style():
        drawn = palette.figure(5.2 * wide, 4.4 * deep)
        for place, panel in enumerate(panels, start=1):
            axes = drawn.add_subplot(deep, wide, place)
            here = [row for row in rows if tuple(row[name] for name in by) == panel]
            _lines(axes, here, across)
            for row in here:
                if row["method"] == "uniform":
                    axes.axhline(row["as_published"], color=palette.LINE, linestyle=":", label="uniform")
            axes.set_title(" ".join(str(part) for part in reversed(panel)))
            axes.set_xlabel(label)
            axes.set_ylabel("processor seconds" if log else "loss, 95 % quantile")
            if log:
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
            axes.legend(frameon=False, fontsize=8)
        with replace_file(path) as partial:
            drawn.savefig(partial, format="png")


def _lines(axes: Any, rows: Sequence[Row], across: str) -> None:
    for method, colour in COLOURS.items():
        for value, style in STYLES.items():
            if (value == "bound") != (method == "packing bound"):
                continue
            mine = [row for row in rows if row["method"] == method and row.get(value) is not None]
            # Madlib's tight epsilon is not known: the theorem's stands for it
            points = sorted((row.get(across) or row["epsilon"], row[value]) for row in mine)
            if points:
                name = method if value == "bound" else f"{method}, {value.replace('_', ' ')}"
                axes.plot(*zip(*points, strict=True), style, marker="o", markersize=4, color=colour, label=name)
