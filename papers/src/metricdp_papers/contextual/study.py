"""The study of "Context-Aware Metric Differential Privacy for Vehicle Trajectory Data": its tables and its pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from metricdp_papers.common import COLOURS, Piece, Row, Study, StudyTable, draw_panels, group_rows, is_number, plot_line
from metricdp_papers.contextual import published
from metricdp_papers.contextual.beside import compared_closely, near_pairs, one_way_streets, promises, refined
from metricdp_papers.contextual.ccit import DISTRIBUTIONS, known_laws, of_table_1
from metricdp_papers.contextual.cities import Layout
from metricdp_papers.contextual.correlations import correlations
from metricdp_papers.contextual.density import density
from metricdp_papers.contextual.levels import classifier_level, kernel_level
from metricdp_papers.contextual.losses import LOSS, Scene, losses
from metricdp_papers.contextual.p_values import FEATURES, figure_of, p_values
from metricdp_papers.contextual.predictions import predictions

OURS = {"as_published": "as published", "corrected": "corrected"}
Rows = Sequence[Row]


def picture(table: StudyTable, rows: Rows, path: Path) -> None:
    """Draw a table to a PNG file; nothing where the table is not one to draw."""
    if drawing := DRAWINGS.get(table.number):
        drawing(rows, path)


def _recorded_rows(rows: Rows, **wanted: str) -> list[Row]:
    """Return the rows about records as they came, and of those what is wanted where they say something of it."""
    return [row for row in rows if all(str(row.get(name, value)) == value
            for name, value in {"records": "as recorded", **wanted}.items())]  # fmt: skip


def _twice(rows: Rows) -> list[Row]:
    """Return the rows city by city, first as published, then corrected, with that number as `value`."""
    return [{**row, "shown": words, "value": row[column]} for members in group_rows(rows, ("city",)).values()
            for column, words in OURS.items() for row in members]  # fmt: skip


def regions(rows: Rows, path: Path) -> None:
    """Figures 3 and 4: mean p-values by region, one column per m, as published above and corrected below."""
    kept = _twice(sorted(_recorded_rows(rows), key=lambda row: row["m"]))
    kept = [{**row, "question": f"m = {row['m']}"} for row in kept]
    settings: dict[str, Any] = {"xticks": [], "yticks": []}
    columns = len({row["m"] for row in kept})
    draw_panels(kept, path, ("city", "shown", "question"), _cells, columns=columns, size=(2.3, 2.0), legend="",
                settings=settings)  # fmt: skip


def _cells(axes: Any, rows: Rows) -> None:
    places = [tuple(int(word) for word in str(row["bin"]).split()[1::2]) for row in rows]
    cells = np.full(np.maximum(3, 1 + np.max(places, axis=0)), np.nan)
    for place, row in zip(places, rows, strict=True):
        if is_number(row["value"]):
            cells[place] = row["value"]
            axes.text(place[1], place[0], f"{row['value']:.2f}", ha="center", va="center", fontsize=7, color="white")
    axes.imshow(cells, origin="lower", cmap="viridis", vmin=0.0, vmax=1.0, aspect="auto")


def lines(rows: Rows, path: Path) -> None:
    """Figures 5 to 7: mean p-values against speed or hour, one line per m."""
    kept = [{**row, "at": float(str(row["bin"]).split()[0])} for row in _twice(_recorded_rows(rows))]
    feature = kept[0]["feature"] if kept else ""
    settings = {"ylim": (-0.03, 1.03), "ylabel": "mean p-value", "xlabel": "mph" if feature == "speed" else "hour, UTC"}
    draw_panels(kept, path, ("city", "shown"), _lines, columns=2, size=(4.2, 2.5), legend="first", settings=settings)


def _lines(axes: Any, rows: Rows) -> None:
    for (m,), mine in sorted(group_rows(rows, ("m",)).items()):
        plot_line(axes, mine, "at", "value", "o-", color=COLOURS[m % len(COLOURS)], markersize=3, label=f"m = {m}")
    axes.axhline(published.LEVEL, color="grey", linewidth=0.8, linestyle=":")


def bars(rows: Rows, path: Path) -> None:
    """Tables of named measures: published, as published and corrected side by side, one panel per city."""
    kept = _recorded_rows(rows, m="1 to 5", split="random examples")
    kept = [row for row in kept if not str(row["measure"]).startswith(("seconds", "BCE"))]
    draw_panels(kept, path, ("city",), _bars, columns=1, size=(9.0, 2.6), legend="first")


def _bars(axes: Any, rows: Rows) -> None:
    for at, (value, words) in enumerate({"published": "published", **OURS}.items()):
        heights = [row[value] if is_number(row.get(value)) else np.nan for row in rows]
        axes.bar(np.arange(len(rows)) + 0.27 * (at - 1), heights, 0.25, color=COLOURS[at], label=words)
    names = [" ".join(str(part) for part in (row.get("feature", ""), row["measure"]) if part)[:34] for row in rows]
    axes.set_xticks(np.arange(len(rows)), names, fontsize=6, rotation=25, ha="right")
    axes.axhline(0.0, color="grey", linewidth=0.8)


def against_epsilon(measure: str, rows: Rows, path: Path) -> None:
    """Figures 10 and 11: a measure against epsilon, one panel per city and size, one line per method."""
    kept = sorted((row for row in rows if row["measure"] == measure),
                  key=lambda row: (row["city"], row["crossings"], row["steps_back"]))  # fmt: skip
    kept = [{**row, "size": f"{row['crossings']} crossings, {row['steps_back']} back"} for row in kept]
    names = list(group_rows(kept, ("method",)))
    settings = {"xlabel": "epsilon per km", "ylabel": measure}
    draw_panels(kept, path, ("city", "size"), partial(_methods, names), size=(4.0, 3.3), settings=settings)


def _methods(names: Sequence[tuple[Any, ...]], axes: Any, rows: Rows) -> None:
    for method, mine in group_rows(rows, ("method",)).items():
        colour = COLOURS[names.index(method) % len(COLOURS)]
        plot_line(axes, mine, "epsilon", "corrected", "o-", color=colour, markersize=4, label=method[0])
        plot_line(axes, mine, "epsilon", "as_published", "x:", color=colour, markersize=4)
        plot_line(axes, mine, "epsilon", "bound", "--", color=colour, linewidth=0.6)


DRAWINGS: dict[str, Callable[[Rows, Path], None]] = {
    **dict.fromkeys(("1", "2", "figure 9", "figure 12", "figure 13", "figure 14"), bars),
    **dict.fromkeys(("figure 3", "figure 4"), regions),
    **dict.fromkeys(("figure 5", "figure 6", "figure 7"), lines),
    "figure 10": partial(against_epsilon, LOSS),
    "figure 11": partial(against_epsilon, "seconds to build"),
}


CITIES = ("porto", "rome", "san_francisco")
EPSILONS = (0.5, 0.25, 0.4, 0.35, 0.3, 0.45)  # the ends first
DRAWS = 10  # of 200 runs, of every p-value in the figures
MOST_EPOCHS = 100_000
RADII = (1.5, 2.0, 3.0, published.RADIUS_KM)
DATA = "Rome has 10,000 fixes of one night instead of 30 days, Porto 1,318 trips instead of 1,666,766"

TABLES = (
    StudyTable("1", "How p-values go with speed, region and time",
               "Three correlations and the type I error of the classifier test CCIT, Rome and Porto.",
               f"{DATA}; San Francisco and New York check-ins are ours. Under `corrected` the last row is an exact "
               "permutation test instead of CCIT. All fixes of Rome lie in one hour."),
    StudyTable("2", "Prediction performance of the network",
               "Scores of a network on 20 % of the examples, drawn at random.",
               f"{DATA}. `as_published` is the network with Adam (rate 1e-5, batches of 128, patience 400; widths "
               "are not given, 64 and 64 here), `corrected` ours (two layers, L-BFGS). The split by trips is ours."),
    StudyTable("figure 3", "p-values by region, Rome, m = 1 to 5", "Heat maps of 18 regions of 4 x 5.",
               "Four regions have 200 runs here."),
    StudyTable("figure 4", "p-values by region, Porto, m = 1 to 5", "Heat maps of 3 x 3 regions.",
               "San Francisco and New York check-ins stand beside."),
    StudyTable("figure 5", "p-values by speed, m = 1 to 5", "Lines over 5 mph intervals, both cities: U-shaped.", DATA),
    StudyTable("figure 6", "p-values by hour, Rome", "24 hours, m = 1 to 5.", "All fixes of Rome lie in one hour."),
    StudyTable("figure 7", "p-values by hour, Porto", "24 hours, m = 1 to 5.",
               "San Francisco and check-ins stand beside."),
    StudyTable("figure 8", "Time of one prediction", "0.1557 and 0.1588 ms on average, over 98 % within 2 ms."),
    StudyTable("figure 9", "Sizes of predicted blankets", "99.8 % (Rome) and 100 % (Porto) hold at most two places."),
    StudyTable("figure 10", "Expected loss against epsilon",
          "C-mDP 13 to 17 % below LP, 25 to 36 % below ConstOPT, 25 to 50 % below ExpMech, 3 to 8 % below LP+Markov, "
          "within 1 to 2 % of LP+TrueMB. No losses in numbers.",
          "The paper gives neither the number of secrets, nor the decay weights, nor the time between two places. "
          "Here: 200 crossings with one step back (weight 1), and 12 and 20 with two (weights 1 and 0.5)."),
    StudyTable("figure 11", "Time to build and to draw", "10.24 s (Rome) and 9.34 s (Porto) on average; 1.01 ms.",
               "The size of the published programs is not given."),
    StudyTable("figure 12", "Distance to the nearest neighbour", "The density approaches zero around 20 m.", DATA),
    StudyTable("figure 13", "Neighbours within 100 m", "85.8 % (Rome) and 84.0 % (Porto) of points have 1,000.",
               f"{DATA}: fewer fixes have fewer neighbours."),
    StudyTable("figure 14", "Mean distance to the 50 nearest", "At most 100 m for 99.5 % and 98.1 % of points.", DATA),
    StudyTable("neighbour radius", "What eta leaves open", "eta = 5 km by default; no numbers."),
    StudyTable("refined", "The refined program of Appendix C", "Proposition 4; no numbers."),
    StudyTable("one-way streets", "Directed roads", "Directed graphs; no comparison."),
    StudyTable("levels", "How often the tests reject what is true", "Not in the paper.", "The level asked for is 5 %."),
    StudyTable("ccit", "The classifier test of its authors beside ours", "CCIT in Table 1, without a version.",
               "`as_published` is CCIT 0.4 as its authors wrote it (`pip install CCIT==0.4`), `corrected` ours, on "
               "the same samples: draws of known distributions, and the columns of Table 1."),
    StudyTable("promises", "What the guarantee means for a place and a trajectory", "Not in the paper."),
)  # fmt: skip

NOTES = (
    "Times between two records: as recorded (Rome and Porto 15 s, San Francisco about 60 s, check-ins as they come), "
    "and interpolated to 60 s beside.",
    "C-mDP at the same epsilon protects another secret than LP: place and history under a longer distance; see "
    "`promises`.",
)


def scene(city: str, steps_back: int, crossings: int = 20) -> Scene:
    """Return 200 crossings with one step back, or a few with two, of a city with its one-way streets."""
    if steps_back == 1:
        seconds = 60.0 if city == "san_francisco" else 30.0  # a fix a minute there
        return Scene(city, Layout(200, 0.5, seconds, sides=True, directed=True), (1.0,))
    return Scene(city, Layout(crossings, 1.2, 60.0, directed=True), (1.0, 0.5))


def pieces(full: bool) -> Iterator[Piece]:
    """List the work, the most valuable first; the short version needs no data beyond the package."""
    if not full:
        yield from _short()
        return
    figures, network = ("figure 10", "figure 11"), ("2", "figure 8", "figure 9")
    for city in ("porto", "san_francisco", "rome"):
        yield Piece(f"predictions.{city}", network, predictions, (city, None, MOST_EPOCHS))
    for city in ("porto", "san_francisco", "rome", "new_york"):
        yield Piece(f"correlations.{city}", "1", correlations, (city, None))
        yield Piece(f"density.{city}", ("figure 12", "figure 13", "figure 14"), density, (city,))
    for epsilon in EPSILONS:
        for city in CITIES:
            yield Piece(f"twelve.{city}.{epsilon:g}", figures, losses, (scene(city, 2, 12), epsilon, "all"))
    yield from _figures_3_to_7("porto", None)
    yield from _beside()
    yield from _figures_3_to_7("rome", None)
    for epsilon in EPSILONS:
        for city in CITIES:
            yield Piece(f"alone.{city}.{epsilon:g}", figures, losses, (scene(city, 1), epsilon, "alone"))
            # minutes each: the program over a thousand secrets
            yield Piece(f"aware.{city}.{epsilon:g}", figures, losses, (scene(city, 1), epsilon, "with history"))
    for epsilon in EPSILONS[:2]:
        for city in CITIES:
            yield Piece(f"two.{city}.{epsilon:g}", figures, losses, (scene(city, 2), epsilon, "all"))
    for city in ("san_francisco", "new_york"):
        yield from _figures_3_to_7(city, None)
    for city in ("rome", "porto"):
        yield Piece(f"correlations.{city}.60s", "1", correlations, (city, 60.0))
        yield Piece(f"predictions.{city}.60s", network, predictions, (city, 60.0, MOST_EPOCHS))
        yield from _figures_3_to_7(city, 60.0)


def _figures_3_to_7(city: str, step_seconds: float | None) -> Iterator[Piece]:
    clock = "" if step_seconds is None else f".{step_seconds:g}s"
    for feature in FEATURES:
        for m in range(1, published.MOST_M + 1):
            arguments = (city, step_seconds, feature, m, DRAWS)
            yield Piece(f"p.{city}{clock}.{feature}.m={m}", figure_of(feature, city), p_values, arguments)


def _beside() -> Iterator[Piece]:
    for conditions in (1, 2, 4):
        yield Piece(f"level.kernel.{conditions}", "levels", kernel_level, (conditions, 300))
    for samples in (60, 250):
        yield Piece(f"level.classifier.{samples}", "levels", classifier_level, (samples, 300))
    for city in CITIES:
        for radius in RADII:
            arguments = (Scene(city, Layout(30, 1.2, 60.0, directed=True), (1.0,)), 0.5, radius)
            yield Piece(f"radius.{city}.{radius:g}", "neighbour radius", near_pairs, arguments)
        small = Scene(city, Layout(6, 1.2, 60.0, directed=True), (1.0, 0.5))
        for epsilon in (0.25, 0.5, 1.0):
            yield Piece(f"refined.{city}.{epsilon:g}", "refined", refined, (small, epsilon))
        for epsilon in (0.25, 0.5):
            yield Piece(f"promises.{city}.{epsilon:g}", "promises", promises, (scene(city, 2), epsilon))
    for size, city, epsilon in product((12, 20), CITIES, EPSILONS[:2]):
        yield Piece(f"close.{size}.{city}.{epsilon:g}", "figure 10", compared_closely, (scene(city, 2, size), epsilon))
    for city in ("porto", "san_francisco"):
        pair = tuple(Scene(city, Layout(60, 0.8, 60.0, directed=directed), (1.0,)) for directed in (True, False))
        yield Piece(f"one-way.{city}", "one-way streets", one_way_streets, (*pair, 0.5))
    for at, law in enumerate(DISTRIBUTIONS):
        yield Piece(f"ccit.law-{at + 1}", "ccit", known_laws, (law, 300, 12))
    for city in ("porto", "rome"):
        yield Piece(f"ccit.{city}", "ccit", of_table_1, (city,))
    yield Piece("radius.rome.200-crossings", "neighbour radius", near_pairs, (scene("rome", 1), 0.5, 5.0))


def _short() -> Iterator[Piece]:
    small = Scene("simulated", Layout(6, 0.35, 30.0), (1.0, 0.5))
    yield Piece("short.density", ("figure 12", "figure 13", "figure 14"), density, ("simulated",))
    yield Piece("short.close", "figure 10", compared_closely, (small, 0.5))
    yield Piece("short.losses", ("figure 10", "figure 11"), losses, (small, 0.5, "all"))
    yield Piece("short.p.speed.m=1", "figure 5", p_values, ("simulated", None, "speed", 1, 1))
    yield Piece("short.predictions", ("2", "figure 8", "figure 9"), predictions, ("simulated", None, 200, 40))
    yield Piece("short.correlations", "1", correlations, ("simulated", None, 40))
    yield Piece("short.radius", "neighbour radius", near_pairs, (small, 0.5, 1.0))
    yield Piece("short.refined", "refined", refined, (Scene("simulated", Layout(4, 0.35, 30.0), (1.0, 0.5)), 0.5))
    yield Piece("short.level", "levels", kernel_level, (1, 10))
    yield Piece("short.promises", "promises", promises, (small, 0.5))


STUDY = Study(
    "contextual",
    "trips: mechanisms that know the past, blankets and what they assume",
    TABLES,
    pieces,
    picture,
    NOTES,
    needs=(
        "traj_porto_taxi", "traj_rome_taxi", "traj_cabspotting", "checkins_foursquare_nyc", "roads_porto",
        "roads_rome_directed", "roads_rome", "roads_san_francisco",
    ),
)  # fmt: skip
