"""Figures of tables: a panel for every city, data set or size that the rows are about, lines and bars within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from metricdp.plots import palette
from metricdp_papers.common.rows import Row, is_number

COLOURS = [*palette.SERIES, "#5aa9a3", "#c05a8a", "#7f9c3b", "#444c56", "#a05f2c", "#2f6f9f"]


def draw_panels(
    rows: Sequence[Row],
    path: Path,
    by: Sequence[str],
    draw: Callable[[Any, Sequence[Row]], None],
    *,
    columns: int = 3,
    size: tuple[float, float] = (5.2, 4.4),
    legend: Literal["each", "first", "below", ""] = "each",
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write a PNG file with a panel for every value of the columns `by`: `draw(axes, rows)` draws the rows of one.

    `legend` stands in each panel, in the first, or below all. `settings` are those of all axes, such as `xlabel`.
    Without rows nothing is written.
    """
    panels = group_rows(rows, by)
    if not panels:
        return
    wide = min(columns, len(panels))
    deep = -(-len(panels) // wide)
    with palette.plot_style():
        figure = palette.figure(size[0] * wide, size[1] * deep)
        for place, (panel, members) in enumerate(panels.items(), start=1):
            axes = figure.add_subplot(deep, wide, place)
            axes.set(**settings)
            axes.set_title(", ".join(map(_title, by, panel)), fontsize=min(13.0, 2.6 * size[0]))
            draw(axes, members)
            if legend == "each" or (legend, place) == ("first", 1):
                axes.legend(frameon=False, fontsize=8)
        if legend == "below":
            found = [one.get_legend_handles_labels() for one in figure.axes]
            known = {name: line for lines, names in found for line, name in zip(lines, names, strict=True)}
            figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    palette.write_picture(figure, path)


def group_rows(rows: Sequence[Row], by: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows by their values of some columns, in the order of appearance."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in by), []).append(row)
    return found


def plot_line(axes: Any, rows: Sequence[Row], across: str, value: str, *style: str, **options: Any) -> None:
    """Draw a value of the rows against the column `across`; without a row that has both nothing is drawn."""
    points = sorted(
        (row[across], row[value]) for row in rows if is_number(row.get(across)) and is_number(row.get(value))
    )
    if points:
        axes.plot(*zip(*points, strict=True), *style, **options)


def _title(name: str, value: Any) -> str:
    return f"{name.replace('_', ' ')} {value:g}" if is_number(value) else str(value).replace("_", " ")
