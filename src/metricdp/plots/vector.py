"""Inline SVG for pages: drawn in the page's own colours, so that light and dark both look right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats
from metricdp.metrics import KM_PER_DEGREE
from metricdp.plots.report_content import Comparison, Contender, Map
from metricdp.rendering import escape

MAP_WIDTH = 960.0
ACROSS = 44  # hexagons in the width of a picture
SHOWN = 0.99  # share of the reports that a picture must show, far ones left out
BARS = 60
TALLEST, FLATTEST = 0.66, 0.42  # height over width of a picture


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
    parts.append(scale_bar(frame, "km"))
    return svg("".join(parts), frame.height, scene.caption)


def scale_bar(frame: Frame, unit: str) -> str:
    """Return a bar of a round length, about a fifth of the width; on a map in kilometres."""
    per_pixel = (KM_PER_DEGREE if frame.flipped else 1.0) / frame.scale
    wished = MAP_WIDTH / 5.0 * per_pixel
    power = 10.0 ** np.floor(np.log10(wished))
    length = float(max(step * power for step in (1, 2, 5) if step * power <= wished))
    pixels, y = length / per_pixel, frame.height - 18
    said = escape(messages.distance(length, "km" if frame.flipped else unit))
    return (
        f'<path class="scale" d="M18 {y - 6:.0f}V{y:.0f}H{18 + pixels:.1f}V{y - 6:.0f}"/>'
        f'<text class="small" x="{26 + pixels:.1f}" y="{y + 2:.0f}">{said}</text>'
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


def bound_key(comparison: Comparison) -> str:
    """Return what the dashed line of a comparison is, as HTML."""
    least = escape(messages.distance(comparison.lower_bound, comparison.unit, "down"))
    return (
        f'<span class="boundkey">The dashed line is {least}: proven, {messages.rivals(comparison.unit)} can do '
        "better.</span>"
    )


def frame_of(points: Floats, *, is_map: bool, share: float = SHOWN) -> Frame:
    """Return the frame that shows most of the points, with room around them."""
    axes = points[:, ::-1] if is_map else points
    edge = (1.0 - share) / 2.0
    low, high = np.quantile(axes, edge, axis=0), np.quantile(axes, 1.0 - edge, axis=0)
    size = np.maximum(high - low, 1e-9 * (1.0 + np.abs(high)))
    low, high = low - 0.08 * size, high + 0.08 * size
    stretch = float(np.cos(np.radians(np.clip(0.5 * (low[1] + high[1]), -89.0, 89.0)))) if is_map else 1.0
    wide, tall = (high[0] - low[0]) * stretch, high[1] - low[1]
    # Neither a ribbon nor a tower: the shorter side gets more room.
    wide, tall = max(wide, tall / TALLEST), max(tall, wide * FLATTEST)
    middle, scale = 0.5 * (low + high), MAP_WIDTH / wide
    left, top = float(middle[0] - 0.5 * wide / stretch), float(middle[1] + 0.5 * tall)
    return Frame(left, top, float(scale), stretch, float(tall * scale), is_map)


def density_svg(
    reports: Floats, true: Floats | None, streets: Sequence[Floats], *, is_map: bool, unit: str, label: str
) -> tuple[str, int]:
    """Return hexagons that are the darker the more reports lie there, and how many reports lie outside the picture.

    `true` are the secrets behind the reports, row by row, where they are to be seen.
    """
    frame = frame_of(reports if true is None else np.concatenate([reports, true]), is_map=is_map)
    pixels = frame.place(reports)
    inside = np.all((pixels >= 0) & (pixels <= [MAP_WIDTH, frame.height]), axis=1)
    parts = [_streets(streets, frame), _hexagons(pixels[inside])]
    if true is not None:
        places = frame.place(true)
        chosen = np.unique(np.linspace(0, len(places) - 1, min(80, len(places))).astype(int))
        joins = "".join(path(np.stack([places[row], pixels[row]])) for row in chosen)
        parts.append(f'<path class="join" d="{joins}"/>{dots(places, "true", 3.4)}')
    parts.append(scale_bar(frame, unit))
    return svg("".join(parts), frame.height, label), int((~inside).sum())


def example_svg(
    place: Floats, reports: Floats, streets: Sequence[Floats], radius: float, *, is_map: bool, unit: str
) -> str:
    """Return the reports drawn for a public place, with the circle that holds the truth around 95 % of reports."""
    ringed = not is_map or unit == "km"
    around = 2.0 * place - reports  # the place in the middle
    shown, share = np.concatenate([reports, around]), 0.98
    if ringed:
        up = 1.15 * radius / (KM_PER_DEGREE if is_map else 1.0)
        across = up / math.cos(math.radians(min(89.0, abs(float(place[0, 0]))))) if is_map else up
        steps = np.array([[up, 0.0], [-up, 0.0], [0.0, across], [0.0, -across]])
        shown, share = place + steps, 1.0
    frame = frame_of(shown, is_map=is_map, share=share)
    centre = frame.place(place)
    pixels = radius * frame.scale / (KM_PER_DEGREE if is_map else 1.0)
    ring = f'<circle class="ring" cx="{centre[0, 0]:.1f}" cy="{centre[0, 1]:.1f}" r="{pixels:.1f}"/>'
    parts = [_streets(streets, frame), ring if ringed else "", dots(frame.place(reports), "reported", 5.0)]
    parts += [dots(centre, "true", 7.0), scale_bar(frame, unit)]
    return svg("".join(parts), frame.height, "an example: reports drawn for a public place")


def bars_svg(values: Floats, label: str) -> str:
    """Return a histogram of numbers along a line; far ones are left out."""
    low, high = np.quantile(values, [(1 - SHOWN) / 2, (1 + SHOWN) / 2])
    edges = np.linspace(low, high if high > low else low + 1.0, BARS + 1)
    counts, _ = np.histogram(values, edges)
    height, width = 240.0, MAP_WIDTH / BARS
    boxes = "".join(
        f'<rect x="{number * width:.1f}" y="{height * (1 - count / counts.max()):.1f}" width="{0.86 * width:.1f}" '
        f'height="{height * count / counts.max():.1f}"/>'
        for number, count in enumerate(counts.tolist())
        if count
    )
    first, last = (messages.number(float(edge), 4) for edge in (edges[0], edges[-1]))
    ends = (
        f'<text class="small" x="0" y="{height + 34:.0f}">{first}</text>'
        f'<text class="small end" x="{MAP_WIDTH:.0f}" y="{height + 34:.0f}">{last}</text>'
    )
    return svg(f'<g class="reported">{boxes}</g>{ends}', height + 44, label)


def words_html(words: Sequence[tuple[str, int]]) -> str:
    """Return the words that were reported most, with bars."""
    most = max(count for _, count in words)
    rows = "".join(
        f'<div class="bar"><div class="name">{escape(word)}</div><div class="track">'
        f'<b class="seen" style="width:{100 * count / most:.2f}%"></b></div><div class="value">{count:,}</div></div>'
        for word, count in words
    )
    return f'<div class="bars">{rows}</div>'


def distribution_svg(levels: Sequence[tuple[float, float]], unit: str) -> str:
    """Return the probability that the truth lies within a distance of its report; 50 % and 95 % are marked.

    `levels` are growing probabilities with their radii.
    """
    middle = next(radius for level, radius in levels if level >= 0.95)
    far, height = max(levels[-1][1], 1.45 * middle) or 1.0, 300.0  # room for the words beside the point of 95 %
    start = [(0.0, 0.0)] if levels[0][1] > 0 else []
    curve = [*start, *levels, (levels[-1][0], far)]
    left, right, bottom = 64.0, MAP_WIDTH - 20.0, height - 52.0

    def at(probability: float, radius: float) -> tuple[float, float]:
        return left + (right - left) * radius / far, bottom - (bottom - 14.0) * probability

    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (at(*pair) for pair in curve))
    marks = []
    for probability in (0.5, 0.95):
        radius = next(radius for level, radius in levels if level >= probability)
        x, y = at(probability, radius)
        said = f"{messages.per_cent(probability)} within {messages.length(radius, unit)}"
        marks.append(
            f'<path class="level" d="M{left:.1f} {y:.1f}H{x:.1f}V{bottom:.1f}"/>'
            f'<circle class="level-dot" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
            f'<text class="small" x="{x + 14:.1f}" y="{y + 28:.1f}">{escape(said)}</text>'
        )
    ends = (
        f'<path class="axis" d="M{left:.1f} 14V{bottom:.1f}H{right:.1f}"/>'
        f'<text class="small" x="{left:.0f}" y="{height - 14:.0f}">0</text>'
        f'<text class="small end" x="{right:.0f}" y="{height - 14:.0f}">'
        f"{escape(messages.length(far, unit))} from the truth</text>"
    )
    return svg(f'{ends}<path class="curve" d="{line}"/>{"".join(marks)}', height, "how far reports lie from the truth")


def _streets(streets: Sequence[Floats], frame: Frame) -> str:
    lines = "".join(path(frame.place(line)) for line in streets)
    return f'<path class="street" d="{lines}"/>' if lines else ""


def _hexagons(pixels: Floats) -> str:
    """Return hexagons with the number of points in each, by the nearer of two interleaved grids of centres."""
    if not len(pixels):
        return ""
    wide = MAP_WIDTH / ACROSS
    tall = wide * math.sqrt(3.0)
    grids = []
    for shift in (0.0, 0.5):
        cells = np.rint(pixels / [wide, tall] - shift) + shift
        grids.append(cells * [wide, tall])
    away = [np.square(pixels - centres).sum(axis=1) for centres in grids]
    centres = np.where((away[0] <= away[1])[:, None], grids[0], grids[1])
    places, counts = np.unique(np.round(centres, 3), axis=0, return_counts=True)
    size = wide / math.sqrt(3.0)
    turn = np.radians(np.arange(30, 390, 60))
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=1) * size
    strength = 0.16 + 0.84 * np.sqrt(counts / counts.max())
    shapes = "".join(
        f'<path fill-opacity="{opacity:.2f}" d="{path(place + corners)}Z"/>'
        for place, opacity in zip(places, strength, strict=True)
    )
    return f'<g class="hexagons">{shapes}</g>'


def shares_svg(epsilons: Sequence[float], lines: Mapping[str, Sequence[float | None]], label: str) -> str:
    """Return up to three named shares by epsilon, as lines; a share that is not known is None."""
    height, left, right, bottom = 320.0, 64.0, MAP_WIDTH - 270.0, 268.0
    low, high = epsilons[0], epsilons[-1]
    wide = (high - low) or 1.0

    def at(epsilon: float, value: float) -> tuple[float, float]:
        return left + (right - left) * (epsilon - low) / wide, bottom - (bottom - 14.0) * value

    parts = [
        f'<path class="axis" d="M{left:.1f} 14V{bottom:.1f}H{right:.1f}"/>',
        *(
            f'<text class="small end" x="{left - 8:.0f}" y="{at(low, value)[1] + 5:.0f}">{100 * value:.0f} %</text>'
            for value in (0.0, 0.5, 1.0)
        ),
        *(
            f'<text class="small" text-anchor="middle" x="{at(one, 0)[0]:.0f}" y="{bottom + 24:.0f}">{one:g}</text>'
            for one in epsilons
        ),
        f'<text class="small" x="{left:.0f}" y="{height - 8:.0f}">epsilon</text>',
    ]
    dashes = ("", ' stroke-dasharray="10 6"', ' stroke-dasharray="3 5"')
    for number, ((words, values), dash) in enumerate(zip(lines.items(), dashes, strict=False)):
        points = [at(one, value) for one, value in zip(epsilons, values, strict=True) if value is not None]
        if points:
            line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            y = 40.0 + 30.0 * number
            parts.append(f'<path class="curve" d="{line}"{dash}/>')
            parts.append(f'<path class="curve" d="M{right + 16:.0f} {y - 5:.0f}h34"{dash}/>')
            parts.append(f'<text class="small" x="{right + 58:.0f}" y="{y:.0f}">{words}</text>')
    return svg("".join(parts), height, label)
