"""Densities estimated from reports: as a picture and as a self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats
from metricdp.estimation import DensityEstimate
from metricdp.estimation.sentences import FREE
from metricdp.metrics import points_are
from metricdp.plots import page, palette
from metricdp.plots.page import Page
from metricdp.plots.vector import MAP_WIDTH, svg
from metricdp.spaces import FiniteSpace

SHOWN_ROWS = 25  # of the table on a page
MOST_BARS = 60  # cells whose intervals a picture shows


def density_plot(estimate: DensityEstimate, axes: Any = None, *, truth: Floats | None = None) -> Any:
    """Draw the masses of cells on a map and the intervals of the largest; with `truth`, that beside it."""
    panels = ({} if truth is None else {"true": truth}) | {"estimated": estimate.clipped[:, 0]}
    with palette.plot_style():
        if axes is None:
            axes = palette.figure(5.2 * (len(panels) + 1), 4.6).subplots(1, len(panels) + 1)
        masses_plot(panels, estimate.cells, list(axes)[:-1])
        interval_plot(estimate, list(axes)[-1], truth=truth)
    return axes


def masses_plot(panels: Mapping[str, Floats], cells: FiniteSpace, axes: Sequence[Any]) -> None:
    """Draw masses of cells, one panel each, in one scale of colours."""
    top = max(float(values.max()) for values in panels.values()) or 1.0
    across, up, earth = _plane(cells)
    for own, (name, values) in zip(axes, panels.items(), strict=True):
        columns, rows = np.unique(across.round(9)), np.unique(up.round(9))
        if len(columns) * len(rows) == len(cells) and min(len(columns), len(rows)) > 1:  # a whole grid: no gaps
            order = np.lexsort((across.round(9), up.round(9)))
            table = np.asarray(values)[order].reshape(len(rows), len(columns))
            own.pcolormesh(columns, rows, table, shading="nearest", cmap="YlOrBr", vmin=0.0, vmax=top)
        else:
            size = min(400.0, 26_000.0 / len(cells))
            own.scatter(across, up, c=values, s=size, marker="s", cmap="YlOrBr", vmin=0.0, vmax=top, linewidths=0)
        own.set_title(name)
        own.set_aspect(1.0 / max(np.cos(np.radians(float(up.mean()))), 0.05) if earth else 1.0)
        own.set_xticks([])
        own.set_yticks([])


def interval_plot(estimate: DensityEstimate, axes: Any, *, truth: Floats | None = None) -> None:
    """Draw the largest cells with their intervals, and the truth where it is known."""
    order = np.argsort(-(estimate.masses if truth is None else truth))[:MOST_BARS]
    places = np.arange(len(order))
    found = estimate.clipped[order]
    axes.vlines(places, found[:, 1], found[:, 2], color=palette.REPORTED, alpha=0.55, linewidth=2.0)
    axes.plot(places, found[:, 0], "o", color=palette.REPORTED, markersize=3.5, label="estimate")
    if truth is not None:
        axes.plot(places, truth[order], "_", color=palette.TRUE, markersize=7, markeredgewidth=2, label="truth")
        axes.legend(frameon=False)
    kind = "all cells at once" if estimate.simultaneous else "each cell"
    axes.set_title(f"{estimate.confidence:.0%} intervals, {kind}")
    axes.set_xlabel("cells, the largest first")
    axes.set_ylabel("share of secrets")


def density_page(estimate: DensityEstimate, title: str, notices: Sequence[str] = ()) -> Page:
    """Return the page of an estimate: a map, the largest cells with intervals, and what the figures are worth."""
    facts = [
        (f"{estimate.reports:,}", "reports"),
        (f"{len(estimate.cells):,}", "cells"),
        (messages.number(estimate.effective, 3), "secrets without noise would say as much about single cells"),
    ]
    lead = (
        "Where the secrets behind a table of reports lie, estimated from the reports and the public distribution of "
        "their mechanism. No secret was needed, and none is on this page."
    )
    sections = [
        ("Where they were", _map(estimate)),
        ("The largest cells", _rows(estimate)),
        ("What the figures are worth", page.bullets([*estimate.notes, coverage_sentence(estimate), FREE])),
    ]
    return Page(title, lead, facts, sections, kind="metricdp estimate", notices=notices)


def coverage_sentence(estimate: DensityEstimate) -> str:
    """Say what the intervals cover, each or all at once, and under which assumption."""
    level = messages.per_cent(estimate.confidence)
    which = "All intervals together hold" if estimate.simultaneous else "Each interval by itself holds"
    if estimate.target == "table":
        return (
            f"{which} the share of the secrets behind this table with probability {level}. The only assumption is that "
            "every row had independent noise."
        )
    return (
        f"{which} the share of the population with probability {level}, if the rows are independent draws from it: one "
        "row for each person."
    )


def _map(estimate: DensityEstimate) -> str:
    """Return the cells as squares that are the stronger the larger the mass; nothing for words or a line."""
    if estimate.cells.is_text or estimate.cells.width != 2:
        return ""
    across, up, earth = _plane(estimate.cells)
    squeeze = float(np.cos(np.radians(np.clip(up.mean(), -89, 89)))) if earth else 1.0
    wide = max(float(np.ptp(across)) * squeeze, 1e-9)
    side = max(4.0, 0.9 * MAP_WIDTH / max(len(np.unique(across.round(9))), 1)) if len(across) < 10_000 else 4.0
    scale = (MAP_WIDTH - side) / wide
    height = float(np.ptp(up)) * scale + side
    masses = estimate.clipped[:, 0]
    strength = masses / (masses.max() or 1.0)
    boxes = "".join(
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" fill-opacity="{alpha:.2f}"/>'
        for x, y, alpha in zip(
            (across - across.min()) * squeeze * scale, (up.max() - up) * scale, strength, strict=True
        )
        if alpha >= 0.005
    )
    picture = svg(f'<g style="fill:var(--reported)">{boxes}</g>', height, "estimated share of every cell")
    most = messages.per_cent(float(masses.max()))
    return page.figure(picture, f"The stronger the colour, the larger the estimated share, up to {most}.")


def _rows(estimate: DensityEstimate) -> str:
    order = np.argsort(-estimate.masses)[:SHOWN_ROWS]
    counts = np.clip(estimate.counts(), 0.0, float(estimate.reports))
    rows = (
        (
            ", ".join(_format_value(value) for value in estimate.cells.coordinates[code].tolist()),
            f"{counts[code, 0]:,.0f}",
            f"{counts[code, 1]:,.0f} to {counts[code, 2]:,.0f}",
            messages.per_cent(float(estimate.clipped[code, 0])),
        )
        for code in order.tolist()
    )
    heads = ("Cell", "Estimated rows", f"{messages.per_cent(estimate.confidence)} interval", "Share")
    return page.table(heads, rows, "tnnn", scroll=True)


def _format_value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plane(cells: FiniteSpace) -> tuple[Floats, Floats, bool]:
    """Return what goes across and up, and whether that is a map of the Earth."""
    earth = points_are(cells.ground, "degrees")
    if cells.is_text or cells.width == 1:
        return np.arange(float(len(cells))), np.zeros(len(cells)), False
    places = np.asarray(cells.coordinates, dtype=np.float64)
    return (places[:, 1], places[:, 0], True) if earth else (places[:, 0], places[:, 1], False)
