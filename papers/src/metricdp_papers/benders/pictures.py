"""Pictures of the decomposition study: how the bounds close, loss over epsilon, sizes over subsets, and maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metricdp.errors import import_extra
from metricdp_papers.common.rows import Row

COLOURS = ("#c1440e", "#2a6f97", "#3a7d44", "#8a5a9e", "#b8860b", "#444444", "#d16ba5", "#3fb8c4")
ACROSS = {"figure_7": "epsilon", "figure_12": "subsets", "figure_17": "iteration"}
CIRCLES = {
    "figure_5": ("records of this component",),
    "figure_13": ("records of this subset", "inner records of this subset"),
}
SHOWN = {"figure_7": ("expected loss",), "figure_12": None, "figure_17": ("lower bound", "upper bound")}


def draw(stem: str, rows: Sequence[Row], path: Path) -> None:
    """Draw one panel a data set (and size, epsilon, partition); tables that are read and not seen are left alone."""
    if stem in CIRCLES:
        _circles(stem, rows, path)
    if stem not in ACROSS:
        return
    across, measures = ACROSS[stem], SHOWN[stem]
    kept = [row for row in rows if measures is None or row["measure"] in measures]
    kept = [row for row in kept if _value(row) is not None and isinstance(row.get(across), int | float)]
    if across == "iteration":
        kept = _several_rounds(kept)
    panels = list(dict.fromkeys(_panel(row, across) for row in kept))
    if not panels:
        return
    figures = import_extra("matplotlib.figure", "plots")
    width = min(4, len(panels))
    height = -(-len(panels) // width)
    figure = figures.Figure(figsize=(4.2 * width, 3.4 * height), layout="constrained")
    axes = figure.subplots(height, width, squeeze=False).ravel()
    colours: dict[str, str] = {}
    for place, panel in zip(axes, panels, strict=False):
        _lines(place, [row for row in kept if _panel(row, across) == panel], across, colours)
        many = across == "iteration"
        place.set(title=panel, xlabel=across, xscale="log" if many else "linear")
        place.grid(alpha=0.25)
    for place in axes[len(panels) :]:
        place.set_axis_off()
    lines = import_extra("matplotlib.lines", "plots")
    handles = [lines.Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    if stem == "figure_17":
        handles += [
            lines.Line2D([], [], color="black", label="best matrix so far"),
            lines.Line2D([], [], color="black", linestyle="--", label="lower bound"),
        ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)))
    figure.savefig(path, dpi=100)


def _value(row: Row) -> float | None:
    for name in ("as_published", "corrected"):
        value = row.get(name)
        if isinstance(value, int | float):
            return float(value)
    return None


def _panel(row: Row, across: str) -> str:
    if across != "iteration":
        return str(row["data"])
    return f"{row['data']}, {row['records']} records, epsilon {row['epsilon']:g}, {row['partition']}"


def _several_rounds(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of panels with more than one iteration, those of the published size and epsilon first."""
    last: dict[str, float] = {}
    for row in rows:
        panel = _panel(row, "iteration")
        last[panel] = max(last.get(panel, 0.0), float(row["iteration"]))
    kept = [row for row in rows if last[_panel(row, "iteration")] > 1]
    names = list(dict.fromkeys(row["partition"] for row in kept))
    return sorted(kept, key=lambda row: (-row["records"], -row["epsilon"], names.index(row["partition"])))


def _lines(axes: Any, rows: Sequence[Row], across: str, colours: dict[str, str]) -> None:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        name = str(row.get("method") or row["measure"])
        groups.setdefault((name, row["measure"]), []).append(row)
    for (name, measure), members in groups.items():
        colour = colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
        members = sorted(members, key=lambda row: row[across])
        line = "--" if measure == "lower bound" else "-"
        mark = "o" if len(members) == 1 else ""
        axes.plot([row[across] for row in members], [_value(row) for row in members], line, color=colour, marker=mark)


def _circles(stem: str, rows: Sequence[Row], path: Path) -> None:
    """Draw every subset or component as a circle where its records lie: the area is how many, the dark part inner."""
    measures = CIRCLES[stem]
    drawn = [row for row in rows if row["measure"] in measures]
    panels = list(dict.fromkeys((str(row["data"]), str(row["partition"])) for row in drawn))
    if not panels:
        return
    figures = import_extra("matplotlib.figure", "plots")
    width = len({partition for _, partition in panels}) if stem == "figure_13" else min(4, len(panels))
    height = -(-len(panels) // width)
    figure = figures.Figure(figsize=(3.4 * width, 3.2 * height), layout="constrained")
    for place, panel in zip(figure.subplots(height, width, squeeze=False).ravel(), panels, strict=False):
        for measure, colour in zip(measures, ("#9ec5dd", "#1d4e6e"), strict=False):
            mine = [row for row in drawn if (row["data"], row["partition"]) == panel and row["measure"] == measure]
            areas = [12.0 * float(row["as_published"]) for row in mine]
            place.scatter(
                [row["x"] for row in mine], [row["y"] for row in mine], areas, colour, alpha=0.8, linewidths=0
            )
        place.set(title=", ".join(panel), xticks=[], yticks=[])
        place.margins(0.25)
    figure.savefig(path, dpi=100)
