"""What the rows say together: mechanisms at equal recovery, and a picture of accuracy against recovery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from metricdp.files import replace_file
from metricdp.plots import palette
from metricdp_papers.common import Row, StudyTable

RECOVERED = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
# One kernel exp(-a d) / N, whatever is promised for it: at equal recovery both are the same mechanism.
KERNEL = {"half-budget exponential": "exponential kernel", "certified exponential": "exponential kernel"}
DRAWN = ("exponential kernel", "optimal", "truncated (TEM)", "SanText", "SanText+", "CusText", "noise + nearest",
         "Vickrey", "Mahalanobis noise")  # fmt: skip
COLOURS = (palette.BEST, palette.INK, palette.TRUE, palette.BOUND, "#b8860b", "#c2407a", palette.REPORTED,
           palette.MUTED, palette.PLAIN)  # fmt: skip


def derived(rows: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """Return the rows of Table 2 from those of Table 1."""
    return {"2": list(equal_recovery(rows.get("1", ())))}


def equal_recovery(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield accuracy, nominal epsilon and share of unchanged words where an attacker's first guess is right equally
    often, read off straight lines between the epsilons that were measured."""  # fmt: skip
    for (text, mechanism), points in curves(rows).items():
        tops = [point["top-1"] for point in points]
        for level in RECOVERED:
            if not (len(points) > 1 and tops[0] <= level <= tops[-1]):
                continue
            about = {"text": text, "mechanism": mechanism, "recovered": level}
            value = "corrected" if mechanism in DRAWN[:2] else "as_published"
            for measure in ("accuracy", "unchanged", "nominal epsilon", "true epsilon"):
                if mechanism == "exponential kernel" and measure == "nominal epsilon":
                    continue  # it depends on what is promised
                known = [point[measure] for point in points if isinstance(point.get(measure), int | float)]
                if len(known) == len(points):
                    yield {**about, "measure": measure, value: float(np.interp(level, tops, known))}


def curves(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the points of every mechanism by text, in the order of recovery; those without one are left out."""
    found: dict[tuple[str, str], dict[tuple[str, float], Row]] = {}
    for row in rows:
        mechanism = KERNEL.get(row["mechanism"], row["mechanism"])
        value = row.get("corrected") if row.get("corrected") is not None else row.get("as_published")
        if mechanism in DRAWN and isinstance(row["epsilon"], int | float):
            point = found.setdefault((row["text"], mechanism), {}).setdefault(
                (row["mechanism"], row["epsilon"]), {"nominal epsilon": row["epsilon"]}
            )
            point[row["measure"]] = value
    whole = {
        key: sorted((one for one in points.values() if {"top-1", "accuracy"} <= one.keys()), key=lambda p: p["top-1"])
        for key, points in found.items()
    }
    return {key: points for key, points in whole.items() if points}


def picture(table: StudyTable, rows: Sequence[Row], path: Path) -> None:
    """Draw accuracy against the attacker's first guess, one panel a text."""
    if table.number != "1":
        return
    lines = curves(rows)
    texts = [text for text in dict.fromkeys(text for text, _ in lines) if text != "made up"] or ["made up"]
    with palette.plot_style():
        drawn = palette.figure(5.6 * len(texts), 4.6)
        for place, text in enumerate(texts, start=1):
            axes = drawn.add_subplot(1, len(texts), place)
            _panel(axes, text, lines, rows)
        with replace_file(path) as partial:
            drawn.savefig(partial, format="png")


def _panel(axes: Any, text: str, lines: Mapping[tuple[str, str], Sequence[Row]], rows: Sequence[Row]) -> None:
    for number, (mechanism, colour) in enumerate(zip(DRAWN, COLOURS, strict=True)):
        points = lines.get((text, mechanism), ())
        across, up = [point["top-1"] for point in points], [point["accuracy"] for point in points]
        if points:
            axes.plot(across, up, marker=palette.MARKERS[number % 6], markersize=5, color=colour, label=mechanism)
    for row in rows:
        if (row["text"], row["mechanism"], row["measure"]) == (text, "clean text", "accuracy"):
            axes.axhline(row["corrected"], color=palette.LINE, linestyle=":", label="clean text")
    axes.set_title(text)
    axes.set_xlabel("words an attacker's first guess recovers")
    axes.set_ylabel("accuracy")
    axes.set_xlim(0, 1.02)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
