"""Inline SVG for the page of a protected table: where reports lie, an example at a public place, the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from metricdp import messages
from metricdp.arrays import Floats
from metricdp.metrics import KM_PER_DEGREE
from metricdp.plots import page
from metricdp.plots.release import NoiseDistribution, ReleaseScene, WordExample
from metricdp.plots.vector import MAP_WIDTH, Frame, dots, path, scale_bar, svg
from metricdp.rendering import escape

ACROSS = 44  # hexagons in the width of a picture
SHOWN = 0.99  # share of the reports that a picture must show, far ones left out
BARS = 60
TALLEST, FLATTEST = 0.66, 0.42  # height over width of a picture


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


def density_svg(scene: ReleaseScene) -> tuple[str, int]:
    """Return hexagons that are the darker the more reports lie there, and how many reports lie outside the picture."""
    everything = scene.reports if scene.true is None else np.concatenate([scene.reports, scene.true])
    frame = frame_of(everything, is_map=scene.kind == "map")
    pixels = frame.place(scene.reports)
    inside = np.all((pixels >= 0) & (pixels <= [MAP_WIDTH, frame.height]), axis=1)
    parts = [_streets(scene, frame), _hexagons(pixels[inside])]
    if scene.true is not None:
        true = frame.place(scene.true)
        chosen = np.unique(np.linspace(0, len(true) - 1, min(80, len(true))).astype(int))
        joins = "".join(path(np.stack([true[row], pixels[row]])) for row in chosen)
        parts.append(f'<path class="join" d="{joins}"/>{dots(true, "true", 3.4)}')
    parts.append(_scale_bar(frame, scene))
    label = f"where the reports in {', '.join(scene.columns)} lie"
    return svg("".join(parts), frame.height, label), int((~inside).sum())


def example_svg(scene: ReleaseScene, radius: float) -> str:
    """Return the reports drawn for a public place, with the circle that holds the truth around 95 % of reports."""
    example = scene.example
    if example is None:
        return ""
    is_map, ringed = scene.kind == "map", scene.kind == "plane" or scene.unit == "km"
    around = 2.0 * example.place - example.reports  # the place in the middle
    shown, share = np.concatenate([example.reports, around]), 0.98
    if ringed:
        up = 1.15 * radius / (KM_PER_DEGREE if is_map else 1.0)
        across = up / math.cos(math.radians(min(89.0, abs(float(example.place[0, 0]))))) if is_map else up
        steps = np.array([[up, 0.0], [-up, 0.0], [0.0, across], [0.0, -across]])
        shown, share = example.place + steps, 1.0
    frame = frame_of(shown, is_map=is_map, share=share)
    centre = frame.place(example.place)
    pixels = radius * frame.scale / (KM_PER_DEGREE if is_map else 1.0)
    ring = f'<circle class="ring" cx="{centre[0, 0]:.1f}" cy="{centre[0, 1]:.1f}" r="{pixels:.1f}"/>'
    circle = ring if ringed else ""
    parts = [_streets(scene, frame), circle, dots(frame.place(example.reports), "reported", 5.0)]
    parts += [dots(centre, "true", 7.0), _scale_bar(frame, scene)]
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


def words_html(words: tuple[tuple[str, int], ...]) -> str:
    """Return the words that were reported most, with bars."""
    most = max(count for _, count in words)
    rows = "".join(
        f'<div class="bar"><div class="name">{escape(word)}</div><div class="track">'
        f'<b class="seen" style="width:{100 * count / most:.2f}%"></b></div><div class="value">{count:,}</div></div>'
        for word, count in words
    )
    return f'<div class="bars">{rows}</div>'


def word_table(examples: Sequence[WordExample]) -> str:
    """Return what words are most likely reported as."""
    rows = (
        (one.word, ", ".join(f"{word} {messages.number(100 * share, 2)} %" for word, share in one.reports))
        for one in examples
    )
    return page.table(("Word", "Reported as, most often"), rows, "bt")


def distribution_svg(distribution: NoiseDistribution) -> str:
    """Return the probability that the truth lies within a distance of its report; 50 % and 95 % are marked."""
    curve = [(0.0, 0.0), *distribution.curve] if distribution.curve[0][1] > 0 else list(distribution.curve)
    middle = next(radius for level, radius in distribution.curve if level >= 0.95)
    far, height = (
        max(distribution.curve[-1][1], 1.45 * middle) or 1.0,
        300.0,
    )  # room for the words beside the point of 95 %
    curve.append((distribution.curve[-1][0], far))
    left, right, bottom = 64.0, MAP_WIDTH - 20.0, height - 52.0

    def at(probability: float, radius: float) -> tuple[float, float]:
        return left + (right - left) * radius / far, bottom - (bottom - 14.0) * probability

    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (at(*pair) for pair in curve))
    marks = []
    for probability in (0.5, 0.95):
        radius = next(radius for level, radius in distribution.curve if level >= probability)
        x, y = at(probability, radius)
        said = f"{messages.per_cent(probability)} within {messages.length(radius, distribution.unit)}"
        marks.append(
            f'<path class="level" d="M{left:.1f} {y:.1f}H{x:.1f}V{bottom:.1f}"/>'
            f'<circle class="level-dot" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
            f'<text class="small" x="{x + 14:.1f}" y="{y + 28:.1f}">{escape(said)}</text>'
        )
    ends = (
        f'<path class="axis" d="M{left:.1f} 14V{bottom:.1f}H{right:.1f}"/>'
        f'<text class="small" x="{left:.0f}" y="{height - 14:.0f}">0</text>'
        f'<text class="small end" x="{right:.0f}" y="{height - 14:.0f}">'
        f"{escape(messages.length(far, distribution.unit))} from the truth</text>"
    )
    return svg(f'{ends}<path class="curve" d="{line}"/>{"".join(marks)}', height, "how far reports lie from the truth")


def _streets(scene: ReleaseScene, frame: Frame) -> str:
    lines = "".join(path(frame.place(line)) for line in scene.streets)
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


def _scale_bar(frame: Frame, scene: ReleaseScene) -> str:
    per_degree = KM_PER_DEGREE if scene.kind == "map" else 1.0
    return scale_bar(per_degree / frame.scale, "km" if scene.kind == "map" else scene.unit, frame.height)
