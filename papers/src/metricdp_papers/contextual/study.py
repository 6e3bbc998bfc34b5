"""The study of "Context-Aware Metric Differential Privacy for Vehicle Trajectory Data": its tables and its pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.errors import MissingExtra, import_extra
from metricdp_papers.common import Piece, Row, Study, StudyTable
from metricdp_papers.contextual import published
from metricdp_papers.contextual.beside import near_pairs, one_way_streets, promises, refined
from metricdp_papers.contextual.ccit import DISTRIBUTIONS, known_laws, of_table_1
from metricdp_papers.contextual.cities import Layout
from metricdp_papers.contextual.correlations import correlations
from metricdp_papers.contextual.density import density
from metricdp_papers.contextual.levels import classifier_level, kernel_level
from metricdp_papers.contextual.losses import Scene, losses
from metricdp_papers.contextual.p_values import FEATURES, figure_of, p_values
from metricdp_papers.contextual.predictions import predictions

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
    StudyTable("2", "Prediction performance of the network", "Scores of a network on 20 % of the examples, drawn at "
                                                             "random.",
          f"{DATA}. `as_published` is the network with Adam (rate 1e-5, batches of 128, patience 400; widths are not "
          "given, 64 and 64 here), `corrected` ours (two layers, L-BFGS). The split by trips is ours."),
    StudyTable("figure 3", "p-values by region, Rome, m = 1 to 5", "Heat maps of 18 regions of 4 x 5.",
          "Four regions have 200 runs here."),
    StudyTable("figure 4", "p-values by region, Porto, m = 1 to 5", "Heat maps of 3 x 3 regions.",
          "San Francisco and New York check-ins stand beside."),
    StudyTable("figure 5", "p-values by speed, m = 1 to 5", "Lines over 5 mph intervals, both cities: U-shaped.", DATA),
    StudyTable("figure 6", "p-values by hour, Rome", "24 hours, m = 1 to 5.", "All fixes of Rome lie in one hour."),
    StudyTable("figure 7", "p-values by hour, Porto", "24 hours, m = 1 to 5.", "San Francisco and check-ins stand "
                                                                               "beside."),
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
          "`as_published` is CCIT 0.4 as its authors wrote it (`pip install CCIT==0.4`), `corrected` ours, on the same "
          "samples: draws of known laws, and the columns of Table 1."),
    StudyTable("promises", "What the promise means for a place and a trajectory", "Not in the paper."),
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
    yield from _full() if full else _short()


def _full() -> Iterator[Piece]:
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
