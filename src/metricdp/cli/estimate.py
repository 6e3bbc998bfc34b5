"""The command that decodes: from a table of reports to where the secrets were, with intervals."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from metricdp.cli import terminal
from metricdp.cli.options import (
    DEFAULT_READING,
    STANDARD,
    Corners,
    Input,
    Output,
    ReadingOptions,
    Verbose,
    check_targets,
    option_group,
    redirect_prints,
)
from metricdp.errors import InvalidInput, check_extra
from metricdp.rendering import plain_values, plural
from metricdp.specs import OriginSpec

if TYPE_CHECKING:
    from metricdp.estimation import DensityEstimate, Mass
    from metricdp.tables.estimates import FileEstimates

PICTURES = (".png", ".svg", ".pdf")
SHOWN = 10


@option_group
class OriginOptions(OriginSpec):
    """What made the reports that are decoded, and on which cells densities are wanted."""

    mechanism: list[str] | None = None
    epsilon: list[str] | None = None
    grid: Corners | None = None


UNKNOWN_ORIGIN = OriginOptions()


def estimate(
    *sources: Input,
    output: Output,
    origin: Annotated[OriginOptions, Parameter(name="*")] = UNKNOWN_ORIGIN,
    by: str | None = None,
    method: Literal["linear", "em", "bounded"] | None = None,
    target: Literal["table", "population"] = "table",
    intervals: Literal["analytic", "bootstrap"] = "analytic",
    confidence: float = 0.95,
    together: bool = False,
    around: Corners | None = None,
    radius: str | None = None,
    picture: str | None = None,
    report: str | None = None,
    json: bool = False,
    verbose: Verbose = False,
    table: Annotated[ReadingOptions, Parameter(name="*")] = DEFAULT_READING,
    overwrite: bool = False,
) -> int:
    """Estimate where the secrets behind a table of reports lie: shares and counts of cells, with intervals.

    A table that a mechanism file made: `metricdp estimate reports.csv --mechanism cells.mdp -o density.csv`

    Laplace noise, on cells of a map: `metricdp estimate out.parquet --epsilon 10/km --grid 41.8,12.4,42.0,12.6 --cell
    1km -o density.csv --picture density.png`

    Two mechanisms, a file each, or one file with a column that names them: `metricdp estimate low.csv high.csv
    --mechanism low.mdp --mechanism high.mdp -o density.csv`, `metricdp estimate all.csv --which level --epsilon 1/km
    --epsilon 5/km --grid ... --cell 1km -o density.csv`

    Counts of every hour: `metricdp estimate reports.csv --mechanism cells.mdp --by time:hour -o hours.csv`

    It uses the reports and the public distribution of their mechanism, and no secret: this is post-processing and
    spends no budget. It is about crowds. Small cells and small epsilons give wide intervals, and the command says so.

    Args:
        sources: The table of reports, in any format of `metricdp list formats`; - for standard input. Several are read
            as one: all of one mechanism, or each of its own.
        output: Where the densities go, one row a cell, in the format its name says; - for standard output.
        by: Estimate every group of rows by itself: a column, or time:hour. time:date and time:weekday of a column of
            times are the other groups of times.
        method: linear (unbiased), em (iterative Bayes: never below 0) or bounded (intervals that hold where the
            distribution has no inverse); linear unless most of its intervals would be wider than from 0 to 1.
        target: table, the secrets behind these very rows; or population, from which rows are independent draws.
        intervals: analytic, or bootstrap from 999 tables drawn anew.
        confidence: The probability with which each interval holds the truth.
        together: Make intervals that hold for all cells at once with that probability.
        around: Say the share of the region around this place too, such as 41.9,12.48.
        radius: How far around it, such as 3km.
        picture: Draw the densities and their intervals (.png, .svg, .pdf).
        report: Write a page (.html) that shows them and says what they are worth; it needs no network.
        json: Print what was found as JSON.
        verbose: Print the largest cells and all that is known about the estimate.
        table: How the table is read.
        overwrite: Replace files that are there.
    """
    from metricdp.estimation.estimate import EstimateRequest
    from metricdp.specs import read_origin
    from metricdp.tables.estimates import ReportColumns, estimate_files, write_density

    if not sources:
        raise InvalidInput("say which table of reports is to be decoded, such as `metricdp estimate reports.csv ...`.")
    if (around is None) != (radius is None):
        raise InvalidInput("--around and --radius belong together, such as --around 41.9,12.48 --radius 3km.")
    if not 0.5 <= confidence < 1.0:
        raise InvalidInput(f"--confidence must be at least 0.5 and below 1, such as 0.95, got {confidence:g}.")
    if picture is not None:
        if Path(picture).suffix.lower() not in PICTURES:
            raise InvalidInput(f"the picture {picture!r} must be named .png, .svg or .pdf.")
        check_extra("matplotlib", "plots")
    check_targets(sources, overwrite=overwrite, table=output, picture=picture, page=report)
    if output != STANDARD and "::" not in output:
        check_targets(sources, overwrite=overwrite, output=output)
    made_by = read_origin(origin, len(sources))
    how = EstimateRequest(method, target, confidence, together, None, intervals)
    title = Path(sources[0]).name if len(sources) == 1 else f"{len(sources)} tables"
    with terminal.progress_bar(f"Decoding {title}") as progress:
        found = estimate_files(sources, made_by, how, ReportColumns(table.names, by, table.reading()), progress)
    made = found.estimate
    if made.misfits and not table.force:
        raise InvalidInput(
            f"the reports are not of this mechanism: {made.misfits} cells lie below 0 by more than a chance of one in "
            "a million allows. Another mechanism or epsilon made them, or rows were altered, selected or lie outside "
            "the cells. --force estimates all the same."
        )
    region = None if around is None or radius is None else _region(made, around, radius)
    write_density(found, output, by=by, overwrite=overwrite)
    notices = ["The reports were drawn from a seed: a simulation."] if found.simulated else []
    if picture is not None:
        from metricdp.plots import density_plot, write_picture

        write_picture(density_plot(made)[0], picture)
    if report is not None:
        from metricdp.plots import density_page

        density_page(made, f"Densities from {title}", notices).write(report)
    with redirect_prints(output):
        if json:
            terminal.say_json(_values(found, region), sort_keys=True)
        else:
            written = ", ".join(name for name in (output, picture, report) if name not in (None, "-"))
            if verbose:
                terminal.say(*_lines(found, region), f"Written: {written}.")
            else:
                terminal.say(*_short_lines(found, region, written))
        for notice in notices:
            terminal.say(f"note: {notice}", stream=sys.stderr)
    return 0


def _region(made: DensityEstimate, around: str, radius: str) -> tuple[int, Mass]:
    from metricdp.units import parse_distance, parse_numbers

    place = parse_numbers(around, "around", "numbers such as 41.9,12.48")
    codes = made.cells.around(place, parse_distance(radius, made.cells.ground.unit, option="radius"))
    return len(codes), made.region(codes)


def _short_lines(found: FileEstimates, region: tuple[int, Mass] | None, written: str) -> list[str]:
    """Return what was written, what the intervals hold, and what to watch."""
    from metricdp.plots import coverage_sentence

    made = found.estimate
    first = f"{written}, {plural(made.reports, 'report')}, {plural(len(made.cells), 'cell')}, method {made.method}."
    lines = terminal.three_lines(first, coverage_sentence(made), [*_empty_lines(found), *made.notes])
    return lines if region is None else [*lines, _region_line(made, region)]


def _empty_lines(found: FileEstimates) -> list[str]:
    return [f"Without a report, and not counted: {plural(found.empty, 'row')}."] if found.empty else []


def _region_line(made: DensityEstimate, region: tuple[int, Mass]) -> str:
    """Return the share of a region, with its interval."""
    count, mass = region
    size = mass.scaled(made.reports)
    least, most = (min(max(end, 0.0), made.reports) for end in (size.lower, size.upper))
    return (
        f"The region of {count} cells: {max(0.0, size.mass):,.0f} rows, {least:,.0f} to {most:,.0f} "
        f"({max(0.0, mass.mass):.2%})."
    )


def _lines(found: FileEstimates, region: tuple[int, Mass] | None) -> list[str]:
    import numpy as np

    from metricdp.estimation.sentences import FREE
    from metricdp.plots import coverage_sentence

    made = found.estimate
    lines = [
        f"{plural(made.reports, 'report')}, {plural(len(made.cells), 'cell')}, method {made.method}.",
        *made.notes,
        coverage_sentence(made),
    ]
    lines += _empty_lines(found)
    counts = np.clip(made.counts(), 0.0, float(made.reports))
    rows = [
        {
            "cell": ", ".join(
                f"{v:.6g}" if isinstance(v, float) else str(v) for v in made.cells.coordinates[code].tolist()
            ),
            "rows": f"{counts[code, 0]:,.0f}",
            "interval": f"{counts[code, 1]:,.0f} to {counts[code, 2]:,.0f}",
            "share": f"{max(0.0, made.masses[code]):.2%}",
        }
        for code in np.argsort(-made.masses)[:SHOWN].tolist()
    ]
    lines += [f"The {len(rows)} largest cells:", *terminal.table_lines(list(rows[0]), rows)]
    if region is not None:
        lines.append(_region_line(made, region))
    if found.groups:
        sizes = ", ".join(f"{name or 'without a value'} {one.reports:,}" for name, one in found.groups.items())
        lines.append(f"{len(found.groups)} groups, each with rows and intervals of its own: {sizes}.")
    return [*lines, FREE]


def _values(found: FileEstimates, region: tuple[int, Mass] | None) -> dict[str, object]:
    made, condition = found.estimate, found.estimate.condition
    values: dict[str, object] = {
        "reports": made.reports,
        "rows_without_report": found.empty,
        "cells": len(made.cells),
        "method": made.method,
        "target": made.target,
        "confidence": made.confidence,
        "simultaneous": made.simultaneous,
        "condition": plain_values(condition),
        "effective": made.effective,
        "notes": list(made.notes),
        "elsewhere": None if made.elsewhere is None else asdict(made.elsewhere),
        "masses": made.masses.tolist(),
        "lower": made.lower.tolist(),
        "upper": made.upper.tolist(),
    }
    if found.groups:
        values["groups"] = {
            name: {
                "reports": one.reports,
                "masses": one.masses.tolist(),
                "lower": one.lower.tolist(),
                "upper": one.upper.tolist(),
            }
            for name, one in found.groups.items()
        }
    if region is not None:
        mass = region[1]
        values["region"] = {"cells": region[0], "mass": mass.mass, "lower": mass.lower, "upper": mass.upper}
    return values
