"""Maps of whole cities under elastic promises: docs/results/elastic_CITY.csv and docs/images/elastic_CITY.png.

    python tools/elastic_maps.py FOLDER        # what benchmarks/elastic_cities.py solved, by city
    python tools/elastic_maps.py --draw        # again from docs/results

A row of a table is a square of the map with crossings in it: where it is, how many, and of every promise the means of
loss, error of the best guess (metres) and crossings hidden among. Maps of one kind share one scale of colours.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metricdp.plots.palette import STYLE, write_picture

HERE = Path(__file__).resolve().parent.parent
RESULTS, IMAGES = HERE / "docs" / "results", HERE / "docs" / "images"
TICKS = (1, 3, 10, 30, 100, 300, 1000, 3000)
SHOWN = {
    "rome": ("plain-5", "elastic-2", "scaled-10"),
    "nyc": ("plain-20", "elastic-6", "plain-10"),
}
KINDS = {"hidden": "hidden among, crossings", "loss": "loss, metres", "error": "best guess errs by, metres"}
SQUARES = 64  # along the longer side of the middle of the city
MIDDLE = {"rome": 18.0, "nyc": 32.0}  # kilometres around the middle that are shown
Floats = NDArray[np.float64]


def told(name: str) -> str:
    """Name a promise."""
    kind, epsilon = name.split("-")
    return f"{epsilon} per {'level' if kind == 'elastic' else 'scaled km' if kind == 'scaled' else 'kilometre'}"


def squares(city: str, folder: Path) -> list[dict[str, float]]:
    """Return the means of every square."""
    found: dict[int, dict[str, float]] = {}
    for name in SHOWN[city]:
        path = folder / f"{city}-{name}.npz"
        if not path.exists():
            continue
        with np.load(path) as kept:
            places = np.asarray(kept["places"], dtype=np.float64)
            values = {kind: np.asarray(kept[kind], dtype=np.float64) for kind in KINDS}
        middle = np.median(places, axis=0)
        high = 2.0 * MIDDLE[city] / SQUARES / 111.2  # degrees of latitude
        wide = high / np.cos(np.radians(middle[0]))
        row = np.floor((places[:, 0] - middle[0]) / high).astype(int) + SQUARES // 2
        column = np.floor((places[:, 1] - middle[1]) / wide).astype(int) + SQUARES // 2
        inside = (row >= 0) & (row < SQUARES) & (column >= 0) & (column < SQUARES)
        key = (row * SQUARES + column)[inside]
        counts = np.bincount(key, minlength=SQUARES**2)
        for kind, numbers in values.items():
            total = np.bincount(key, weights=numbers[inside], minlength=SQUARES**2)
            for at in np.flatnonzero(counts).tolist():
                cell = found.setdefault(at, {
                    "lat": round(middle[0] + (at // SQUARES - SQUARES // 2 + 0.5) * high, 5),
                    "lon": round(middle[1] + (at % SQUARES - SQUARES // 2 + 0.5) * wide, 5),
                    "crossings": int(counts[at]),
                })  # fmt: skip
                cell[f"{kind}_{name}"] = float(f"{total[at] / counts[at]:.4g}")
    return [found[at] for at in sorted(found)]


def draw(city: str) -> None:
    """Draw a table: one row of maps a promise."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import colors, pyplot

    with (RESULTS / f"elastic_{city}.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    where = np.array([[float(row["lat"]), float(row["lon"])] for row in rows])
    names = [name for name in SHOWN[city] if f"loss_{name}" in rows[0]]
    with pyplot.rc_context(STYLE):
        figure, charts = pyplot.subplots(len(names), 3, figsize=(9.0, 2.9 * len(names)), layout="constrained")
        for column, (kind, words) in enumerate(KINDS.items()):
            values = np.array([[float(row[f"{kind}_{name}"]) for name in names] for row in rows])
            low, high = np.quantile(values, [0.02, 0.98])
            scale = colors.LogNorm(max(low, 1.0), high)
            for at, name in enumerate(names):
                chart = charts[at, column]
                dots = chart.scatter(
                    where[:, 1],
                    where[:, 0],
                    c=values[:, at],
                    s=9,
                    marker="s",
                    cmap="viridis_r",
                    norm=scale,
                    linewidths=0,
                )
                chart.set_aspect(1.0 / np.cos(np.radians(where[:, 0].mean())))
                chart.set_axis_off()
                chart.set_title(told(name) if column == 0 else "")
            bar = figure.colorbar(dots, ax=charts[:, column], label=words, shrink=0.9, location="bottom")
            bar.set_ticks([tick for tick in TICKS if scale.vmin <= tick <= scale.vmax])
            bar.ax.xaxis.set_major_formatter("{x:g}")
            bar.minorticks_off()
        write_picture(figure, IMAGES / f"elastic_{city}.png")


def main() -> None:
    """Write tables and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--draw", action="store_true")
    chosen = parser.parse_args()
    if (chosen.folder is None) != chosen.draw:
        sys.exit("say which folder holds what was solved, or --draw.")
    for city in SHOWN:
        if chosen.folder is not None:
            table = squares(city, chosen.folder)
            with (RESULTS / f"elastic_{city}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(table)
        draw(city)


if __name__ == "__main__":
    main()
