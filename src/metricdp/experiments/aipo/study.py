"""The study of the AIPO paper on real road networks: violations (Table 1), loss (Table 2), time (Table 3), ablations.

One set of reports serves distances and losses, violations are counted without slack at pairs of secrets and at
adversarial pairs, the worst ratio is shown beside the share, and every loss stands between a proven lower bound and
what published mechanisms reach.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from metricdp.auditing.bounds import representative_lower_bound, universal_lower_bound
from metricdp.auditing.densities import law_violations
from metricdp.design.interpolation.box import interpolated
from metricdp.errors import MetricdpError, import_extra
from metricdp.experiments.aipo.cities import City, Setting, city, setting
from metricdp.experiments.aipo.rivals import (
    Rival,
    constopt_on_cells,
    em,
    lp_on_cells,
    planar_laplace,
    remapped,
    tem,
)
from metricdp.files import made_folder
from metricdp.mechanisms import InterpolatedMechanism

METHODS = ("EM", "Laplace", "TEM", "RMP", "COPT", "LP", "AIPO-R", "AIPO", "exact", "direction", "LB", "LB Prop. 5")
RULES = {"AIPO-R": "relaxed", "AIPO": "log", "exact": "exact", "direction": "direction"}
PUBLISHED = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6)


@dataclass(frozen=True)
class Study:
    """What is run: cities, metrics, budgets per kilometre, repetitions and sizes."""

    cities: tuple[str, ...] = ("rome", "london", "new york")
    metrics: tuple[float, ...] = (2.0, 1.0)
    epsilons: tuple[float, ...] = PUBLISHED
    repetitions: int = 5
    reports: int = 20
    destinations: int = 40
    cell_km: float = 2.4
    coarse_cells: tuple[int, int] = (10, 10)
    methods: tuple[str, ...] = METHODS
    pairs: int = 200_000
    split: str | None = "even"
    ablations: bool = True


SHORT = Study(
    cities=("porto",),
    metrics=(2.0,),
    epsilons=(1.0, 2.0, 4.0, 8.0),
    repetitions=1,
    reports=12,
    destinations=20,
    cell_km=0.35,
    coarse_cells=(6, 5),
    pairs=20_000,
)


@dataclass(frozen=True)
class Row:
    """One line of the tidy table; `anchors` and `split` tell the ablations apart."""

    study: str
    city: str
    metric: str
    epsilon: float
    method: str
    repetition: int
    loss: float
    violations: float = float("nan")
    worst_ratio: float = float("nan")
    seconds: float = float("nan")
    proven_ratio: float = float("nan")
    anchors: str = ""
    split: str = ""


def run(study: Study, *, report: Callable[[str], None] = print) -> list[Row]:
    """Run a study and return its rows."""
    rows: list[Row] = []
    for name in study.cities:
        place = city(name)
        report(f"{name}: {len(place.points)} crossings on {place.side[0]:.1f} x {place.side[1]:.1f} km")
        for p in study.metrics:
            for repetition in range(study.repetitions):
                case = setting(place, p=p, reports=study.reports, destinations=study.destinations, seed=repetition)
                for epsilon in study.epsilons:
                    for method in study.methods:
                        row = _measured(study, case, epsilon, method, repetition)
                        rows.append(row)
                        report(_line(row))
        if study.ablations:
            rows += _ablations(study, place, report)
    return rows


def _cells(study: Study, place: City) -> tuple[int, int]:
    east, north = np.maximum(1, np.round(place.side / study.cell_km)).astype(int)
    return int(east), int(north)


def _measured(study: Study, case: Setting, epsilon: float, method: str, repetition: int) -> Row:
    p = case.box.metric.p if hasattr(case.box.metric, "p") else 2.0
    base = Row("tables", case.city.name, "l1" if p == 1 else "l2", epsilon, method, repetition, float("nan"))
    cells = _cells(study, case.city)
    samples = (case.points, case.losses)
    started = time.perf_counter()
    try:
        if method == "LB":
            value = representative_lower_bound(
                *samples, case.box.metric, epsilon, representatives=196, gap=3e-3, seconds=30
            )
            return replace(base, loss=value, seconds=time.perf_counter() - started)
        if method == "LB Prop. 5":
            value = universal_lower_bound(case.box, epsilon, loss=samples, cells=study.coarse_cells, gap=1e-2)
            return replace(base, loss=value, seconds=time.perf_counter() - started)
        if method in RULES:
            found = _interpolated(case, epsilon, RULES[method], cells, study.split)
            rival = Rival(found.certificate.loss, found.probabilities, time.perf_counter() - started)
            base = replace(base, proven_ratio=found.certificate.epsilon / epsilon, anchors=f"{cells[0]}x{cells[1]}")
            axes = found.axes
        else:
            rival, axes = _rival(study, case, epsilon, method, repetition), ()
    except MetricdpError as error:
        return replace(base, split=f"failed: {error}")
    row = replace(base, loss=rival.loss, seconds=rival.seconds)
    if rival.law is None:  # noise and a search for the nearest report: private by theorem
        return replace(row, violations=0.0, worst_ratio=1.0)
    grid = axes or tuple(
        np.linspace(low, high, count + 1)
        for low, high, count in zip(case.box.lower, case.box.upper, study.coarse_cells, strict=True)
    )
    random = law_violations(rival.law, case.box, epsilon, points=case.points, pairs=study.pairs, adversarial=0)
    hard = law_violations(
        rival.law, case.box, epsilon, axes=grid, points=case.points, pairs=1, adversarial=study.pairs // 10
    )
    return replace(row, violations=random.share, worst_ratio=max(random.worst, hard.worst))


def _interpolated(
    case: Setting, epsilon: float, rule: str, cells: tuple[int, int], split: str | None
) -> InterpolatedMechanism:
    found = interpolated(
        case.box,
        case.outputs,
        epsilon,
        loss=(case.points, case.losses),
        anchors=cells,
        rule=rule,  # type: ignore[arg-type]
        split=split,  # type: ignore[arg-type]
        gap=3e-3,
        bound=False,
    )
    if not isinstance(found, InterpolatedMechanism):
        raise TypeError("a box gives an InterpolatedMechanism")
    return found


def _rival(study: Study, case: Setting, epsilon: float, method: str, repetition: int) -> Rival:
    if method == "LP":
        return lp_on_cells(case, epsilon, study.coarse_cells)
    if method == "COPT":
        return constopt_on_cells(case, epsilon, study.coarse_cells)
    simple = {"EM": em, "Laplace": planar_laplace, "TEM": tem, "RMP": remapped}
    return simple[method](case, epsilon, repetition)


def _ablations(study: Study, place: City, report: Callable[[str], None]) -> list[Row]:
    """Vary the granularity of the anchors, and the split of the budget, for AIPO and the exact rule."""
    case = setting(place, p=2.0, reports=study.reports, destinations=study.destinations, seed=0)
    epsilon = study.epsilons[len(study.epsilons) // 2]
    fine = _cells(study, place)
    rows = []
    for method in ("AIPO", "exact"):
        for share in (0.25, 0.5, 0.75, 1.0):
            cells = (max(1, round(fine[0] * share)), max(1, round(fine[1] * share)))
            found = _interpolated(case, epsilon, RULES[method], cells, "even")
            rows.append(
                Row("anchors", place.name, "l2", epsilon, method, 0, found.certificate.loss,
                    seconds=found.certificate.seconds, anchors=f"{cells[0]}x{cells[1]}", split="even")
            )  # fmt: skip
        cells = (max(1, fine[0] // 2), max(1, fine[1] // 2))
        for angle in (25, 35, 45, 55, 65):
            parts = (float(np.cos(np.radians(angle))), float(np.sin(np.radians(angle))))
            found = _interpolated(case, epsilon, RULES[method], cells, parts)  # type: ignore[arg-type]
            rows.append(
                Row("split", place.name, "l2", epsilon, method, 0, found.certificate.loss,
                    seconds=found.certificate.seconds, anchors=f"{cells[0]}x{cells[1]}", split=f"{angle} degrees")
            )  # fmt: skip
    for row in rows:
        report(_line(row))
    return rows


def _line(row: Row) -> str:
    text = f"{row.study} {row.city} {row.metric} epsilon {row.epsilon:g} {row.method}"
    if row.anchors or row.split:
        text += f" [{row.anchors} {row.split}]".replace(" ]", "]")
    text += f": loss {row.loss:.4f} km"
    if np.isfinite(row.worst_ratio):
        text += f", violations {100 * row.violations:.2f} %, worst {row.worst_ratio:.4f} epsilon"
    return text + (f", {row.seconds:.1f} s" if np.isfinite(row.seconds) else "")


def summary(rows: Sequence[Row]) -> str:
    """Return the three tables as text: mean and 1.96 standard deviations over the repetitions."""
    lines = []
    for title, column, scale in (("violations, %", "violations", 100.0), ("worst ratio, epsilon", "worst_ratio", 1.0),
                                 ("loss, km", "loss", 1.0), ("time, s", "seconds", 1.0)):  # fmt: skip
        for place, metric in dict.fromkeys((r.city, r.metric) for r in rows if r.study == "tables"):
            here = [r for r in rows if r.study == "tables" and (r.city, r.metric) == (place, metric)]
            epsilons = list(dict.fromkeys(r.epsilon for r in here))
            lines.append(f"{title}: {place}, {metric}")
            lines.append("method      " + "".join(f"{e:>14g}" for e in epsilons))
            for method in dict.fromkeys(r.method for r in here):
                cells = []
                for epsilon in epsilons:
                    values = np.array([getattr(r, column) for r in here if r.method == method and r.epsilon == epsilon])
                    spread = 1.96 * values.std(ddof=1) if len(values) > 1 else 0.0
                    cells.append(f"{scale * values.mean():.2f}±{scale * spread:.2f}")
                lines.append(f"{method:<12}" + "".join(f"{text:>14}" for text in cells))
            lines.append("")
    return "\n".join(lines)


def draw(rows: Sequence[Row], path: Path) -> Path:
    """Draw loss against epsilon for every city and metric, the proven lower bound as the floor."""
    pyplot = import_extra("matplotlib.pyplot", "plots")
    groups = list(dict.fromkeys((r.city, r.metric) for r in rows if r.study == "tables"))
    figure, axes = pyplot.subplots(
        1, len(groups), figsize=(6.2 * len(groups), 4.6), squeeze=False, layout="constrained"
    )
    for axis, group in zip(axes[0], groups, strict=True):
        here = [r for r in rows if r.study == "tables" and (r.city, r.metric) == group]
        for method in dict.fromkeys(r.method for r in here):
            epsilons = sorted({r.epsilon for r in here})
            means = [np.mean([r.loss for r in here if r.method == method and r.epsilon == e]) for e in epsilons]
            private = all(r.worst_ratio <= 1 + 1e-9 for r in here if r.method == method)
            if method == "LB":
                axis.fill_between(epsilons, 0, means, color="0.88", label="below any private mechanism")
            elif not method.startswith("LB"):
                thick = 2.4 if method in ("exact", "direction") else 1.2
                axis.plot(
                    epsilons, means, "-o" if private else "--x", lw=thick, ms=4,
                    label=method if private else f"{method} (not private)",
                )  # fmt: skip
        axis.set_xlabel("epsilon per km")
        axis.set_ylabel("expected loss, km")
        axis.set_ylim(bottom=0)
        axis.set_title(f"{group[0]}, {group[1]}")
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path


def main(
    *arguments: str | Path,
    full: bool = False,
    study: Study | None = None,
    report: Callable[[str], None] = print,
) -> list[Path]:
    """Run the short study on the bundled network, or the full one, and write rows.csv, tables.txt and loss.png.

    From the command line: `metricdp reproduce aipo [FOLDER] [--full]`.
    """
    parser = argparse.ArgumentParser(prog="metricdp reproduce aipo", description=__doc__)
    parser.add_argument("folder", nargs="?", default="aipo", help="where the table and the picture go")
    parser.add_argument("--full", action="store_true", default=full, help="three cities and two metrics; takes hours")
    chosen = parser.parse_args([str(argument) for argument in arguments])
    target = made_folder(chosen.folder)
    rows = run(study or (Study() if chosen.full else SHORT), report=report)
    table, text = target / "rows.csv", target / "tables.txt"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=[field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    text.write_text(summary(rows), encoding="utf-8")
    return [table, text, draw(rows, target / "loss.png")]
