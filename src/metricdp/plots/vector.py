"""Inline SVG for the report: drawn in the page's own colours, so that light and dark both look right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats
from metricdp.metrics import KM_PER_DEGREE
from metricdp.plots.report_content import Comparison, Contender, Map
from metricdp.rendering import escape

MAP_WIDTH = 960.0


@dataclass(frozen=True)
class Frame:
    """From coordinates of tables to pixels; on a map kilometres are equally long both ways."""

    left: float
    top: float
    scale: float  # pixels for one unit of the vertical axis
    stretch: float  # of the horizontal axis
    height: float
    flipped: bool  # latitude first, as on a map

    def place(self, points: Floats) -> Floats:
        """Return the pixels of rows of coordinates."""
        across, up = (points[:, 1], points[:, 0]) if self.flipped else (points[:, 0], points[:, 1])
        return np.stack([(across - self.left) * self.stretch * self.scale, (self.top - up) * self.scale], axis=1)


def svg(inner: str, height: float, label: str) -> str:
    """Return an SVG element as wide as every picture of a page."""
    return f'<svg viewBox="0 0 {MAP_WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">{inner}</svg>'


def map_svg(scene: Map, *, arrows: int = 80) -> str:
    """Return the map as one SVG element; styles come from the page's classes."""
    everything = np.concatenate([scene.true, scene.reported])
    low, high = everything.min(axis=0), everything.max(axis=0)
    margin = 0.05 * (high - low) + 1e-6
    low, high = low - margin, high + margin
    stretch = float(np.cos(np.radians(0.5 * (low[0] + high[0]))))
    scale = MAP_WIDTH / ((high[1] - low[1]) * stretch)
    frame = Frame(float(low[1]), float(high[0]), scale, stretch, (high[0] - low[0]) * scale, flipped=True)
    place = frame.place
    streets = "".join(path(place(line)) for line in scene.streets)
    true, reported = place(scene.true), place(scene.reported)
    chosen = np.linspace(0, len(true) - 1, min(arrows, len(true))).astype(int)
    joins = "".join(path(np.stack([true[row], reported[row]])) for row in chosen)
    parts = [
        f'<path class="street" d="{streets}"/><path class="join" d="{joins}"/>',
        _discs(reported),
        dots(true, "true", 3.4),
    ]
    if scene.worst_pair is not None:
        pair = place(scene.worst_pair)
        parts.append(f'<path class="worst" d="{path(pair)}"/>' + dots(pair, "worst", 10.0))
    parts.append(scale_bar(KM_PER_DEGREE / scale, "km", frame.height))
    return svg("".join(parts), frame.height, scene.caption)


def scale_bar(per_pixel: float, unit: str, height: float) -> str:
    """Return a bar of a round length, about a fifth of the width; a pixel is `per_pixel` units long."""
    wished = MAP_WIDTH / 5.0 * per_pixel
    power = 10.0 ** np.floor(np.log10(wished))
    length = float(max(step * power for step in (1, 2, 5) if step * power <= wished))
    pixels, y = length / per_pixel, height - 18
    return (
        f'<path class="scale" d="M18 {y - 6:.0f}V{y:.0f}H{18 + pixels:.1f}V{y - 6:.0f}"/>'
        f'<text class="small" x="{26 + pixels:.1f}" y="{y + 2:.0f}">{escape(messages.distance(length, unit))}</text>'
    )


def path(points: Floats) -> str:
    """Return a line through points as the data of an SVG path."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def dots(points: Floats, kind: str, radius: float) -> str:
    """Return circles of one size and class."""
    circles = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>' for x, y in points)
    return f'<g class="{kind}">{circles}</g>'


def _discs(points: Floats) -> str:
    """Return one disc per distinct place, its area growing with how often it was reported."""
    places, counts = np.unique(points, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")  # small ones on top
    discs = "".join(
        f'<circle cx="{places[row, 0]:.1f}" cy="{places[row, 1]:.1f}" r="{4.5 * np.sqrt(counts[row]):.1f}"/>'
        for row in order
    )
    return f'<g class="reported">{discs}</g>'


def _interval(entry: Contender, comparison: Comparison) -> str:
    if entry.low is None or entry.high is None:
        return ""
    half = max(entry.high - entry.loss, entry.loss - entry.low)
    return f"<small>± {messages.distance(half, comparison.unit, 'up')}</small>"


def bars_html(comparison: Comparison) -> str:
    """Return horizontal bars in HTML, the best on top, the bound marked on every bar."""
    entries = sorted(comparison.contenders, key=lambda entry: entry.loss)
    top = max(entry.loss for entry in entries)
    bound = comparison.lower_bound
    rows = []
    for entry in entries:
        known = bound > 0 and entry.bounded
        mark = f'<i class="bound" style="left:{100 * bound / top:.2f}%"></i>' if known else ""
        note = f"<small>{escape(entry.note)}</small>" if entry.note else ""
        rows.append(
            f'<div class="bar{" best" if entry.best else ""}"><div class="name">{escape(entry.name)}{note}</div>'
            f'<div class="track"><b style="width:{100 * entry.loss / top:.2f}%"></b>{mark}</div>'
            f'<div class="value">{messages.distance(entry.loss, comparison.unit)}{_interval(entry, comparison)}</div>'
            "</div>"
        )
    return f'<div class="bars">{"".join(rows)}</div>'
