"""Comparisons as figures and as a page: a figure for each loss, bars and numbers for every epsilon."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from metricdp import messages
from metricdp.design import ComparisonResult, Measure, excess_text, loss_text
from metricdp.errors import InvalidInput
from metricdp.files import replace_file
from metricdp.plots import page, palette, vector
from metricdp.plots.page import Page
from metricdp.plots.report_content import Comparison, Contender
from metricdp.rendering import escape

FORMAT, VERSION = "metricdp.compare", 1


def comparisons_of(compared: ComparisonResult, measure: Measure) -> list[Comparison]:
    """Return the figures of one loss as comparisons, one an epsilon."""
    trials = compared.of(measure)
    found = []
    for epsilon in sorted({one.epsilon for one in trials}):
        mine = [one for one in trials if one.epsilon == epsilon]
        bound = compared.bounds.get((measure.name, measure.objective, epsilon), 0.0)
        best = min(one.loss for one in mine)
        contenders = tuple(
            Contender(
                one.builder.replace("_", " "),
                one.loss,
                f"measured on {one.draws:,} draws" if one.draws else "",
                best=one.loss == best,
                certified=one.certified,
                seconds=one.seconds,
                low=one.low if one.draws else None,
                high=one.high if one.draws else None,
            )
            for one in mine
        )
        found.append(Comparison(contenders, bound, unit=measure.unit, objective=measure.objective, epsilon=epsilon))
    return found


def loss_plot(comparisons: Sequence[Comparison], axes: Any = None, *, unit: str | None = None) -> Any:
    """Draw loss against epsilon, one line per mechanism, the proven lower bound below; return the axes.

    All comparisons are of one objective and one unit, each with its own epsilon. Losses that were measured have bars
    for their intervals. `unit` is that of distances, where losses are in another.
    """
    shown, objective = _common(comparisons)
    unit = shown if unit is None else unit
    with palette.drawing(axes, 8.0, 5.0) as axes:
        names = list(dict.fromkeys(entry.name for one in comparisons for entry in one.contenders))
        for number, name in enumerate(names):
            mine = [(one.epsilon, entry) for one in comparisons for entry in one.contenders if entry.name == name]
            own = sorted((epsilon, entry.loss) for epsilon, entry in mine)
            colour = palette.SERIES[number % len(palette.SERIES)]
            marker = palette.MARKERS[number % len(palette.MARKERS)]
            style = ("-", "--", ":")[number // len(palette.SERIES) % 3]
            axes.plot(*zip(*own, strict=True), style, color=colour, marker=marker, label=name.replace("_", " "))
            measured = [(epsilon, entry.low, entry.high) for epsilon, entry in mine if entry.high is not None]
            if measured:
                axes.vlines(*zip(*measured, strict=True), color=colour, linewidth=4, alpha=0.35)
        bound = sorted((one.epsilon, one.lower_bound) for one in comparisons)
        if any(value > 0 for _, value in bound):
            # A smaller epsilon is a stronger guarantee: the bound at each epsilon holds for everything to its left too.
            shade = {"color": palette.LINE, "alpha": 0.5, "linewidth": 0}
            ends, least = zip(*bound, strict=True)
            axes.fill_between(ends, least, step="pre", label="no mechanism with these reports can be here", **shade)
            axes.plot(ends, least, "_", color=palette.INK, markersize=16, label="proven lower bound for these reports")
        axes.set_xlabel(f"epsilon per {unit}" if unit else "epsilon per unit of distance")
        axes.set_ylabel(messages.objective(objective) + (f" in {shown}" if shown else ""))
        axes.set_title("What privacy costs: less is better on both axes")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
    return axes


def _common(comparisons: Sequence[Comparison]) -> tuple[str, messages.Objective]:
    kinds = {(one.unit, one.objective) for one in comparisons}
    if len(kinds) != 1 or any(one.epsilon is None for one in comparisons):
        raise InvalidInput("`comparisons` must be of one objective and one unit, each with its epsilon.")
    return next(iter(kinds))


def comparison_plot(compared: ComparisonResult, axes: Any = None) -> Any:
    """Draw loss against epsilon, a picture for each loss; return the axes, one for each picture."""
    measures = compared.measures
    with palette.plot_style():
        if axes is None:
            axes = palette.figure(8.0 * len(measures), 5.0).subplots(1, len(measures))
        own = [axes] if len(measures) == 1 else list(axes)
        for measure, one in zip(measures, own, strict=True):
            loss_plot(comparisons_of(compared, measure), one, unit=compared.unit)
            if len(measures) > 1:
                one.set_title(f"{measure.name}, {measure.objective}")
    return axes


def comparison_page(compared: ComparisonResult, title: str, notes: Sequence[str] = ()) -> Page:
    """Return the page of a comparison: bars and numbers of every loss and epsilon, and what is missing and why.

    `notes` are what a reader must know before the numbers.
    """
    best = [min(compared.of(measure), key=lambda one: (one.epsilon, one.loss)) for measure in compared.measures]
    facts = [
        (f"{compared.size:,}", "places, the same for all"),
        (f"{len({one.builder for one in compared.trials})}", "mechanisms, each with the same guarantee"),
        *(
            (loss_text(one, measure), f"{measure.name}, {measure.objective}: the least at epsilon {one.epsilon:g}, "
             f"by {one.builder.replace('_', ' ')}")
            for one, measure in zip(best, compared.measures, strict=True)
        ),
    ]  # fmt: skip
    lead = (
        "Mechanisms on the same places. All have the same guarantee, epsilon times the distance without slack. They "
        "differ in how far reports lie from the truth. Shorter is better."
    )
    sections = [
        ("For positions", page.bullets(notes)),
        *(_measure_section(compared, measure) for measure in compared.measures),
        (
            "Not compared, and why",
            page.bullets([f"{name}: {why.rstrip('.')}." for name, why in compared.missing.items()]),
        ),
    ]
    return Page(title, lead, facts, sections, kind="metricdp compare")


def _measure_section(compared: ComparisonResult, measure: Measure) -> tuple[str, str]:
    figures = []
    for one in comparisons_of(compared, measure):
        caption = f"Epsilon {escape(messages.epsilon(one.epsilon or 0.0, compared.unit))}."
        if one.lower_bound > 0:
            caption += f" {vector.bound_key(one)}"
        figures.append(
            f'<figure class="card" style="margin-bottom:1.2rem">{vector.bars_html(one)}'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    rows = (
        (
            one.builder.replace("_", " "),
            f"{one.epsilon:g}",
            loss_text(one, measure),
            excess_text(compared.excess_share(one)),
            f"{one.seconds:.2g} s",
        )
        for one in compared.of(measure)
    )
    heads = ("Mechanism", "Epsilon", "Loss", "Above the bound for these reports", "Time")
    table = page.table(heads, rows, "tnnnn", scroll=True)
    words = measure.words[0].upper() + measure.words[1:]
    interval = ""
    if any(one.draws for one in compared.of(measure)):
        interval = " Behind ± stands half of an interval that holds the loss with 95 %: it was measured on draws."
    return (
        f"{measure.name.capitalize()}, {measure.objective}",
        f"<p>{escape(words)}.{interval}</p>{''.join(figures)}{table}",
    )


def write_comparison(
    compared: ComparisonResult,
    path: str | os.PathLike[str],
    *,
    title: str = "Mechanisms compared",
    notes: Sequence[str] = (),
) -> Path:
    """Write a comparison by the ending of the name: a page (.html), a picture (.png, .svg, .pdf) or numbers.

    `notes` stand on the page before the numbers.
    """
    place, kind = Path(path), Path(path).suffix.lower()
    if kind in (".png", ".svg", ".pdf"):
        drawn = comparison_plot(compared)
        return palette.write_picture(drawn if len(compared.measures) == 1 else drawn[0], place)
    if kind not in (".csv", ".json"):
        return comparison_page(compared, title, notes).write(place)
    with replace_file(place) as partial:
        if kind == ".csv":
            rows = compared.rows()
            with partial.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
        else:
            partial.write_text(json.dumps(_record(compared), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return place


def _record(compared: ComparisonResult) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "places": compared.size,
        "unit": compared.unit,
        "lower_bound_says": messages.bound_in_fields(compared.unit),
        "measures": [
            {"name": one.name, "objective": one.objective, "unit": one.unit, "about": one.about}
            for one in compared.measures
        ],
        "rows": compared.rows(),
        "missing": compared.missing,
    }
