"""Pictures of the trajectory study, drawn from its tables: p-values, blankets, the predictor, losses, times."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.errors import MissingExtra, import_extra

Rows = list[dict[str, str]]
COLOURS = ("#0b6e69", "#d1495b", "#edae49", "#30638e", "#7d5ba6", "#8d99ae")


def draw(folder: Path) -> list[Path]:
    """Draw a picture for every table found in the folder; none where matplotlib is not installed."""
    try:
        import_extra("matplotlib", "plots")
    except MissingExtra:
        return []
    drawings: dict[str, tuple[str, Callable[[Rows], Any]]] = {
        "p_values_regions": ("p_values", regions),
        "p_values_speed_hour": ("p_values", speed_and_hour),
        "correlations": ("correlations", correlations),
        "classifier": ("classifier", classifier),
        "prediction_times": ("prediction_times", prediction_times),
        "blanket_sizes": ("blanket_sizes", blanket_sizes),
        "losses": ("losses", losses),
        "times": ("losses", times),
    }
    paths = []
    for name, (table, drawing) in drawings.items():
        rows = read(folder / f"{table}.csv")
        if table == "p_values":  # a small city may have no region with enough windows
            rows = [row for row in rows if (row["feature"] == "region") == (name == "p_values_regions")]
        if rows:
            figure = drawing(rows)
            figure.savefig(folder / f"{name}.png", dpi=110)
            paths.append(folder / f"{name}.png")
    return paths


def read(path: Path) -> Rows:
    """Return the rows of a table, none where there is no such file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _figure(columns: int, rows: int = 1, *, width: float = 4.0, height: float = 3.3) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _name(city: str) -> str:
    return city.replace("_", " ").title()


def _of(rows: Rows, key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows))


def _grid(rows: Rows, row_key: str, column_key: str, value: str, *, least: int = 1) -> Any:
    """Return cells[row, column], NaN where a cell is missing; `least` rows and columns at least."""
    shape = [max(least, 1 + max(int(float(row[key])) for row in rows)) for key in (row_key, column_key)]
    cells = np.full(shape, np.nan)
    for row in rows:
        cells[int(float(row[row_key])), int(float(row[column_key]))] = float(row[value])
    return cells


