"""Pictures of the trajectory study, one for every table that has something to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.errors import MissingExtra, import_extra
from metricdp_papers.common import Row, StudyTable

COLOURS = ("#0b6e69", "#d1495b", "#edae49", "#30638e", "#7d5ba6", "#8d99ae", "#4a7c59")
VALUES = ("as_published", "corrected")
Rows = Sequence[Row]


def picture(table: StudyTable, rows: Rows, path: Path) -> None:
    """Draw a table to a PNG file; nothing where matplotlib is not installed or the table is not one to draw."""
    drawing = DRAWINGS.get(table.number)
    try:
        import_extra("matplotlib", "plots")
    except MissingExtra:
        return
    figure = drawing(rows) if drawing is not None and rows else None
    if figure is not None:
        figure.savefig(path, dpi=110)


def _figure(columns: int, rows: int = 1, *, width: float = 4.0, height: float = 3.0) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _name(city: object) -> str:
    return str(city).replace("_", " ").title()


def _of(rows: Rows, key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def _where(rows: Rows, **wanted: object) -> list[Row]:
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _recorded_rows(rows: Rows) -> list[Row]:
    return [row for row in rows if row.get("records", "as recorded") == "as recorded"]


def regions(rows: Rows) -> Any:
    """Figures 3 and 4: mean p-values by region, one column per m, as published above and corrected below."""
    kept = _recorded_rows(rows)
    if not kept:
        return None
    cities, questions = _of(kept, "city"), sorted(_of(kept, "m"))
    figure, axes = _figure(len(questions), 2 * len(cities), width=2.3, height=2.0)
    image = None
    for at, (city, value) in enumerate((city, value) for city in cities for value in VALUES):
        for to, m in enumerate(questions):
            here = _where(kept, city=city, m=m)
            places = [tuple(int(word) for word in str(row["bin"]).split()[1::2]) for row in here]
            cells = np.full((max(3, 1 + max(p[0] for p in places)), max(3, 1 + max(p[1] for p in places))), np.nan)
            for place, row in zip(places, here, strict=True):
                cells[place] = _number(row[value])
            image = axes[at, to].imshow(cells, origin="lower", cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")
            for place in zip(*np.nonzero(np.isfinite(cells)), strict=True):
                axes[at, to].text(place[1], place[0], f"{cells[place]:.2f}", ha="center", va="center", fontsize=7)
            axes[at, to].set(xticks=[], yticks=[], title=f"m = {m}" if at == 0 else "")
        axes[at, 0].set_ylabel(f"{_name(city)}\n{value.replace('_', ' ')}", fontsize=8)
    figure.colorbar(image, ax=axes, label="mean p-value", shrink=0.7)
    return figure


def lines(rows: Rows) -> Any:
    """Figures 5 to 7: mean p-values against speed or hour, one line per m."""
    kept = _recorded_rows(rows)
    if not kept:
        return None
    cities = _of(kept, "city")
    figure, axes = _figure(len(cities), 2, width=4.2, height=2.5)
    for to, city in enumerate(cities):
        for at, value in enumerate(VALUES):
            axis = axes[at, to]
            for m in sorted(_of(kept, "m")):
                mine = sorted((float(str(row["bin"]).split()[0]), _number(row[value])) for row in
                              _where(kept, city=city, m=m))  # fmt: skip
                if mine:
                    axis.plot(*zip(*mine, strict=True), "o-", color=COLOURS[m % len(COLOURS)], markersize=3,
                              label=f"m = {m}")  # fmt: skip
            axis.axhline(0.05, color="grey", linewidth=0.8, linestyle=":")
            axis.set(ylim=(-0.03, 1.03), title=f"{_name(city)}, {value.replace('_', ' ')}", ylabel="mean p-value")
            axis.set_xlabel("mph" if kept[0]["feature"] == "speed" else "hour, UTC")
    axes[0, 0].legend(fontsize="x-small")
    return figure


def bars(rows: Rows) -> Any:
    """Tables of named measures: published, as published and corrected side by side, one panel per city."""
    kept = [row for row in _recorded_rows(rows) if str(row.get("m", "1 to 5")) == "1 to 5"
            and row.get("split", "random examples") == "random examples"]  # fmt: skip
    kept = [row for row in kept if not str(row["measure"]).startswith(("seconds", "BCE"))]
    if not kept:
        return None
    cities = _of(kept, "city")
    figure, axes = _figure(1, len(cities), width=9.0, height=2.6)
    for axis, city in zip(axes[:, 0], cities, strict=True):
        here = _where(kept, city=city)
        for at, value in enumerate(("published", *VALUES)):
            places = np.arange(len(here)) + 0.27 * (at - 1)
            axis.bar(places, [_number(row.get(value)) for row in here], 0.25, color=COLOURS[at],
                     label=value.replace("_", " "))  # fmt: skip
        names = [" ".join(str(part) for part in (row.get("feature", ""), row["measure"]) if part) for row in here]
        axis.set(title=_name(city), xticks=np.arange(len(here)))
        axis.set_xticklabels([name[:34] for name in names], fontsize=6, rotation=25, ha="right")
        axis.axhline(0.0, color="grey", linewidth=0.8)
    axes[0, 0].legend(fontsize="x-small")
    return figure


def against_epsilon(measure: str) -> Callable[[Rows], Any]:
    """Figures 10 and 11: a measure against epsilon, one panel per city and size, one line per method."""

    def draw(rows: Rows) -> Any:
        kept = _where(rows, measure=measure)
        panels = sorted({(row["city"], row["crossings"], row["steps_back"]) for row in kept})
        if not panels:
            return None
        figure, axes = _figure(min(3, len(panels)), -(-len(panels) // 3), height=3.3)
        methods = _of(kept, "method")
        for axis, (city, crossings, steps) in zip(axes.ravel(), panels, strict=False):
            for method in methods:
                mine = sorted(_where(kept, city=city, crossings=crossings, steps_back=steps, method=method),
                              key=lambda row: float(row["epsilon"]))  # fmt: skip
                if not mine:
                    continue
                colour, epsilon = COLOURS[methods.index(method) % len(COLOURS)], [row["epsilon"] for row in mine]
                axis.plot(epsilon, [_number(row["corrected"]) for row in mine], "o-", color=colour, markersize=4,
                          label=method)  # fmt: skip
                axis.plot(epsilon, [_number(row.get("as_published")) for row in mine], "x:", color=colour, markersize=4)
                axis.plot(epsilon, [_number(row.get("bound")) for row in mine], "--", color=colour, linewidth=0.6)
            axis.set_title(f"{_name(city)}, {crossings} crossings, {steps} back", fontsize=9)
            axis.set(xlabel="epsilon per km", ylabel=measure)
            axis.legend(fontsize=5)
        return figure

    return draw


DRAWINGS: dict[str, Callable[[Rows], Any]] = {
    "1": bars,
    "2": bars,
    "figure 3": regions,
    "figure 4": regions,
    **dict.fromkeys(("figure 5", "figure 6", "figure 7"), lines),
    **dict.fromkeys(("figure 9", "figure 12", "figure 13", "figure 14"), bars),
    "figure 10": against_epsilon("expected loss in km"),
    "figure 11": against_epsilon("seconds to build"),
}
