"""Decomposition on four data sets: the published method as printed, beside what is put right and the other solvers.

References: Qiu (2024), Tables 1 to 4, Figures 5 to 20.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from metricdp.errors import import_extra
from metricdp.solvers import PartitionName
from metricdp_papers.benders.beyond import detour_rows, digits_rows
from metricdp_papers.benders.data import DATA, WIDE_GRID, available
from metricdp_papers.benders.maps import component_rows, partition_rows
from metricdp_papers.benders.parts import all_pairs_rows, loss_rows, size_rows, subset_rows
from metricdp_papers.benders.printed import MOST_ITERATIONS, PUBLISHED_PARTITIONS
from metricdp_papers.benders.runs import METHODS, Setting, classic_rows, ours_rows, published_rows
from metricdp_papers.common import Piece, Row, Study, StudyTable

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


SMALL_EPSILON = 2.0
OF_A_RUN = ("3", "4", "figure 8", "figure 10", "figure 17")
OF_OURS = ("3", "4", "figure 17")
WORDS = {
    "as printed": "printed",
    "as printed to 1e-4": "tolerance",
    "authors' program": "program",
    "authors' program at 2e-6": "program_2e-6",
    "boundary counted once": "once",
}
INSTANCES = 10
FEW = 3  # instances of what takes minutes: the method as printed, interior point, the losses of Figure 7
SECONDS = 120.0  # of a run at 500 records
LARGE_SECONDS = 150.0  # of a run at 1,000 records
CLASSIC_SECONDS = 240.0


def pieces(full: bool) -> Iterator[Piece]:
    """List the work, the most valuable first."""
    yield from _full() if full else _short()


def _key(setting: Setting, *words: object) -> str:
    named = [setting.data.replace(" ", "_"), str(setting.records), f"eps{setting.epsilon:g}", *map(str, words)]
    return "-".join(named)


def _published(setting: Setting, method: PartitionName, rules: str, instance: int, seconds: float = SECONDS) -> Piece:
    arguments = (setting, method, rules, instance, MOST_ITERATIONS, seconds)
    tables: tuple[str, ...] = ("figure 6",) if setting.records > 500 else OF_A_RUN
    return Piece(_key(setting, WORDS[rules], method, instance), tables, published_rows, arguments)


def _ours(
    setting: Setting, method: PartitionName, start: str, instance: int, seconds: float, gap: float = 0.01
) -> Piece:
    tables: tuple[str, ...] = ("figure 6",) if setting.records > 500 else OF_OURS
    key = _key(setting, "ours", start, method, instance, *([f"gap{gap:g}", setting.reports] if gap != 0.01 else []))
    return Piece(key, tables, ours_rows, (setting, method, start, instance, gap, seconds))


def _classic(setting: Setting, method: str, seconds: float, instance: int = 0) -> Piece:
    tables: tuple[str, ...] = ("figure 6",) if setting.records > 500 else ("3", "4")
    key = _key(setting, method, *([instance] if instance else []))
    return Piece(key, tables, classic_rows, (setting, method, instance, seconds))


def _full() -> Iterator[Piece]:
    names = list(DATA)
    near, far = (
        {name: Setting(name, epsilon=epsilon) for name in names} for epsilon in (Setting("").epsilon, SMALL_EPSILON)
    )
    for instance in range(INSTANCES):
        for name in (*names, WIDE_GRID):
            yield Piece(_key(Setting(name), "sizes", instance), ("1", "2"), size_rows, (Setting(name), instance))
    for name in names:
        yield Piece(f"{name}-components", "figure 5", component_rows, (near[name], 0))
        yield Piece(f"{name}-partitions", "figure 13", partition_rows, (near[name], 0))
    for name in names:
        for rules in METHODS:
            yield _published(near[name], "distances", rules, 0)
    for name in names:
        yield _ours(near[name], "balanced", "engine", 0, 240.0)
        yield _ours(far[name], "balanced", "engine", 0, 240.0)
        yield _classic(near[name], "simplex", CLASSIC_SECONDS)
        yield _classic(near[name], "ipx", CLASSIC_SECONDS)
        yield Piece(f"{name}-losses-0", "figure 7", loss_rows, (near[name], (2.0, 4.0, 6.0, 8.0, 10.0), 0, 280.0))
    yield from _closing(names)
    for name in names:
        yield _published(far[name], "distances", "as printed", 0)
        yield _ours(near[name], "distances", "kernels", 0, SECONDS)
        yield _ours(far[name], "distances", "kernels", 0, SECONDS)
    for instance in range(INSTANCES):
        for name in names:
            counts = tuple(range(25, 35))
            yield Piece(f"{name}-subsets-{instance}", "figure 12", subset_rows, (near[name], instance, counts))
    yield from _wider(names, near, far)
    for name in names:
        yield Piece(f"{name}-digits", "beyond", digits_rows, (Setting(name, 100, SMALL_EPSILON, 10, 3), 1e-6, 120.0))
    yield Piece("detour", "beyond", detour_rows, (30, 2.5, 1.0))
    yield from _rest(names, near, far)


def _wider(names: Sequence[str], near: dict[str, Setting], far: dict[str, Setting]) -> Iterator[Piece]:
    """What completes the tables for one instance: the other three partitions, and 1,000 records."""
    for method in PUBLISHED_PARTITIONS[1:]:
        for name in names:
            yield _published(near[name], method, "as printed", 0)
            yield _published(near[name], method, "authors' program", 0)
    for name in names:
        large = Setting(name, 1000)
        yield _published(large, "distances", "as printed", 0, LARGE_SECONDS)
        yield _published(large, "distances", "authors' program", 0, 2.0 * SECONDS)
        yield _ours(large, "balanced", "engine", 0, 240.0)
        yield _ours(large, "distances", "kernels", 0, LARGE_SECONDS)
        yield _classic(large, "simplex", CLASSIC_SECONDS)
        yield _classic(large, "ipx", LARGE_SECONDS)
    for method in PUBLISHED_PARTITIONS[1:]:
        for name in names:
            yield _published(far[name], method, "as printed", 0)


def _rest(names: Sequence[str], near: dict[str, Setting], far: dict[str, Setting]) -> Iterator[Piece]:
    """What widens the tables: more instances of what is quick, three of what is not, all columns at epsilon 2."""
    for instance in range(1, INSTANCES):
        for name in names:
            yield _published(near[name], "distances", "authors' program", instance)
            yield _ours(near[name], "balanced", "engine", instance, 240.0)
            yield _classic(near[name], "simplex", CLASSIC_SECONDS, instance)
    for instance in range(1, FEW):
        for name in names:
            losses = (near[name], (2.0, 4.0, 6.0, 8.0, 10.0), instance, 280.0)
            yield Piece(f"{name}-losses-{instance}", "figure 7", loss_rows, losses)
    for name in names:
        large = Setting(name, 1000, SMALL_EPSILON)
        yield _published(large, "distances", "as printed", 0, LARGE_SECONDS)
        yield _ours(large, "balanced", "engine", 0, LARGE_SECONDS)
    for name in names:
        yield _classic(far[name], "simplex", SECONDS)
        yield _classic(far[name], "ipx", SECONDS)
        yield _published(far[name], "distances", "boundary counted once", 0)
        yield _published(far[name], "distances", "authors' program", 0)
    for instance in range(1, FEW):
        for name in names:
            yield _published(near[name], "distances", "as printed", instance)
            yield _classic(near[name], "ipx", CLASSIC_SECONDS, instance)
    for name in names:
        for epsilon in (2.0, 10.0):
            yield Piece(f"{name}-all_pairs-{epsilon:g}", "figure 7", all_pairs_rows, (near[name], epsilon, 0, SECONDS))
    for method in PUBLISHED_PARTITIONS[1:]:
        for name in names:
            yield _published(near[name], method, "boundary counted once", 0)
            yield _ours(near[name], method, "kernels", 0, SECONDS)
            yield _ours(far[name], method, "kernels", 0, SECONDS)


def _closing(names: Sequence[str]) -> Iterator[Piece]:
    """Runs whose rounds are many and quick: 300 records, ten reports, three subsets."""
    for name in names:
        small = Setting(name, 300, SMALL_EPSILON, 10, 3)
        for start in ("plain", "kernels", "engine"):
            yield _ours(small, "balanced", start, 0, 60.0, 1e-4)


def _short() -> Iterator[Piece]:
    """The same kinds of work within a minute or two, on the data that is here."""
    for name in available():
        small = Setting(name, 60, SMALL_EPSILON, 8, 3)
        yield Piece(_key(small, "sizes", 0), ("1", "2"), size_rows, (small, 0))
        for rules in METHODS:
            arguments = (small, "distances", rules, 0, 150, 10.0)
            yield Piece(_key(small, WORDS[rules], "distances", 0), OF_A_RUN, published_rows, arguments)
        for start in ("plain", "kernels", "engine"):
            yield _ours(small, "balanced", start, 0, 10.0)
        for method in ("simplex", "ipx"):
            yield _classic(small, method, 10.0)
        yield Piece(f"{name}-losses-60-0", "figure 7", loss_rows, (small, (2.0, 10.0), 0, 20.0))
        yield Piece(f"{name}-all_pairs-60-2", "figure 7", all_pairs_rows, (small, 2.0, 0, 10.0))
        yield Piece(f"{name}-subsets-60-0", "figure 12", subset_rows, (small, 0, (3, 4, 5)))
        yield Piece(f"{name}-components-60", "figure 5", component_rows, (small, 0))
        yield Piece(f"{name}-partitions-60", "figure 13", partition_rows, (small, 0))
        yield Piece(f"{name}-digits-60", "beyond", digits_rows, (small, 1e-6, 10.0))
        larger = Setting(name, 520, 10.0, 4, 20) if name == "synthetic" else None
        if larger is not None:
            yield _ours(larger, "balanced", "engine", 0, 10.0)


def picture(table: StudyTable, rows: Sequence[Row], path: Path) -> None:
    """Draw what is better seen than read."""
    draw(table.stem, rows, path)


STUDY = Study(
    name="benders",
    about="decomposed mechanisms: the published decomposition as printed, put right, and beside other solvers",
    tables=(
        StudyTable("1", "size of subproblems", "Inner records of 25 subsets of 500 records, ten instances.",
              "Crossings and words are samples of ours, vectors are GloVe; a grid of 1.5 km is what the authors' "
              "program runs. Printed means times 25 exceed the 500 records for text with k-m-adj and BSC."),
        StudyTable("2", "size of the master's components", "Records of a component, ten instances.",
              "The authors' program joins boundary records by pairs of different subsets alone; Eq. (25) has all "
              "pairs, which makes components much larger. Both are here."),
        StudyTable("3", "computation time", "Seconds on 16 cores; dual simplex and interior point exceed 10,000 "
                                            "iterations.",
              "Processor seconds of one core, HiGHS. A run ends at 500 iterations or at its limit of seconds (120, 150 "
              "for 1,000 records), and its note says so. Ten instances at epsilon 10: k-m-DV by the authors' program, "
              "ours from the engine, dual simplex; three: k-m-DV as printed, interior point; one: all else."),
        StudyTable("4", "iterations until the bounds are within 0.01", "Iterations, ten instances.",
              "Counting the boundary twice, as printed, the lower bound is none; a run may end with the lower above "
              "the upper one. Instances as in Table 3."),
        StudyTable("figure 5", "the master's components and its cuts",
              "An example on the roads: components that can be solved in isolation (Property 3.1).",
              "The cut of a subset holds all boundary records that its inner records touch and joins their components. "
              "Circles lie where the records of a component do; their areas are how many."),
        StudyTable("figure 6", "1,000 records", "k-m-DV stays below 6 minutes, about 30 for the roads.",
              "The same measures as in Tables 3 and 4."),
        StudyTable("figure 7", "expected loss beside the exponential mechanism",
              "On average 47.19, 46.99, 22.49 and 24.05 % lower.",
              "The exponential mechanism of Eq. (47) protects all pairs, the program only neighbours; what it costs to "
              "protect all pairs stands beside. Three instances."),
        StudyTable("figure 8", "size of a subproblem and iterations until it has a solution (Figures 8 and 9)",
              "Correlations of 0.712, 0.6264, 0.1302 and 0.6072 with the size; positive with the boundary."),
        StudyTable("figure 10", "seconds of subproblems and master (Figures 10 and 11)",
              "k-m-DV: 1.505 s for the master and 1.194 s for a subproblem on average."),
        StudyTable("figure 12", "sizes for 25 to 34 subsets",
              "Subproblems shrink with more subsets, components of the master need not."),
        StudyTable("figure 13", "where the subsets lie (Figures 13 to 16)",
              "Examples of the four partitions of 500 records; k-m-adj and BSC balance less.",
              "A circle for every subset instead of dots for records: its area is its records, the dark part the inner "
              "ones. Words and vectors lie in their two directions of most variance."),
        StudyTable("figure 17", "how the bounds close (Figures 17 to 20)",
              "Bounds over iterations; a subproblem without a solution is drawn with the value 9.",
              "The unbounded subproblems are counted instead. 300 records with ten reports show variants whose rounds "
              "are quick."),
        StudyTable("beyond", "six digits, and what a radius of neighbours costs", "",
              "Not in the paper: what the page about the decomposition says."),
    ),
    pieces=pieces,
    picture=picture,
    notes=(
        "Figure 1 compares the sizes that other papers treat, Figures 2 to 4 are drawings of the method: nothing in "
        "them can be measured.",
        "The paper's eta is 2 for all data; 100 reports and Gaussian vectors of deviation 4 are from the authors' "
        "program, which it leaves open.",
        "Only neighbours up to eta are protected, as in the paper; `Problem(radius=...)` says so on purpose.",
    ),
    needs=("roads_rome", "glove_6b_100d"),
)  # fmt: skip