def _heat(axes: Any, cells: Any, *, low: float, high: float) -> Any:
    image = axes.imshow(cells, origin="lower", cmap="viridis", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = "white" if value < (low + high) / 2 else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
    axes.set(xticks=[], yticks=[])
    return image


def regions(rows: Rows) -> Any:
    """Figures 3 and 4: mean p-values by region, one column per question, one row per city; north is up."""
    cities, questions = _of(rows, "city"), _of(rows, "m")
    side = 1 + max(int(float(row[key])) for row in rows for key in ("low", "high"))
    figure, axes = _figure(len(questions), len(cities), width=2.6, height=2.4)
    image = None
    for (at, city), (to, m) in ((a, b) for a in enumerate(cities) for b in enumerate(questions)):
        here = [row for row in rows if row["city"] == city and row["m"] == m]
        image = _heat(axes[at, to], _grid(here, "low", "high", "analytic", least=side), low=0.0, high=1.0)
        axes[at, to].set_title(f"the last {m} suffice" if at == 0 else "", fontsize=9)
        if to == 0:
            axes[at, to].set_ylabel(_name(city))
    figure.colorbar(image, ax=axes, label="mean p-value", shrink=0.8)
    return figure


def speed_and_hour(rows: Rows) -> Any:
    """Figures 5 to 7: mean p-values against speed and against the hour."""
    cities = _of(rows, "city")
    figure, axes = _figure(2, len(cities), width=4.4, height=2.6)
    for at, city in enumerate(cities):
        for to, (feature, unit) in enumerate((("speed", "mph"), ("hour", "hour of the day"))):
            here = [row for row in rows if row["city"] == city and row["feature"] == feature]
            for m in _of(here, "m"):
                mine = [row for row in here if row["m"] == m]
                middle = [(float(row["low"]) + float(row["high"])) / 2 for row in mine]
                values = [float(row["analytic"]) for row in mine]
                axes[at, to].plot(middle, values, marker="o", color=COLOURS[int(m)], label=f"the last {m} suffice")
            if feature == "hour":
                axes[at, to].set(xticks=range(0, 25, 6), xlim=(0, 24))
            axes[at, to].axhline(0.05, color="grey", linewidth=0.8, linestyle=":")
            axes[at, to].set(xlabel=unit, ylabel="mean p-value", ylim=(-0.03, 1.03), title=_name(city))
    axis = axes[0, 0] if axes[0, 0].lines[1:] else axes[0, 1]
    axis.legend(fontsize="x-small")
    return figure


def correlations(rows: Rows) -> Any:
    """Table 1: how p-values go with the features."""
    cities = _of(rows, "city")
    figure, axes = _figure(len(cities), width=3.6, height=2.8)
    for axis, city in zip(axes[0], cities, strict=True):
        here = [row for row in rows if row["city"] == city]
        for at, measure in enumerate(("pearson", "spearman", "kendall")):
            places = np.arange(len(here)) + 0.27 * (at - 1)
            axis.bar(places, [float(row[measure]) for row in here], 0.25, color=COLOURS[at], label=measure.title())
        names = [f"{row['feature']}\np = {float(row['spearman_p']):.1g}" for row in here]
        axis.set(xticks=np.arange(len(here)), title=_name(city), ylim=(-1, 1))
        axis.set_xticklabels(names, fontsize=7)
        axis.axhline(0.0, color="grey", linewidth=0.8)
    axes[0, 0].legend(fontsize="x-small")
    axes[0, 0].set_ylabel("correlation with the p-value")
    return figure


def classifier(rows: Rows) -> Any:
    """Table 2: the confusion and the scores of every evaluation."""
    figure, axes = _figure(len(rows), width=3.0, height=3.2)
    for axis, row in zip(axes[0], rows, strict=True):
        cells = np.array([[float(row["yes_yes"]), float(row["no_yes"])], [float(row["yes_no"]), float(row["no_no"])]])
        axis.imshow(cells, cmap="Greens", vmin=0)
        for (at, to), value in np.ndenumerate(cells):
            colour = "white" if value > 0.6 * cells.max() else "black"
            axis.text(to, at, f"{value:.0f}", ha="center", va="center", color=colour)
        axis.set(xticks=[0, 1], yticks=[0, 1], xlabel="predicted")
        axis.set_xticklabels(["suffices", "does not"], fontsize=8)
        axis.set_yticklabels(["suffices", "does not"], fontsize=8, rotation=90, va="center")
        figures = f"accuracy {float(row['accuracy']):.3f} (ceiling {float(row['ceiling']):.3f})"
        scores = f"F1 {float(row['f1']):.3f}, negative {float(row['negative_f1']):.3f}"
        axis.set_title(f"{_name(row['city'])}\n{row['evaluation']}\n{figures}\n{scores}", fontsize=8)
    axes[0, 0].set_ylabel("tested on held-out trips")
    return figure


def prediction_times(rows: Rows) -> Any:
    """Figure 8: how long one call of the predictor takes."""
    figure, axes = _figure(1)
    for at, city in enumerate(_of(rows, "city")):
        mine = [row for row in rows if row["city"] == city]
        values = [float(row["milliseconds"]) for row in mine]
        share = [float(row["percent"]) for row in mine]
        axes[0, 0].plot(values, share, color=COLOURS[at], label=_name(city))
    axes[0, 0].axvline(2.0, color="grey", linewidth=0.8, linestyle=":")
    axes[0, 0].set(xscale="log", xlabel="milliseconds for one call", ylabel="% of calls at most that long")
    axes[0, 0].legend(fontsize="x-small")
    return figure


def blanket_sizes(rows: Rows) -> Any:
    """Figure 9: predicted sizes in the windows of test trips, over the city and by region."""
    cities = _of(rows, "city")
    figure, axes = _figure(len(cities), 2, width=3.2, height=2.6)
    sizes = [key for key in rows[0] if key.startswith("share_")]
    for at, city in enumerate(cities):
        here = [row for row in rows if row["city"] == city]
        whole = next(row for row in here if row["row"] == "-1")
        axes[0, at].bar(np.arange(len(sizes)), [100 * float(whole[key]) for key in sizes], color=COLOURS[0])
        axes[0, at].set_xticks(np.arange(len(sizes)))
        axes[0, at].set(xlabel="places in the blanket", ylabel="% of windows", title=_name(city))
        parts = [row for row in here if row["row"] != "-1"]
        image = _heat(axes[1, at], _grid(parts, "row", "column", "mean"), low=0.0, high=float(len(sizes) - 1))
        figure.colorbar(image, ax=axes[1, at], label="mean size by region")
    return figure


def losses(rows: Rows) -> Any:
    """Figure 10: expected loss against epsilon, with a bar down to what no mechanism with that promise can beat."""
    places = [(city, count) for city in _of(rows, "city") for count in _of(_where(rows, city=city), "places")]
    figure, axes = _figure(len(places), width=3.9, height=3.4)
    for axis, (city, count) in zip(axes[0], places, strict=True):
        here = _where(rows, city=city, places=count)
        for at, method in enumerate(_of(here, "method")):
            mine = sorted(_where(here, method=method), key=lambda row: float(row["epsilon"]))
            shift = 0.003 * (at - 2.5)
            epsilon = np.array([float(row["epsilon"]) for row in mine])
            upper = np.array([float(row["upper"]) for row in mine])
            lower = np.array([float(row["lower"]) for row in mine])
            bars = np.stack([upper - lower, np.zeros_like(upper)])
            options = {"color": COLOURS[at % len(COLOURS)], "marker": "o", "markersize": 4, "capsize": 2}
            axis.errorbar(epsilon + shift, upper, yerr=bars, elinewidth=0.8, label=method, **options)
        ticks = sorted({float(row["epsilon"]) for row in here})
        axis.set(xticks=ticks, xlim=(ticks[0] - 0.03, ticks[-1] + 0.03), ylim=(0, None))
        axis.set(title=f"{_name(city)}, {count} places", xlabel="epsilon per km")
    axes[0, 0].set_ylabel("expected loss in km")
    axes[0, 0].legend(fontsize="x-small")
    return figure


def times(rows: Rows) -> Any:
    """Figure 11: processor seconds to build a mechanism and milliseconds to draw a report, against epsilon and size."""
    figure, axes = _figure(2, 2, width=4.4, height=2.9)
    fewest = min(_of(rows, "places"), key=int)
    cities = _of(rows, "city")
    for at, city in enumerate(cities):
        name, colour = _name(city), COLOURS[at % len(COLOURS)]
        mine = sorted(_where(rows, city=city, method="C-mDP"), key=lambda row: float(row["epsilon"]))
        few = [row for row in mine if row["places"] == fewest]
        epsilon = [float(row["epsilon"]) for row in few]
        axes[0, 0].plot(epsilon, [float(row["processor_seconds"]) for row in few], "o-", color=colour, label=name)
        axes[0, 1].plot(epsilon, [float(row["draw_milliseconds"]) for row in few], "o-", color=colour, label=name)
        last = sorted(
            (row for row in mine if row["epsilon"] == mine[-1]["epsilon"]), key=lambda row: int(row["secrets"])
        )
        secrets = [int(row["secrets"]) for row in last]
        axes[1, 0].plot(secrets, [float(row["processor_seconds"]) for row in last], "o-", color=colour, label=name)
        axes[1, 1].plot(secrets, [float(row["draw_milliseconds"]) for row in last], "o-", color=colour, label=name)
    axes[0, 0].set(title=f"C-mDP, {fewest} places", ylabel="processor seconds to build", ylim=(0, None))
    axes[0, 1].set(title="one report", ylabel="milliseconds to draw", ylim=(0, None))
    axes[1, 0].set(ylabel="processor seconds to build", ylim=(0, None))
    axes[1, 1].set(ylabel="milliseconds to draw", ylim=(0, None))
    for to in (0, 1):
        axes[0, to].set_xlabel("epsilon per km")
        axes[1, to].set_xlabel("augmented secrets (largest epsilon)")
    axes[0, 0].legend(fontsize="x-small")
    return figure


def _where(rows: Rows, **wanted: str) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]
